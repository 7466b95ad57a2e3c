package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/lint"
)

// WriteJSON writes the report as one indented JSON object. Its top-level integers are
// items, rows, differences and exceptions.
func (r *Report) WriteJSON(w io.Writer) error {
	if err := json.MarshalWrite(w, r, jsontext.WithIndent("  "), json.Deterministic(true)); err != nil {
		return fmt.Errorf("writing the JSON report: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// Text formats the report for a terminal: tables with decisions and reasons, checks,
// access patterns, differences, and a last line with the totals.
func (r *Report) Text() string {
	var b strings.Builder
	if r.Title != "" {
		fmt.Fprintf(&b, "%s\n", r.Title)
	}
	fmt.Fprintf(&b, "source %s (%s)\n", r.Source, r.Format)
	if r.ComparedWith != "" {
		fmt.Fprintf(&b, "compared with %s\n", r.ComparedWith)
	}
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "\ntable %s -> Bigtable table %s: %s read", t.Name, t.Target, phrase.Counted(t.Items, "item"))
		if !r.OnlyLint {
			fmt.Fprintf(&b, ", %s, %s", phrase.Counted(t.Rows, "row"), phrase.Counted(t.Cells, "cell"))
		}
		if t.IndexRows > 0 {
			fmt.Fprintf(&b, ", %s", phrase.Counted(t.IndexRows, "index row"))
		}
		b.WriteByte('\n')
		if t.DeadLetters > 0 {
			fmt.Fprintf(&b, "  %s not loaded: see the dead letters\n", phrase.Counted(t.DeadLetters, "item"))
		}
		if t.LeftOut > 0 {
			fmt.Fprintf(&b, "  %s left out: the mapping cannot lay them out\n", phrase.Counted(t.LeftOut, "item"))
		}
		if t.Expired > 0 {
			fmt.Fprintf(&b, "  %s expired by the time to live: see the warnings\n", phrase.Counted(t.Expired, "item"))
		}
		for _, x := range t.Refused {
			fmt.Fprintf(&b, "  %-10s %s\n", "refused", x)
		}
		if t.ItemsResumed > 0 {
			fmt.Fprintf(&b, "  %s skipped: written according to the checkpoint\n", phrase.Counted(t.ItemsResumed, "item"))
		}
		if t.ItemsKept > 0 {
			fmt.Fprintf(&b, "  %s kept as the DynamoDB endpoint wrote them\n", phrase.Counted(t.ItemsKept, "item"))
		}
		if t.CellsUnchanged > 0 {
			fmt.Fprintf(&b, "  %s already there, %d written\n", phrase.Counted(t.CellsUnchanged, "cell"), t.CellsWritten)
		}
		if t.CellsDeleted > 0 {
			fmt.Fprintf(&b, "  %s deleted because of the changes since the full export\n", phrase.Counted(t.CellsDeleted, "cell"))
		}
		if t.ChangesLeft > 0 {
			fmt.Fprintf(&b, "  %s since the full export not made, because the rows cannot be read: the items stay unchanged\n", phrase.Counted(t.ChangesLeft, "change"))
		}
		for _, p := range t.Phases {
			if p.Seconds >= shownSeconds {
				fmt.Fprintf(&b, "  %s\n", p)
			}
		}
		if rules := rulesText(t.Rules); rules != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", "rules", rules)
		}
		for _, c := range t.Choices {
			fmt.Fprintf(&b, "  %-10s %s\n  %-10s   (%s)\n", c.What, c.Chosen, "", c.Why)
		}
		for _, s := range t.Sidecar {
			fmt.Fprintf(&b, "  %-10s %s: %s\n  %-10s   (e.g. %s of item %s)\n", "sidecar", phrase.Counted(s.Cells, "cell"), s.What, "", s.Column, s.Item)
		}
		for _, a := range t.Accepted {
			if a.Attribute != "" {
				fmt.Fprintf(&b, "  %-10s %s: %s of attribute %s by rule %s, e.g. of item %s\n  %-10s   (%s)\n",
					"accepted", a.What, phrase.Counted(a.Values, "value"), a.Attribute, a.Rule, a.Example, "", a.Why)
				continue
			}
			fmt.Fprintf(&b, "  %-10s %s: %s that garbage collection by %s of family %s removes from rule %s, e.g. of item %s\n  %-10s   (%s)\n",
				"accepted", a.What, phrase.Counted(a.Cells, "cell"), a.GC, a.Family, a.Rule, a.Example, "", a.Why)
		}
	}
	if len(r.Checks) > 0 {
		b.WriteByte('\n')
	}
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-4s %s", c.verdict(), c.Name)
		if c.Table != "" {
			fmt.Fprintf(&b, ", table %s", c.Table)
		}
		if c.Detail != "" {
			fmt.Fprintf(&b, ": %s", c.Detail)
		}
		if c.Differences > 0 {
			fmt.Fprintf(&b, "; %s", phrase.Counted(c.Differences, "difference"))
		}
		b.WriteByte('\n')
	}
	for _, p := range r.Patterns {
		fmt.Fprintf(&b, "%-4s pattern %s", verdict(p.Differences), p.ID)
		if p.Title != "" {
			fmt.Fprintf(&b, ", %s", p.Title)
		}
		fmt.Fprintf(&b, ": %s by %s", phrase.Counted(int64(p.Items), "item"), strings.Join(p.Endpoints, " and "))
		if cost := p.cost(); cost != "" {
			fmt.Fprintf(&b, "; native read of %s", cost)
		}
		b.WriteByte('\n')
	}
	if len(r.Failures) > 0 {
		b.WriteByte('\n')
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "%s\n", f)
	}
	if more := r.Differences - int64(len(r.Failures)); more > 0 {
		fmt.Fprintf(&b, "… and %s more\n", phrase.Counted(more, "difference"))
	}
	if len(r.Warnings) > 0 {
		b.WriteByte('\n')
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	r.writeLint(&b)
	if r.OnlyLint {
		fmt.Fprintf(&b, "\n%s, %s, %s\n", phrase.Counted(r.Items, "item"), LintSummary(r.Lint), phrase.Counted(r.Differences, "difference"))
		return b.String()
	}
	if !r.Compared {
		cells := int64(0)
		for _, t := range r.Tables {
			cells += t.CellsWritten
		}
		fmt.Fprintf(&b, "\n%s, %s, %s written, %s\n", phrase.Counted(r.Items, "item"), phrase.Counted(r.Rows, "row"), phrase.Counted(cells, "cell"), phrase.Counted(r.Exceptions, "sidecar cell"))
		if slices.ContainsFunc(r.Tables, func(t TableReport) bool { return t.Existed }) {
			b.WriteString("Some tables existed before the load. Newer cells in them hide the loaded cells from reads; verify --against compares.\n")
		}
		return b.String()
	}
	if r.DiffOf != "" {
		fmt.Fprintf(&b, "\n%s, %s\n", phrase.Counted(max(r.Items, r.Rows), r.DiffOf), phrase.Counted(r.Differences, "difference"))
		return b.String()
	}
	if text := r.liveText(); text != "" {
		fmt.Fprintf(&b, "\n%s\n", text)
		return b.String()
	}
	fmt.Fprintf(&b, "\n%s, %s, %s, %s\n", phrase.Counted(r.Items, "item"), phrase.Counted(r.Rows, "row"), phrase.Counted(r.Differences, "difference"), phrase.Counted(r.Exceptions, "sidecar cell"))
	return b.String()
}

