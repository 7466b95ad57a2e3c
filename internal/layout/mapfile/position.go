package mapfile

import (
	"fmt"

	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// Position is where the mapping file says what a path such as
// "rules[0].row[1]" leads to; of a path that the file does not have, where the
// nearest one around it stands. line is 0 for a Spec that no file was read for.
func (s *Spec) Position(path string) (file string, line, column int) {
	at := s.pos.Near(path)
	return s.file, at.Line, at.Column
}

// FileLine is the Position of a path as FILE:LINE, for reports; "" for a Spec that
// no file was read for.
func (s *Spec) FileLine(path string) string {
	if s.file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.file, s.pos.Near(path).Line)
}

// Fault is the error of what stands at a path, or is missing there.
func (s *Spec) Fault(path string, code lens.Code, what, expected string) *SpecError {
	at := s.pos.Near(path)
	if at == (strictyaml.Position{}) {
		at = s.pos[""] // something is missing: the file's first key
	}
	return &SpecError{Code: code, File: s.file, Line: at.Line, Column: at.Column, Path: path, What: what, Expected: expected}
}

// Lint is what the mapping file says of lint, which package migrate/lint reads;
// zero for nothing.
func (s *Spec) Lint() strictyaml.Value { return s.lint }
