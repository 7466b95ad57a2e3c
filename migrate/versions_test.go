package migrate

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// TestVerify_Versions loads items whose copies of the highest version are not stored: they come
// back, and a copy that differs stops the load.
func TestVerify_Versions(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: migration/v1
source: {table: in, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {State: S, Note: S}}
target: {table: equipment, families: {v: {gc: {versions: 10}}, _t: {gc: {versions: 10}}}}
timestamps: {default: export-time}
rules: [{name: doc, when: {SK: "v{n:ver}_{rest:s}"}, row: ["{PK:s}", "{rest}"], put: [{attr: "*", cell: "v:{attr}", ts: "{n}"}], latest: v0}]
`
	m, err := mapping.Load("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := Common{Mappings: []*mapping.Mapping{m}}
	versions := []string{
		`{"PK":{"S":"Equipment"},"SK":{"S":"v0_1"},"State":{"S":"OK"}}`,
		`{"PK":{"S":"Equipment"},"SK":{"S":"v1_1"},"State":{"S":"OK"},"Note":{"S":"new"}}`,
		`{"PK":{"S":"Equipment"},"SK":{"S":"v2_1"},"State":{"S":"OK"}}`,
	}
	src, err := source.OpenFS(jsonLines(versions), "in", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{Common: o})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	if r.Items != 3 || r.Tables[0].Rows != 1 || r.Tables[0].Cells != 4 {
		t.Errorf("%s", r.Text())
	}
	for name, damaged := range map[string][]string{
		"stale copy":   append([]string{`{"PK":{"S":"Equipment"},"SK":{"S":"v0_1"},"State":{"S":"OLD"}}`}, versions[1:]...),
		"no copy":      versions[1:],
		"only copies":  versions[:1],
		"older's copy": append([]string{`{"PK":{"S":"Equipment"},"SK":{"S":"v0_1"},"State":{"S":"OK"},"Note":{"S":"new"}}`}, versions[1:]...),
	} {
		src, err := source.OpenFS(jsonLines(damaged), "in", source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		conn := newBigtableServer(t)
		_, err = Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: o})
		var broken *maperr.Error
		if WantDamage(t, err, source.MappingRefused, ""); !errors.As(err, &broken) || broken.Code != maperr.CodeVersion || !attr.Equal(broken.Key["PK"], attr.String("Equipment")) {
			t.Errorf("%s: %v", name, err)
		}
		if ids := tableIDs(t, conn); len(ids) > 0 {
			t.Errorf("%s: tables %v were made", name, ids)
		}
	}
}

// TestVerify_IndexRows loads an index whose rows omit a key attribute of the table; two items
// on one row are a failure of a verification, and refused by a load.
func TestVerify_IndexRows(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: migration/v1
source: {table: in, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {G: S, At: S}, gsis: [{name: open, hash: G, range: At, shard: {n: 3, by: md5(PK)}, row: [At, PK]}]}
target: {table: orders, families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
timestamps: {default: export-time}
rules: [{name: order, row: ["{PK}", "{SK}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`
	m, err := mapping.Load("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	items := []string{
		`{"PK":{"S":"1"},"SK":{"S":"c1"},"G":{"S":"x"},"At":{"S":"OPEN#1"}}`,
		`{"PK":{"S":"1"},"SK":{"S":"c2"},"G":{"S":"x"},"At":{"S":"OPEN#2"}}`,
		`{"PK":{"S":"1"},"SK":{"S":"c3"}}`,
	}
	for _, c := range []struct {
		items  []string
		damage bool
	}{{items, false}, {append(items, `{"PK":{"S":"1"},"SK":{"S":"c4"},"G":{"S":"y"},"At":{"S":"OPEN#2"}}`), true}} {
		src, err := source.OpenFS(jsonLines(c.items), "in", source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
		if err != nil {
			t.Fatal(err)
		}
		if c.damage {
			_, err := Load(t.Context(), newBigtableServer(t), src, LoadOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
			WantDamage(t, err, source.CellCollision, "in:4: index open puts the item in the row of the item at in:2")
			const want = `KeyCollision table orders__open rule order item {"PK":{"S":"1"},"SK":{"S":"c4"}} row "1#OPEN#2#1" hex 31234f50454e23322331: want the row of {"PK":{"S":"1"},"SK":{"S":"c2"}}, got the row of {"PK":{"S":"1"},"SK":{"S":"c4"}}: index open puts the item in the row of the item at in:2: {"PK":{"S":"1"},"SK":{"S":"c4"}} (in:4, m.yaml:3)`
			if r.Differences != 1 || r.Failures[0].String() != want {
				t.Errorf("want %s\n%s", want, r.Text())
			}
			continue
		}
		wantEqual(t, r)
		var dead strings.Builder
		if r, err = Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{Common: Common{Mappings: []*mapping.Mapping{m}}, DeadLetter: &dead}); err != nil || dead.Len() > 0 {
			t.Errorf("%v, dead letters %q\n%s", err, dead.String(), r.Text())
		}
	}
}

// jsonLines returns a file "in" of the lines.
func jsonLines(lines []string) fs.FS {
	return fstest.MapFS{"in": {Data: []byte(strings.Join(lines, "\n") + "\n")}}
}
