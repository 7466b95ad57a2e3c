package maperr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// SpecError describes a fault in a mapping file: its location, the fault, and the
// expected value.
type SpecError struct {
	Code         Code
	File         string // name of the file; "" for a Spec that was not parsed from a file
	Line, Column int    // line number, from 1; 0 if unknown
	Path         string // path such as rules[2].put[0].cell
	What         string
	Expected     string // expected value; "" if What contains it
}

// Error returns the text `file:line:column: path: what; expected …`.
func (e *SpecError) Error() string {
	var b strings.Builder
	switch {
	case e.File != "" && e.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", e.File, e.Line, e.Column)
	case e.File != "":
		b.WriteString(e.File + ": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	if e.Code != CodeSyntax {
		b.WriteString(string(e.Code) + ": ")
	}
	b.WriteString(e.What)
	if e.Expected != "" {
		b.WriteString("; expected ")
		b.WriteString(e.Expected)
	}
	return b.String()
}

// SpecErrors holds several faults in one mapping file, in the order of their locations.
// errors.As finds each of them.
type SpecErrors []*SpecError

// Joined returns the error that represents faults: nil without a fault, the fault
// itself if there is only one, or SpecErrors.
func Joined(faults []*SpecError) error {
	switch len(faults) {
	case 0:
		return nil
	case 1:
		return faults[0]
	}
	faults = slices.Clone(faults)
	slices.SortStableFunc(faults, func(a, b *SpecError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return SpecErrors(faults)
}

// Error returns the texts of all faults, one per line.
func (e SpecErrors) Error() string {
	lines := make([]string, len(e))
	for i, fault := range e {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults.
func (e SpecErrors) Unwrap() []error {
	all := make([]error, len(e))
	for i, fault := range e {
		all[i] = fault
	}
	return all
}
