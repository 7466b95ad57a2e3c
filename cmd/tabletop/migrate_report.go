package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/fixtures/lint"
)

// reportFlags say where a report goes besides the terminal.
type reportFlags struct {
	Report []string `help:"Also write the report to files; text alone is what the terminal shows. May be repeated." placeholder:"text=FILE|json=FILE|junit=FILE|html=FILE"`
}

// reportFormats are what --report can write.
var reportFormats = []string{"text", "json", "junit", "html"}

func (f *reportFlags) validateReports() error {
	for _, r := range f.Report {
		format, file, _ := strings.Cut(r, "=")
		if !slices.Contains(reportFormats, format) || file == "" && r != "text" {
			return fmt.Errorf("--report: %q is none of text, text=FILE, json=FILE, junit=FILE and html=FILE", r)
		}
	}
	return nil
}

// finish prints and writes the report, and says by its error whether all is
// equal.
func (f *reportFlags) finish(p *program, r *fixtures.Report) error {
	p.printReport(r)
	for _, to := range f.Report {
		format, file, _ := strings.Cut(to, "=")
		if file == "" { // it was printed
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

func writeReport(format, file string, r *fixtures.Report) error {
	w, err := os.Create(file)
	if err != nil {
		return err
	}
	switch format {
	case "junit":
		err = fixtures.WriteJUnit(w, r)
	case "html":
		err = r.WriteHTML(w)
	case "text":
		_, err = w.WriteString(r.Text())
	default:
		err = r.WriteJSON(w)
	}
	return errors.Join(err, w.Close())
}

// failOnFlag says which findings are differences.
type failOnFlag struct {
	FailOn string `help:"Count findings of lint of this level, and worse ones, as differences." placeholder:"lint=error|warn|info"`
}

func (f *failOnFlag) validateFailOn() error {
	level, ok := strings.CutPrefix(f.FailOn, "lint=")
	if l, err := lint.ParseLevel(level); f.FailOn != "" && (!ok || err != nil || l == lint.Off) {
		return fmt.Errorf("--fail-on: %q is none of lint=error, lint=warn and lint=info", f.FailOn)
	}
	return nil
}

// level is what the flag names, Off without it.
func (f *failOnFlag) level() lint.Level {
	l, _ := lint.ParseLevel(strings.TrimPrefix(f.FailOn, "lint=")) // validateFailOn has seen it
	return l
}
