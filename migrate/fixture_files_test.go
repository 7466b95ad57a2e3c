package migrate

import (
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// A file with an unknown name would be ignored: it is rejected, by everything that reads a
// fixture.
func TestFixture_NamesNotTaken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, want string }{
		{"acess/1.yaml", "acess: unknown name in a fixture; known here are fixture.yaml, mapping.yaml, mapping.lock.json, lint.yaml, requests.jsonl, source/, access/, expect/, trace/, and README*"},
		{"maping.yaml", "maping.yaml: unknown name in a fixture"},
		{"expect/row.golden", "expect/row.golden: unknown name in a fixture; known here are rows.golden, rows.sha256, schema.golden, fidelity.golden.json, lint.golden.json, *.items.golden, and README*"},
		{"expect/old/rows.golden", "expect/old: unknown name in a fixture"},
		{"trace/a.json", "trace/a.json: unknown name in a fixture; known here are *.jsonl, and README*"},
		{"access/p.json", "access/p.json: unknown name in a fixture; known here are *.yaml, *.yml, and README*"},
		{"access/more/p.yaml", "access/more: unknown name in a fixture"},
		{"access/more.yaml/p.yaml", "access/more.yaml: unknown name in a fixture"},
	} {
		files := patternFixture()
		files[c.file] = &fstest.MapFile{}
		_, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{})
		WantDamage(t, err, source.FixtureInvalid, c.want)
		_, err = Lint(t.Context(), OfFixture(files), LintOptions{})
		WantDamage(t, err, source.FixtureInvalid, c.want)
		_, _, err = OpenFixture(files, source.Options{})
		WantDamage(t, err, source.FixtureInvalid, c.want)
	}
}

// Files that a fixture names, data and documentation are accepted.
func TestFixture_NamesTaken(t *testing.T) {
	t.Parallel()
	files := patternFixture()
	for _, name := range []string{
		".gitignore", "README", "README.txt", "notes.md", ".git/config", "access/README.md", "access/.keep", "expect/notes.md", "trace/.keep", "trace/a.jsonl",
		"expect/p.items.golden", "source/notes.txt", "source/raw/1.csv", "data/other.txt", "data/items.jsonl",
	} {
		files[name] = &fstest.MapFile{}
	}
	files["data/items.jsonl"] = files["source/items.jsonl"]
	files["fixture.yaml"] = &fstest.MapFile{Data: []byte("source: data/items.jsonl\n")}
	if _, _, err := OpenFixture(files, source.Options{}); err != nil {
		t.Error(err)
	}
}

// A fixture that compares nothing does not pass.
func TestVerify_NothingCompared(t *testing.T) {
	t.Parallel()
	files := patternFixture("id: p\n" + queryA + "expect: {count: 2}")
	off := "golden: false, round_trip: false, second_load: false, scan: false, patterns: false, garbage_collection: false, restart: false"
	for _, c := range []struct {
		checks string
		failOn lint.Level
		want   string
	}{
		{off + ", lint: false", lint.Off, "fixture.yaml: nothing was compared, so nothing is verified; turn on a check (checks). Skipped: golden files (fixture.yaml turns it off (checks)), round trip"},
		{off, lint.Off, "fixture.yaml: nothing was compared"},
		{off, lint.Error, ""},
	} {
		files["fixture.yaml"] = &fstest.MapFile{Data: []byte("checks: {" + c.checks + "}\n")}
		for _, stored := range []bool{false, true} {
			_, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{Stored: stored, Lint: &LintRules{FailOn: c.failOn}})
			if c.want != "" {
				WantDamage(t, err, source.FixtureInvalid, c.want)
			} else if err != nil {
				t.Error(err)
			}
		}
	}
}
