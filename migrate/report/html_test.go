package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/lint"
)

// TestWriteHTML_Hostile puts a hostile text into every string of a report: none may become
// markup.
func TestWriteHTML_Hostile(t *testing.T) {
	t.Parallel()
	const evil = `</pre><script>alert("x")</script>{{.}}`
	finding := lint.Finding{
		Rule: evil, Name: evil, Level: lint.Warn, Table: evil, File: evil, Row: evil, Item: evil, Column: evil, Pattern: evil, Message: evil,
		Expected: evil, Fix: evil, Cite: lint.Citation{Guides: "AB", Section: evil, Says: evil},
	}
	r := &Report{
		Fixture: evil, Title: evil, Source: evil, Format: evil, Differences: 3, Compared: true, Warnings: []string{evil},
		Tables: []TableReport{{
			Name: evil, Target: evil, Choices: []infer.Choice{{What: evil, Chosen: evil, Why: evil}}, Sidecar: []SidecarCells{{Kind: evil, What: evil, Item: evil, Column: evil}},
			Fidelity: []Fidelity{{Rule: evil, Attribute: evil, Class: evil, Why: evil}}, Samples: []Sample{{evil, evil, evil}, {evil, `{"PK":{"S":"</pre><script>"}}`, evil}},
			Phases: []Phase{{Name: evil}}, Rules: []RuleRows{{Rule: evil, Item: evil, Row: evil}, {Index: evil}}, Accepted: []AcceptedLoss{{Rule: evil, What: evil, Why: evil, Family: evil, GC: evil}},
		}},
		Checks:   []Check{{Name: evil, Table: evil, State: evil, Detail: evil}},
		Patterns: []PatternReport{{ID: evil, Title: evil, Endpoints: []string{evil}}, {ID: evil, Differences: 2}},
		Failures: []Failure{{Kind: evil, Fixture: evil, Table: evil, Rule: evil, ItemKey: evil, RowKey: evil, Column: evil, Pattern: evil, Want: evil + "\n" + evil, Got: "ünïcode", Decoded: evil, Detail: evil, File: evil, Check: evil, Mapping: evil}},
		Lint:     &lint.Result{Findings: []lint.Finding{finding}, Disabled: []lint.Disabled{{Rule: evil, Table: evil, Why: evil}}, Accepted: []lint.Accepted{{Finding: finding, Why: evil}}, Stopped: evil},
	}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", `alert("`} {
		if i := strings.Index(page.String(), bad); i >= 0 {
			t.Errorf("the page has %s: %s", bad, page.String()[max(0, i-80):i+40])
		}
	}
	for _, want := range []string{"ünïcode", "… and 2 differences more", "default-src 'none'"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// TestWriteHTML_Bounded writes a report with far more than a page should show.
func TestWriteHTML_Bounded(t *testing.T) {
	t.Parallel()
	r := &Report{Source: "x", Tables: []TableReport{{}}, Lint: &lint.Result{}}
	for i := range 5000 {
		r.Lint.Findings = append(r.Lint.Findings, lint.Finding{Rule: fmt.Sprint(i), Level: lint.Info})
		r.Tables[0].Fidelity = append(r.Tables[0].Fidelity, Fidelity{Attribute: fmt.Sprint(i), Class: "lossless"})
	}
	r.Tables[0].Fidelity[4999].Class = "lossy"
	r.Failures = []Failure{{Kind: ValueDiffers, Want: strings.Repeat("é", 1<<20), RowKey: strings.Repeat("k", 1<<16)}}
	r.Differences = 1
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	if n := strings.Count(text, `<div class="finding info"`); n != maxHTMLFindings {
		t.Errorf("the page shows %d findings, want %d", n, maxHTMLFindings)
	}
	if n := strings.Count(text, `<tr class="fidelity">`); n != maxHTMLFidelity {
		t.Errorf("the page shows %d attributes, want %d", n, maxHTMLFidelity)
	}
	for _, want := range []string{"… and 4500 findings more", "… and 4000 attributes more", "4999 lossless, 0 lossless in their domain, 1 lossy", ">4999<"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if len(text) > 1<<20 || strings.Contains(text, "\ufffd") {
		t.Errorf("the page has %d bytes, or a character cut in two", len(text))
	}
}

// TestUnifiedDiff checks the format of JUnit's failures.
func TestUnifiedDiff(t *testing.T) {
	t.Parallel()
	got := unifiedDiff([]Failure{
		{Kind: ValueDiffers, Table: "products", Rule: "sku", RowKey: `"hats"`, Column: "SKU:Price", Want: `"30"`, Got: `"31"`, Mapping: "mapping.yaml:14"},
		{Kind: MissingRow, Table: "products", Want: "3 cells\nof one item", Detail: "as reported", File: "expect/rows.golden:3"},
	})
	want := `--- expected
+++ found
@@ ValueDiffers table products rule sku row "hats" column SKU:Price at mapping.yaml:14 @@
-"30"
+"31"
@@ MissingRow table products at expect/rows.golden:3 @@
-3 cells
-of one item
 as reported
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
