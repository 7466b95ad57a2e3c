package control_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

type editedCell struct {
	Family           string
	Qualifier, Value control.Bytes
	Timestamp        int64
}

// String returns the cell with the first KiB of its value, the part that the API shows.
func (c editedCell) String() string {
	const most = 1 << 10 / 3 * 4
	return fmt.Sprintf("%s:%s=%s", c.Family, c.Qualifier.Base64, c.Value.Base64[:min(len(c.Value.Base64), most)])
}

type editedRow struct {
	Key           control.Bytes
	Change        string
	Before, After []editedCell
	Kept          int
	Refused       string
}

// TestPreviewItem_Fixtures: a put or a delete changes exactly the previewed cells. For each
// item of all fixtures, one attribute after the other is changed, and at the end the item is
// deleted.
func TestPreviewItem_Fixtures(t *testing.T) {
	t.Parallel()
	for _, s := range subjects(t) {
		if s.Name == largest && !long.Enabled() {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			e, m := fixtureEnv(t, s.Files)
			table := "tables/i/" + url.PathEscape(m.TargetTable())
			name := url.PathEscape(m.SourceTable())
			cells := func(key control.Bytes) []string {
				var got carriedRow
				if code := e.ask("GET", table+"/items?key64="+url.QueryEscape(key.Base64), "", &got); code == http.StatusNotFound {
					return nil
				}
				var out []string
				for _, c := range got.Row.Cells {
					if c.Family != lens.FamilyState {
						out = append(out, editedCell{Family: c.Family, Qualifier: c.Qualifier, Value: c.Value}.String())
					}
				}
				return out
			}
			texts := func(cells []editedCell) []string {
				var out []string
				for _, c := range cells {
					out = append(out, c.String())
				}
				return out
			}
			checked := func(what, request string, do func() bool) (done bool) {
				t.Helper()
				var said editedRow
				e.must("POST", "items/"+name+"/preview", request, &said)
				if said.Refused != "" {
					if do() {
						t.Errorf("%s: took effect, but was reported as refused: %s", what, said.Refused)
					}
					return false
				}
				before := cells(said.Key)
				if !do() {
					return false
				}
				after := cells(said.Key)
				gone, come := without(before, after), without(after, before)
				if want := sorted(texts(said.Before)); !slices.Equal(without(want, texts(said.After)), sorted(gone)) {
					t.Errorf("%s: the removed cells are\n%q, and the preview said\n%q", what, sorted(gone), want)
				}
				if want := sorted(texts(said.After)); !slices.Equal(without(want, texts(said.Before)), sorted(come)) {
					t.Errorf("%s: the added cells are\n%q, and the preview said\n%q", what, sorted(come), want)
				}
				return true
			}
			var page struct{ Items []map[string]json.RawMessage }
			e.must("GET", "items/"+name+"?limit=20", "", &page)
			edits, deletes := 0, 0
			for _, item := range page.Items {
				for _, a := range slices.Sorted(maps.Keys(item)) {
					var v map[string]any
					if json.Unmarshal(item[a], &v) != nil || v["S"] == nil {
						continue
					}
					other := maps.Clone(item)
					other[a], _ = json.Marshal(map[string]any{"S": fmt.Sprint(v["S"], "x")})
					text, _ := json.Marshal(other)
					if checked(fmt.Sprintf("%s of %s", a, text), fmt.Sprintf(`{"put":%s}`, text), func() bool {
						return e.tries("PutItem", fmt.Sprintf(`{"TableName":%q,"Item":%s}`, m.SourceTable(), text))
					}) {
						edits++
					}
				}
				key := map[string]json.RawMessage{}
				for _, k := range (*layout.Mapping)(m).Key().Attrs() {
					key[k.Name] = item[k.Name]
				}
				text, _ := json.Marshal(key)
				if checked("delete "+string(text), fmt.Sprintf(`{"delete":%s}`, text), func() bool {
					return e.tries("DeleteItem", fmt.Sprintf(`{"TableName":%q,"Key":%s}`, m.SourceTable(), text))
				}) {
					deletes++
				}
			}
			if edits == 0 || deletes == 0 {
				t.Errorf("%d edits and %d deletes were done, want some of both", edits, deletes)
			}
		})
	}
}

