package migrate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// changeOf is the n-th change of the item a: to a state with a value of G, or to none.
func changeOf(n int, was, now string) apply.Change {
	key := attr.Item{"PK": attr.String("a"), "SK": attr.String("x")}
	item := func(g string) attr.Item {
		return attr.Item{"PK": key["PK"], "SK": key["SK"], "G": attr.String(g), "GS": attr.String("s")}
	}
	c := apply.Change{Key: key, Position: applyPosition(n), Time: int64(n), Cells: 1e15, Complete: true}
	if was != "" {
		c.Was = []attr.Item{item(was)}
	}
	if now != "" {
		c.Now = item(now)
	}
	return c
}

// A guarded change that comes again is counted and writes nothing, and so is one before it; also after
// the deletion of the item.
func TestApply_Again(t *testing.T) {
	t.Parallel()
	to := newApplyTarget(t, mustLoad(t, rowOfOne))
	w := to.writer(t, true)
	for i, c := range []struct {
		change  apply.Change
		already int64
		left    string
	}{
		{changeOf(2, "g1", "g2"), 0, "g2"},
		{changeOf(2, "g1", "g2"), 1, "g2"},
		{changeOf(1, "", "g1"), 1, "g2"},
		{changeOf(3, "g2", ""), 0, ""},
		{changeOf(3, "g2", ""), 1, ""},
		{changeOf(2, "g1", "g2"), 1, ""},
		{changeOf(4, "", "g4"), 0, "g4"},
	} {
		done, err := w.Apply(t.Context(), []apply.Change{c.change})
		if err != nil {
			t.Fatal(err)
		}
		if done.Already != c.already || done.Applied != 1-c.already || c.already > 0 && done.CellsWritten+done.CellsDeleted > 0 {
			t.Errorf("change %d: %+v, want %d already there", i, done, c.already)
		}
		want := ""
		if c.left != "" {
			want = wantedCells(t, to.m, map[string]apply.Change{"a": changeOf(9, "", c.left)})
		}
		if got := to.text(t); sortedLines(got) != sortedLines(want) {
			t.Errorf("after change %d the tables hold\n%s\nwant\n%s", i, got, want)
		}
	}
}

// The item is written before its new index entry, and a former entry is deleted after it if the change
// names it, else before.
func TestApply_Order(t *testing.T) {
	t.Parallel()
	for _, guarded := range []bool{false, true} {
		for _, complete := range []bool{false, true} {
			to := newApplyTarget(t, mustLoad(t, rowOfOne))
			w := to.writer(t, guarded)
			if _, err := w.Apply(t.Context(), []apply.Change{changeOf(1, "", "g1")}); err != nil {
				t.Fatal(err)
			}
			var order []string
			log := &writtenTables{to.ClientConnInterface, func(table, row string) { order = append(order, table+" "+row[:min(2, len(row))]) }}
			w.B = table.NewBigtable(log, table.Options{})
			c := changeOf(2, "g1", "g2")
			if c.Complete = complete; !complete {
				c.Was = nil
			}
			if _, err := w.Apply(t.Context(), []apply.Change{c}); err != nil {
				t.Fatal(err)
			}
			want := []string{"t__G g1", "t a#", "t__G g2"}
			if complete {
				want = []string{"t a#", "t__G g1", "t__G g2"}
			}
			if !slices.Equal(order, want) {
				t.Errorf("guarded %t, complete %t: the order is %q, want %q", guarded, complete, order, want)
			}
		}
	}
}

