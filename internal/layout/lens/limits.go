package lens

// These families are reserved. A mapping cannot declare them for its own cells.
const (
	// FamilyTypes holds the sidecar cells: `a/…`, `c/…`, `r/…` and `i/…`.
	FamilyTypes = "_t"
	// FamilyState holds the facade's bookkeeping. It is never part of an item: Place does not write
	// it, and Items does not read it.
	FamilyState = "_f"
	// FamilyTombstone marks a deleted entry in a table of an index until garbage collection removes
	// the mark. A row without other cells is not an entry.
	FamilyTombstone = "_x"
	// FamilyPosition holds, for each item and index entry that a migration wrote from a live
	// source, the position of its last change, even after its deletion. The facade neither
	// reads nor changes it.
	FamilyPosition = "_m"
)

// Bookkeeping reports whether the cells of a family belong to no item and no index entry. A row
// with only such cells holds neither.
func Bookkeeping(family string) bool {
	switch family {
	case FamilyState, FamilyTombstone, FamilyPosition:
		return true
	}
	return false
}

// FamilyItem is the family of the default layout, and of index rows.
const FamilyItem = "a"

// These are limits of Bigtable. Sources: google/bigtable/v2/data.proto (row key, qualifier) and
// bigtable_table_admin.proto (family name).
const (
	MaxRowKeyBytes     = 4096
	MaxQualifierBytes  = 16384
	MaxFamilyNameBytes = 64
)
