package metamorphic

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/hllpp"
	"github.com/tabletop-emu/tabletop/internal/test/model"
)

// The parts of operations: few names, so that operations affect each other, and bytes that are
// difficult for codecs.
var (
	tables     = []string{tablePrefix + "t", tablePrefix + "t2", tablePrefix + "restored"}
	families   = []string{"a", "b", "c", "sum", "min", "max", "hll"}
	aggregates = map[string]engine.Aggregate{
		"sum": engine.AggregateSum, "min": engine.AggregateMin, "max": engine.AggregateMax, "hll": engine.AggregateHLL,
	}
	rows       = []string{"", "\x00", "\x00\x01", "a", "a\x00", "a\x00\xff", "ab", "b", "b\xff", "\xff", "\xff\xff"}
	qualifiers = []string{"", "\x00", "q", "q\x00", "q\x01", "r", "\xff"}
	timestamps = []int64{engine.ServerTimestamp, 0, 1000, 2000, 3000, 1_700_000_000_000_000, 1_700_003_600_000_000}
	views      = []string{"v1", "v2"}
	backups    = []string{"b1", "b2", "b3"}
	reasons    = []engine.JournalReason{engine.JournalStream, engine.JournalViews}
	keeps      = []time.Duration{0, time.Minute, time.Hour, time.Hour, 1000 * time.Hour}
	gcRules    = []engine.GCRule{
		{},
		{Kind: engine.MaxVersions, Versions: 1},
		{Kind: engine.MaxVersions, Versions: 2},
		{Kind: engine.MaxAge, Age: time.Hour},
		{Kind: engine.Union, Rules: []engine.GCRule{
			{Kind: engine.MaxVersions, Versions: 2}, {Kind: engine.MaxAge, Age: time.Minute},
		}},
		{Kind: engine.Intersection, Rules: []engine.GCRule{
			{Kind: engine.MaxVersions, Versions: 1}, {Kind: engine.MaxAge, Age: time.Minute},
		}},
		{Kind: engine.Union, Rules: []engine.GCRule{
			{Kind: engine.MaxVersions, Versions: 3}, {Kind: engine.Intersection, Rules: []engine.GCRule{
				{Kind: engine.MaxVersions, Versions: 1}, {Kind: engine.MaxAge, Age: time.Minute},
			}},
		}},
	}
)

// tablePrefix begins the names of tables, so that a server can have views of them.
const tablePrefix = "projects/p/instances/i/tables/"

// positions is the number of remembered positions of a table's journal, including the
// beginning.
const positions = 5

// generator draws operations from a seeded source.
type generator struct {
	rng  *rand.Rand
	next []op // fixed operations before further draws
}

func pick[T any](g *generator, from []T) T { return from[g.rng.IntN(len(from))] }

// op draws one operation.
func (g *generator) op() op {
	if len(g.next) > 0 {
		o := g.next[0]
		g.next = g.next[1:]
		return o
	}
	o := op{table: pick(g, tables), row: pick(g, rows), family: g.family(), qualifier: pick(g, qualifiers)}
	if g.rng.IntN(2) == 0 {
		o.table = tables[0]
	}
	switch n := g.rng.IntN(1000); {
	case n < 340:
		o.kind, o.muts = mutate, g.mutations()
	case n < 354:
		o.kind, o.reason, o.limit = readJournal, pick(g, reasons), g.rng.IntN(4)
		o.after, o.to = g.rng.IntN(positions), g.rng.IntN(positions)
		if g.rng.IntN(2) == 0 {
			o.spans = g.spans()[:1]
		}
	case n < 356:
		o.kind, o.reason, o.to = readEnd, pick(g, reasons), g.rng.IntN(positions)
	case n < 364:
		o.kind, o.reason, o.by = readSince, pick(g, reasons), time.Duration(g.rng.Int64N(int64(80*time.Minute)))
	case n < 370:
		o.kind = foldJournal
	case n < 373:
		o.kind, o.backup = createBackup, pick(g, backups)
	case n < 377:
		o.kind, o.backup, o.from = copyBackup, pick(g, backups), pick(g, backups)
	case n < 390:
		o.kind, o.backup, o.table = restoreBackup, pick(g, backups), pick(g, tables[1:])
	case n < 475:
		o.kind, o.muts = update, g.mutations()
	case n < 490:
		o.kind, o.ignore, o.fail = updateCatalog, g.rng.IntN(4) == 0, g.rng.IntN(4) == 0
		for range 1 + g.rng.IntN(4) {
			o.steps = append(o.steps, g.catalogStep())
		}
	case n < 500:
		o.kind = readCatalog
	case n < 580:
		o.kind, o.rules = readModifyWrite, g.rules()
	case n < 680:
		g.ofView(&o)
	case n < 880:
		o.kind, o.reverse, o.mode = scan, g.rng.IntN(3) == 0, scanMode(g.rng.IntN(int(scanModesEnd)))
		if g.rng.IntN(2) == 0 {
			o.spans = g.spans()
		}
	case n < 905:
		o.kind = runGC
	case n < 920:
		o.kind, o.by = advance, time.Duration(g.rng.Int64N(int64(40*time.Minute)))
	case n < 940:
		o.kind, o.spans = dropRows, []engine.Span{{Start: []byte(pick(g, rows)), End: []byte(pick(g, rows))}}
	case n < 984:
		return g.catalogStep()
	case n < 986:
		o.kind = compact
	case n < 990:
		o.kind = takeSnapshot
	case n < 995:
		o.kind = restoreSnapshot
	case n < 998:
		return g.interrupted(crash)
	default:
		return g.interrupted(reopen)
	}
	return o
}

