package migrate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// An updated lock agrees, shows the effect of a change of the mapping, and is rejected if it is
// invalid.
func TestVerify_Lock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"mapping.yaml": `apiVersion: migration/v1
source: {table: T, key: {hash: {name: pk, type: S}, range: {name: sk, type: S}}, schema: {n: N}}
target: {table: t, joiner: plain('#'), families: {a: {gc: {versions: 1}}}}
timestamps: {default: "2024-01-01T00:00:00Z"}
rules: [{name: item, row: ["{pk}", "{sk}"], put: [{attr: n, cell: "a:n"}]}]
`,
		"source/items.jsonl": `{"Item":{"pk":{"S":"p"},"sk":{"S":"s"},"n":{"N":"1"}}}` + "\n",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := UpdateGoldens(t.Context(), newBigtableServer(t), dir, VerifyOptions{}); err != nil {
		t.Fatal(err)
	}
	verify := func() (*report.Report, error) {
		return Verify(t.Context(), newBigtableServer(t), OfFixture(os.DirFS(dir)), VerifyOptions{})
	}
	r, err := verify()
	if err != nil {
		t.Fatal(err)
	}
	if c := checkNamed(t, r, "mapping lock"); c.State != report.CheckOK || !r.Equal() {
		t.Errorf("check %+v, %v", c, r.Failures)
	}
	lock := filepath.Join(dir, mapfile.LockFile)
	text, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lock, []byte(strings.Replace(string(text), "plain('#')", "oc", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	if r, err = verify(); err != nil {
		t.Fatal(err)
	}
	if c := checkNamed(t, r, "mapping lock"); c.State != report.CheckFailed || len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Detail, "the joiner was oc, and is plain('#')") {
		t.Errorf("check %+v, %v", c, r.Failures)
	}
	if err := os.WriteFile(lock, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(); !isInvalidFixture(err) {
		t.Errorf("a lock that is none: %v", err)
	}
}

func isInvalidFixture(err error) bool {
	var input *source.Error
	return errors.As(err, &input) && input.Damage == source.FixtureInvalid
}
