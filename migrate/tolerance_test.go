package migrate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

const tolerantMapping = `apiVersion: migration/v1
source: {table: items, key: {hash: {name: id, type: S}}, schema: {n: N, tags: SS}}
target: {table: items, joiner: oc, families: {a: {gc: {versions: 1}}, s.tags: {gc: {versions: 1}}}}
rules: [{name: item, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

// A comparison that tolerates times still shows them.
func TestProgress_TimesAsStored(t *testing.T) {
	t.Parallel()
	const items = `{"id":{"S":"1"},"n":{"N":"1"}}` + "\n" + `{"id":{"S":"2"},"n":{"N":"1"}}` + "\n"
	for _, policy := range []fixtures.TimestampPolicy{fixtures.TimestampsOrderOnly, fixtures.TimestampsIgnore} {
		conn := newBigtableServer(t)
		o := VerifyOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, tolerantMapping)}}, Stored: true, Timestamps: policy}
		if _, err := Load(t.Context(), conn, open(t, items), LoadOptions{Common: o.Common}); err != nil {
			t.Fatal(err)
		}
		const theirs = 1700000000123000
		for i, value := range []string{"2", "1"} { // one differs, the other is only at another time
			change(t, conn, "items", fmt.Sprint(i+1), deleteRow(), setCell("a", "n", theirs, value))
		}
		r, err := Verify(t.Context(), conn, OfSource(open(t, items)), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Failures) != 1 || r.Failures[0].Kind != report.ValueDiffers || !strings.HasPrefix(r.Failures[0].Got, fmt.Sprintf("@%d ", theirs)) {
			t.Errorf("%s: the differences are %v, want one that shows the time %d", policy, r.Failures, theirs)
		}
	}
}

// Empty cells for members of sets can be tolerated without a fixture.
func TestProgress_LenientSets(t *testing.T) {
	t.Parallel()
	const items = `{"id":{"S":"1"},"tags":{"SS":["x","y"]}}`
	conn := newBigtableServer(t)
	o := VerifyOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, tolerantMapping)}}, Stored: true}
	if _, err := Load(t.Context(), conn, open(t, items), LoadOptions{Common: o.Common}); err != nil {
		t.Fatal(err)
	}
	change(t, conn, "items", "1", setCell("s.tags", "x", 1262304000000000, ""), setCell("s.tags", "y", 1262304000000000, ""))
	for lenient, want := range map[bool]int64{false: 2, true: 0} {
		o.LenientSets = lenient
		r, err := Verify(t.Context(), conn, OfSource(open(t, items)), o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Differences != want {
			t.Errorf("lenient %v: %d differences, want %d:\n%s", lenient, r.Differences, want, r.Text())
		}
		if reported := slices.ContainsFunc(r.Checks, func(c report.Check) bool { return strings.Contains(c.Detail, "lenient sets") }); reported != lenient {
			t.Errorf("lenient %v: the checks are %+v", lenient, r.Checks)
		}
	}
}