func (g *generator) rules() []engine.RuleReadModifyWrite {
	var rules []engine.RuleReadModifyWrite
	for range 1 + g.rng.IntN(3) {
		r := engine.RuleReadModifyWrite{Family: g.ordinaryFamily(), Qualifier: []byte(pick(g, qualifiers))}
		if g.rng.IntN(2) == 0 {
			r.Append = bytes.Repeat([]byte{byte(g.rng.IntN(256))}, pick(g, []int{0, 1, 8}))
		} else {
			r.Increment = g.rng.Int64() >> g.rng.IntN(64)
		}
		rules = append(rules, r)
	}
	return rules
}

// ofView makes o an operation on a view.
func (g *generator) ofView(o *op) {
	o.view = pick(g, views)
	switch n := g.rng.IntN(100); {
	case n < 12:
		o.kind, o.subset = createView, g.subset()
	case n < 20:
		o.kind, o.subset = updateView, g.subset()
	case n < 24:
		o.kind = deleteView
	case n < 29:
		o.kind = getView
	case n < 60:
		o.kind, o.reverse, o.spans = scanView, g.rng.IntN(3) == 0, []engine.Span{{}}
		if g.rng.IntN(2) == 0 {
			o.spans = g.spans()
		}
		// The API has no empty row key.
		if first := &o.spans[0]; len(first.Start) == 0 {
			first.Start = []byte("\x00")
		}
		o.spans = slices.DeleteFunc(o.spans, func(s engine.Span) bool { return bytes.Equal(s.Start, s.End) })
		if len(o.spans) == 0 {
			o.spans = []engine.Span{{Start: []byte("\x00")}}
		}
	case n < 78:
		o.kind, o.muts = mutateView, g.viewMutations(1+g.rng.IntN(2))
	case n < 90:
		o.kind, o.muts, o.otherwise = checkView, g.viewMutations(1+g.rng.IntN(2)), g.viewMutations(g.rng.IntN(2))
	default:
		o.kind, o.rules = readModifyWriteView, g.rules()[:1]
	}
}

// subset draws a definition, usually of a large part, so that most data is inside.
func (g *generator) subset() model.View {
	some := func(from []string, most int) []string {
		var out []string
		for range g.rng.IntN(most + 1) {
			out = append(out, pick(g, from))
		}
		return out
	}
	v := model.View{Rows: some(rows, 4), Families: map[string]model.Columns{}}
	if g.rng.IntN(2) == 0 {
		v.Rows = []string{""}
	}
	for _, family := range families[:4] { // all but three aggregate families
		if g.rng.IntN(4) > 0 {
			c := model.Columns{Qualifiers: some(qualifiers, 3), Prefixes: some(qualifiers, 2)}
			if g.rng.IntN(3) == 0 {
				c.Prefixes = append(c.Prefixes, "")
			}
			v.Families[family] = c
		}
	}
	if g.rng.IntN(100) == 0 {
		v.Families[g.family()] = model.Columns{Prefixes: []string{""}}
	}
	return v
}

