package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// plainMapping has no index: a deletion by an endpoint leaves no trace of the item.
const plainMapping = `apiVersion: migration/v1
source: {table: Tee, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {n: N}}
target: {table: t, joiner: oc, families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules: [{name: item, row: ["{PK}", "{SK}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

const deleteOfA = `{"TableName":"Tee","Key":{"PK":{"S":"a"},"SK":{"S":"x"}}}`

// plainStates are a table before and after a change of one of its items.
func plainStates() (before, after itemsAt) {
	a, b := `{"PK":{"S":"a"},"SK":{"S":"x"}}`, `{"PK":{"S":"b"},"SK":{"S":"x"}}`
	item := func(key, n string) string { return strings.TrimSuffix(key, "}") + `,"n":{"N":"` + n + `"}}` }
	return itemsAt{a: item(a, "1"), b: item(b, "1")}, itemsAt{a: item(a, "2"), b: item(b, "1")}
}

// checkWrites records the conditional writes that pass through it, and fails selected ones.
type checkWrites struct {
	grpc.ClientConnInterface
	tables []string
	fail   func(table string) error
}

func (c *checkWrites) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	if write, ok := req.(*btpb.CheckAndMutateRowRequest); ok {
		_, table, _ := strings.Cut(write.GetTableName(), "/tables/")
		c.tables = append(c.tables, table)
		if c.fail != nil {
			if err := c.fail(table); err != nil {
				return err
			}
		}
	}
	return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
}

// endpointOver opens an endpoint by plainMapping, with the given clock.
func endpointOver(t *testing.T, conn grpc.ClientConnInterface, now *time.Time) *facade.Server {
	t.Helper()
	s, err := facade.New(t.Context(), facade.Options{Conn: conn, Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}, Now: func() time.Time { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func callEndpoint(t *testing.T, s *facade.Server, operation, body string) {
	t.Helper()
	if _, err := s.Call(t.Context(), operation, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// A deletion by an endpoint leaves nothing in its table, but is recorded: the catch-up that
// would bring the item back is refused, however much later. The note precedes the first write,
// and each process writes it once.
func TestCatchUp_DeletedByAnEndpoint(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}
	load := func(conn grpc.ClientConnInterface, states ...itemsAt) ([]string, error) {
		t.Helper()
		r, err := Load(t.Context(), conn, exports(t, true, states...), LoadOptions{Common: o, KeepWrites: true})
		if err != nil {
			return nil, err
		}
		return r.Warnings, nil
	}
	const refused = "Bigtable table t: a DynamoDB endpoint has written to it since the load, but left nothing to count, as after deletions"
	for name, write := range map[string]struct{ operation, body string }{
		"DeleteItem":         {"DeleteItem", deleteOfA},
		"BatchWriteItem":     {"BatchWriteItem", `{"RequestItems":{"Tee":[{"DeleteRequest":{"Key":{"PK":{"S":"a"},"SK":{"S":"x"}}}}]}}`},
		"TransactWriteItems": {"TransactWriteItems", `{"TransactItems":[{"Delete":` + deleteOfA + `}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, loadedFirst := range []bool{true, false} { // a load may come while an endpoint is open
				now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
				conn := &checkWrites{ClientConnInterface: newBigtableServer(t)}
				var endpoint *facade.Server
				if !loadedFirst {
					endpoint = endpointOver(t, conn, &now)
				}
				if _, err := load(conn, before); err != nil {
					t.Fatal(err)
				}
				if loadedFirst {
					endpoint = endpointOver(t, conn, &now)
				}
				now = now.Add(2 * time.Second)
				callEndpoint(t, endpoint, "GetItem", deleteOfA)
				if text := tableText(t, conn, layout.SchemaTable); strings.Contains(text, loadnote.WrittenColumn) {
					t.Errorf("noted before anything is written:\n%s", text)
				}
				conn.tables = nil
				callEndpoint(t, endpoint, write.operation, write.body)
				if len(conn.tables) == 0 || conn.tables[0] != layout.SchemaTable && conn.tables[0] != "_tabletop.catalog" || strings.Count(fmt.Sprint(conn.tables), layout.SchemaTable) != 1 {
					t.Errorf("the first write goes to %v, want one to %s, before t", conn.tables, layout.SchemaTable)
				}
				for i, table := range conn.tables {
					if table == "t" && strings.Count(fmt.Sprint(conn.tables[:i]), layout.SchemaTable) == 0 {
						t.Errorf("the item is written before the note: %v", conn.tables)
					}
				}
				conn.tables = nil
				callEndpoint(t, endpoint, "PutItem", `{"TableName":"Tee","Item":{"PK":{"S":"z"},"SK":{"S":"x"}}}`)
				callEndpoint(t, endpoint, "DeleteItem", `{"TableName":"Tee","Key":{"PK":{"S":"z"},"SK":{"S":"x"}}}`)
				if strings.Contains(fmt.Sprint(conn.tables), layout.SchemaTable) {
					t.Errorf("noted again: %v", conn.tables)
				}
				there := allTables(t, conn)
				_, err := load(conn, before, after)
				WantDamage(t, err, source.TargetWritten, refused)
				if now := allTables(t, conn); now != there {
					t.Errorf("the tables hold\n%s\nwant\n%s", now, there)
				}
				// The full export alone brings it back, with a warning, and the note stays.
				warnings, err := load(conn, before)
				if err != nil || !strings.Contains(strings.Join(warnings, "\n"), "a DynamoDB endpoint has written to it since the last load") {
					t.Errorf("a load of the full export: warnings %q, error %v", warnings, err)
				}
				_, err = load(conn, before, after)
				WantDamage(t, err, source.TargetWritten, refused)
				// Notes are deleted with the table.
				if err := table.NewBigtable(conn, table.Options{}).DropTable(t.Context(), "t"); err != nil {
					t.Fatal(err)
				}
				for _, states := range [][]itemsAt{{before}, {before, after}} {
					if warnings, err := load(conn, states...); err != nil || strings.Contains(strings.Join(warnings, "\n"), "DynamoDB endpoint") {
						t.Errorf("after the table was deleted: warnings %q, error %v", warnings, err)
					}
				}
			}
		})
	}
}

