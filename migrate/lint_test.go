package migrate

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

var updateLint = flag.Bool("update.lint", false, "rewrite what the lint fixtures expect")

// archiveFS returns the fixture directory in a txtar archive.
func archiveFS(a *txtar.Archive) fs.FS {
	files := fstest.MapFS{}
	for _, f := range a.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return files
}

// findingsText formats findings as in the comment of a lint fixture.
func findingsText(l *lint.Result) string {
	var b strings.Builder
	for _, f := range l.Findings {
		fmt.Fprintf(&b, "%s\n", f)
	}
	for _, a := range l.Accepted {
		fmt.Fprintf(&b, "accepted: %s; %s\n", a.Finding, a.Why)
	}
	for _, d := range l.Disabled {
		fmt.Fprintf(&b, "off: %s\n", d)
	}
	for _, a := range l.Unmet {
		fmt.Fprintf(&b, "unmet: %s: %s; %s\n", a.At, a.Rule, a.Why)
	}
	if l.Stopped != "" {
		fmt.Fprintf(&b, "stopped: %s\n", l.Stopped)
	}
	return b.String()
}

// TestLintRules runs the two fixtures of each rule: it must have findings in the first and none
// in the second. The comments of the fixtures list all findings, including those of other
// rules.
func TestLintRules(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("testdata/lint/L*")
	if err != nil {
		t.Fatal(err)
	}
	rules := lint.Rules()
	if len(rules) != 59 || len(dirs) != len(rules) {
		t.Fatalf("%d rules and %d folders of fixtures, want 59 of both", len(rules), len(dirs))
	}
	for i, rule := range rules {
		if want := fmt.Sprintf("L%02d", i+1); rule.ID != want {
			t.Fatalf("rule %d is %s, want %s", i+1, rule.ID, want)
		}
		for _, kind := range []string{"positive", "negative"} {
			t.Run(rule.ID+"/"+kind, func(t *testing.T) {
				t.Parallel()
				testLintFixture(t, rule, filepath.Join("testdata/lint", rule.ID, kind+".txtar"), kind == "positive")
			})
		}
	}
}

// TestLintCases runs further fixtures of rules. Their comments list all findings.
func TestLintCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/lint/cases/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Lint(context.Background(), OfFixture(archiveFS(archive)), LintOptions{})
			if err != nil {
				t.Fatal(err)
			}
			compareFindings(t, file, archive, r.Lint)
		})
	}
}

