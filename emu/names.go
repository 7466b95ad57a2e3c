package emu

import (
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// checkID checks the id of a table, or of what lies under one or in a cluster, that
// is to be created: [_a-zA-Z0-9][-_.a-zA-Z0-9]*, up to 50 characters. what says what
// it is to be.
func (l Limits) checkID(field, what, id string) error {
	if !resname.IsResourceID(id) {
		return refusal.Invalid(field, "%q is not %s; expected [_a-zA-Z0-9][-_.a-zA-Z0-9]*", id, what)
	}
	return l.check(len(id), maxResourceIDBytes, field, "characters")
}

// checkFamilyName checks the name of a family: [-_.a-zA-Z0-9]+, up to 64
// characters.
func (l Limits) checkFamilyName(field, name string) error {
	if name == "" || !resname.AllBytes(name, resname.IsNameByte) {
		return refusal.Invalid(field, "%q is not a column family name; expected [-_.a-zA-Z0-9]+", name)
	}
	return l.check(len(name), maxFamilyNameBytes, field, "characters")
}

// check refuses n above limit while limits are strict.
func (l Limits) check(n, limit int, field, unit string) error {
	if !l.exceeds(n, limit) {
		return nil
	}
	return refusal.Invalid(field, "%d %s; the limit is %d", n, unit, limit)
}

// exceeds reports whether n is above a limit that is enforced.
func (l Limits) exceeds(n, limit int) bool { return l != NoLimits && n > limit }