// A later change that another process makes between any two writes of a change is what remains, with and
// without old images: the earlier one neither overwrites it nor leaves an entry.
func TestApply_Overtaken(t *testing.T) {
	t.Parallel()
	for _, complete := range []bool{false, true} {
		for at := 1; ; at++ {
			to := newApplyTarget(t, mustLoad(t, rowOfOne))
			w := to.writer(t, true)
			without := func(c apply.Change) apply.Change {
				if c.Complete = complete; !complete {
					c.Was = nil
				}
				return c
			}
			if _, err := w.Apply(t.Context(), []apply.Change{changeOf(1, "", "g1")}); err != nil {
				t.Fatal(err)
			}
			other, writes := to.writer(t, true), 0
			other.B = table.NewBigtable(to.ClientConnInterface, table.Options{})
			to.hook = func() error {
				if writes++; writes != at {
					return nil
				}
				_, err := other.Apply(t.Context(), []apply.Change{without(changeOf(3, "g2", "g3"))})
				return err
			}
			if _, err := w.Apply(t.Context(), []apply.Change{without(changeOf(2, "g1", "g2"))}); err != nil {
				t.Fatal(err)
			}
			if writes < at {
				if at < 4 {
					t.Errorf("complete %t: overtaken %d times, want more", complete, at-1)
				}
				break
			}
			if got, want := sortedLines(to.text(t)), sortedLines(wantedCells(t, to.m, map[string]apply.Change{"a": changeOf(3, "g2", "g3")})); got != want {
				t.Errorf("complete %t, overtaken at write %d: the tables hold\n%s\nwant\n%s", complete, at, got, want)
			}
		}
	}
}

// An earlier change that another process makes after the row was read is overwritten.
func TestApply_Raced(t *testing.T) {
	t.Parallel()
	to := newApplyTarget(t, mustLoad(t, rowOfOne))
	w, other := to.writer(t, true), to.writer(t, true)
	other.B = table.NewBigtable(to.ClientConnInterface, table.Options{})
	once := false
	to.hook = func() error {
		if once {
			return nil
		}
		once = true
		_, err := other.Apply(t.Context(), []apply.Change{changeOf(1, "", "g1")})
		return err
	}
	c := changeOf(2, "g1", "g2")
	c.Was, c.Complete = nil, false
	done, err := w.Apply(t.Context(), []apply.Change{c})
	if err != nil || done.Raced != 1 || done.Applied != 1 {
		t.Errorf("%+v, error %v, want one race", done, err)
	}
	if got, want := sortedLines(to.text(t)), sortedLines(wantedCells(t, to.m, map[string]apply.Change{"a": changeOf(2, "", "g2")})); got != want {
		t.Errorf("the tables hold\n%s\nwant\n%s", got, want)
	}
}

// writtenTables calls a function with each row that is written.
type writtenTables struct {
	grpc.ClientConnInterface
	log func(table, row string)
}

func tableOf(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func (c *writtenTables) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if req, ok := args.(*btpb.CheckAndMutateRowRequest); ok {
		c.log(tableOf(req.GetTableName()), string(req.GetRowKey()))
	}
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

func (c *writtenTables) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	return &writtenStream{s, c.log}, err
}

type writtenStream struct {
	grpc.ClientStream
	log func(table, row string)
}

func (s *writtenStream) SendMsg(m any) error {
	if req, ok := m.(*btpb.MutateRowsRequest); ok {
		for _, e := range req.GetEntries() {
			s.log(tableOf(req.GetTableName()), string(e.GetRowKey()))
		}
	}
	return s.ClientStream.SendMsg(m)
}

// A change that the mapping cannot lay out is refused alone, and leaves the item and its position as they
// were: a later change is applied.
func TestApply_Refused(t *testing.T) {
	t.Parallel()
	to := newApplyTarget(t, mustLoad(t, strings.Replace(rowOfOne, "on: {unknown-attribute: sidecar}", "on: {unknown-attribute: error}", 1)))
	for _, guarded := range []bool{false, true} {
		w := to.writer(t, guarded)
		var refused []apply.Change
		w.Refuse = func(c apply.Change, _ error) error {
			refused = append(refused, c)
			return nil
		}
		bad, beside := changeOf(2, "g1", "g2"), changeOf(3, "", "g3")
		bad.Now["unknown"] = attr.String("x")
		beside.Key = attr.Item{"PK": attr.String("b"), "SK": attr.String("x")}
		beside.Now["PK"] = beside.Key["PK"]
		done, err := w.Apply(t.Context(), []apply.Change{changeOf(1, "", "g1")})
		if err == nil {
			done, err = w.Apply(t.Context(), []apply.Change{bad, beside})
		}
		if err != nil || done.Refused != 1 || len(refused) != 1 || refused[0].Position != bad.Position {
			t.Fatalf("guarded %t: %+v, refused %v, error %v", guarded, done, refused, err)
		}
		want := wantedCells(t, to.m, map[string]apply.Change{"a": changeOf(1, "", "g1"), "b": beside})
		if got := to.text(t); sortedLines(got) != sortedLines(want) {
			t.Errorf("guarded %t: the tables hold\n%s\nwant\n%s", guarded, got, want)
		}
		stop := errors.New("stop")
		w.Refuse = func(apply.Change, error) error { return stop }
		if _, err := w.Apply(t.Context(), []apply.Change{bad}); !errors.Is(err, stop) {
			t.Errorf("guarded %t: the error is %v", guarded, err)
		}
	}
}

