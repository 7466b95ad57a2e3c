package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/lint"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// reportFlags name further outputs of the report.
type reportFlags struct {
	Report []string `help:"Also write the report to files; text without a file prints to the terminal. May be repeated." placeholder:"text=FILE|json=FILE|junit=FILE|html=FILE" group:"Report:"`
}

func (f *reportFlags) validateReports() error {
	return validateReports(f.Report, "text", "json", "junit", "html")
}

// validateReports checks the values of --report. Only text may lack a file.
func validateReports(reports []string, formats ...string) error {
	for _, r := range reports {
		format, file, _ := strings.Cut(r, "=")
		if !slices.Contains(formats, format) || file == "" && r != "text" {
			return fmt.Errorf("--report: %q must be text or %s=FILE", r, strings.Join(formats, "=FILE, "))
		}
	}
	return nil
}

// finish prints and writes the report. It returns an error if something differs.
func (f *reportFlags) finish(p *program, r *report.Report) error {
	p.printReport(r)
	for _, to := range f.Report {
		format, file, _ := strings.Cut(to, "=")
		if file == "" { // already printed
			continue
		}
		if err := writeReport(format, file, r); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	if !r.Equal() {
		return &exitError{code: exitDifferences}
	}
	return nil
}

// finishPart is like finish, but also prints the part of the work that the command did, if
// it did not do all of it.
func (f *reportFlags) finishPart(p *program, r *report.Report, verb string, part partFlags) error {
	err := f.finish(p, r)
	if text := part.said(verb); text != "" {
		_, _ = fmt.Fprintf(p.stderr, "tabletop: %s\n", text)
	}
	return err
}

func writeReport(format, file string, r *report.Report) error {
	w, err := os.Create(file)
	if err != nil {
		return err
	}
	switch format {
	case "junit":
		err = report.WriteJUnit(w, r)
	case "html":
		err = r.WriteHTML(w)
	case "text":
		_, err = w.WriteString(r.Text())
	default:
		err = r.WriteJSON(w)
	}
	return errors.Join(err, w.Close())
}

// lintFlags configure lint, and which findings are differences.
type lintFlags struct {
	Rules  string `help:"File with lint levels, thresholds and acceptances, which override those of the fixture and the mapping." placeholder:"FILE" group:"Report:"`
	FailOn string `help:"Count lint findings of this level or a worse one as differences. Default: lint=error for migrate lint, none for other commands." placeholder:"lint=error|lint=warn|lint=info" group:"Report:"`
}

func (f *lintFlags) validateFailOn() error {
	level, ok := strings.CutPrefix(f.FailOn, "lint=")
	if l, err := lint.ParseLevel(level); f.FailOn != "" && (!ok || err != nil || l == lint.Off) {
		return fmt.Errorf("--fail-on: %q must be lint=error, lint=warn or lint=info", f.FailOn)
	}
	return nil
}

// lint returns the rules that the flags configure, or nil. Without --fail-on, findings are not
// differences.
func (f *lintFlags) lint() (*migrate.LintRules, error) {
	if f.FailOn == "" && f.Rules == "" {
		return nil, nil
	}
	rules := &migrate.LintRules{}
	rules.FailOn, _ = lint.ParseLevel(strings.TrimPrefix(f.FailOn, "lint=")) // checked by validateFailOn
	if f.Rules == "" {
		return rules, nil
	}
	text, err := os.ReadFile(f.Rules)
	if err == nil {
		rules.Config, err = lint.ParseConfig(f.Rules, text)
	}
	if err != nil {
		return nil, badInput("--rules: %w", err)
	}
	return rules, nil
}
