package report

import (
	"bufio"
	_ "embed" // for report.css
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/lint"
)

//go:embed report.css
var reportStyle string

// htmlPage writes markup. It escapes all arguments, so only formats and literals are markup. It
// replaces html/template, which makes the linker keep all exported methods of the program.
type htmlPage struct{ out *bufio.Writer }

// printf writes a format whose arguments are escaped. Each verb is %s.
func (h htmlPage) printf(format string, args ...any) {
	escaped := make([]any, len(args))
	for i, arg := range args {
		escaped[i] = strings.ReplaceAll(html.EscapeString(fmt.Sprint(arg)), "\x00", "\ufffd")
	}
	_, _ = fmt.Fprintf(h.out, format, escaped...) // Flush returns the error
}

// some writes a format with a text, unless that is empty.
func (h htmlPage) some(format, text string) {
	if text != "" {
		h.printf(format, text)
	}
}

// counted writes a format with a number of things, such as "2 rows", unless it is 0.
func (h htmlPage) counted(format string, n int64, what string) {
	if n > 0 {
		h.printf(format, phrase.Counted(n, what))
	}
}

// more writes that n further things are left out, unless n is 0.
func (h htmlPage) more(n int64, what string) {
	h.counted("<p class=\"muted\">… and %s more.</p>\n", n, what)
}

// writeList writes values with separators.
func writeList[T any](h htmlPage, separator string, values []T) {
	for i, v := range values {
		if i > 0 {
			h.printf("%s", separator)
		}
		h.printf("%s", v)
	}
}

// writeTable writes a table. The markup head has its header cells, and row writes a row.
func writeTable[T any](h htmlPage, head string, rows []T, row func(T)) {
	h.printf("<div class=\"card scroll\"><table>\n<thead><tr>" + head + "</tr></thead>\n<tbody>")
	for _, r := range rows {
		row(r)
		h.printf("</tr>\n")
	}
	h.printf("</tbody></table></div>\n")
}

// clipped shortens a part of a place.
func clipped(text string) string { return phrase.ClipTo(text, maxHTMLPlace) }

// writeHTML writes a page with data.
func writeHTML(w io.Writer, d *htmlData) error {
	h := htmlPage{bufio.NewWriter(w)}
	h.head(d)
	h.printf("<main>\n<section id=\"summary\">\n<div class=\"tiles\">")
	for _, t := range d.Tiles {
		h.printf(`<div class="tile %s"><b data-count="%s">%s</b><span>%[2]s</span></div>`, t.Class, t.Name, t.N)
	}
	h.printf("</div>\n</section>\n")
	h.differences(d)
	h.checks(d.Checks)
	h.patterns(d.Patterns)
	for i, t := range d.Tables {
		h.table(i, t)
	}
	if d.Lint != nil {
		h.lint(d)
	}
	if len(d.Warnings) > 0 {
		h.printf("<section id=\"warnings\">\n<h2>Warnings <span class=\"count\">%s</span></h2>\n<div class=\"card\"><ul class=\"plain\">", len(d.Warnings))
		for _, text := range d.Warnings {
			h.printf("<li>%s</li>", text)
		}
		h.printf("</ul></div>\n</section>\n")
	}
	h.printf("<footer>")
	switch {
	case d.Compared:
		h.printf("The rows were compared with the source.")
	case !d.OnlyLint:
		h.printf("Nothing was compared.")
	}
	h.printf(" Written by tabletop.</footer>\n</main>\n</body>\n</html>\n")
	return h.out.Flush()
}

