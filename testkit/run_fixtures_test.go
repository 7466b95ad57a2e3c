package testkit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/testkit"
)

func TestRunFixtures(t *testing.T) {
	t.Parallel()
	subjects, err := fixtures.Subjects()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), subjects[0].Name)
	if err := os.CopyFS(dir, subjects[0].Files); err != nil {
		t.Fatal(err)
	}
	testkit.RunFixtures(t, dir)
}

// TestRunFixtures_Checks runs a fixture in a separate process, in memory and in a folder:
// all checks run, including the restart.
func TestRunFixtures_Checks(t *testing.T) {
	if dir := os.Getenv("TESTKIT_FIXTURE"); dir != "" {
		for _, opts := range [][]testkit.Option{nil, {testkit.WithDir(t.TempDir())}, {testkit.WithGC(testkit.GCBackground)}} {
			testkit.RunFixtures(t, dir, opts...)
		}
		return
	}
	t.Parallel()
	subjects, err := fixtures.Subjects()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), subjects[0].Name)
	if err := os.CopyFS(dir, subjects[0].Files); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunFixtures_Checks$", "-test.v")
	cmd.Env = append(os.Environ(), "TESTKIT_FIXTURE="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "--- PASS: TestRunFixtures_Checks/restart/products"); n != 3 || strings.Contains(string(out), "--- SKIP") {
		t.Errorf("%d restarts pass, want 3, and no check skipped:\n%s", n, out)
	}
}

// TestRunFixtures_NoFixture runs a folder that is not a fixture, a folder of fixtures and a
// missing one, in processes of their own: the message names the folder, describes a fixture,
// and lists those below.
func TestRunFixtures_NoFixture(t *testing.T) {
	if dir := os.Getenv("TESTKIT_FIXTURE"); dir != "" {
		testkit.RunFixtures(t, dir)
		return
	}
	t.Parallel()
	const holds = "the folder is not a fixture: a fixture has its data in source/, mapping.yaml, and usually fixture.yaml, access/ and expect/; "
	parent := writeFixture(t, map[string]string{"one/source/items.jsonl": "", "two/mapping.yaml": "", "none/README": ""})
	for dir, want := range map[string]string{
		parent:                         "testkit: fixture " + parent + ": " + holds + "fixtures below it are one, two",
		filepath.Join(parent, "none"):  holds + "no folder below it is one",
		filepath.Join(parent, "three"): "testkit: fixture " + filepath.Join(parent, "three") + ": the folder does not exist",
		"testdata/not/there":           "testkit: fixture testdata/not/there (" + absolute(t, "testdata/not/there") + "): the folder does not exist",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunFixtures_NoFixture$")
		cmd.Env = append(os.Environ(), "TESTKIT_FIXTURE="+dir)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want+"\n") {
			t.Errorf("%s: %v\n%s\nwant %s", dir, err, out, want)
		}
	}
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	whole, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// TestRunFixtures_Fails runs a fixture with a wrong golden row in a separate process: only
// the subtest of that check fails, with the difference.
func TestRunFixtures_Fails(t *testing.T) {
	if dir := os.Getenv("TESTKIT_FIXTURE"); dir != "" {
		testkit.RunFixtures(t, dir)
		return
	}
	t.Parallel()
	subjects, err := fixtures.Subjects()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), subjects[0].Name)
	if err := os.CopyFS(dir, subjects[0].Files); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join(dir, "expect", "rows.golden")
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(golden, []byte(strings.Replace(string(text), `= "30"`, `= "31"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRunFixtures_Fails$", "-test.v")
	cmd.Env = append(os.Environ(), "TESTKIT_FIXTURE="+dir)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the fixture passes:\n%s", out)
	}
	for _, want := range []string{"--- FAIL: TestRunFixtures_Fails/golden_rows/products", `want @1715685260608000 = "31", got @1715685260608000 = "30"`, "--- PASS: TestRunFixtures_Fails/pattern/S1-category"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if n := strings.Count(string(out), "--- FAIL: TestRunFixtures_Fails/"); n != 1 {
		t.Errorf("%d subtests fail, want 1:\n%s", n, out)
	}
}

// TestRunFixtures_Clock runs a fixture whose cells would have expired years ago without its
// clock.
func TestRunFixtures_Clock(t *testing.T) {
	t.Parallel()
	testkit.RunFixtures(t, writeFixture(t, map[string]string{
		"fixture.yaml": "clock: 2024-05-02T00:00:00Z\n",
		"mapping.yaml": `
apiVersion: migration/v1
source: {table: Comments, key: {hash: {name: PK, type: S}}, schema: {Text: S}}
target: {table: comments, families: {c: {gc: {maxAge: 48h}}}}
timestamps: {default: "2024-05-01T00:00:00Z"}
rules: [{name: comment, row: ["{PK}"], put: [{attr: Text, cell: "c:text"}]}]
`,
		"source/items.jsonl": `{"PK":{"S":"v1"},"Text":{"S":"x"}}` + "\n",
	}))
}

// writeFixture writes the files of a fixture into a folder of the test.
func writeFixture(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestUpdateFlag updates a fixture with a wrong golden row, in processes of their own: -update
// writes it and passes, and is rejected with CI=true unless it is forced.
func TestUpdateFlag(t *testing.T) {
	if dir := os.Getenv("TESTKIT_FIXTURE"); dir != "" {
		testkit.RunFixtures(t, dir, update)
		return
	}
	t.Parallel()
	subjects, err := fixtures.Subjects()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flag, ci string
		written  bool
		want     string
	}{
		{"-update=false", "", false, "--- FAIL: TestUpdateFlag/golden_rows/products"},
		{"-update", "", true, "expect/rows.golden: 10 lines removed, 10 added"},
		{"-update", "true", false, "-update is not allowed while CI=true"},
		{"-update=force", "true", true, "expect/rows.golden: 10 lines removed, 10 added"},
		{"-update=never", "", false, `"never" is not a mode`},
	} {
		dir := filepath.Join(t.TempDir(), subjects[0].Name)
		if err := os.CopyFS(dir, subjects[0].Files); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join(dir, "expect", "rows.golden")
		right, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		wrong := strings.Replace(string(right), `= "30"`, `= "31"`, 1)
		if err := os.WriteFile(golden, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUpdateFlag$", "-test.v", c.flag)
		cmd.Env = append(os.Environ(), "TESTKIT_FIXTURE="+dir, "CI="+c.ci)
		out, err := cmd.CombinedOutput()
		if (err == nil) != c.written || !strings.Contains(string(out), c.want) {
			t.Errorf("%s where CI=%s: %v\n%s\nwant %q", c.flag, c.ci, err, out, c.want)
		}
		text, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if written := string(text) != wrong; written != c.written {
			t.Errorf("%s where CI=%s: written %t, want %t", c.flag, c.ci, written, c.written)
		}
	}
}
