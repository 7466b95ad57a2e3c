package mapfile

import (
	"fmt"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// SpecError is a fault of a mapping file: where, what, what was expected.
type SpecError struct {
	Code         lens.Code
	File         string // "" for a Spec that was not parsed from a file
	Line, Column int    // from 1; 0 where unknown
	Path         string // rules[2].put[0].cell
	What         string
	Expected     string // "" where What says it
}

// Error returns `file:line:column: path: what; expected …`.
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
	if e.Code != lens.CodeSyntax {
		b.WriteString(string(e.Code) + ": ")
	}
	b.WriteString(e.What)
	if e.Expected != "" {
		b.WriteString("; expected ")
		b.WriteString(e.Expected)
	}
	return b.String()
}
