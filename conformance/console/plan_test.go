package console

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// fixtureCopy copies a shipped fixture into a folder, with changes of its mapping.
func fixtureCopy(t *testing.T, folder, name string, changes ...string) {
	t.Helper()
	to := filepath.Join(folder, name)
	if err := os.CopyFS(to, os.DirFS("../../fixtures/subjects/"+name)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(to, "mapping.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(string(text), changes[i]) {
			t.Fatalf("the mapping of %s lacks %q", name, changes[i])
		}
	}
	if err := os.WriteFile(file, []byte(strings.NewReplacer(changes...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// planText returns the text that tabletop migrate plan prints for a fixture.
func planText(t *testing.T, folder string) string {
	t.Helper()
	src, own, err := migrate.OpenFixture(os.DirFS(folder), source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := migrate.MakePlan(t.Context(), src, migrate.PlanOptions{Common: migrate.Common{Mappings: []*mapping.Mapping{own}}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Text()
}

// TestPlan: the page shows each fact of the command's text, under headings, with losses first,
// errors and warnings marked, and columns that fit the window.
func TestPlan(t *testing.T) {
	ctx := browser(t)
	folder := t.TempDir()
	fixtureCopy(t, folder, "s2-video", `when: {SK: "VideoStatsLikes"}`, `when: {SK: "VideoStatsLike"}`, `codec: json, ts: {attr: UploadDate, as: iso(s)}`, `codec: json`)
	fixtureCopy(t, folder, "s5-order-entry",
		"projection: ALL, as: table", "projection: ALL, as: none",
		"projection: [Date, Status]\n    as: table\n    shard: {n: 15, by: fnv1a32(PK)}\n    row: [GSI2SK, PK]", "projection: KEYS_ONLY\n    as: view",
		"timestamps:", "fidelity: idiomatic\naccept_loss: [{what: types, why: wanted}]\ntimestamps:")
	p := open(t, ctx, serverOf(startWith(t, labserver.Options{Closed: true, Control: control.Options{Fixtures: os.DirFS(folder)}})))
	// The page has other words for these.
	other := []string{"gc", "bookkeeping", "--report", "json=FILE", "has", "them", "which", "is"}
	for name, want := range map[string]struct {
		errors, warnings int
		heads            []string
		first            string // line of the fidelity
	}{
		"s2-video":       {1, 0, []string{"Bigtable tables", "Row keys", "Fidelity", "Other changes"}, "comment|SK|lossless in domain|4|matches VideoComment#{t:revms(13)}"},
		"s5-order-entry": {0, 3, []string{"Bigtable tables", "Continuous materialized view orders__GSI2", "Row keys", "Fidelity", "Other changes"}, "entity|Address|lossy|1|accepted: another type comes back as M"},
	} {
		p.resize(1280, 800)
		p.visit("/migration?fixture=" + name)
		p.pushButton("Plan")
		p.until("document.querySelector('[data-report]')?.dataset.report === 'plan " + name + "'")
		shown := ask[string](p, "document.querySelector('[data-report]').parentNode.textContent")
		for word := range strings.FieldsSeq(planText(t, filepath.Join(folder, name))) {
			if word = strings.Trim(word, ";:,()[]"); !slices.Contains(other, word) && !strings.Contains(strings.ToLower(shown), strings.ToLower(word)) {
				t.Errorf("%s: the command prints %q, and the page lacks it", name, word)
			}
		}
		if e, w := ask[int](p, "document.querySelectorAll('.note.error').length"), ask[int](p, "document.querySelectorAll('.note.warn').length"); e != want.errors || w != want.warnings {
			t.Errorf("%s: %d errors and %d warnings are marked, want %d and %d", name, e, w, want.errors, want.warnings)
		}
		if got := ask[[]string](p, "[...document.querySelectorAll('h3')].map((e) => e.textContent)"); !slices.Equal(got, want.heads) {
			t.Errorf("%s: the headings are %q", name, got)
		}
		if got := ask[string](p, "[...document.querySelector('[data-class]').children].map((e) => e.textContent).join('|')"); got != want.first {
			t.Errorf("%s: the first attribute is %s, want %s", name, got, want.first)
		}
		for _, width := range []int64{1280, 640} {
			p.resize(width, 800)
			p.fits(name)
			if wide := ask[int](p, "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth).length"); wide > 0 {
				t.Errorf("%s: %d tables are wider than %d pixels", name, wide, width)
			}
		}
		p.shoot("plan-" + name)
	}
	if said := p.complaints(); len(said) > 0 {
		t.Error(said)
	}
}
