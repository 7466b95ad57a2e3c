package control_test

import (
	"net/url"
	"testing"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

type part struct {
	Segment              int
	Name, Encoder, Value string
	Bytes                control.Bytes
}

// TestKeyParts: row keys of a mapped table are split into the parts of its templates, with
// times as times, in pages of rows and in a single row.
func TestKeyParts(t *testing.T) {
	t.Parallel()
	s := labserver.Start(t, labserver.Options{Fixture: "s6-row-keys"})
	e, m := &env{t, s.Lab, s.DynamoDB, s.API, s.URL}, s.Mapping
	var page struct {
		Rows []struct {
			Key   control.Bytes
			Parts []part
		}
	}
	at := "tables/i/" + m.TargetTable()
	e.must("GET", at+"/rows", "", &page)
	if len(page.Rows) != 24 {
		t.Fatalf("%d rows", len(page.Rows))
	}
	want := map[string][]string{ // the parts as name, encoder and value
		"1#u3":                      {"SK salt(fnv1a32,8,1) ", "SK s u3"},
		"revms#8305627524999":       {"  ", "v revms(13) 2023-09-10T19:01:15Z"},
		"epoch#1694359308":          {"  ", "SK epoch(s) 2023-09-10T15:21:48Z"},
		"iso#2023-09-10T15:21:48":   {"  ", "SK iso(s) 2023-09-10T15:21:48"},
		"nord#N69987~":              {"  ", "v nord -1.2"},
		"strip#0123":                {"  ", "SK strip(Invoice-) Invoice-0123"},
		"revdomain#com.google.mail": {"  ", "SK revdomain mail.google.com"},
	}
	for _, row := range page.Rows {
		var opened struct {
			Row struct{ Parts []part }
		}
		e.must("GET", at+"/items?key64="+url.QueryEscape(row.Key.Base64), "", &opened)
		for _, parts := range [][]part{row.Parts, opened.Row.Parts} {
			if len(parts) != 2 {
				t.Errorf("%s is cut into %+v", *row.Key.Text, parts)
			}
			for i, text := range want[*row.Key.Text] {
				if p := parts[i]; p.Segment != i || text != p.Name+" "+p.Encoder+" "+p.Value {
					t.Errorf("%s: part %d is %+v, want %s", *row.Key.Text, i, p, text)
				}
			}
		}
		delete(want, *row.Key.Text)
	}
	if len(want) > 0 {
		t.Errorf("no rows have the keys of %v", want)
	}
	var table struct {
		Keys []struct {
			Table, Rule string
			Segments    []struct {
				Template       string
				Attributes     []string
				Time, Reversed bool
			}
		}
	}
	e.must("GET", at, "", &table)
	if len(table.Keys) != 12 || table.Keys[3].Rule != "revms" || len(table.Keys[3].Segments) != 2 || table.Keys[3].Segments[1].Template != "{v:revms(13)}" || !table.Keys[3].Segments[1].Reversed {
		t.Errorf("the rules have the keys %+v", table.Keys)
	}
}

// TestKeyParts_None: keys of rows outside the mappings stay whole.
func TestKeyParts_None(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	e.query("PutItem", `{"TableName":"orders","Item":{"k":{"S":"a"}}}`)
	e.createRows("plain", "a")
	m, err := e.ddb.Mapping(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"tables/i/plain", "tables/i/" + m.TargetTable()} {
		var got struct {
			Keys []any
			Rows []struct{ Parts []part }
		}
		e.must("GET", path, "", &got)
		e.must("GET", path+"/rows", "", &got)
		if len(got.Keys) != 0 || len(got.Rows) != 1 || len(got.Rows[0].Parts) != 0 {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
