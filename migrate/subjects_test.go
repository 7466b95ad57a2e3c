package migrate

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/internal/endpoints"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

type subjectCount struct {
	name                  string
	items, rows, patterns int64
	findings              []string
}

// subjectCounts are the items, rows and access patterns of the shipped fixtures and, for
// designs that demonstrate lint, the rules.
var subjectCounts = []subjectCount{
	{"s1-catalog", 5, 5, 5, nil},
	{"s2-video", 9, 2, 6, []string{"L58"}},
	{"s2b-one-family", 9, 2, 3, []string{"L31", "L58"}},
	{"s3-adjacency", 6, 2, 5, nil},
	{"s4-time-versions", 5, 2, 4, nil},
	{"s4-versions", 7, 2, 4, nil},
	{"s5-order-entry", 46, 46, 14, []string{"L08", "L08", "L49", "L56", "L59"}},
	{"s6-anti-hashed", 12, 12, 1, []string{"L05"}},
	{"s6-anti-leading-time", 12, 12, 1, []string{"L03", "L11"}},
	{"s6-anti-raw-bytes", 5, 5, 1, []string{"L06"}},
	{"s6-anti-sequential", 12, 12, 1, []string{"L04"}},
	{"s6-row-keys", 24, 24, 5, nil},
	{"s6-tenants", 5, 5, 3, nil},
	{"s7-blob", 3, 3, 1, nil},
	{"s7-friends", 6, 2, 3, nil},
	{"s7-time-series", 4, 4, 2, nil},
	{"s8-hot-keys", 17, 17, 3, nil},
	{"s8-paging", 8, 8, 2, nil},
	{"s9-view-index", 8, 8, 5, []string{"L56"}},
}

// shippedFiles returns the shipped fixtures.
var shippedFiles = os.DirFS("../fixtures")

func shippedSubjects(t *testing.T) []fixtures.Subject {
	t.Helper()
	subjects, err := fixtures.Subjects()
	if err != nil {
		t.Fatal(err)
	}
	if len(subjects) != len(subjectCounts) {
		t.Fatalf("%d subjects are shipped, want %d", len(subjects), len(subjectCounts))
	}
	return subjects
}

// largeSubject is the shipped fixture with items of 3 MB, which takes as long as all others.
const largeSubject = "s8-paging"

// subjectsAnd returns the shipped fixtures; without large it omits the large one.
func subjectsAnd(t *testing.T, large bool) []fixtures.Subject {
	t.Helper()
	return slices.DeleteFunc(shippedSubjects(t), func(s fixtures.Subject) bool { return s.Name == largeSubject && !large })
}

// Each shipped fixture passes all checks. Its patterns also run on the items without their mapping, which leaves
// nothing behind. A verification that treats all rows as wide gives the same result.
func TestVerify_Subjects(t *testing.T) {
	t.Parallel()
	for i, s := range shippedSubjects(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			want := subjectCounts[i]
			conn := newBigtableServer(t)
			r, err := Verify(t.Context(), conn, OfFixture(s.Files), VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, r)
			if i := slices.IndexFunc(r.Checks, func(c report.Check) bool { return c.Name == "oracle" }); i >= 0 {
				t.Errorf("%+v", r.Checks[i])
			}
			left, err := table.NewBigtable(conn, table.Options{Instance: "tabletop-oracle"}).Tables(t.Context())
			if err != nil || len(left) > 0 {
				t.Errorf("tables %v, error %v; want none", left, err)
			}
			if s.Name != want.name || r.Items != want.items || r.Rows != want.rows || int64(len(r.Patterns)) != want.patterns {
				t.Errorf("%s: %d items, %d rows, %d patterns; want %+v", s.Name, r.Items, r.Rows, len(r.Patterns), want)
			}
			if r.Fixture != s.Name || r.Title != s.Title || s.Title == "" {
				t.Errorf("report of fixture %q, %q; want %q, %q", r.Fixture, r.Title, s.Name, s.Title)
			}
			var rules []string
			for _, f := range r.Lint.Findings {
				rules = append(rules, f.Rule)
			}
			slices.Sort(rules)
			if diff := cmp.Diff(want.findings, rules); diff != "" {
				t.Errorf("lint (-want +got):\n%s", diff)
			}
			for _, p := range r.Patterns {
				if p.RowsScanned > p.RowsReturned {
					t.Errorf("pattern %s scans %d rows for %d", p.ID, p.RowsScanned, p.RowsReturned)
				}
			}
			if s.Name == largeSubject && !long.Enabled() {
				return
			}
			wide, err := Verify(t.Context(), piecemeal{newBigtableServer(t)}, OfFixture(s.Files), VerifyOptions{Common: Common{knobs: table.Knobs{Part: 1}}})
			if err != nil {
				t.Fatal(err)
			}
			if in, whole := wide.Text(), r.Text(); in != whole {
				t.Errorf("in parts:\n%s\nwhole:\n%s", in, whole)
			}
		})
	}
}

