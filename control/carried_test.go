package control_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

type carriedRow struct {
	Row struct {
		Key   control.Bytes
		Cells []struct {
			Family           string
			Qualifier, Value control.Bytes
			Timestamp        int64
		}
	}
	Items []struct {
		Table, Rule string
		Item        map[string]json.RawMessage
		Attributes  []carriedAttribute
	}
	Problems []string
}

type carriedAttribute struct {
	Name  string
	Key   bool
	Cells []int
}

// TestCarried_Fixtures: each cell of the golden rows belongs to an attribute of an item in the
// row, and each attribute is in cells, in the key or in the rule.
func TestCarried_Fixtures(t *testing.T) {
	t.Parallel()
	for _, s := range subjects(t) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			e, m := fixtureEnv(t, s.Files)
			table := "tables/i/" + url.PathEscape(m.TargetTable())
			var page struct{ Rows []struct{ Key control.Bytes } }
			e.must("GET", table+"/rows?limit=1000", "", &page)
			if len(page.Rows) == 0 {
				t.Fatal("the fixture has no rows")
			}
			for _, row := range page.Rows {
				var got carriedRow
				e.must("GET", table+"/items?key64="+url.QueryEscape(row.Key.Base64), "", &got)
				lit := make([]bool, len(got.Row.Cells))
				for _, item := range got.Items {
					copied := !slices.ContainsFunc(item.Attributes, func(a carriedAttribute) bool { return len(a.Cells) > 0 })
					for _, a := range item.Attributes {
						// The value of a key attribute may be in the rule; a copy has no
						// cells.
						if len(a.Cells) == 0 && !a.Key && !copied && a.Name != "PK" && a.Name != "SK" {
							t.Errorf("row %s: attribute %s of %s is nowhere", row.Key.Base64, a.Name, item.Item)
						}
						for _, c := range a.Cells {
							lit[c] = true
						}
					}
				}
				for i, is := range lit {
					if c := got.Row.Cells[i]; !is && !strings.HasPrefix(c.Family, "_") {
						t.Errorf("row %s: the cell %s:%s is of no attribute", row.Key.Base64, c.Family, c.Qualifier.Base64)
					}
				}
				if len(got.Problems) > 0 {
					t.Error(got.Problems)
				}
			}
		})
	}
}

var (
	columns = regexp.MustCompile(` +@`) // golden rows are aligned
	values  = regexp.MustCompile(` = .*`)
)

// TestCarried_Exactly: the cells of an attribute are exactly those whose removal changes it.
// This checks with reads what the mapping computed by placing. The rows are the golden ones.
func TestCarried_Exactly(t *testing.T) {
	t.Parallel()
	for _, s := range subjects(t) {
		if s.Name == largest && !long.Enabled() {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			e, m := fixtureEnv(t, s.Files)
			golden, err := fs.ReadFile(s.Files, "expect/rows.golden")
			if err != nil {
				t.Fatal(err)
			}
			dump, err := e.lab.Dump(t.Context(), m.TargetTable())
			// Indexes follow the table.
			rows, _, _ := strings.Cut(columns.ReplaceAllString(string(golden), " @"), "\ntable ")
			if strings.Contains(rows, " = sha256:") { // golden files have checksums of large values
				rows, dump = values.ReplaceAllString(rows, ""), values.ReplaceAllString(dump, "")
			}
			if err != nil || strings.TrimSpace(dump) != strings.TrimSpace(rows) {
				t.Errorf("the rows are not the golden ones: %v\n%.2000s", err, dump)
			}
			keys := e.keyAttributes(m.SourceTable())
			rules := map[string]bool{}
			table := "tables/i/" + url.PathEscape(m.TargetTable())
			var page struct{ Rows []struct{ Key control.Bytes } }
			e.must("GET", table+"/rows?limit=1000", "", &page)
			for _, key := range page.Rows {
				var got carriedRow
				e.must("GET", table+"/items?key64="+url.QueryEscape(key.Key.Base64), "", &got)
				row := mapping.Row{Key: decoded(t, key.Key)}
				for _, c := range got.Row.Cells {
					row.Cells = append(row.Cells, mapping.Cell{Family: c.Family, Qualifier: decoded(t, c.Qualifier), Timestamp: c.Timestamp, Value: decoded(t, c.Value)})
				}
				for _, item := range got.Items {
					rules[item.Rule] = true
					text, err := json.Marshal(item.Item)
					if err != nil {
						t.Fatal(err)
					}
					whole, err := attr.UnmarshalItem(text)
					if err != nil {
						t.Fatal(err)
					}
					want := map[string][]int{}
					var its []int // of any attribute
					for at, c := range row.Cells {
						rest, err := m.Item(mapping.Row{Key: row.Key, Cells: slices.Delete(slices.Clone(row.Cells), at, at+1)}, whole)
						if err != nil {
							t.Fatalf("row %q without %s:%s: %v", row.Key, c.Family, c.Qualifier, err)
						}
						if rest == nil || !attr.EqualItems(rest, whole) {
							its = append(its, at)
						}
						for name, v := range whole {
							if !attr.Equal(rest[name], v) {
								want[name] = append(want[name], at)
							}
						}
					}
					for _, a := range item.Attributes {
						if copied := !slices.ContainsFunc(item.Attributes, func(a carriedAttribute) bool { return len(a.Cells) > 0 }); copied {
							continue // a copy of the highest version, which is read from that version's cells
						}
						// A key is read from the row's key, or from any cell of the item: each
						// of these cells counts, as do those that only record the time.
						if slices.Contains(keys, a.Name) {
							out := func(at int) bool { return !slices.Contains(a.Cells, at) }
							if want[a.Name] = a.Cells; slices.ContainsFunc(its, out) && !inRowKey(t, m, whole, a.Name) {
								want[a.Name] = its
							}
						}
						if !slices.Equal(a.Cells, want[a.Name]) {
							t.Errorf("row %q: the cells of %s are %v, it is read from %v", row.Key, a.Name, a.Cells, want[a.Name])
						}
					}
				}
			}
			for _, f := range m.Fidelity() {
				if !rules[f.Rule] {
					t.Errorf("the rule %s has no item", f.Rule)
				}
			}
		})
	}
}

