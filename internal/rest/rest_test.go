package rest

import (
	"slices"
	"testing"

	_ "cloud.google.com/go/bigtable/admin/apiv2/adminpb" // registers the services
	"google.golang.org/genproto/googleapis/api/annotations"
)

func TestTemplate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		template, path string
		want           []string // nil: the path does not match
	}{
		{"/v2/{name=projects/*/instances/*}", "/v2/projects/p/instances/i", []string{"projects/p/instances/i"}},
		{"/v2/{name=projects/*/instances/*}", "/v2/projects/p/instances/i/tables", nil},
		{"/v2/{name=projects/*/instances/*}", "/v2/projects/p/instances/i:verb", nil},
		{"/v2/{name=projects/*/instances/*}", "/v2/projects/p/instances/", nil},
		{"/v2/{name=projects/*/instances/*}", "/v2/projects/example.com:p/instances/i", []string{"projects/example.com:p/instances/i"}},
		{"/v2/{name=projects/*/instances/*}:undelete", "/v2/projects/p/instances/i:undelete", []string{"projects/p/instances/i"}},
		{"/v2/{name=projects/*/instances/*}:undelete", "/v2/projects/p/instances/i:other", nil},
		{"/v2/{table.name=tables/*}", "/v2/tables/a%2Fb%20c", []string{"tables/a/b c"}},
		{"/v2/{table.name=tables/*}", "/v2/tables/a%zz", nil},
		{"/v2/{name=operations/**}", "/v2/operations/a/b/c", []string{"operations/a/b/c"}},
		{"/v2/{name=operations/**}:cancel", "/v2/operations/a/b:cancel", []string{"operations/a/b"}},
		{"/v2/{a}/x/{b}", "/v2/1/x/2", []string{"1", "2"}},
		{"/v2/*/x", "/v2/any/x", []string{}},
	} {
		tmpl, err := compileTemplate(c.template)
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		if got, ok := tmpl.match(c.path); ok != (c.want != nil) || !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: got %q, %t, want %q", c.template, c.path, got, ok, c.want)
		}
	}
	for _, bad := range []string{"v2/a", "/v2/{a", "/v2/a}", "/v2/{a={b}}"} {
		if _, err := compileTemplate(bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// TestNew checks that each annotated method has a route, and that wrong rules are rejected.
func TestNew(t *testing.T) {
	t.Parallel()
	const service, method = "google.bigtable.admin.v2.BigtableTableAdmin", "google.bigtable.admin.v2.BigtableTableAdmin.GetTable"
	h, err := New(Options{Services: []string{service}})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, routes := range h.routes {
		for _, r := range routes {
			found[r.method] = true
		}
	}
	if len(found) < 30 || !found["/"+service+"/GetTable"] {
		t.Errorf("got routes for %d methods: %v", len(found), found)
	}
	for name, o := range map[string]Options{
		"unknown":       {Services: []string{"google.bigtable.admin.v2.Nothing"}},
		"not a service": {Services: []string{"google.bigtable.admin.v2.Table"}},
		"no pattern":    {Services: []string{service}, Rules: map[string]*annotations.HttpRule{method: {}}},
		"bad template":  {Services: []string{service}, Rules: map[string]*annotations.HttpRule{method: {Pattern: &annotations.HttpRule_Get{Get: "x"}}}},
		"bad body":      {Services: []string{service}, Rules: map[string]*annotations.HttpRule{method: {Pattern: &annotations.HttpRule_Put{Put: "/x"}, Body: "name"}}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzParameters checks that no query parameter ends the process.
func FuzzParameters(f *testing.F) {
	f.Add("view", "2")
	f.Add("table.columnFamilies", "x")
	f.Add("pageSize", "1e3")
	f.Add("a..b", "")
	f.Fuzz(func(t *testing.T, path, value string) {
		h, err := New(Options{Services: []string{"google.bigtable.admin.v2.BigtableTableAdmin"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range h.routes["GET"] {
			_ = setParameter(r.in.New().Interface(), path, []string{value}) // an error is fine, a crash is not
		}
	})
}