// An update finds the golden files as it writes them. TestUpdateGoldens updates twice.
func TestSubjects_Goldens(t *testing.T) {
	t.Parallel()
	for _, s := range shippedSubjects(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), s.Name)
			if err := os.CopyFS(dir, s.Files); err != nil {
				t.Fatal(err)
			}
			changes, err := UpdateGoldens(t.Context(), newBigtableServer(t), dir, VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changes {
				t.Errorf("not as shipped: %s", c)
			}
		})
	}
}

// The DynamoDB endpoint ends each page of the large partition at 1 MB, and the pages together
// are the partition.
func TestSubjects_Pages(t *testing.T) {
	t.Parallel()
	const pageBytes = 1 << 20
	conn := newBigtableServer(t)
	src, o := subject(t, "s8-paging")
	p, err := Prepare(t.Context(), src, LoadOptions{Common: o})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Load(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	server, err := endpoints.NewServer(t.Context(), conn, p.run.Options, p.run.Jobs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	d := endpoints.Open(p.run.B, server, p.run.Jobs[0], &report.Report{})
	var docs []string
	var sizes []int
	err = d.Pages(t.Context(), &fixtures.Request{Op: "Query", Request: map[string]any{
		"KeyConditionExpression":    "Box = :b",
		"ExpressionAttributeValues": map[string]any{":b": map[string]any{"S": "b1"}},
	}}, func(page []attr.Item) error {
		size := 0
		for i, item := range page {
			if i == len(page)-1 && size > pageBytes {
				t.Errorf("a page continues after %d bytes", size)
			}
			size += item.Size()
			docs = append(docs, item["Doc"].Str)
		}
		sizes = append(sizes, size)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5", "6", "7"}, docs); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	if len(sizes) < 3 {
		t.Errorf("pages of %v bytes: 2.7 MB take three at least", sizes)
	}
	for i, size := range sizes[:len(sizes)-1] {
		if size < pageBytes-400<<10 {
			t.Errorf("page %d has %d bytes, though there is another item of 390 KB", i+1, size)
		}
	}
}

// The designs that the guides warn of have findings of their rules, and no other subject does.
func TestSubjects_AntiPatterns(t *testing.T) {
	t.Parallel()
	raised := map[string]string{}
	for _, s := range shippedSubjects(t) {
		r, err := Lint(t.Context(), OfFixture(s.Files), LintOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Lint.Findings {
			if slices.Contains([]string{"L03", "L04", "L05", "L06"}, f.Rule) {
				raised[s.Name] += f.Rule
			}
			if f.Level == lint.Error && f.Rule != "L03" {
				t.Errorf("%s: %s", s.Name, f)
			}
		}
	}
	want := map[string]string{"s6-anti-leading-time": "L03", "s6-anti-sequential": "L04", "s6-anti-hashed": "L05", "s6-anti-raw-bytes": "L06"}
	if diff := cmp.Diff(want, raised); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// Faults in newer kinds of access patterns are reported.
func TestSubjects_PatternFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, subject, file, from, to string
		kind                          report.Kind
		text                          string
	}{
		{"ranges not merged", "s8-hot-keys", "1-stream", "order: merged", "order: by-key", report.PatternDiffers, "native read: item 1 of 16 is"},
		{"one range less", "s8-hot-keys", "1-stream", `    - {prefix: "6#clicks#"}`, "", report.PatternDiffers, "native read: 14 items, want 16; item 7 is"},
		{"a request not descending", "s8-hot-keys", "2-stretch", "    ScanIndexForward: false\n", "", report.PatternDiffers, "DynamoDB endpoint: item 1 of 5 is"},
		{"a range not descending", "s8-hot-keys", "2-stretch", "    reversed: true\n", "", report.PatternDiffers, "native read: item 1 of 5 is"},
		{"too many ranges", "s5-order-entry", "p04-orders-of-customer", "max_ranges: 2", "max_ranges: 1", report.PatternFullScan, "the native read needs 2 ranges, at most 1 are declared"},
		{"one status less", "s5-order-entry", "p04-orders-of-customer", `  - {":from": {S: "SHIPPED#2023-09-01"}, ":to": {S: "SHIPPED#2023-09-30"}}`, "", report.PatternDiffers, "DynamoDB endpoint: 1 item, want 2"},
		{"one shard less", "s5-order-entry", "p05-open-orders", `  - {":shard": {S: "4"}}`, "", report.PatternDiffers, "DynamoDB endpoint: 3 items, want 4; item 3 is"},
		{"shards in another order", "s5-order-entry", "p05-open-orders", "order: merged", "order: by-key", report.PatternDiffers, "DynamoDB endpoint: item 1 of 4 is"},
		{"items of the whole row", "s4-versions", "1-latest", "  items: {SK: v0_}", "", report.PatternDiffers, "native read: 2 items, want 1"},
		{"another prefix", "s6-tenants", "3-tenant-leaves", `prefix: "altostrat#"`, `prefix: "altostrat#phone#"`, report.PatternDiffers, "native read after the native write: 3 items, want 2; item 1 is"},
		{"a view not descending", "s9-view-index", "2-newest-first", ", reversed: true", "", report.PatternDiffers, "native read: item 1 of 3 is"},
		{"SQL not in order", "s9-view-index", "4-by-total", "ORDER BY Total", "ORDER BY Placed", report.PatternDiffers, "SQL: item 1 of 3 is"},
		{"SQL without the row key of the table", "s9-view-index", "4-by-total", "SELECT *", "SELECT Status, Total", report.PatternDiffers, "the column _source_key of the row key of view shop__ByTotal is missing"},
		{"another view", "s9-view-index", "4-by-total", "table: shop__ByTotal", "table: shop__GSI1", report.PatternDiffers, "native read: item 1 of 3 is"},
		{"golden items not there", "s7-friends", "2-friend", "keys: [[Jose, Gabriel]]", "items: golden", report.PatternDiffers, "expect/2-friend.items.golden is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(editSubject(t, c.subject, "access/"+c.file+".yaml", c.from, c.to)), VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Failures, func(f report.Failure) bool { return f.Kind == c.kind && strings.Contains(f.String(), c.text) }) {
				t.Errorf("failures %v, want %s with %q", r.Failures, c.kind, c.text)
			}
		})
	}
	t.Run("a prefix and a key", func(t *testing.T) {
		t.Parallel()
		files := editSubject(t, "s6-tenants", "access/3-tenant-leaves.yaml", `prefix: "altostrat#"`, `prefix: "altostrat#", key: a`)
		_, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{})
		WantDamage(t, err, source.FixtureInvalid, "access/3-tenant-leaves.yaml: the access pattern cannot be run: a native write needs a key, or a prefix with delete: true")
	})
}

// editSubject returns a shipped fixture with one text in it replaced.
func editSubject(t *testing.T, name, file, from, to string) fs.FS {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	shipped, err := fs.Sub(shippedFiles, "subjects/"+name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, shipped); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(dir, filepath.FromSlash(file))
	text, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s has no %q", file, from)
	}
	if err := os.WriteFile(p, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return os.DirFS(dir)
}