// tries runs an operation that may be refused.
func (e *env) tries(operation, request string) bool {
	e.t.Helper()
	return e.ask("POST", "query", fmt.Sprintf(`{"operation":%q,"request":%s}`, operation, request), nil) == http.StatusOK
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// without returns the elements of a list that the other one lacks, counted with multiplicity.
func without(list, other []string) []string {
	left := map[string]int{}
	for _, x := range other {
		left[x]++
	}
	out := []string{}
	for _, x := range sorted(list) {
		if left[x] > 0 {
			left[x]--
			continue
		}
		out = append(out, x)
	}
	return out
}

// TestPutItem_OutsideMapping: the remedy names the mapping, since DynamoDB itself takes the item.
func TestPutItem_OutsideMapping(t *testing.T) {
	t.Parallel()
	e, _ := fixtureEnv(t, os.DirFS("../fixtures/subjects/s2-video"))
	var bad failed
	if code := e.ask("POST", "query", `{"operation":"PutItem","request":{"TableName":"Videos","Item":{"PK":{"S":"0123"},"SK":{"S":"Nothing"}}}}`, &bad); code != http.StatusBadRequest || !strings.Contains(bad.Error.Remedy, "mapping of the table refuses") {
		t.Errorf("%d %+v", code, bad)
	}
}

// TestPreviewItem_Refused: an invalid item, or one outside the mapping, is an error.
func TestPreviewItem_Refused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	for request, want := range map[string]string{
		`{}`: "want either",
		`{"put":{"k":{"S":"a"}},"delete":{"k":{"S":"a"}}}`: "want either",
		`{"put":{"k":{"X":"a"}}}`:                          "want attributes in DynamoDB's JSON",
	} {
		var bad failed
		if code := e.ask("POST", "items/orders/preview", request, &bad); code != http.StatusBadRequest || !strings.Contains(bad.Error.Text, want) {
			t.Errorf("%s: %d %+v, want %q", request, code, bad, want)
		}
	}
	for _, request := range []string{`{"put":{"other":{"S":"a"}}}`, `{"delete":{"k":{"N":"1"}}}`} {
		var said editedRow
		if e.must("POST", "items/orders/preview", request, &said); !strings.Contains(said.Refused, `attribute "k"`) || said.Change != "" {
			t.Errorf("%s: %+v, want it refused for its key", request, said)
		}
	}
	for put, want := range map[string]string{"": "none", `{"k":{"S":"a"}}`: "removed", `{"k":{"S":"a"},"n":{"N":"1"}}`: "removed"} {
		if put != "" {
			e.query("PutItem", `{"TableName":"orders","Item":`+put+`}`)
		}
		var said editedRow
		e.must("POST", "items/orders/preview", `{"delete":{"k":{"S":"a"}}}`, &said)
		if said.Change != want || len(said.After) > 0 {
			t.Errorf("%q is deleted: %+v, want %s", put, said, want)
		}
		e.query("DeleteItem", `{"TableName":"orders","Key":{"k":{"S":"a"}}}`)
	}
	var got editedRow
	e.must("POST", "items/orders/preview", `{"put":{"k":{"S":"a"},"n":{"N":"1"}}}`, &got)
	if got.Change != "added" || len(got.After) == 0 || len(got.Before) != 0 {
		t.Errorf("a new item: %+v", got)
	}
	for _, c := range got.After {
		if c.Timestamp != -1 {
			t.Errorf("a cell has the time %d, want -1, that of the write", c.Timestamp)
		}
	}
}