// A position cell is read as it was written; other values are errors that show them.
func TestApply_ParseStamp(t *testing.T) {
	t.Parallel()
	to := newApplyTarget(t, mustLoad(t, rowOfOne))
	if _, err := to.writer(t, true).Apply(t.Context(), []apply.Change{changeOf(7, "g1", "")}); err != nil {
		t.Fatal(err)
	}
	row, err := table.NewBigtable(to, table.Options{}).ReadRow(t.Context(), "t", []byte("a#x"), btclient.All())
	if err != nil || len(row.Cells) != 1 {
		t.Fatalf("row %v, error %v", row, err)
	}
	value := row.Cells[0].Value
	if got, err := apply.ParseStamp(value); err != nil || got != (apply.Stamp{Position: applyPosition(7), Gone: true, Micros: 7}) {
		t.Errorf("the stamp is %+v, error %v", got, err)
	}
	for _, bad := range [][]byte{nil, value[1:], append([]byte{2}, value[1:]...), append(slices.Clone(value), 0), []byte(strings.Replace(string(value), "T", "X", 1))} {
		if s, err := apply.ParseStamp(bad); err == nil {
			t.Errorf("%x is read as %+v", bad, s)
		}
	}
}

// Mappings whose changes need an order between items cannot be followed, with the line and a way out.
func TestApply_Followable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		rowOfOne:  "",
		rowOfMany: "",
		strings.Replace(rowOfOne, "row: [H, PK, SK]", "row: [H, PK]", 1): "rows of index H lack key attributes",
		`apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {n: N, m: N}}
target: {table: t, families: {v: {gc: {versions: 100}}, _t: {gc: {versions: 1}}}}
rules:
- {name: views, when: {SK: "views"}, row: ["{PK:s}"], put: [{attr: n, cell: "v:Views", codec: i64be}]}
- {name: views2, when: {SK: "views2"}, row: ["{PK:s}"], put: [{attr: m, cell: "v:Views", codec: i64be}], tag: true}
`: "rule views shares columns",
	} {
		m, err := layout.Load("m.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := apply.Followable(m); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// An ordered writer that was killed between an item and its index entry reads the row when the change comes
// again, and finds the item in its new state. It still writes the entry.
func TestApply_KilledBeforeEntry(t *testing.T) {
	t.Parallel()
	to := newApplyTarget(t, mustLoad(t, rowOfMany))
	w := to.writer(t, false)
	key := attr.Item{"PK": attr.String("a"), "SK": attr.String("l1")}
	item := func(tag string) attr.Item {
		return attr.Item{"PK": key["PK"], "SK": key["SK"], "G": attr.String("g"), "tags": attr.Value{Type: attr.SS, Set: []string{tag}}}
	}
	first := apply.Change{Key: key, Now: item("x"), Complete: true, Position: applyPosition(1), Time: 1, Cells: 1e15}
	second := apply.Change{Key: key, Was: []attr.Item{item("x")}, Now: item("y"), Complete: true, Position: applyPosition(2), Time: 2, Cells: 1e15}
	if _, err := w.Apply(t.Context(), []apply.Change{first}); err != nil {
		t.Fatal(err)
	}
	writes := 0
	to.hook = func() error {
		if writes++; writes == 2 {
			return errApplyKilled
		}
		return nil
	}
	if _, err := w.Apply(t.Context(), []apply.Change{second}); !errors.Is(err, errApplyKilled) {
		t.Fatalf("the error is %v after %d writes", err, writes)
	}
	to.hook = nil
	if _, err := w.Apply(t.Context(), []apply.Change{second}); err != nil {
		t.Fatal(err)
	}
	if got, want := sortedLines(to.text(t)), sortedLines(wantedCells(t, to.m, map[string]apply.Change{"a": second})); got != want {
		t.Errorf("the tables hold\n%s\nwant\n%s", got, want)
	}
}