// viewMutations draws n mutations that the API accepts.
func (g *generator) viewMutations(n int) []engine.Mutation {
	var muts []engine.Mutation
	for range n {
		m := engine.Mutation{
			Kind: engine.SetCell, Family: g.ordinaryFamily(), Qualifier: []byte(pick(g, qualifiers)),
			Timestamp: pick(g, timestamps), Value: bytes.Repeat([]byte{byte('a' + g.rng.IntN(26))}, pick(g, []int{0, 1, 8, 100})),
		}
		switch g.rng.IntN(12) {
		case 0:
			m = engine.Mutation{Kind: engine.DeleteFromRow}
		case 1:
			m = engine.Mutation{Kind: engine.DeleteFromFamily, Family: m.Family}
		case 2, 3: // not of a single version
			m = engine.Mutation{Kind: engine.DeleteFromColumn, Family: m.Family, Qualifier: m.Qualifier, Start: pick(g, []int64{0, 1000}), End: pick(g, []int64{0, 3000})}
		case 4, 5:
			m = engine.Mutation{Kind: engine.AddToCell, Family: "sum", Qualifier: m.Qualifier, Timestamp: pick(g, timestamps[1:]), Input: g.rng.Int64() >> g.rng.IntN(64)}
		}
		muts = append(muts, m)
	}
	return muts
}

// interrupted draws operations around the end of a store. Some take record numbers but write
// nothing, or write data that is soon deleted. A reader then reads to the end of a journal, and
// continues after the next write.
func (g *generator) interrupted(k kind) op {
	table := pick(g, tables)
	set := func(keep time.Duration) op {
		return op{kind: setJournal, table: table, reason: engine.JournalViews, by: keep}
	}
	for range g.rng.IntN(3) {
		switch g.rng.IntN(4) {
		case 0:
			g.next = append(g.next, op{kind: mutate, table: table, row: "a", muts: []engine.Mutation{
				{Kind: engine.MergeToCell, Family: "hll", Timestamp: 1000, Value: []byte("bad")},
			}})
		case 1:
			g.next = append(g.next, op{kind: updateCatalog, steps: []op{set(0), set(time.Hour)}, fail: true})
		case 2:
			g.next = append(g.next, op{kind: updateCatalog, steps: []op{set(time.Hour), set(0)}})
		case 3:
			g.next = append(g.next, set(0), set(time.Hour), set(0))
		}
	}
	read := op{kind: readJournal, table: table, to: 1}
	again, end := read, read
	again.after, again.to = 1, 0
	end.kind = readEnd // records to read may be trimmed
	g.next = append(g.next, read, end, op{kind: k}, again,
		op{kind: mutate, table: table, row: "a", muts: []engine.Mutation{{Kind: engine.SetCell, Family: "a", Timestamp: 1000}}}, again)
	return g.op()
}

// catalogStep draws a change of the catalog.
func (g *generator) catalogStep() op {
	o := op{table: pick(g, tables), row: pick(g, rows[1:]), qualifier: pick(g, qualifiers)}
	switch n := g.rng.IntN(84); {
	case n < 18:
		o.kind = modifyFamilies
		for range 1 + g.rng.IntN(2) {
			f := g.definition(g.family())
			o.changes = append(o.changes, pick(g, []engine.FamilyChange{{Create: f}, {Update: f}, {Drop: f.Name}}))
		}
	case n < 20:
		o.kind = deleteTable
	case n < 25:
		o.kind = softDeleteTable
	case n < 34:
		o.kind = undeleteTable
	case n < 35:
		o.kind = purgeTables
	case n < 42:
		o.kind = putResource
	case n < 46:
		o.kind = deleteResource
	case n < 50:
		o.kind, o.backup = deleteBackup, pick(g, backups)
	case n < 59:
		o.kind, o.reason, o.by = setJournal, pick(g, reasons), pick(g, keeps)
	default:
		return g.create(o.table)
	}
	return o
}

// create draws the creation of a table.
func (g *generator) create(table string) op {
	o := op{kind: createTable, table: table, def: engine.Table{Name: table, Granularity: pick(g, []engine.Granularity{engine.Millis, engine.Micros})}}
	for _, reason := range reasons {
		o.def.Journal[reason].Keep = pick(g, keeps)
	}
	for _, f := range families {
		o.def.Families = append(o.def.Families, *g.definition(f))
	}
	return o
}

