package control_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// previewed is the part of a preview that tests examine.
type previewed struct {
	Problems []struct {
		Line int
		Text string
	}
	Items []struct {
		Key, Rule, Refused string
		Large              int
		Changed            bool
		Row, Was           *struct {
			Key   control.Bytes
			Cells []struct {
				Family    string
				Qualifier control.Bytes
				Value     control.Bytes
			}
		}
		Parts []struct{ Name, Encoder, Value string }
		Lost  []struct{ Attribute, Why string }
	}
	Unjudged string
	LeftOut  int
	Warnings []string
	Findings []struct {
		Rule, File string
		Line       int
	}
}

// preview returns the preview of a fixture with another mapping text.
func (e *env) preview(fixture, mapping, more string) previewed {
	e.t.Helper()
	var out previewed
	e.must("POST", "migrate/preview", fmt.Sprintf(`{"fixture":%q,"mapping":%s%s}`, fixture, quoted(e.t, mapping), more), &out)
	return out
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// replaced returns a text with its single occurrence of old replaced.
func replaced(t *testing.T, text, old, with string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is there %d times", old, strings.Count(text, old))
	}
	return strings.Replace(text, old, with, 1)
}

const likes = `put: [{attr: Count, cell: "a:Likes", codec: i64be}]`

// TestPreview: one line of a mapping changes, and the preview has the changed rows, the lost
// attribute, the findings of lint, or the position of the fault.
func TestPreview(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	file, err := os.ReadFile("../fixtures/subjects/s2-video/mapping.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var own struct{ Mapping string }
	e.must("GET", "migrate/s2-video", "", &own)
	if own.Mapping != string(file) {
		t.Errorf("the mapping is not that of the file: %q", own.Mapping)
	}
	p := e.preview("s2-video", own.Mapping, "")
	if len(p.Problems) != 0 || len(p.Items) != 9 {
		t.Fatalf("the fixture's own mapping: %+v", p)
	}
	rules := map[string]bool{}
	for _, i := range p.Items {
		rules[i.Rule] = true
		if i.Changed || i.Refused != "" || len(i.Lost) != 0 || i.Row == nil || len(i.Parts) != 1 || i.Parts[0].Name != "PK" {
			t.Errorf("by the fixture's own mapping: %+v", i)
		}
	}
	if len(rules) != 5 {
		t.Errorf("the items are of the rules %v, want all five", rules)
	}

	p = e.preview("s2-video", replaced(t, own.Mapping, likes, `put: [{attr: Count, cell: "a:Likes", codec: json}]`), "")
	for _, i := range p.Items {
		if i.Changed != (i.Rule == "likes") {
			t.Errorf("%s changed: %t", i.Key, i.Changed)
		}
		if i.Changed && (string(*i.Row.Cells[0].Value.Text) != "3" || i.Was.Cells[0].Value.Base64 != "AAAAAAAAAAM=") {
			t.Errorf("%s: %+v was %+v", i.Key, i.Row, i.Was)
		}
	}
	if len(p.Findings) == 0 || p.Findings[0].Rule != "L46" || p.Findings[0].File != "mapping.yaml" || p.Findings[0].Line != 27 {
		t.Errorf("lint does not report that a counter is not an integer: %+v", p.Findings)
	}

	p = e.preview("s2-video", replaced(t, own.Mapping, `codec: json, ts: {attr: UploadDate, as: iso(s)}`, `codec: json`), `,"item":{"PK":{"S":"0124"},"SK":{"S":"Video"}}`)
	if p.LeftOut != 2 || p.Items[0].Key != `{"PK":{"S":"0124"},"SK":{"S":"Video"}}` {
		t.Errorf("%d items are left out, and the first is %s", p.LeftOut, p.Items[0].Key)
	}
	if i := p.Items[0]; i.Refused == "" || !i.Changed || i.Row != nil || i.Was == nil || len(i.Lost) != 1 || i.Lost[0].Attribute != "UploadDate" {
		t.Errorf("an attribute without a place: %+v", i)
	}

	p = e.preview("s2-video", replaced(t, own.Mapping, "gc: {versions: 1000}", "gc: {versions: 1}"), "")
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "would remove 2 cells") {
		t.Errorf("the cells that garbage collection deletes are not reported: %q", p.Warnings)
	}

	p = e.preview("s2-video", replaced(t, own.Mapping, likes, `put: [{attr: Count, cell: "a:Likes", codec: nosuch}]`), "")
	if len(p.Problems) != 1 || p.Problems[0].Line != 27 || len(p.Items) != 0 {
		t.Errorf("a codec that is not there: %+v", p)
	}
}

