package emu

import (
	"fmt"
	"strings"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// Resource names are projects/P/instances/I and projects/P/instances/I/tables/T.
// P, I and, outside CreateTable, T may be any text without a slash: clients of
// an emulator send placeholders such as "{project}".

// instancePrefix is what the names of an instance's tables begin with.
func instancePrefix(instance string) string { return instance + "/tables/" }

// parseInstance checks the name of an instance.
func parseInstance(field, name string) error {
	if !hasShape(name, "projects", "instances") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE")
	}
	return nil
}

// parseTable checks the name of a table.
func parseTable(field, name string) error {
	if !hasShape(name, "projects", "instances", "tables") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/tables/TABLE")
	}
	return nil
}

// parseAuthorizedView checks the name of an authorized view.
func parseAuthorizedView(field, name string) error {
	if !hasShape(name, "projects", "instances", "tables", "authorizedViews") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/tables/TABLE/authorizedViews/VIEW")
	}
	return nil
}

// parseSchemaBundle checks the name of a schema bundle.
func parseSchemaBundle(field, name string) error {
	if !hasShape(name, "projects", "instances", "tables", "schemaBundles") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/tables/TABLE/schemaBundles/BUNDLE")
	}
	return nil
}

// checkID checks the id of a resource to be created:
// [_a-zA-Z0-9][-_.a-zA-Z0-9]*, up to 50 characters.
func (s *Server) checkID(field, id string) error {
	if !isResourceID(id) {
		return refusal.Invalid(field, "%q is not an id; expected [_a-zA-Z0-9][-_.a-zA-Z0-9]*", id)
	}
	return s.limit(len(id), maxResourceIDBytes, field, "characters")
}

// hasShape reports whether name is collection/id/collection/id… with the given
// collections and no empty id.
func hasShape(name string, collections ...string) bool {
	for i, c := range collections {
		if i > 0 {
			var ok bool
			if name, ok = strings.CutPrefix(name, "/"); !ok {
				return false
			}
		}
		var ok bool
		if name, ok = strings.CutPrefix(name, c+"/"); !ok {
			return false
		}
		n := strings.IndexByte(name, '/')
		if n < 0 {
			n = len(name)
		}
		if n == 0 {
			return false
		}
		name = name[n:]
	}
	return name == ""
}

// checkTableID checks the id of a table to be created:
// [_a-zA-Z0-9][-_.a-zA-Z0-9]*, up to 50 characters.
func (s *Server) checkTableID(id string) error {
	if !isResourceID(id) {
		return refusal.Invalid("table_id", "%q is not a table id; expected [_a-zA-Z0-9][-_.a-zA-Z0-9]*", id)
	}
	return s.limit(len(id), maxTableIDBytes, "table_id", "characters")
}

// checkFamilyName checks the name of a family: [-_.a-zA-Z0-9]+, up to 64
// characters.
func (s *Server) checkFamilyName(field, name string) error {
	if name == "" || !allBytes(name, isNameByte) {
		return refusal.Invalid(field, "%q is not a column family name; expected [-_.a-zA-Z0-9]+", name)
	}
	return s.limit(len(name), maxFamilyNameBytes, field, "characters")
}

// isResourceID reports whether id is [_a-zA-Z0-9][-_.a-zA-Z0-9]*.
func isResourceID(id string) bool {
	return id != "" && id[0] != '-' && id[0] != '.' && allBytes(id, isNameByte)
}

// isLowerID reports whether id is [a-z][-a-z0-9]*, the form of the ids of
// instances and clusters.
func isLowerID(id string) bool {
	return id != "" && id[0] >= 'a' && id[0] <= 'z' && allBytes(id, func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
	})
}

func isNameByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return c == '-' || c == '_' || c == '.'
}

func allBytes(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

// limit refuses n above limit while limits are strict.
func (s *Server) limit(n, limit int, field, unit string) error {
	if !s.exceeds(n, limit) {
		return nil
	}
	return refusal.Invalid(field, "%d %s; the limit is %d", n, unit, limit)
}

// exceeds reports whether n is above a limit that is enforced.
func (s *Server) exceeds(n, limit int) bool { return s.limits != NoLimits && n > limit }

// element names the n-th element of a repeated field.
func element(field string, n int) string { return fmt.Sprintf("%s[%d]", field, n) }