// definition draws a definition of the family name, sometimes with an aggregate that differs from the
// existing one.
func (g *generator) definition(name string) *engine.Family {
	f := &engine.Family{Name: name, Aggregate: aggregates[name], GC: pick(g, gcRules)}
	if g.rng.IntN(100) == 0 {
		f.Aggregate = engine.Aggregate(g.rng.IntN(5))
	}
	if f.Aggregate != engine.NoAggregate {
		f.Meta = takesNumbers
	}
	return f
}

// family draws the name of a family, sometimes one that no table has.
func (g *generator) family() string {
	if g.rng.IntN(100) == 0 {
		return "nope"
	}
	return pick(g, families)
}

// ordinaryFamily draws the name of a family without an aggregate, and sometimes that of any
// family.
func (g *generator) ordinaryFamily() string {
	if g.rng.IntN(50) == 0 {
		return g.family()
	}
	return pick(g, families[:3])
}

// accumulation draws a mutation of an aggregate family.
func (g *generator) accumulation(family string) engine.Mutation {
	m := engine.Mutation{
		Kind: engine.AddToCell, Family: family, Qualifier: []byte(pick(g, qualifiers)), Timestamp: pick(g, timestamps),
		Input: g.rng.Int64() >> g.rng.IntN(64),
	}
	// Sketches of a column have one type, which depends on the qualifier, except for intended
	// mistakes.
	strings := family == "hll" && len(m.Qualifier)%2 == 0
	if g.rng.IntN(200) == 0 {
		strings = !strings
	}
	if strings {
		m.Value = bytes.Repeat([]byte{'x'}, g.rng.IntN(100))
	}
	if g.rng.IntN(3) > 0 {
		return m
	}
	m.Kind = engine.MergeToCell
	switch {
	case g.rng.IntN(10) == 0:
		m.Value = nil
	case g.rng.IntN(100) == 0:
		m.Value = []byte("bad")
	case family != "hll":
		m.Value = binary.BigEndian.AppendUint64(nil, uint64(m.Input))
	default:
		sketch := hllpp.New(hllpp.Int64)
		if strings {
			sketch = hllpp.New(hllpp.Bytes)
		}
		for i := range g.rng.IntN(5) {
			// One of the two has the sketch's type.
			_ = sketch.AddInt64(int64(i))
			_ = sketch.AddBytes([]byte{byte(i)})
		}
		m.Value = sketch.Marshal()
	}
	return m
}

func (g *generator) mutations() []engine.Mutation {
	var muts []engine.Mutation
	for range 1 + g.rng.IntN(4) {
		m := engine.Mutation{
			Kind: engine.SetCell, Family: g.ordinaryFamily(), Qualifier: []byte(pick(g, qualifiers)),
			Timestamp: pick(g, timestamps), Value: bytes.Repeat([]byte{byte('a' + g.rng.IntN(26))}, pick(g, []int{0, 1, 8, 100})),
		}
		if g.rng.IntN(3) == 0 {
			m = g.accumulation(pick(g, families[3:]))
			if g.rng.IntN(100) == 0 {
				m.Family = g.family()
			}
		}
		switch g.rng.IntN(12) {
		case 0:
			m = engine.Mutation{Kind: engine.DeleteFromRow}
		case 1:
			m = engine.Mutation{Kind: engine.DeleteFromFamily, Family: m.Family}
		case 2, 3:
			m = engine.Mutation{
				Kind: engine.DeleteFromColumn, Family: m.Family, Qualifier: m.Qualifier,
				Start: max(0, pick(g, timestamps)), End: max(0, pick(g, timestamps)+int64(g.rng.IntN(2))),
			}
		}
		muts = append(muts, m)
	}
	return muts
}

// spans draws sorted, disjoint spans that are not empty.
func (g *generator) spans() []engine.Span {
	n := 2 * (1 + g.rng.IntN(3))
	var bounds []string
	for range n {
		bounds = append(bounds, pick(g, rows))
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	var spans []engine.Span
	for i := 0; i+1 < len(bounds); i += 2 {
		spans = append(spans, engine.Span{Start: []byte(bounds[i]), End: []byte(bounds[i+1])})
	}
	if len(bounds)%2 == 1 {
		spans = append(spans, engine.Span{Start: []byte(bounds[len(bounds)-1])})
	}
	return spans
}
