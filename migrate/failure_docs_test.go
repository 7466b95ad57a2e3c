package migrate

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFailureReference checks that docs/access.md explains exactly the kinds of failure.
func TestFailureReference(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("report/report.go")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^\t\w+ +Kind = "(\w+)"`).FindAllSubmatch(src, -1) {
		want = append(want, string(m[1]))
	}
	doc, err := os.ReadFile("../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "\n## Failures\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\|").FindAllStringSubmatch(section, -1) {
		for kind := range strings.SplitSeq(row[1], ", ") {
			got = append(got, strings.Trim(kind, "`"))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("docs/access.md does not list the kinds of failures (-code +docs):\n%s", diff)
	}
}
