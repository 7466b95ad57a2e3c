package resname

import "github.com/tabletop-emu/tabletop/emu/internal/refusal"

// P, I and T of projects/P/instances/I/tables/T may be any text without a
// slash, since clients of an emulator send placeholders such as "{project}".
// Only CreateTable restricts T.

// CheckInstance checks that a request field holds the name of an instance.
func CheckInstance(field, name string) error {
	if !HasShape(name, "projects", "instances") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE")
	}
	return nil
}

// CheckTable checks that a request field holds the name of a table.
func CheckTable(field, name string) error {
	if !HasShape(name, "projects", "instances", "tables") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/tables/TABLE")
	}
	return nil
}

// CheckAuthorizedView checks that a request field holds the name of an authorized view.
func CheckAuthorizedView(field, name string) error {
	if !HasShape(name, "projects", "instances", "tables", "authorizedViews") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/tables/TABLE/authorizedViews/VIEW")
	}
	return nil
}

// CheckSchemaBundle checks that a request field holds the name of a schema bundle.
func CheckSchemaBundle(field, name string) error {
	if !HasShape(name, "projects", "instances", "tables", "schemaBundles") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/tables/TABLE/schemaBundles/BUNDLE")
	}
	return nil
}

// CheckCluster checks that a request field holds the name of a cluster.
func CheckCluster(field, name string) error {
	if !HasShape(name, "projects", "instances", "clusters") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/clusters/CLUSTER")
	}
	return nil
}

// CheckMaterializedView checks that a request field holds the name of a materialized view.
func CheckMaterializedView(field, name string) error {
	if !HasShape(name, "projects", "instances", "materializedViews") {
		return refusal.BadName(field, name, "projects/PROJECT/instances/INSTANCE/materializedViews/VIEW")
	}
	return nil
}