// compareFindings compares findings with the comment of an archive, which -update.lint
// rewrites.
func compareFindings(t *testing.T, file string, archive *txtar.Archive, l *lint.Result) {
	t.Helper()
	got := findingsText(l)
	if diff := cmp.Diff(string(archive.Comment), got); diff != "" && !*updateLint {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if archive.Comment = []byte(got); *updateLint {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func testLintFixture(t *testing.T, rule lint.Rule, file string, positive bool) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Lint(context.Background(), OfFixture(archiveFS(archive)), LintOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := slices.ContainsFunc(r.Lint.Findings, func(f lint.Finding) bool { return f.Rule == rule.ID })
	if found != positive {
		t.Errorf("%s finds it: %t, want %t; findings:\n%s", rule.ID, found, positive, findingsText(r.Lint))
	}
	for _, f := range r.Lint.Findings {
		if f.Message == "" || f.Expected == "" || f.Fix == "" || f.Where() == "" || f.Name == "" || f.Cite.Says == "" {
			t.Errorf("the finding does not say all: %+v", f)
		}
	}
	compareFindings(t, file, archive, r.Lint)
	// The rule can be turned off.
	archive.Files = append(archive.Files, txtar.File{Name: fixtures.FixtureFile, Data: []byte("lint: {" + rule.ID + ": off}\n")})
	if r, err = Lint(context.Background(), OfFixture(archiveFS(archive)), LintOptions{}); err != nil {
		// Without its only error, a mapping that does not compile is rejected.
		if !positive || !strings.Contains(err.Error(), "mapping") {
			t.Fatal(err)
		}
		return
	}
	if slices.ContainsFunc(r.Lint.Findings, func(f lint.Finding) bool { return f.Rule == rule.ID }) || !slices.Equal(r.Lint.Disabled, []lint.Disabled{{Rule: rule.ID}}) {
		t.Errorf("%s is off, and says something, or not listed: %v", rule.ID, r.Lint.Disabled)
	}
	var golden bytes.Buffer
	if err := writeLintGolden(&golden, r.Lint); err != nil {
		t.Fatal(err)
	}
	archive.Files = append(archive.Files, txtar.File{Name: fixtures.LintGoldenFile, Data: golden.Bytes()})
	if r, err = Lint(context.Background(), OfFixture(archiveFS(archive)), LintOptions{}); err != nil || !r.Equal() {
		t.Errorf("the golden findings just written differ: %v, %v", err, r.Failures)
	}
}

// TestLintThresholds changes every threshold and list of words: at one of its ends, the rule
// must give another result for one of its fixtures.
func TestLintThresholds(t *testing.T) {
	t.Parallel()
	if *updateLint {
		t.Skip("-update.lint is writing the fixtures")
	}
	for _, rule := range lint.Rules() {
		for _, p := range rule.Params {
			t.Run(rule.ID+"/"+p.Name, func(t *testing.T) {
				t.Parallel()
				ends := []string{"0", "1e15"}
				if p.Words != nil {
					ends = []string{"[]"}
				}
				for _, archive := range lintArchives(t, rule.ID) {
					before := levelsOf(t, rule.ID, archive, "")
					for _, end := range ends {
						if levelsOf(t, rule.ID, archive, fmt.Sprintf("%s: {%s: %s}", rule.ID, p.Name, end)) != before {
							return
						}
					}
				}
				t.Errorf("no fixture of %s is judged otherwise for another %s", rule.ID, p.Name)
			})
		}
	}
}

// lintArchives returns the fixtures of a rule: its two, and the cases that expect a finding of
// it.
func lintArchives(t *testing.T, id string) []*txtar.Archive {
	t.Helper()
	files, err := filepath.Glob("testdata/lint/cases/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var archives []*txtar.Archive
	for i, file := range append([]string{"testdata/lint/" + id + "/positive.txtar", "testdata/lint/" + id + "/negative.txtar"}, files...) {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if i < 2 || bytes.Contains(archive.Comment, []byte(" "+id+" ")) {
			archives = append(archives, archive)
		}
	}
	return archives
}

// levelsOf returns the levels of a rule's findings under a configuration.
func levelsOf(t *testing.T, id string, archive *txtar.Archive, config string) string {
	t.Helper()
	c, err := lint.ParseConfig("test.yaml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Lint(context.Background(), OfFixture(archiveFS(archive)), LintOptions{LintRules: LintRules{Config: c}})
	if err != nil {
		return "refused"
	}
	levels := ""
	for _, f := range r.Lint.Findings {
		if f.Rule == id {
			levels += f.Level.String() + " "
		}
	}
	return levels
}

// lintFiles returns a small fixture with one warning, L04, plus the files of over.
func lintFiles(over map[string]string) fs.FS {
	archive := &txtar.Archive{}
	var items strings.Builder
	for i := range 12 {
		fmt.Fprintf(&items, `{"Item":{"PK":{"S":"%d"},"Name":{"S":"a name of some length"}}}`+"\n", 1000+i)
	}
	files := map[string]string{
		fixtures.MappingFile: "apiVersion: migration/v1\nsource: {table: Users, key: {hash: {name: PK, type: S}}, schema: {Name: S}}\ntarget: {table: users, families: {a: {gc: {versions: 1}}}}\nrules: [{name: user, when: {}, row: [\"{PK:s}\"], put: [{attr: \"*\", cell: \"a:{attr}\"}]}]\n",
		"source/items.jsonl": items.String(),
	}
	for name, text := range over {
		files[name] = text
	}
	for name, text := range files {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	return archiveFS(archive)
}

func TestLint_FailOn(t *testing.T) {
	t.Parallel()
	for level, want := range map[lint.Level]int64{lint.Off: 0, lint.Error: 0, lint.Warn: 1, lint.Info: 1} {
		r, err := Lint(context.Background(), OfFixture(lintFiles(nil)), LintOptions{LintRules: LintRules{FailOn: level}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Differences != want || r.Lint.Warnings != 1 || r.Items != 12 {
			t.Errorf("%s: %d differences\n%s", level, r.Differences, r.Text())
		}
		for _, f := range r.Failures {
			if f.Kind != report.LintError || f.Rule != "L04" || f.Mapping != "mapping.yaml:4:38" || f.Want == "" || f.Got == "" {
				t.Errorf("the failure is %+v", f)
			}
		}
		var junit bytes.Buffer
		if err := report.WriteJUnit(&junit, r); err != nil {
			t.Fatal(err)
		}
		failed := strings.Contains(junit.String(), `<testsuites tests="1" failures="1">`)
		if !strings.Contains(junit.String(), `<testcase name="L04 sequential-ids" classname="lint">`) || failed != (want > 0) {
			t.Errorf("%s: JUnit:\n%s", level, junit.String())
		}
		// A finding that does not count as a difference is still visible everywhere.
		const noted = "1 warning not counted as differences (--fail-on lint=warn counts them)"
		verdict, badge := "\nwarn lint: 59 rules, 0 errors, 1 warning, 0 notes; "+noted+"\n", `badge warn">Linted, lint: `+noted+"<"
		skipped := `<skipped message="warn, not counted as a difference (--fail-on lint=warn counts it)">`
		if want > 0 {
			verdict, badge, skipped = "\nFAIL lint: 59 rules, 0 errors, 1 warning, 0 notes; 1 difference\n", `badge bad">1 difference<`, `<failure message="`
		}
		var page bytes.Buffer
		if err := r.WriteHTML(&page); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.Text(), verdict) || !strings.Contains(page.String(), badge) || !strings.Contains(junit.String(), skipped) {
			t.Errorf("%s: no %q, %q or %q in\n%s\n%s", level, verdict, badge, skipped, r.Text(), junit.String())
		}
	}
}

// A note need not count.
func TestLint_Notes(t *testing.T) {
	t.Parallel()
	r, err := Lint(t.Context(), OfFixture(lintFiles(map[string]string{fixtures.LintFile: "L04: info\n"})), LintOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := checkNamed(t, r, report.LintCheck); c.State != report.CheckOK || r.Lint.Infos != 1 || strings.Contains(c.Detail, "not counted") {
		t.Errorf("the check is %+v", c)
	}
}

func TestLint_Golden(t *testing.T) {
	t.Parallel()
	r, err := Lint(context.Background(), OfFixture(lintFiles(map[string]string{
		fixtures.LintGoldenFile: `[{"rule":"L03","level":"error","where":"mapping.yaml:4:38, table Users","message":"gone"}]`,
	})), LintOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) != 2 || r.Failures[0].Kind != report.GoldenDiffers || r.Failures[0].Rule != "L04" || r.Failures[0].Got == "" || r.Failures[1].Rule != "L03" || r.Failures[1].Want == "" {
		t.Errorf("failures: %+v", r.Failures)
	}
	if _, err := Lint(context.Background(), OfFixture(lintFiles(map[string]string{fixtures.LintGoldenFile: `[{"rule":3}]`})), LintOptions{}); source.DamageOf(err) != source.FixtureInvalid {
		t.Errorf("golden findings that are none: %v", err)
	}
}

func TestLint_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text, want string }{
		"config":     {fixtures.LintFile, "L02: loud\n", `lint.yaml:1:6: L02: "loud"; expected off, info, warn or error`},
		"own config": {fixtures.FixtureFile, "name: x\nlint:\n  L99: off\n", `fixture.yaml:3:3: lint.L99: unknown key; expected L01 to L59, accept or service`},
		"trace":      {fixtures.TraceDir + "/a.jsonl", "\n{\"at\":1}\n", "trace/a.jsonl:2: this is not a request of a trace"},
		"backwards":  {fixtures.TraceDir + "/a.jsonl", "{\"at\":\"2024-05-14T11:14:20Z\",\"op\":\"Scan\"}\n{\"at\":\"2024-05-14T11:14:19Z\",\"op\":\"Scan\"}", "trace/a.jsonl:2: the request is from 2024-05-14T11:14:19Z, which is before the previous request"},
		"no time":    {fixtures.TraceDir + "/a.jsonl", `{"op":"Scan"}`, "trace/a.jsonl:1: the request needs a time (at) and an operation (op)"},
		"body":       {fixtures.TraceDir + "/a.jsonl", `{"at":"2024-05-14T11:14:20Z","op":"Scan","request":[]}`, "trace/a.jsonl:1: the request cannot be parsed"},
		"key":        {"source/items.jsonl", `{"Item":{"Name":{"S":"x"}}}`, "source/items.jsonl:1: "},
		"mapping":    {fixtures.MappingFile, "apiVersion: migration/v1\n", "mapping.yaml: the mapping cannot be used"},
	} {
		_, err := Lint(context.Background(), OfFixture(lintFiles(map[string]string{c.file: c.text})), LintOptions{})
		if err == nil || source.DamageOf(err) == "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestLint_Inferred lints a source without a mapping, separately and during verification.
func TestLint_Inferred(t *testing.T) {
	t.Parallel()
	src, err := source.OpenFS(lintFiles(nil), "source/items.jsonl", source.Options{Key: "PK"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	r, err := Lint(ctx, OfSource(src), LintOptions{})
	if err != nil || r.Lint.Warnings != 1 || r.Compared || len(r.Tables) != 1 || len(r.Tables[0].Samples) != 1 || len(r.Tables[0].Choices) == 0 {
		t.Fatalf("%v\n%s", err, r.Text())
	}
	for call, rules := range map[bool]*LintRules{true: {}, false: nil} {
		r, err := Verify(ctx, newBigtableServer(t), OfSource(src), VerifyOptions{Lint: rules})
		if err != nil {
			t.Fatal(err)
		}
		if (r.Lint != nil) != call || !r.Equal() || r.Items != 12 {
			t.Errorf("run %t: %s", call, r.Text())
		}
	}
}

// Rows of another loader are checked as they are stored, each once.
func TestCompare_LintsStoredRows(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 120)
	src, err := source.OpenFS(fstest.MapFS{"in": {Data: fmt.Appendf(nil, "{\"id\":{\"S\":\"a\"},\"tags\":{\"SS\":[\"x\"]}}\n{\"id\":{\"S\":%q},\"n\":{\"N\":\"1\"}}\n", long)}}, "in", source.Options{Key: "id", Table: "things"})
	if err != nil {
		t.Fatal(err)
	}
	conn := newBigtableServer(t)
	o := VerifyOptions{Stored: true, Lint: &LintRules{FailOn: lint.Error}}
	if _, err := Load(t.Context(), conn, src, LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	found := func() string {
		t.Helper()
		r, err := Verify(t.Context(), conn, OfSource(src), o)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, f := range r.Lint.Findings {
			lines = append(lines, fmt.Sprintf("%s in %d: %.5s %s", f.Rule, f.Count, f.Row, f.Column))
		}
		return strings.Join(append(lines, kinds(r)), "\n")
	}
	if got, want := found(), "L02 in 1: \"kkkk \n"; got != want {
		t.Errorf("as loaded:\n%s\nwant:\n%s", got, want)
	}
	change(t, conn, "things", "a", deleteCell("s.tags", "x", 1262304000000000), setCell("s.tags", "x", 1262304000000000, "yes"), setCell("s.tags", "y", 0, "\x00"))
	want := "L47 in 1: \"a\" s.tags:x\nL55 in 1: \"a\" s.tags:y\nL02 in 1: \"kkkk \nValueDiffers ExtraCell LintError LintError"
	if got := found(); got != want {
		t.Errorf("as damaged:\n%s\nwant:\n%s", got, want)
	}
	// A row of three cells, one of them from the mapping.
	if o.Lint.Config, err = lint.ParseConfig("x", []byte("L36: {mutations: 1}\nL02: off\nL47: off\nL55: off\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := found(), "L36 in 1: \"a\" \nValueDiffers ExtraCell LintError"; got != want {
		t.Errorf("cells of a stored row:\n%s\nwant:\n%s", got, want)
	}
}