// shownSeconds is the shortest phase that a report for a terminal shows.
const shownSeconds = 1

// maxRulesText bounds the text about a table's rules in a report for a terminal.
const maxRulesText = 1 << 10

// rulesText formats the number of items of each rule and index: "video 2, comment 4, index GSI1
// 3".
func rulesText(rules []RuleRows) string {
	var parts []string
	for _, r := range rules {
		switch {
		case r.Index != "":
			parts = append(parts, fmt.Sprintf("index %s %d", r.Index, r.Items))
		case r.Rule != "":
			parts = append(parts, fmt.Sprintf("%s %d", r.Rule, r.Items))
		}
	}
	return phrase.ClipTo(strings.Join(parts, ", "), maxRulesText)
}

// cost formats the ranges and rows of the native read: "1 range, 5 rows scanned for 2"; ""
// without one.
func (p PatternReport) cost() string {
	if p.Ranges == 0 && p.RowsScanned == 0 {
		return ""
	}
	text := "the whole table"
	if p.Ranges > 0 {
		text = phrase.Counted(int64(p.Ranges), "range")
	}
	if p.RowsScanned > 0 {
		text += fmt.Sprintf(", %s scanned for %d", phrase.Counted(p.RowsScanned, "row"), p.RowsReturned)
	}
	return text
}

