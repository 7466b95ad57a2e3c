package migrate

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/internal/apply"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

var sequencesFlag = flag.Uint64("sequences", 0, "number of sequences of TestLoad_Sequences; 0 runs as many as the tier")

const sequencesMapping = `apiVersion: migration/v1
source: {table: Tee, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {n: N, g: S}, gsis: [{name: byG, hash: g, projection: ALL, as: table}]}
target: {table: t, families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules: [{name: item, row: ["{PK}", "{SK}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

// attributes are an item without its key, by name, each value as in DynamoDB's JSON.
type attributes map[string]string

// state is the items of a table, by PK.
type state map[string]attributes

func (s state) clone() state {
	out := state{}
	for pk, item := range s {
		out[pk] = maps.Clone(item)
	}
	return out
}

func keyJSON(pk string) string { return fmt.Sprintf(`{"PK":{"S":%q},"SK":{"S":"x"}}`, pk) }

func itemJSON(pk string, item attributes) string {
	text := strings.TrimSuffix(keyJSON(pk), "}")
	for _, name := range slices.Sorted(maps.Keys(item)) {
		text += fmt.Sprintf(",%q:%s", name, item[name])
	}
	return text + "}"
}

// at returns the items as sources of tests take them.
func (s state) at() itemsAt {
	out := itemsAt{}
	for pk, item := range s {
		out[keyJSON(pk)] = itemJSON(pk, item)
	}
	return out
}

func (s state) String() string {
	var lines []string
	for pk, item := range s {
		lines = append(lines, itemJSON(pk, item))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func drawAttributes(r *rand.Rand) attributes {
	item := attributes{}
	if r.IntN(3) > 0 {
		item["n"] = fmt.Sprintf(`{"N":"%d"}`, r.IntN(3))
	}
	if r.IntN(3) > 0 {
		item["g"] = fmt.Sprintf(`{"S":"g%d"}`, r.IntN(3))
	}
	return item
}

func drawState(r *rand.Rand) state {
	s := state{}
	for _, pk := range []string{"a", "b", "c"} {
		if r.IntN(3) > 0 {
			s[pk] = drawAttributes(r)
		}
	}
	if len(s) == 0 {
		s["a"] = drawAttributes(r)
	}
	return s
}

// kind is the kind of a source in the words of docs/guide.md.
type kind int

const (
	noSource kind = iota
	export        // a full export and the first increments of a chain
	laterExport
	file // without a time
)

// drawn is a source of a sequence.
type drawn struct {
	kind   kind
	number int // of increments, or of the file
}

func (d drawn) String() string {
	switch d.kind {
	case export:
		return fmt.Sprintf("the export and %d increments", d.number)
	case laterExport:
		return "a later export"
	case file:
		return fmt.Sprintf("file %d", d.number)
	case noSource:
	}
	return "nothing"
}

// sequence is a table that is loaded again and again, and a model of it.
type sequence struct {
	t      *testing.T
	rand   *rand.Rand
	conn   grpc.ClientConnInterface
	o      LoadOptions
	chain  []state // after each number of increments
	later  state
	files  [2]state
	holds  drawn
	cut    bool            // the load of holds was cut off
	mixed  bool            // a load let two sources mix: items, attributes and index entries of the first stay
	items  state           // in the table, unless cut
	writes map[string]bool // the keys of items that the endpoint wrote
	wrote  bool            // the endpoint wrote or deleted items
	// followed: a migration follows a live table into this one; ended: one did, and ended.
	followed, ended bool
	position        byte // of its last change
	steps           []string
}

func (s *sequence) itemsOf(d drawn) state {
	switch d.kind {
	case export:
		return s.chain[d.number]
	case laterExport:
		return s.later
	case noSource, file:
	}
	return s.files[d.number]
}

func (s *sequence) open(d drawn) *source.Source {
	if d.kind == file {
		return undated(s.t, s.files[d.number].at())
	}
	states := []itemsAt{s.itemsOf(d).at()}
	if d.kind == export {
		states = states[:0]
		for _, x := range s.chain[:d.number+1] {
			states = append(states, x.at())
		}
	}
	src := exports(s.t, true, states...)
	if d.kind == laterExport {
		src.Tables[0].ExportTime = exporttest.Time.Add(10 * time.Hour)
	}
	return src
}

// guide returns the flags with which the table of docs/guide.md lets d be loaded over what
// the table holds; known is false where it has no such row.
func (s *sequence) guide(d drawn) (loads, mix, keep, known bool) {
	switch {
	case s.followed, s.ended && len(s.items) > 0:
		return false, false, false, true
	case s.ended:
		return false, false, false, false // rows without items may be left
	case s.holds.kind == noSource, !s.cut && len(s.items) == 0:
		loads = true
	case s.cut && d == s.holds && !s.mixed:
		loads = true
	case s.cut || (s.mixed || s.holds.kind == file) && d.kind == export && d.number > 0:
		return false, false, false, false // the result depends on the cut, or on the mixed items
	case d == s.holds:
		loads = true
	case s.holds.kind == export && d.kind == export && d.number > s.holds.number:
		loads = true
	case s.holds.kind == export && d.kind == laterExport, s.holds.kind == file:
		mix = true
	default: // an earlier export, or a file over an export
	}
	if s.wrote {
		keep = d.kind != export || d.number == 0
		if !keep {
			return false, false, false, true
		}
	}
	return loads, mix, keep, true
}

// want returns the items after a load of d that succeeded.
func (s *sequence) want(d drawn, mix bool) state {
	out := s.itemsOf(d).clone()
	if mix {
		for pk, item := range s.items {
			if out[pk] == nil {
				out[pk] = attributes{}
			}
			for name, value := range item {
				if out[pk][name] == "" {
					out[pk][name] = value
				}
			}
		}
	}
	for pk := range s.writes {
		out[pk] = s.items[pk]
	}
	return out
}

func (s *sequence) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%s\n%s", strings.Join(s.steps, "\n"), fmt.Sprintf(format, args...))
}

// loading is how a source is loaded.
type loading struct {
	mix, keep bool
	parts     bool   // in two parts
	cut       int    // the write at which it is cut off; 0: none
	beside    func() // another load, which runs when this one has checked the table and not yet written; nil: none
}

// load loads d.
func (s *sequence) load(d drawn, l loading) {
	s.t.Helper()
	mix, keep, parts, cut := l.mix, l.keep, l.parts, l.cut
	s.steps = append(s.steps, fmt.Sprintf("load %v, mix %v, keep %v, parts %v, cut at %d, beside another %v", d, mix, keep, parts, cut, l.beside != nil))
	cutOff := errors.New("cut off")
	conn := s.conn
	if cut > 0 {
		conn = &failing{ClientConnInterface: s.conn, fail: func(call int, _ *btpb.MutateRowsRequest) error {
			if call > cut {
				return cutOff
			}
			return nil
		}}
	}
	o := s.o
	o.Mix, o.KeepWrites = mix, keep
	before := allTables(s.t, s.conn)
	raced := false
	if l.beside != nil {
		conn = beforeCheck{conn, sync.OnceFunc(func() {
			l.beside()
			raced, before = true, allTables(s.t, s.conn)
		})}
	}
	var err error
	if parts {
		err = s.loadParts(conn, d, o)
	} else {
		_, err = Load(s.t.Context(), conn, s.open(d), o)
	}
	damage := source.DamageOf(err)
	s.steps = append(s.steps, fmt.Sprintf("  %v answers %v", d, err))
	if raced && damage == "" && s.holds.kind == noSource {
		return // the sequence ended with the other load
	}
	if damage == source.TargetNewer || damage == source.TargetWritten || damage == source.TargetFollowed {
		if after := allTables(s.t, s.conn); after != before {
			s.fatalf("a load that is refused (%v) changed\n%s\nto\n%s", err, before, after)
		}
	} else if err != nil && !errors.Is(err, cutOff) {
		s.fatalf("%v", err)
	}
	loads, needsMix, needsKeep, known := s.guide(d)
	if known {
		want := (loads || needsMix && mix) && (!needsKeep || keep)
		if want == (damage != "") && (!raced || damage == "") { // beside another load it may be refused
			s.fatalf("the guide says: loads %v, with --mix %v, needs --keep-writes %v; the load answers %v", loads, needsMix, needsKeep, err)
		}
	}
	switch {
	case damage != "":
	case err != nil && allTables(s.t, s.conn) == before: // cut off before its first write
	case err != nil:
		s.mixed = s.mixed || mix
		s.holds, s.cut = d, true
	case !known:
		s.holds = drawn{} // the sequence ends
	default:
		s.mixed = s.mixed || needsMix
		s.items = s.want(d, s.mixed)
		s.holds, s.cut = d, false
		s.check()
	}
}

// loadParts loads a full export in two parts and ends the load.
func (s *sequence) loadParts(conn grpc.ClientConnInterface, d drawn, o LoadOptions) error {
	o.Checkpoint = s.t.TempDir()
	for i := range 2 {
		o.Part = source.Part{Index: i + 1, Of: 2}
		if _, err := Load(s.t.Context(), conn, s.open(d), o); err != nil {
			return err
		}
	}
	o.Part = source.Part{}
	_, err := FinishLoad(s.t.Context(), conn, s.open(d), o)
	return err
}

// follow lets a migration follow a live table into this one, or ends it.
func (s *sequence) follow() {
	s.t.Helper()
	if s.followed = !s.followed; s.followed {
		s.steps = append(s.steps, "follow")
		followTable(s.t, s.conn, "t")
		for _, id := range []string{"t", "t__byG"} {
			if _, err := table.NewBigtable(s.conn, table.Options{}).EnsureTable(s.t.Context(), id, []layout.Family{{Name: lens.FamilyPosition, GC: layout.GC{Versions: 1}}}, nil); err != nil {
				s.fatalf("%v", err)
			}
		}
	} else {
		s.steps = append(s.steps, "end the migration")
		endFollowing(s.t, s.conn, "t")
		s.ended = true
	}
	s.check()
}

func (s *sequence) now() time.Time { return exporttest.Time.Add(30 * time.Hour) }

// apply applies changes of the live table, as a follower does.
func (s *sequence) apply() {
	s.t.Helper()
	w := apply.Writer{
		B: table.NewBigtable(s.conn, table.Options{}), Mapping: (*layout.Mapping)(s.o.Mappings[0]), Guarded: s.rand.IntN(2) == 0,
		Refuse: func(_ apply.Change, err error) error { return err },
	}
	item := func(text string) attr.Item {
		item, err := attr.UnmarshalItem([]byte(text))
		if err != nil {
			s.fatalf("%v", err)
		}
		return item
	}
	var changes []apply.Change
	for range 1 + s.rand.IntN(3) {
		pk := string(rune('a' + s.rand.IntN(3)))
		s.position++
		c := apply.Change{Key: item(keyJSON(pk)), Complete: true, Time: int64(s.position), Cells: table.Micros(exporttest.Time.Add(20*time.Hour + time.Duration(s.position)*time.Second))}
		c.Position.Epoch, c.Position.Order[19] = 1, s.position
		if was := s.items[pk]; was != nil {
			c.Was = []attr.Item{item(itemJSON(pk, was))}
		}
		delete(s.items, pk)
		if s.rand.IntN(3) > 0 {
			s.items[pk] = drawAttributes(s.rand)
			c.Now = item(itemJSON(pk, s.items[pk]))
		}
		s.steps = append(s.steps, fmt.Sprintf("the migration changes %s to %v", pk, s.items[pk]))
		changes = append(changes, c)
	}
	if _, err := w.Apply(s.t.Context(), changes); err != nil {
		s.fatalf("%v", err)
	}
	s.check()
}

// refuseFollow begins a migration into a table that an endpoint has written.
func (s *sequence) refuseFollow() {
	s.t.Helper()
	s.steps = append(s.steps, "follow over writes of the endpoint")
	before := allTables(s.t, s.conn)
	store := statetable.Store{B: table.NewBigtable(s.conn, table.Options{}), Table: "t", Now: s.now}
	if _, err := store.SetFollowed(s.t.Context()); source.DamageOf(err) != source.TargetWritten {
		s.fatalf("a migration begins over writes of the endpoint: %v", err)
	}
	if after := allTables(s.t, s.conn); after != before {
		s.fatalf("a refused migration changed\n%s\nto\n%s", before, after)
	}
}

// refuseWrite writes to a table that a migration follows into.
func (s *sequence) refuseWrite() {
	s.t.Helper()
	s.steps = append(s.steps, "write beside the migration")
	before := tableText(s.t, s.conn, "t")
	s.endpoint(func(f *facade.Server) {
		if _, err := f.Call(s.t.Context(), "PutItem", []byte(`{"TableName":"Tee","Item":`+itemJSON("a", drawAttributes(s.rand))+`}`)); err == nil {
			s.fatalf("an endpoint writes to a table that a migration follows into")
		}
	})
	if after := tableText(s.t, s.conn, "t"); after != before {
		s.fatalf("a refused write changed\n%s\nto\n%s", before, after)
	}
	s.check()
}

// write puts or deletes an item by a DynamoDB endpoint.
func (s *sequence) write() {
	s.t.Helper()
	pk := string(rune('a' + s.rand.IntN(3)))
	s.endpoint(func(f *facade.Server) {
		if s.items[pk] != nil && s.rand.IntN(2) == 0 {
			s.steps = append(s.steps, "delete "+pk)
			callEndpoint(s.t, f, "DeleteItem", `{"TableName":"Tee","Key":`+keyJSON(pk)+`}`)
			delete(s.items, pk)
			delete(s.writes, pk)
		} else {
			item := drawAttributes(s.rand)
			s.steps = append(s.steps, "put "+itemJSON(pk, item))
			callEndpoint(s.t, f, "PutItem", `{"TableName":"Tee","Item":`+itemJSON(pk, item)+`}`)
			s.items[pk] = item
			s.writes[pk] = true
		}
	})
	s.wrote = true
	s.check()
}

func (s *sequence) endpoint(do func(*facade.Server)) {
	s.t.Helper()
	f, err := facade.New(s.t.Context(), facade.Options{Conn: s.conn, Mappings: s.o.Mappings, NoAuth: true})
	if err != nil {
		s.fatalf("%v", err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	do(f)
}

// check compares the items of the table and of its index with the model.
func (s *sequence) check() {
	s.t.Helper()
	s.endpoint(func(f *facade.Server) {
		indexed := state{}
		for pk, item := range s.items {
			if item["g"] != "" {
				indexed[pk] = item
			}
		}
		for index, want := range map[string]state{"": s.items, `,"IndexName":"byG"`: indexed} {
			if index != "" && s.mixed {
				continue
			}
			answered, err := f.Call(s.t.Context(), "Scan", []byte(`{"TableName":"Tee"`+index+`}`))
			if err != nil {
				s.fatalf("%v", err)
			}
			var scan struct{ Items []map[string]json.RawMessage }
			if err := json.Unmarshal(answered, &scan); err != nil {
				s.fatalf("%v", err)
			}
			got := state{}
			for _, item := range scan.Items {
				var pk struct{ S string }
				if err := json.Unmarshal(item["PK"], &pk); err != nil {
					s.fatalf("%v", err)
				}
				got[pk.S] = attributes{}
				for name, value := range item {
					if name != "PK" && name != "SK" {
						got[pk.S][name] = string(value)
					}
				}
			}
			if got.String() != want.String() || len(scan.Items) != len(want) {
				s.fatalf("the scan%s has\n%v\nwant\n%v", index, got, want)
			}
		}
	})
}

func (s *sequence) draw() drawn {
	switch s.rand.IntN(4) {
	case 0:
		return drawn{laterExport, 0}
	case 1:
		return drawn{file, s.rand.IntN(2)}
	default:
		return drawn{export, s.rand.IntN(3)}
	}
}

// TestLoad_Sequences draws sequences of loads, some of them cut off at a write or at once with
// another one, and of writes through a DynamoDB endpoint. Each load is refused with nothing changed, or leaves what the
// table of docs/guide.md says.
func TestLoad_Sequences(t *testing.T) {
	t.Parallel()
	n := uint64(40)
	if long.Enabled() {
		n = 2000
	}
	if *sequencesFlag > 0 {
		n = *sequencesFlag
	}
	o := LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, sequencesMapping)}}}
	const workers = 4
	for worker := range uint64(workers) {
		t.Run(fmt.Sprint(worker), func(t *testing.T) {
			t.Parallel()
			for seed := worker; seed < n; seed += workers {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { runSequence(t, seed, o) }) // which closes its server
			}
		})
	}
}

func runSequence(t *testing.T, seed uint64, o LoadOptions) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	s := &sequence{
		t: t, rand: r, conn: newBigtableServer(t), o: o, items: state{}, writes: map[string]bool{},
		chain: []state{drawState(r), drawState(r), drawState(r)}, later: drawState(r), files: [2]state{drawState(r), drawState(r)},
	}
	for step := range 6 {
		if step > 0 && s.holds.kind == noSource {
			break
		}
		// A migration begins only if no endpoint has written, and not again.
		if s.holds.kind != noSource && !s.cut && (s.followed || !s.wrote && !s.ended) && r.IntN(4) == 0 {
			s.follow()
			continue
		}
		if s.wrote && r.IntN(8) == 0 {
			s.refuseFollow()
			continue
		}
		if s.holds.kind != noSource && !s.cut && r.IntN(3) == 0 {
			switch {
			case s.followed && r.IntN(2) == 0:
				s.refuseWrite()
			case s.followed:
				s.apply()
			default:
				s.write()
			}
			continue
		}
		d, cut := s.draw(), 0
		if s.holds.kind != noSource && r.IntN(2) == 0 {
			d = s.holds
			if s.holds.kind == export && s.holds.number < 2 {
				d.number += r.IntN(2)
			}
		}
		if r.IntN(4) == 0 {
			cut = 1 + r.IntN(8)
		}
		l := loading{parts: d.kind != file && d.number == 0 && r.IntN(4) == 0, cut: cut}
		l.mix, l.keep = r.IntN(3) == 0, r.IntN(3) == 0
		if !l.parts && cut == 0 && r.IntN(4) == 0 {
			other, beside := s.draw(), loading{mix: r.IntN(3) == 0, keep: r.IntN(3) == 0}
			if r.IntN(4) == 0 {
				beside.cut = 1 + r.IntN(8)
			}
			l.beside = func() { s.load(other, beside) }
		}
		s.load(d, l)
	}
}
