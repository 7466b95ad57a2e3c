package emu

import (
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// Resource names are projects/P/instances/I and projects/P/instances/I/tables/T.
// P, I and, outside CreateTable, T may be any text without a slash: clients of
// an emulator send placeholders such as "{project}".

// instancePrefix is what the names of an instance's tables begin with.
func instancePrefix(instance string) string { return instance + "/tables/" }

// parseInstance checks the name of an instance.
func parseInstance(field, name string) error {
	if !resname.HasShape(name, "projects", "instances") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE")
	}
	return nil
}

// parseTable checks the name of a table.
func parseTable(field, name string) error {
	if !resname.HasShape(name, "projects", "instances", "tables") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/tables/TABLE")
	}
	return nil
}

// parseAuthorizedView checks the name of an authorized view.
func parseAuthorizedView(field, name string) error {
	if !resname.HasShape(name, "projects", "instances", "tables", "authorizedViews") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/tables/TABLE/authorizedViews/VIEW")
	}
	return nil
}

// parseSchemaBundle checks the name of a schema bundle.
func parseSchemaBundle(field, name string) error {
	if !resname.HasShape(name, "projects", "instances", "tables", "schemaBundles") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/tables/TABLE/schemaBundles/BUNDLE")
	}
	return nil
}

// parseCluster checks the name of a cluster.
func parseCluster(field, name string) error {
	if !resname.HasShape(name, "projects", "instances", "clusters") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/clusters/CLUSTER")
	}
	return nil
}

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
