package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/lint"
)

// Bounds of an HTML report; further entries are counted, and are in the JSON report.
const (
	maxHTMLFindings = 500
	maxHTMLFidelity = 1000 // attributes of a table, and rules
	maxHTMLText     = 2000 // bytes of one value in a difference
	maxHTMLPlace    = 240  // bytes of one part of a difference's place
)

// htmlData is the data of the page.
type htmlData struct {
	*Report
	Verdict, VerdictClass, Summary string
	Tiles                          []htmlTile
	Hunks                          []diffHunk
	MoreDifferences                int64
	Tables                         []htmlTable
	Findings                       []lint.Finding
	MoreFindings                   int64
}

type htmlTile struct {
	Name, Class string
	N           int64
}

type htmlTable struct {
	TableReport
	MoreFidelity, MoreRules     int64
	Lossless, InDomain, Lossies int
}

// WriteHTML writes the report as one self-contained page that needs no scripts, other
// files or network. The page works when opened from disk, in print, and in light and dark
// mode. All data is escaped.
func (r *Report) WriteHTML(w io.Writer) error {
	d := &htmlData{Report: r, MoreDifferences: r.Differences - int64(len(r.Failures))}
	switch {
	case r.Differences > 0:
		d.Verdict, d.VerdictClass = phrase.Counted(r.Differences, "difference"), "bad"
	case r.OnlyLint:
		d.Verdict, d.VerdictClass = "Linted", "good"
	case !r.Compared:
		d.Verdict, d.VerdictClass = "Loaded, not compared", "warn"
	default:
		d.Verdict, d.VerdictClass = "Equal", "good"
	}
	if noted := r.Uncounted(); noted != "" && d.VerdictClass == "good" {
		d.Verdict, d.VerdictClass = d.Verdict+", lint: "+noted, "warn"
	}
	if n := int64(len(r.NotLaidOut)); n > 0 && r.Differences == 0 {
		d.Verdict, d.VerdictClass = d.Verdict+", "+phrase.Counted(n, "part")+" not laid out", "warn"
	}
	cells := int64(0)
	for _, t := range r.Tables {
		cells += t.Cells
		h := htmlTable{TableReport: t}
		for _, f := range t.Fidelity {
			switch f.Class {
			case layout.Lossless.String():
				h.Lossless++
			case layout.LosslessInDomain.String():
				h.InDomain++
			default:
				h.Lossies++
			}
		}
		// Losses come first.
		h.Fidelity = slices.Clone(t.Fidelity)
		slices.SortStableFunc(h.Fidelity, func(a, b Fidelity) int { return lossRank(a) - lossRank(b) })
		if n := len(h.Fidelity); n > maxHTMLFidelity {
			h.Fidelity, h.MoreFidelity = h.Fidelity[:maxHTMLFidelity], int64(n-maxHTMLFidelity)
		}
		if n := len(h.Rules); n > maxHTMLFidelity {
			h.Rules, h.MoreRules = h.Rules[:maxHTMLFidelity], int64(n-maxHTMLFidelity)
		}
		d.Tables = append(d.Tables, h)
	}
	tile := func(name string, n int64, class string) { d.Tiles = append(d.Tiles, htmlTile{name, class, n}) }
	bad := func(n int64, class string) string {
		if n > 0 {
			return class
		}
		return "good"
	}
	if r.DiffOf != "row" {
		tile("items", r.Items, "")
	}
	if r.DiffOf == "row" {
		tile("rows", r.Rows, "")
	}
	if !r.OnlyLint && r.DiffOf == "" {
		tile("rows", r.Rows, "")
		tile("cells", cells, "")
		tile("sidecar cells", r.Exceptions, "")
	}
	tile("differences", r.Differences, bad(r.Differences, "bad"))
	for _, f := range r.Failures {
		d.Hunks = append(d.Hunks, diffOf(f))
	}
	if l := r.Lint; l != nil {
		tile("lint errors", int64(l.Errors), bad(int64(l.Errors), "bad"))
		tile("lint warnings", int64(l.Warnings), bad(int64(l.Warnings), "warn"))
		tile("lint notes", int64(l.Infos), "")
		d.Findings = l.Findings
		if n := len(d.Findings); n > maxHTMLFindings {
			d.Findings, d.MoreFindings = d.Findings[:maxHTMLFindings], int64(n-maxHTMLFindings)
		}
		d.Summary = LintSummary(l)
	}
	if err := writeHTML(w, d); err != nil {
		return fmt.Errorf("writing the HTML report: %w", err)
	}
	return nil
}

func lossRank(f Fidelity) int {
	switch f.Class {
	case layout.Lossless.String():
		return 2
	case layout.LosslessInDomain.String():
		return 1
	}
	return 0
}

// lineByAttribute formats the JSON of an item with one attribute per line. Text that is not a
// JSON object stays as it is.
func lineByAttribute(text string) string {
	var b strings.Builder
	d := jsontext.NewDecoder(strings.NewReader(text))
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '{' {
		return text
	}
	b.WriteString("{")
	for sep := "\n"; d.PeekKind() == '"'; sep = ",\n" {
		name, err := d.ReadValue()
		if err != nil {
			return text
		}
		b.WriteString(sep + "  " + string(name) + ": ")
		value, err := d.ReadValue()
		if err != nil {
			return text
		}
		b.Write(value)
	}
	if tok, err := d.ReadToken(); err != nil || tok.Kind() != '}' {
		return text
	}
	b.WriteString("\n}")
	return b.String()
}