// inRowKey reports whether another value of a key attribute gives the item another row, or
// none.
func inRowKey(t *testing.T, m *mapping.Mapping, item attr.Item, name string) bool {
	t.Helper()
	row, err := m.Locate(item)
	if err != nil {
		t.Fatal(err)
	}
	other, v := maps.Clone(item), item[name]
	last := len(v.Str) - 1
	v.Str = v.Str[:last] + string('0'+(v.Str[last]+1)%10)
	other[name] = v
	at, err := m.Locate(other)
	return err != nil || !bytes.Equal(at, row)
}

// keyAttributes returns the names of the key attributes of a DynamoDB table.
func (e *env) keyAttributes(table string) (names []string) {
	e.t.Helper()
	var described struct {
		Response struct {
			Table struct {
				KeySchema []struct{ AttributeName string }
			}
		}
	}
	e.must("POST", "query", fmt.Sprintf(`{"operation":"DescribeTable","request":{"TableName":%q}}`, table), &described)
	for _, k := range described.Response.Table.KeySchema {
		names = append(names, k.AttributeName)
	}
	return names
}

// largest is the fixture with the most items.
const largest = "s8-paging"

// subjects returns all fixtures.
func subjects(t *testing.T) []fixtures.Subject {
	t.Helper()
	all, err := fixtures.Subjects()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// fixtureEnv returns an env with a fixture's rows and its mapping.
func fixtureEnv(t *testing.T, files fs.FS) (*env, *mapping.Mapping) {
	t.Helper()
	text, err := fs.ReadFile(files, "mapping.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := mapping.Load("mapping.yaml", text, files)
	if err != nil {
		t.Fatal(err)
	}
	src, _, err := migrate.OpenFixture(files, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mappings := []*mapping.Mapping{m}
	seen := control.NewRequests()
	l := lab.New(lab.Options{
		Clock: clock.NewFrozen(time.Unix(1_800_000_000, 0)), Logger: slog.New(slog.DiscardHandler), Project: "p", Instance: "i",
		Bigtable: emu.Options{Observe: seen.Observe},
	})
	ddb := dynamodb.New(l, facade.Options{NoAuth: true, Mappings: mappings, Observe: seen.ObserveDynamoDB})
	if err := l.Open(); err != nil {
		t.Fatal(err)
	}
	_, err = migrate.Load(t.Context(), l.Bigtable().Conn(), src, migrate.LoadOptions{Common: migrate.Common{Project: "p", Instance: "i", Mappings: mappings}})
	if err := errors.Join(err, ddb.Open()); err != nil {
		t.Fatal(err)
	}
	api := control.New(control.Options{Lab: l, Endpoint: ddb, Requests: seen, Token: token, Version: "test"})
	srv := httptest.NewServer(api)
	t.Cleanup(func() {
		err := api.Close()
		srv.Close()
		if err := errors.Join(err, l.Close()); err != nil {
			t.Error(err)
		}
	})
	return &env{t, l, ddb, api, srv.URL}, m
}
