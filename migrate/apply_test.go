package migrate_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// The mappings of the tests: a row for each item, with two indexes; and rows of many items, with
// columns by time, a set in a family that items share, and an index.
const (
	rowOfOne = `apiVersion: migration/v1
source:
  table: T
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {G: S, GS: S, H: S, n: N, tags: SS}
  gsis:
  - {name: G, hash: G, range: GS, projection: ALL, as: table}
  - {name: H, hash: H, projection: [n], as: table, row: [H, PK, SK]}
target: {table: t, families: {a: {gc: {versions: 1}}, tags: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
on: {unknown-attribute: sidecar}
rules: [{name: entity, row: ["{PK}", "{SK}"], put: [{attr: tags, cell: "tags:{member}"}, {attr: "*", cell: "a:{attr}"}]}]
`
	rowOfMany = `apiVersion: migration/v1
source:
  table: T
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {c: S, n: N, tags: SS, G: S}
  gsis: [{name: G, hash: G, projection: ALL, as: table, row: [G, PK, SK]}]
target: {table: t, families: {v: {gc: {versions: 100}}, s: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules:
- {name: comment, when: {SK: "c{t:revms(13)}"}, row: ["{PK:s}"], put: [{attr: c, cell: "v:~Comments", ts: "{t}"}]}
- {name: views, when: {SK: "views"}, row: ["{PK:s}"], put: [{attr: n, cell: "v:Views", codec: i64be}, {attr: G, cell: "v:G"}]}
- {name: labels, when: {SK: "l{k:pad(1)}"}, row: ["{PK:s}"], put: [{attr: tags, cell: "s:{k}.{member}"}, {attr: G, cell: "v:L{k}.G"}]}
`
)