// head writes the part above the sections.
func (h htmlPage) head(d *htmlData) {
	title := d.Title
	if title == "" {
		title = d.Source
	}
	h.printf(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="tabletop">
<link rel="icon" href="data:,">
<title>%s: %s</title>
<style>
`, title, d.Verdict)
	_, _ = h.out.WriteString(reportStyle)
	h.printf(`</style>
</head>
<body>
<header><div>
<h1>%s</h1>
<p><span id="verdict" class="badge %s">%s</span></p>
<p class="muted">Source <code>%s</code> (%s)`, title, d.VerdictClass, d.Verdict, d.Source, d.Format)
	h.some(", fixture <code>%s</code>", d.Fixture)
	h.some(", compared with %s", d.ComparedWith)
	h.printf("</p>\n</div></header>\n<nav><div>\n<a href=\"#summary\">Summary</a>\n")
	link := func(exists bool, section, text string) {
		if exists {
			h.printf("<a href=\"#%s\">%s</a>\n", section, text)
		}
	}
	link(len(d.Hunks) > 0, "differences", "Differences")
	link(len(d.Checks) > 0, "checks", "Checks")
	link(len(d.Patterns) > 0, "patterns", "Access patterns")
	for i, t := range d.Tables {
		link(true, fmt.Sprintf("table-%d", i), "Table "+t.Name)
	}
	link(d.Lint != nil, "lint", "Lint")
	link(len(d.Warnings) > 0, "warnings", "Warnings")
	h.printf("</div></nav>\n")
}

func (h htmlPage) differences(d *htmlData) {
	if len(d.Hunks) == 0 {
		return
	}
	h.printf("<section id=\"differences\">\n<h2>Differences <span class=\"count\">%s</span></h2>\n", d.Differences)
	for _, hunk := range d.Hunks {
		h.printf(`<div class="card hunk"><div class="place"><span class="badge bad">%s</span>`, hunk.Kind)
		for _, p := range hunk.Parts {
			h.printf(` <span class="part"><span class="muted">%s</span> <code>%s</code></span>`, p.Name, clipped(p.Text))
		}
		h.printf("</div>")
		if len(hunk.Lines) > 0 {
			h.printf("<pre>")
			for _, line := range hunk.Lines {
				class := map[byte]string{'-': "del", '+': "add"}[line[0]]
				h.printf(`<span class="%s">%s</span>`, class, phrase.ClipTo(line, maxHTMLText))
			}
			h.printf("</pre>")
		}
		h.printf("</div>\n")
	}
	h.more(d.MoreDifferences, "difference")
	h.printf("</section>\n")
}

func (h htmlPage) checks(checks []Check) {
	if len(checks) == 0 {
		return
	}
	h.printf("<section id=\"checks\">\n<h2>Checks <span class=\"count\">%s</span></h2>\n", len(checks))
	writeTable(h, `<th>Check</th><th>Table</th><th>Result</th><th class="n">Differences</th><th>Detail</th>`, checks, func(c Check) {
		h.printf(`<tr class="check"><td>%s</td><td>`, c.Name)
		h.some("<code>%s</code>", c.Table)
		h.printf(`</td><td><span class="badge %s">%[1]s</span></td><td class="n">%[2]s</td><td>%[3]s</td>`, c.State, c.Differences, c.Detail)
	})
	h.printf("</section>\n")
}

func (h htmlPage) patterns(patterns []PatternReport) {
	if len(patterns) == 0 {
		return
	}
	h.printf("<section id=\"patterns\">\n<h2>Access patterns <span class=\"count\">%s</span></h2>\n", len(patterns))
	writeTable(h, `<th>Pattern</th><th>Title</th><th>Endpoints</th><th>Native read</th><th class="n">Items</th><th>Result</th>`, patterns, func(p PatternReport) {
		h.printf(`<tr class="pattern"><td><code>%s</code></td><td>%s</td><td>`, p.ID, p.Title)
		writeList(h, ", ", p.Endpoints)
		h.printf(`</td><td>%s</td><td class="n">%s</td><td>`, p.cost(), p.Items)
		if p.Differences > 0 {
			h.counted(`<span class="badge failed">%s</span>`, p.Differences, "difference")
		} else {
			h.printf(`<span class="badge ok">equal</span>`)
		}
		h.printf("</td>")
	})
	h.printf("</section>\n")
}

// table writes the section of a table.
func (h htmlPage) table(i int, t htmlTable) {
	h.printf("<section id=\"table-%s\">\n<h2>Table %s <span class=\"count\">to Bigtable table %s</span></h2>\n", i, t.Name, t.Target)
	h.printf(`<p class="muted">%s`, phrase.Counted(t.Items, "item"))
	if t.Rows > 0 {
		h.printf(", %s, %s", phrase.Counted(t.Rows, "row"), phrase.Counted(t.Cells, "cell"))
	}
	h.counted(", %s", t.IndexRows, "index row")
	h.counted(", %s not loaded", t.DeadLetters, "item")
	h.counted(", %s left out", t.LeftOut, "item")
	h.printf("</p>\n")
	if len(t.Choices) > 0 {
		writeTable(h, `<th>Choice</th><th>Chosen</th><th>Why</th>`, t.Choices, func(c infer.Choice) {
			h.printf("<tr><td>%s</td><td><code>%s</code></td><td>%s</td>", c.What, c.Chosen, c.Why)
		})
	}
	h.rules(t)
	h.fidelity(t)
	h.losses(t)
	if len(t.Samples) > 0 {
		h.printf("<h3>Items and rows <span class=\"count\">the first item of each rule</span></h3>\n")
	}
	for _, s := range t.Samples {
		h.printf(`<div class="card sample"><div class="pair"><div><div class="label">Item, by rule %s</div><pre>%s</pre></div><div><div class="label">Row</div><pre>%s</pre></div></div></div>`+"\n",
			s.Rule, lineByAttribute(s.Item), s.Row)
	}
	if len(t.Phases) > 0 {
		h.printf(`<p class="muted">`)
		writeList(h, "; ", t.Phases)
		h.printf("</p>\n")
	}
	h.printf("</section>\n")
}

func (h htmlPage) rules(t htmlTable) {
	if len(t.Rules) == 0 {
		return
	}
	h.printf("<h3>Rules <span class=\"count\">%s</span></h3>\n", len(t.Rules))
	writeTable(h, `<th>Rule</th><th class="n">Items</th><th>First item</th><th>Row</th>`, t.Rules, func(r RuleRows) {
		name := "any item"
		switch {
		case r.Index != "":
			name = "index " + r.Index
		case r.Rule != "":
			name = r.Rule
		}
		h.printf(`<tr class="rule"><td>%s</td><td class="n">%s</td><td>`, name, r.Items)
		h.some("<code>%s</code>", clipped(r.Item))
		h.printf("</td><td>")
		h.some("<code>%s</code>", clipped(r.Row))
		h.printf("</td>")
	})
	h.more(t.MoreRules, "rule")
}

func (h htmlPage) fidelity(t htmlTable) {
	if len(t.Fidelity) == 0 {
		return
	}
	h.printf("<h3>Fidelity <span class=\"count\">%s lossless, %s lossless in their domain, %s lossy</span></h3>\n", t.Lossless, t.InDomain, t.Lossies)
	writeTable(h, `<th>Attribute</th><th>Rule</th><th>Class</th><th>Domain or loss</th>`, t.Fidelity, func(f Fidelity) {
		h.printf(`<tr class="fidelity"><td><code>%s</code></td><td>%s</td><td><span class="badge %s">%s</span></td><td>%s</td>`,
			f.Attribute, f.Rule, strings.ReplaceAll(f.Class, " ", "-"), f.Class, f.Why)
	})
	h.more(t.MoreFidelity, "attribute")
}

// losses writes the values that have no cell of their own, or are lost.
func (h htmlPage) losses(t htmlTable) {
	if len(t.Sidecar) > 0 {
		h.printf("<h3>Exceptions <span class=\"count\">%s</span></h3>\n", t.Exceptions)
		writeTable(h, `<th>Kind</th><th class="n">Cells</th><th>Example</th>`, t.Sidecar, func(s SidecarCells) {
			h.printf(`<tr><td>%s</td><td class="n">%s</td><td><code>%s</code> of <code>%s</code></td>`, s.What, s.Cells, s.Column, s.Item)
		})
	}
	if len(t.Accepted) > 0 {
		h.printf("<h3>Accepted losses</h3>\n")
		writeTable(h, `<th>Loss</th><th>Rule</th><th class="n">Cells or values</th><th>Lost by</th><th>Reason</th>`, t.Accepted, func(a AcceptedLoss) {
			h.printf("<tr><td>%s</td><td>%s</td>", a.What, a.Rule)
			if a.Attribute != "" {
				h.printf(`<td class="n">%s</td><td>the layout, of attribute <code>%s</code></td>`, a.Values, a.Attribute)
			} else {
				h.printf(`<td class="n">%s</td><td>family <code>%s</code>, %s</td>`, a.Cells, a.Family, a.GC)
			}
			h.printf("<td>%s</td>", a.Why)
		})
	}
}

// lint writes the findings.
func (h htmlPage) lint(d *htmlData) {
	h.printf("<section id=\"lint\">\n<h2>Lint <span class=\"count\">%s</span></h2>\n", d.Summary)
	h.some("<div class=\"card\"><div class=\"finding warn\">The items were not laid out: %s</div></div>\n", d.Lint.Stopped)
	for _, f := range d.Findings {
		h.printf("<div class=\"card\"><div class=\"finding %s\">\n", f.Level)
		h.printf(`<div class="head"><span class="badge %s">%[1]s</span><b>%[2]s %[3]s</b><code class="muted">%[4]s</code></div>`+"\n", f.Level, f.Rule, f.Name, f.Where())
		h.printf(`<p class="what">%s`, f.Message)
		if f.Count > 1 {
			h.printf(` <span class="muted">(in %s places)</span>`, f.Count)
		}
		h.printf("</p>\n<dl><dt>Expected</dt><dd>%s</dd><dt>Fix</dt><dd>%s</dd><dt>Source</dt><dd>Guide ", f.Expected, f.Fix)
		writeList(h, ", ", strings.Split(f.Cite.Guides, ""))
		h.printf(", <i>%s</i>: %s</dd></dl>\n</div></div>\n", f.Cite.Section, f.Cite.Says)
	}
	if len(d.Findings) == 0 && d.Lint.Stopped == "" {
		h.printf("<div class=\"card\"><div class=\"finding\">No findings.</div></div>\n")
	}
	h.more(d.MoreFindings, "finding")
	for _, a := range d.Lint.Accepted {
		f := a.Finding
		h.printf("<div class=\"card\"><div class=\"finding\">\n"+`<div class="head"><span class="badge">accepted</span><b>%s %s</b><code class="muted">%s</code></div>`+"\n", f.Rule, f.Name, f.Where())
		h.printf("<p class=\"what\">%s</p>\n<dl><dt>Why</dt><dd>%s</dd></dl>\n</div></div>\n", f.Message, a.Why)
	}
	if len(d.Lint.Disabled) > 0 {
		h.printf(`<p class="muted">Turned off: `)
		writeList(h, ", ", d.Lint.Disabled)
		h.printf(".</p>\n")
	}
	if len(d.Findings) > 0 {
		h.printf("<h3>Guides</h3><div class=\"card\"><ul class=\"plain\">")
		for _, g := range lint.Guides() {
			h.printf("<li><b>%s</b>&ensp;%s</li>", g.Letter, g.Title)
		}
		h.printf("</ul></div>\n")
	}
	h.printf("</section>\n")
}
