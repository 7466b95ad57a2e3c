package costs

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestWrite: a cost that grew gets the new reason, any other keeps its own.
func TestWrite(t *testing.T) { //nolint:paralleltest // it sets the flag
	path := filepath.Join(t.TempDir(), "costs.tsv")
	defer func(was string) { *reason = was }(*reason)
	for _, step := range []struct {
		reason   string
		measured []Cost
	}{
		{"first", []Cost{{"a", 100, 1}, {"b", 9.5, Unmeasured}, {"c", 50, 3}}},
		{"second", []Cost{{"a", 111, 1}, {"b", 8, Unmeasured}, {"c", 50, 4}, {"d", 1, 1}}},
	} {
		*reason = step.reason
		Check(t, path, step.measured)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := minor(runtime.Version()) + "\n" + head + "\na\t111\t1\tsecond\nb\t8\t-1\tfirst\nc\t50\t4\tsecond\nd\t1\t1\tsecond\n"
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	*reason = ""
	Check(t, path, []Cost{{"a", 122, 1}, {"b", 8, Unmeasured}, {"c", 1, 4}, {"d", 1, 1}})
}

// TestCompare: allocations may grow by a tenth, calls may not change.
func TestCompare(t *testing.T) {
	t.Parallel()
	rows := map[string]row{"a": {100, 1, ""}, "b": {100, 2, ""}, "c": {100, 3, ""}, "gone": {1, 1, ""}}
	got := compare(rows, []Cost{{"a", 110, 1}, {"b", 110.5, 2}, {"c", 1, 2}, {"new", 1, 1}})
	want := []string{"b takes 110.5 allocations, want at most 110", "c makes 2 calls, want 3", "new has no row", "gone was not measured"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPinned: the version of Go of each baseline is that of go.mod.
func TestPinned(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(mod), "\ngo ")
	line, _, _ := strings.Cut(after, "\n")
	for _, path := range []string{"facade/testdata/costs.tsv", "emu/testdata/costs.tsv"} {
		version, rows, err := read(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if want := minor("go" + line); version != want || len(rows) == 0 {
			t.Errorf("%s holds for %s, go.mod has %s; it has %d rows", path, version, want, len(rows))
		}
	}
}
