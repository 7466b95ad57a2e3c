package layout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

const lockedMapping = `apiVersion: migration/v1
source: {table: T, key: {hash: {name: id, type: S}, range: {name: at, type: N}}, schema: {tags: SS, more: NS, m: {M: {k: N}, else: {L: S}}}}
target: {table: t, shared: x, joiner: oc, families: {a: {}, s.tags: {gc: {versions: 1, maxAge: 24h}}, x: {}, _t: {}}}
rules: [{name: item, row: ["{id}", "{at}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

func lockOf(t *testing.T, text string) mapfile.Lock {
	t.Helper()
	m, err := Load("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	lock, err := m.Lock()
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// TestLock checks that a lock depends on all that matters to rows, and on nothing else.
func TestLock(t *testing.T) {
	t.Parallel()
	lock := lockOf(t, lockedMapping)
	text, err := lock.JSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "apiVersion": "migration/v1",
  "hash": "HASH",
  "source": "T",
  "target": "t",
  "joiner": "oc",
  "listEpoch": 1262304000000,
  "families": [
    {
      "name": "a"
    },
    {
      "name": "s.tags",
      "versions": 1,
      "maxAge": "24h0m0s",
      "attribute": "tags"
    },
    {
      "name": "x"
    },
    {
      "name": "_t"
    }
  ],
  "shared": [
    "m",
    "more"
  ]
}
`
	if d := cmp.Diff(strings.Replace(want, "HASH", lock.Hash, 1), string(text)); d != "" || len(lock.Hash) != 64 {
		t.Errorf("lock (-want +got):\n%s", d)
	}
	back, err := mapfile.ParseLock(text)
	if err != nil || !cmp.Equal(lock, back) {
		t.Errorf("the lock comes back as %+v, %v", back, err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"apiVersion", "# a comment\napiVersion", ""},
		{"joiner: oc", "joiner: escaped('#')", "the joiner was oc, and is escaped('#')"},
		{"table: t,", "table: u,", "the Bigtable table was t, and is u"},
		{"versions: 1, maxAge: 24h", "versions: 2", "family s.tags was declared versions 1 maxAge 24h0m0s of attribute tags, and is declared versions 2 of attribute tags"},
		{"x: {}, ", "x: {}, s.more: {}, ", "family s.more was not there, and is declared of attribute more\nthe shared family was m more, and is m"},
		{"k: N", "k: S", "the rules or the schema of the mapping differ"},
	} {
		now := lockOf(t, strings.Replace(lockedMapping, c.old, c.new, 1))
		if got := strings.Join(lock.Changes(now), "\n"); got != c.want {
			t.Errorf("%s for %s: %q, want %q", c.new, c.old, got, c.want)
		}
	}
	for _, bad := range []string{``, `{"apiVersion":"migration/v2"}`, `{"apiVersion":"migration/v1","more":1}`} {
		if _, err := mapfile.ParseLock([]byte(bad)); err == nil {
			t.Errorf("%q is a lock", bad)
		}
	}
	plain, err := Default("s", "t", attr.KeySchema{Hash: attr.KeyAttr{Name: "id", Type: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Lock(); err == nil {
		t.Error("the default layout has a lock")
	}
}