// LintSummary formats the counts of a lint result: "59 rules, 1 error, 2 warnings, 0
// notes, 1 finding accepted".
func LintSummary(l *lint.Result) string {
	text := fmt.Sprintf("%s, %s, %s, %s", phrase.Counted(int64(l.Rules), "rule"), phrase.Counted(int64(l.Errors), "error"), phrase.Counted(int64(l.Warnings), "warning"), phrase.Counted(int64(l.Infos), "note"))
	if len(l.Accepted) > 0 {
		text += ", " + phrase.Counted(int64(len(l.Accepted)), "finding") + " accepted"
	}
	return text
}

// LintCheck is the name of the check that applies the lint rules.
const LintCheck = "lint"

// writeLint writes the findings, worst first, each with its source and its fix.
func (r *Report) writeLint(b *strings.Builder) {
	if r.Lint == nil || len(r.Lint.Findings)+len(r.Lint.Accepted)+len(r.Lint.Disabled) == 0 && r.Lint.Stopped == "" {
		return
	}
	b.WriteByte('\n')
	for _, f := range r.Lint.Findings {
		fmt.Fprintf(b, "%-5s %s %s: %s\n", f.Level, f.Rule, f.Name, f.Where())
		fmt.Fprintf(b, "      %s", f.Message)
		if f.Count > 1 {
			fmt.Fprintf(b, ", in %d places", f.Count)
		}
		fmt.Fprintf(b, "; expected %s\n      fix: %s\n      source: guide %s, %s: %s\n", f.Expected, f.Fix, strings.Join(strings.Split(f.Cite.Guides, ""), ", "), f.Cite.Section, f.Cite.Says)
	}
	for _, a := range r.Lint.Accepted {
		fmt.Fprintf(b, "accepted %s %s: %s\n      %s\n      why: %s\n", a.Finding.Rule, a.Finding.Name, a.Finding.Where(), a.Finding.Message, a.Why)
	}
	for _, d := range r.Lint.Disabled {
		fmt.Fprintf(b, "off   %s\n", d)
	}
	if r.Lint.Stopped != "" {
		fmt.Fprintf(b, "warning: the items were not laid out: %s\n", r.Lint.Stopped)
	}
}

func (c Check) verdict() string {
	switch c.State {
	case CheckSkipped:
		return "skip"
	case CheckNoted:
		return "warn"
	case CheckOK, CheckFailed:
	}
	return verdict(c.Differences)
}

func verdict(differences int64) string {
	if differences > 0 {
		return "FAIL"
	}
	return "ok"
}

// junitSuites is the root of a JUnit file.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`    // testsuites
	Tests    int          `xml:"tests,attr"`    // cases of all suites
	Failures int          `xml:"failures,attr"` // cases that failed
	Suites   []junitSuite `xml:"testsuite"`     // one per report
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Skipped *junitSkipped `xml:"skipped,omitempty"`
	Output  *junitOutput  `xml:"system-out,omitempty"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",cdata"` // unescaped, for readers of the file
}