// TestPreview_Fixtures: each fixture has a preview with its own mapping without problems or
// changes, of at most 20 items.
func TestPreview_Fixtures(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	folders, err := filepath.Glob("../fixtures/subjects/*/mapping.yaml")
	if err != nil || len(folders) != 19 {
		t.Fatalf("%d fixtures, %v", len(folders), err)
	}
	for _, file := range folders {
		name := filepath.Base(filepath.Dir(file))
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := e.preview(name, string(text), "")
		if len(p.Problems) != 0 || p.Unjudged != "" || p.LeftOut != 0 || len(p.Items) == 0 || len(p.Items) > 20 {
			t.Errorf("%s: %d items, %+v", name, len(p.Items), p.Problems)
		}
		for _, i := range p.Items {
			if i.Changed || i.Refused != "" || i.Row == nil {
				t.Errorf("%s: %+v", name, i)
			}
		}
	}
}

// TestMigrate_Mapping: a command accepts another mapping text, and plan has the same result as
// for a file with it.
func TestMigrate_Mapping(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	folder := os.DirFS("../fixtures/subjects/s2-video")
	file, err := os.ReadFile("../fixtures/subjects/s2-video/mapping.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := replaced(t, string(file), likes, `put: [{attr: Count, cell: "a:Loved", codec: i64be}]`)
	var got json.RawMessage
	body := fmt.Sprintf(`{"fixture":"s2-video","mapping":%s}`, quoted(t, text))
	e.must("POST", "migrate/plan", body, &got)

	src, _, err := migrate.OpenFixture(folder, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "mapping.yaml")
	if err := os.WriteFile(saved, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mapping.Load("mapping.yaml", again, folder)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := migrate.MakePlan(t.Context(), src, migrate.PlanOptions{Common: migrate.Common{Mappings: []*mapping.Mapping{m}}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := plan.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var wanted, is any
	if err := json.Unmarshal(want, &wanted); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &is); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(is) != fmt.Sprint(wanted) {
		t.Errorf("plan reports\n%s\nfor the text, and for the file\n%s", got, want)
	}

	var verified struct {
		Differences int
		Failures    []struct{ ItemKey, RowKeyHex string }
	}
	e.must("POST", "migrate/verify", body, &verified)
	if verified.Differences == 0 || len(verified.Failures) == 0 {
		t.Errorf("verify does not see that the rows are not the golden ones: %+v", verified)
	}
}

func TestPreview_Refused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for body, want := range map[string]int{
		`{}`:                                 http.StatusBadRequest,
		`{"fixture":"../../etc"}`:            http.StatusBadRequest,
		`{"fixture":"none"}`:                 http.StatusNotFound,
		`{"fixture":"s2-video","item":7}`:    http.StatusBadRequest,
		`{"fixture":"s2-video","mapping":7}`: http.StatusBadRequest,
	} {
		var got failed
		if code := e.ask("POST", "migrate/preview", body, &got); code != want || got.Error.Text == "" {
			t.Errorf("%s: %d %+v", body, code, got)
		}
	}
	for _, text := range []string{"", "a", "- - -", "\x00", strings.Repeat("a: {", 2000)} {
		if p := e.preview("s2-video", text, ""); len(p.Problems) == 0 || p.Problems[0].Text == "" {
			t.Errorf("%.20q has no problem", text)
		}
	}
	var got failed
	if code := e.ask("GET", "migrate/none", "", &got); code != http.StatusNotFound {
		t.Errorf("a fixture that is not there: %d", code)
	}
}
