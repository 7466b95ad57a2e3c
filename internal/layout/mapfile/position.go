package mapfile

import (
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// Position returns the position in the mapping file of a path such as "rules[0].row[1]". If the
// file does not have the path, it returns the position of the nearest enclosing path. line is 0 for
// a Spec without a file.
func (s *Spec) Position(path string) (file string, line, column int) {
	at := s.pos.Near(path)
	return s.file, at.Line, at.Column
}

// FileLine returns the Position of a path as FILE:LINE for reports. It returns "" for a Spec
// without a file.
func (s *Spec) FileLine(path string) string {
	if s.file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.file, s.pos.Near(path).Line)
}

// Fault returns an error about the value at a path, or about a missing value.
func (s *Spec) Fault(path string, code maperr.Code, what, expected string) *maperr.SpecError {
	at := s.pos.Near(path)
	if at == (strictyaml.Position{}) {
		at = s.pos[""] // a missing key: report at the file's first key
	}
	return &maperr.SpecError{Code: code, File: s.file, Line: at.Line, Column: at.Column, Path: path, What: what, Expected: expected}
}

// Lint returns the lint settings in the mapping file, for package migrate/lint. The result is zero
// if the file has none.
func (s *Spec) Lint() strictyaml.Value { return s.lint }
