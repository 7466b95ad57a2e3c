package layout

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// lossyMapping accepts all losses, including those of items with versions: a copy of the highest version
// has the same losses.
const lossyMapping = `apiVersion: migration/v1
source:
  table: Documents
` + keysSS + `  schema: {a: BOOL, b: S, c: SS, e: {M: S}, l: N, "z z": S, "~": {M: {k: N}}}
target: {table: t, families: {v: {}, w: {}}}
fidelity: idiomatic
accept_loss: [{what: types, why: x}, {what: empty, why: x}, {what: absent, why: x}, {what: precision, why: x}, {what: null, why: x}]
rules:
- {name: doc, when: {SK: "v{n:ver}_{rest:s}"}, row: [doc, "{PK:s}", "{rest}"], put: [{attr: l, cell: "v:l", codec: f64be, ts: "{n}"}, {attr: e, cell: "v:e", codec: json, ts: "{n}"}, {attr: null, cell: "v:", ts: "{n}"}, {attr: "*", cell: "v:a.{attr}", codec: omit, ts: "{n}"}], latest: v0}
- {name: log, when: {PK: "log-{id}", SK: "{n:ver}"}, row: [log, "{id}"], put: [{attr: l, cell: "w:l", codec: f64be, ts: "{n}"}, {attr: a, cell: "w:a", codec: omit, ts: "{n}"}], latest: "0"}
`

// TestReturned checks that Returned predicts the items that are read back, with every accepted
// loss, even for copies of the highest version.
func TestReturned(t *testing.T) {
	t.Parallel()
	m, err := Load("lossy.yaml", []byte(lossyMapping))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	copies := 0
	rapid.Check(t, func(t *rapid.T) {
		items := drawVersions(t)
		// Remove rejected attributes, and from copies those of the versions.
		l := m.layout.(*rules)
		top := map[string]attr.Item{}
		for _, copied := range []bool{false, true} {
			for i, item := range items {
				r, vars, _ := l.bind(item)
				id := string(r.family([]byte(r.name), vars))
				switch {
				case r.isCopy(vars) != copied:
				case copied:
					items[i] = maps.Clone(top[id])
					maps.Copy(items[i], m.Key().KeyOf(item))
				default:
					items[i] = accepted(m, item)
					if old, ok := top[id]; !ok || r.number(vars) > versionOf(l, old) {
						top[id] = items[i]
					}
				}
			}
		}
		if err := prove(m, items); err != nil {
			t.Fatal(err)
		}
		var placed []lens.Placed
		for _, item := range items {
			p, err := m.Place(item, expTime)
			if err != nil {
				t.Fatal(err)
			}
			placed = append(placed, p)
		}
		rows := rowsOf(placed)
		for i, item := range items {
			want, losses := m.Returned(item, placed[i])
			at := slices.IndexFunc(rows, func(r Row) bool { return string(r.Key) == string(placed[i].Row) })
			got, err := m.Item(rows[at], item)
			if err != nil || !attr.EqualItems(got, want) {
				t.Fatalf("%v comes back as %v, %v; want %v, of %v", item, got, err, want, losses)
			}
			if !attr.EqualItems(item, want) && len(losses) == 0 {
				t.Fatalf("%v comes back as %v, and nothing is lost", item, want)
			}
			for _, l := range losses {
				seen[l.What] = true
				if placed[i].Derived {
					copies++
				}
			}
		}
	})
	for _, what := range []string{mapfile.LossTypes, mapfile.LossPrecision, mapfile.LossNull} {
		if !seen[what] {
			t.Errorf("no item lost %s", what)
		}
	}
	if copies == 0 {
		t.Error("no copy lost anything")
	}
}

// accepted returns the item without the attributes that the mapping rejects.
func accepted(m *Mapping, item attr.Item) attr.Item {
	kept := m.Key().KeyOf(item)
	if _, err := m.Place(kept, expTime); err != nil {
		kept["l"] = attr.Value{Type: attr.N, Str: "0.1234567890123456789"} // the mapping needs one
	}
	for _, name := range slices.Sorted(maps.Keys(item)) {
		was, had := kept[name]
		kept[name] = item[name]
		if _, err := m.Place(kept, expTime); err == nil {
			continue
		}
		if delete(kept, name); had {
			kept[name] = was
		}
	}
	return kept
}

func versionOf(l *rules, item attr.Item) int64 {
	r, vars, _ := l.bind(item)
	return r.number(vars)
}