// A write whose note fails is neither acknowledged nor made.
func TestCatchUp_NoteBeforeWrite(t *testing.T) {
	t.Parallel()
	before, _ := plainStates()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	conn := &checkWrites{ClientConnInterface: newBigtableServer(t)}
	if _, err := Load(t.Context(), conn, exports(t, true, before), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}}); err != nil {
		t.Fatal(err)
	}
	endpoint := endpointOver(t, conn, &now)
	there := tableText(t, conn, "t")
	conn.fail = func(table string) error {
		if table == layout.SchemaTable {
			return errors.New("out of reach")
		}
		return nil
	}
	if _, err := endpoint.Call(t.Context(), "DeleteItem", []byte(deleteOfA)); err == nil {
		t.Error("a delete that is not noted is acknowledged")
	}
	if got := tableText(t, conn, "t"); got != there {
		t.Errorf("the table holds\n%s\nwant\n%s", got, there)
	}
	conn.fail = nil
	callEndpoint(t, endpoint, "DeleteItem", deleteOfA)
	if got := tableText(t, conn, "t"); strings.Contains(got, "a\x00") || got == there {
		t.Errorf("the item still exists:\n%s", got)
	}
}

// A table that no load wrote costs nothing, with or without a mapping. After a second, the
// endpoint looks once for a load, by a read.
func TestCatchUp_NoNoteWithoutALoad(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	conn := &checkWrites{ClientConnInterface: newBigtableServer(t)}
	endpoint := endpointOver(t, conn, &now)
	callEndpoint(t, endpoint, "CreateTable", `{"TableName":"Own","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"PK","KeyType":"HASH"},{"AttributeName":"SK","KeyType":"RANGE"}],"AttributeDefinitions":[{"AttributeName":"PK","AttributeType":"S"},{"AttributeName":"SK","AttributeType":"S"}]}`)
	conn.tables = nil
	write := func(table string) (notes int) {
		for range 20 {
			callEndpoint(t, endpoint, "PutItem", `{"TableName":"`+table+`","Item":{"PK":{"S":"a"},"SK":{"S":"x"}}}`)
			callEndpoint(t, endpoint, "DeleteItem", strings.Replace(deleteOfA, "Tee", table, 1))
		}
		notes = strings.Count(fmt.Sprint(conn.tables), layout.SchemaTable)
		conn.tables = nil
		return notes
	}
	for _, c := range []struct {
		table string
		want  int
	}{{"Tee", 0}, {"Own", 0}} {
		if got := write(c.table); got != c.want {
			t.Errorf("%s: %d calls beyond those of the writes, want %d", c.table, got, c.want)
		}
	}
	now = now.Add(2 * time.Second)
	if got := write("Own"); got != 0 {
		t.Errorf("a table without a mapping: %d calls beyond those of the writes", got)
	}
	if got := write("Tee"); got != 0 {
		t.Errorf("a table of a mapping, later: %d writes beyond those of the items", got)
	}
}

// A catch-up killed at any of its writes has recorded its start: an older export is refused,
// and one as old, or newer, finishes it.
func TestCatchUp_KilledCatchUp(t *testing.T) {
	t.Parallel()
	killed := errors.New("killed")
	before, after := plainStates()
	for key := range before {
		if strings.Contains(key, `"b"`) {
			delete(after, key)
		}
	}
	c := `{"PK":{"S":"c"},"SK":{"S":"x"}}`
	last := itemsAt{c: c}
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}
	o.knobs = table.Knobs{Batch: 1}
	deaths := 0
	for at := 1; ; at++ {
		conn := &failing{ClientConnInterface: newBigtableServer(t)}
		load := func(states ...itemsAt) error {
			_, err := Load(t.Context(), conn, exports(t, false, states...), LoadOptions{Common: o})
			return err
		}
		if err := load(before); err != nil {
			t.Fatal(err)
		}
		there, first := allTables(t, conn), conn.calls
		conn.fail = func(call int, _ *btpb.MutateRowsRequest) error {
			if call-first >= at {
				return killed
			}
			return nil
		}
		err := load(before, after)
		conn.fail = nil
		if err == nil {
			break
		}
		deaths++
		if part := allTables(t, conn); at > 2 && part != there { // the first write is the id of the load
			WantDamage(t, load(before), source.TargetNewer, "Bigtable table t is partly loaded with exports up to ")
			if got := allTables(t, conn); got != part {
				t.Errorf("killed at write %d, a refused load leaves\n%s\nwant\n%s", at, got, part)
			}
		}
		if err := load(before, after, last); err != nil {
			t.Fatal(err)
		}
		if text := tableText(t, conn, layout.SchemaTable); strings.Contains(text, loadnote.UnfinishedColumn) {
			t.Errorf("killed at write %d, and finished, the note is\n%s", at, text)
		}
		if err := load(before, after); err == nil {
			t.Error("an older export is taken")
		}
	}
	if deaths < 4 {
		t.Errorf("killed %d times, want more", deaths)
	}
}