func mustLoad(tb testing.TB, text string) *layout.Mapping {
	tb.Helper()
	m, err := layout.Load("m.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// applyTarget is a Bigtable with the tables of a mapping. hook is called before each write of rows.
type applyTarget struct {
	grpc.ClientConnInterface
	m    *layout.Mapping
	mu   sync.Mutex // one hook at a time
	hook func() error
}

func newApplyTarget(tb testing.TB, m *layout.Mapping) *applyTarget {
	tb.Helper()
	db, err := engine.Open(engine.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	server, err := emu.New(emu.Options{DB: db})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(server.Close(), db.Close()); err != nil {
			tb.Error(err)
		}
	})
	to := &applyTarget{ClientConnInterface: server.Conn(), m: m}
	position := layout.Family{Name: lens.FamilyPosition, GC: layout.GC{Versions: 1}}
	b := table.NewBigtable(to, table.Options{})
	for _, x := range m.Indexes() {
		if _, err := b.MakeTable(tb.Context(), x.TargetTable(), append(slices.Clone(x.Families()), position)); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := b.MakeTable(tb.Context(), m.TargetTable(), append(slices.Clone(m.Families()), position)); err != nil {
		tb.Fatal(err)
	}
	return to
}

func (c *applyTarget) before(method string) error {
	if c.hook == nil || !strings.Contains(method, "MutateRow") {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hook()
}

func (c *applyTarget) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if err := c.before(method); err != nil {
		return err
	}
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

func (c *applyTarget) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if err := c.before(method); err != nil {
		return nil, err
	}
	return c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
}

// writer returns a writer that fails the test if a change is refused.
func (c *applyTarget) writer(tb testing.TB, guarded bool) *apply.Writer {
	tb.Helper()
	return &apply.Writer{
		B: table.NewBigtable(c, table.Options{}), Mapping: c.m, Guarded: guarded,
		Refuse: func(c apply.Change, err error) error { return fmt.Errorf("refused %v: %w", c.Key, err) },
	}
}

// text returns the cells of all tables without positions, one per line. Times of index entries are
// left out.
func (c *applyTarget) text(t *testing.T) string {
	t.Helper()
	var lines []string
	b := table.NewBigtable(c, table.Options{})
	for i, id := range mappedTables(c.m) {
		for row, err := range b.Rows(t.Context(), btclient.Read{Table: id, Spans: []layout.Span{{}}}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, cell := range row.Cells {
				if cell.Family != lens.FamilyPosition {
					lines = append(lines, cellLine(id, i > 0, row.Key, cell))
				}
			}
		}
	}
	return strings.Join(lines, "\n")
}

func mappedTables(m *layout.Mapping) []string {
	ids := []string{m.TargetTable()}
	for _, x := range m.Indexes() {
		ids = append(ids, x.TargetTable())
	}
	return ids
}

func cellLine(id string, index bool, row []byte, c layout.Cell) string {
	if index {
		c.Timestamp = 0
	}
	return fmt.Sprintf("%s %q %s:%q @%d %q", id, row, c.Family, c.Qualifier, c.Timestamp, c.Value)
}

// wantedCells returns the text of the tables that hold exactly the items, each with the default time of
// its cells.
func wantedCells(t *testing.T, m *layout.Mapping, items map[string]apply.Change) string {
	t.Helper()
	cells := make([][]string, len(mappedTables(m)))
	for _, c := range items {
		if c.Now == nil {
			continue
		}
		placed, err := m.Place(c.Now, c.Cells)
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range placed.Cells {
			cells[0] = append(cells[0], cellLine(mappedTables(m)[0], false, placed.Row, cell))
		}
		back, _ := m.Returned(c.Now, placed)
		for i, x := range m.Indexes() {
			entry, ok, err := x.Place(back, c.Cells)
			if err != nil {
				t.Fatal(err)
			}
			for _, cell := range entry.Cells {
				if ok {
					cells[i+1] = append(cells[i+1], cellLine(x.TargetTable(), true, entry.Row, cell))
				}
			}
		}
	}
	return strings.Join(slices.Concat(cells...), "\n")
}

// sortedLines compares texts whose lines may have another order.
func sortedLines(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// applyPosition returns the position of the n-th change of a source.
func applyPosition(n int) apply.Position {
	p := apply.Position{Epoch: 1}
	binary.BigEndian.PutUint64(p.Order[12:], uint64(n)) //nolint:gosec // not negative
	return p
}

// drawApplied draws an item of one of ten keys; nil if it does not exist.
func drawApplied(r *rand.Rand, many bool, n int) (key, item attr.Item) {
	if many {
		key = attr.Item{"PK": attr.String(fmt.Sprint("p", n/5)), "SK": attr.String([]string{"c1700000000000", "c1700000000001", "views", "l1", "l2"}[n%5])}
	} else {
		key = attr.Item{"PK": attr.String(fmt.Sprint("p", n/2)), "SK": attr.String(fmt.Sprint("s", n%2))}
	}
	if r.IntN(4) == 0 {
		return key, nil
	}
	item = maps.Clone(key)
	some := func(name string, v attr.Value) {
		if r.IntN(2) == 0 {
			item[name] = v
		}
	}
	tags := attr.Value{Type: attr.SS, Set: []string{fmt.Sprint("x", r.IntN(2)), fmt.Sprint("y", r.IntN(2))}}
	switch {
	case !many:
		some("G", attr.String(fmt.Sprint("g", r.IntN(2))))
		some("GS", attr.String(fmt.Sprint("t", r.IntN(2))))
		some("H", attr.String(fmt.Sprint("h", r.IntN(2))))
		some("n", attr.Value{Type: attr.N, Str: fmt.Sprint(r.IntN(3))})
		some("tags", tags)
		some("other", attr.String("o"))
	case n%5 < 2:
		item["c"] = attr.String(fmt.Sprint("text", r.IntN(3)))
	case n%5 == 2:
		item["n"] = attr.Value{Type: attr.N, Str: fmt.Sprint(r.IntN(3))}
		some("G", attr.String(fmt.Sprint("g", r.IntN(2))))
	default:
		item["tags"] = tags
		some("G", attr.String(fmt.Sprint("g", r.IntN(2))))
	}
	return key, item
}

// applyHistory draws the items of an export and the changes after it. images tells how often a change has
// its old image: 0 never, 1 sometimes, 2 always.
func applyHistory(r *rand.Rand, many bool, images int) (export map[string]apply.Change, changes []apply.Change) {
	export = map[string]apply.Change{}
	now := map[string]attr.Item{}
	for n := range 10 {
		key, item := drawApplied(r, many, n)
		if item != nil {
			name := string(attr.AppendItemJSON(nil, key))
			export[name], now[name] = apply.Change{Key: key, Now: item, Cells: 1e15}, item
		}
	}
	for i := range 5 + r.IntN(40) {
		key, item := drawApplied(r, many, r.IntN(10))
		name := string(attr.AppendItemJSON(nil, key))
		was := now[name]
		if was == nil && item == nil {
			continue
		}
		c := apply.Change{Key: key, Now: item, Position: applyPosition(i + 1), Time: 1e15 + int64(i)*1e6, Cells: 1e15 + int64(i/2)*1000}
		if c.Complete = images == 2 || images == 1 && r.IntN(2) == 0; c.Complete && was != nil {
			c.Was = []attr.Item{was}
		}
		now[name] = item
		changes = append(changes, c)
	}
	return export, changes
}

// loadExport writes the items of an export without positions.
func loadExport(t *testing.T, to *applyTarget, export map[string]apply.Change) {
	t.Helper()
	b := table.NewBigtable(to.ClientConnInterface, table.Options{})
	for _, c := range export {
		placed, err := to.m.Place(c.Now, c.Cells)
		if err != nil {
			t.Fatal(err)
		}
		if len(placed.Cells) > 0 {
			if err := b.MutateRow(t.Context(), to.m.TargetTable(), placed.Row, btclient.AppendSets(nil, placed.Cells)); err != nil {
				t.Fatal(err)
			}
		}
		back, _ := to.m.Returned(c.Now, placed)
		for _, x := range to.m.Indexes() {
			if entry, ok, err := x.Place(back, c.Cells); err != nil {
				t.Fatal(err)
			} else if ok {
				if err := b.MutateRow(t.Context(), x.TargetTable(), entry.Row, btclient.AppendSets(nil, entry.Cells)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// lastStates returns the state of all items after changes.
func lastStates(export map[string]apply.Change, changes []apply.Change) map[string]apply.Change {
	state := maps.Clone(export)
	for _, c := range changes {
		state[string(attr.AppendItemJSON(nil, c.Key))] = c
	}
	return state
}

var errApplyKilled = errors.New("killed")

// The tables hold the state after the last change of each item, for both mappings and ways to write,
// with old images and without, however the changes are delivered: in batches of any size, again from any
// earlier point, and after a process was killed before any of its writes. A guarded writer also takes
// them in any order, beside another process that writes at the same time.
func TestApply_Model(t *testing.T) {
	t.Parallel()
	seeds := uint64(12)
	if long.Enabled() {
		seeds = 600
	}
	for name, text := range map[string]string{"row of one": rowOfOne, "row of many": rowOfMany} {
		for _, guarded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, guarded %t", name, guarded), func(t *testing.T) {
				t.Parallel()
				m := mustLoad(t, text)
				for seed := range seeds {
					r := rand.New(rand.NewPCG(seed, 1))
					images := int(seed % 3)
					export, changes := applyHistory(r, text == rowOfMany, images)
					to := newApplyTarget(t, m)
					loadExport(t, to, export)
					if guarded && images != 1 {
						deliverAny(t, to, r, changes)
					} else {
						deliverInOrder(t, to, r, guarded, changes)
					}
					if got, want := sortedLines(to.text(t)), sortedLines(wantedCells(t, m, lastStates(export, changes))); got != want {
						t.Fatalf("seed %d: after\n%s\nthe tables hold\n%s\nwant\n%s", seed, changesText(changes), got, want)
					}
				}
			})
		}
	}
}

func changesText(changes []apply.Change) string {
	var out []byte
	for i, c := range changes {
		out = fmt.Appendf(out, "%d %s -> %s, complete %t\n", i, attr.AppendItemJSON(nil, c.Key), attr.AppendItemJSON(nil, c.Now), c.Complete)
	}
	return string(out)
}

// deliverInOrder applies changes in their order, sometimes again from an earlier one.
func deliverInOrder(t *testing.T, to *applyTarget, r *rand.Rand, guarded bool, changes []apply.Change) {
	t.Helper()
	w := to.writer(t, guarded)
	for from := 0; from < len(changes); {
		n := min(1+r.IntN(10), len(changes)-from)
		kill := r.IntN(12)
		to.hook = func() error {
			if kill--; kill == 0 {
				return errApplyKilled
			}
			return nil
		}
		_, err := w.Apply(t.Context(), changes[from:from+n])
		to.hook = nil
		switch {
		case err != nil && !errors.Is(err, errApplyKilled):
			t.Fatal(err)
		case err != nil || r.IntN(6) == 0:
			from = max(0, from-r.IntN(8)) // a checkpoint below
		default:
			from += n
		}
	}
}

// deliverAny applies changes in any order until each was applied as a whole.
func deliverAny(t *testing.T, to *applyTarget, r *rand.Rand, changes []apply.Change) {
	t.Helper()
	one, two := to.writer(t, true), to.writer(t, true)
	draw := func() (batch []apply.Change) {
		for range 1 + r.IntN(6) {
			batch = append(batch, changes[r.IntN(len(changes))])
		}
		return batch
	}
	pending := map[int]bool{}
	for i := range changes {
		pending[i] = true
	}
	for len(pending) > 0 {
		batch, of := draw(), []int{}
		for _, i := range slices.Sorted(maps.Keys(pending)) {
			if r.IntN(3) == 0 {
				batch, of = append(batch, changes[i]), append(of, i)
			}
		}
		r.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		kill, other, beside := r.IntN(20), r.IntN(10), draw()
		to.hook = func() error {
			if other--; other == 0 {
				if _, err := (&apply.Writer{B: table.NewBigtable(to.ClientConnInterface, table.Options{}), Mapping: two.Mapping, Guarded: true, Refuse: two.Refuse}).Apply(t.Context(), beside); err != nil {
					t.Error(err)
				}
			}
			if kill--; kill == 0 {
				return errApplyKilled
			}
			return nil
		}
		_, err := one.Apply(t.Context(), batch)
		to.hook = nil
		if err != nil && !errors.Is(err, errApplyKilled) {
			t.Fatal(err)
		}
		if err == nil {
			for _, i := range of {
				delete(pending, i)
			}
		}
	}
}
