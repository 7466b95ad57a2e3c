package control_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

type carriedRow struct {
	Row struct {
		Key   control.Bytes
		Cells []struct {
			Family    string
			Qualifier control.Bytes
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

// TestCarried_Fixtures: each cell of the golden rows is one that an attribute of an item in the row became, and
// each attribute is in cells, in the key or in the rule.
func TestCarried_Fixtures(t *testing.T) {
	t.Parallel()
	subjects, err := fixtures.Subjects()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
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
						// The value of a key attribute may stand in the rule; a copy has no cells.
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

// fixtureEnv is an env with a fixture's rows and its mapping.
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
		DynamoDB: facade.Options{NoAuth: true, Mappings: mappings, Observe: seen.ObserveDynamoDB},
	})
	if err := l.Open(); err != nil {
		t.Fatal(err)
	}
	_, err = migrate.Load(t.Context(), l.Bigtable().Conn(), src, migrate.LoadOptions{Common: migrate.Common{Project: "p", Instance: "i", Mappings: mappings}})
	if err := errors.Join(err, l.Door().Open()); err != nil {
		t.Fatal(err)
	}
	api := control.New(control.Options{Lab: l, Requests: seen, Token: token, Version: "test"})
	srv := httptest.NewServer(api)
	t.Cleanup(func() {
		err := api.Close()
		srv.Close()
		if err := errors.Join(err, l.Close()); err != nil {
			t.Error(err)
		}
	})
	return &env{t, l, api, srv.URL}, m
}
