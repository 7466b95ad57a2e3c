package migrate

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// namedPatterns is like patternFixture, but its mapping names its access patterns.
func namedPatterns(patterns string, files map[string]string) fstest.MapFS {
	all := patternFixture(`{id: default, bigtable: {read: {prefix: "a#"}}, expect: {count: 2}}`)
	all["mapping.yaml"] = &fstest.MapFile{Data: append(slices.Clone(all["mapping.yaml"].Data), patterns...)}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

// A fixture runs the access patterns that its mapping names: files and folders, each once.
func TestVerify_PatternsOfMapping(t *testing.T) {
	t.Parallel()
	one := func(id string) string {
		return "{id: " + id + `, bigtable: {read: {prefix: "a#"}}, expect: {count: 2}}`
	}
	reads := map[string]string{"reads/1.yaml": one("first"), "reads/2.yml": one("second"), "reads/README.txt": "none"}
	more := maps.Clone(reads)
	more["more/1.yaml"], more["more/2.yaml"] = one("more"), one("not named")
	for _, c := range []struct {
		patterns string
		files    map[string]string
		want     []string
	}{
		{"", nil, []string{"default"}},
		{"patterns: []\n", nil, []string{"default"}},
		{"patterns: [access/]\n", nil, []string{"default"}},
		{"patterns: [access/]\n", map[string]string{"access/x.yml": one("other")}, []string{"default", "other"}},
		{"", map[string]string{"access/x.yml": one("other")}, []string{"default", "other"}},
		{"patterns: [reads]\n", reads, []string{"first", "second"}},
		{"patterns: [more/1.yaml, reads/2.yml, ./reads/]\n", more, []string{"more", "second", "first"}},
	} {
		r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(namedPatterns(c.patterns, c.files)), VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, r)
		var got []string
		for _, p := range r.Patterns {
			got = append(got, p.ID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q runs (-want +got):\n%s", c.patterns, diff)
		}
	}
}

// The named patterns must exist, and the endpoint must serve the mapping.
func TestVerify_PatternsOfMappingAtFault(t *testing.T) {
	t.Parallel()
	golden := `{id: p, bigtable: {read: {prefix: "a#"}}, expect: {items: golden}}`
	for _, c := range []struct {
		patterns string
		files    map[string]string
		want     string
	}{
		{"patterns: [access/, writes/]\n", nil, `mapping.yaml:6: patterns: "writes/" does not exist, want a file or folder of access patterns inside the fixture`},
		{"patterns:\n- access/\n- ../other\n", nil, `mapping.yaml:8: patterns: "../other" does not exist`},
		{"patterns: [reads/1.yaml]\n", map[string]string{"reads/1.yaml": "{id: p}"}, "reads/1.yaml: the access pattern cannot be run"},
		{"patterns:\n- access/\n- reads/\n", map[string]string{"reads/README.md": "none yet"}, `mapping.yaml:8: patterns: the folder "reads/" contains no access patterns, want files named *.yaml, *.yml`},
		{"", map[string]string{"access/1.yaml": golden, "access/1.yml": strings.Replace(golden, "id: p", "id: q", 1)}, "access: patterns: expect/1.items.golden would also hold the items of the access pattern access/1.yml; rename one of them"},
		{"patterns: [x, y]\n", map[string]string{"x/1.yaml": golden, "y/1.yaml": golden}, "mapping.yaml:6: patterns: expect/1.items.golden would also hold the items of the access pattern y/1.yaml; rename one of them"},
	} {
		_, err := Verify(t.Context(), newBigtableServer(t), OfFixture(namedPatterns(c.patterns, c.files)), VerifyOptions{})
		WantDamage(t, err, source.FixtureInvalid, c.want)
	}
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(namedPatterns("patterns: [reads]\n", map[string]string{"reads/1.yaml": `{id: p, bigtable: {read: {prefix: "a#"}}, expect: {count: 3}}`})), VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Equal() || r.Failures[0].Kind != report.PatternDiffers {
		t.Errorf("failures %v, want %s", r.Failures, report.PatternDiffers)
	}
}

// Without its folder, a mapping has no access patterns to run, which is reported.
func TestVerify_PatternsOfMappingAlone(t *testing.T) {
	t.Parallel()
	m := mappingOf(t, notedMapping+"patterns: [access/]\n")
	src, _ := noted(t, notedMapping)
	conn := newBigtableServer(t)
	for _, verify := range []func() (*report.Report, error){
		func() (*report.Report, error) {
			return Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: Common{Mappings: []*mapping.Mapping{m}}})
		},
		func() (*report.Report, error) {
			return Verify(t.Context(), conn, OfSource(src), VerifyOptions{Common: Common{Mappings: []*mapping.Mapping{m}}, Stored: true})
		},
	} {
		r, err := verify()
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, r)
		if !slices.ContainsFunc(r.Warnings, func(w string) bool {
			return strings.Contains(w, "the access patterns of its mapping (patterns: access/) are not run")
		}) {
			t.Errorf("warnings %q", r.Warnings)
		}
	}
}