type junitOutput struct {
	Text string `xml:",cdata"`
}

// WriteJUnit writes reports as JUnit XML, with one suite per report and one case per
// check and access pattern.
func WriteJUnit(w io.Writer, reports ...*Report) error {
	var doc junitSuites
	for _, r := range reports {
		s := junitSuite{Name: r.Fixture}
		if s.Name == "" {
			s.Name = r.Source
		}
		add := func(class, name string, differences int64, listed []Failure) {
			c := junitCase{Name: name, Class: class}
			if differences > 0 {
				c.Failure = &junitFailure{Message: phrase.Counted(differences, "difference")}
				c.Failure.Text = validXML(unifiedDiff(listed))
				if more := differences - int64(len(listed)); more > 0 {
					c.Failure.Text += fmt.Sprintf("… and %s more\n", phrase.Counted(more, "difference"))
				}
				s.Failures++
			}
			s.Tests++
			s.Cases = append(s.Cases, c)
		}
		for i, c := range r.Checks {
			if c.Name == LintCheck && len(r.Lint.Findings) > 0 {
				continue // each rule with findings has its own case
			}
			add("check", validXML(strings.TrimSpace(c.Name+" "+c.Table)), c.Differences, r.FailuresOf(i))
			if c.State == CheckSkipped || c.State == CheckNoted {
				s.Cases[len(s.Cases)-1].Skipped = &junitSkipped{Message: validXML(c.Detail)}
				s.Skipped++
			}
		}
		for _, p := range r.Patterns {
			add("pattern", validXML(p.ID), p.Differences, r.FailuresOfPattern(p.ID))
		}
		s.addLint(r)
		doc.Tests += s.Tests
		doc.Failures += s.Failures
		doc.Suites = append(doc.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("writing the JUnit report: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// addLint adds a case for each rule with findings: failed if a finding is a difference, skipped
// if errors or warnings do not count. It also adds a skipped case for each accepted finding.
func (s *junitSuite) addLint(r *Report) {
	if r.Lint == nil {
		return
	}
	cases := map[string]int{}
	for _, f := range r.Lint.Findings {
		i, ok := cases[f.Rule]
		if !ok {
			i = len(s.Cases)
			cases[f.Rule] = i
			s.Tests++
			s.Cases = append(s.Cases, junitCase{Name: f.Rule + " " + f.Name, Class: "lint"})
		}
		text := validXML(fmt.Sprintf("%s\nfix: %s\n", f, f.Fix))
		c := &s.Cases[i]
		if !r.IsDifference(f) {
			if c.Output == nil {
				c.Output = &junitOutput{}
			}
			c.Output.Text += text
			if f.Level >= lint.Warn && c.Skipped == nil && c.Failure == nil {
				s.Skipped++
				c.Skipped = &junitSkipped{Message: fmt.Sprintf("%s, not counted as a difference (--fail-on lint=%s counts it)", f.Level, f.Level)}
			}
			continue
		}
		if c.Failure == nil {
			s.Failures++
			c.Failure = &junitFailure{Message: validXML(f.Message)}
		}
		c.Failure.Text += text
	}
	for _, a := range r.Lint.Accepted {
		s.Tests++
		s.Skipped++
		s.Cases = append(s.Cases, junitCase{
			Name: validXML(fmt.Sprintf("%s %s: %s", a.Finding.Rule, a.Finding.Name, a.Finding.Where())), Class: "lint",
			Skipped: &junitSkipped{Message: validXML("accepted: " + a.Why)}, Output: &junitOutput{Text: validXML(a.Finding.String() + "\n")},
		})
	}
}

// validXML replaces characters that XML does not allow.
func validXML(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0xfffe || r == 0xffff {
			return '\ufffd'
		}
		return r
	}, s)
}
