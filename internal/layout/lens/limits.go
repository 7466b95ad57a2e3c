package lens

// Reserved families. A mapping cannot declare them for its own cells.
const (
	// FamilyTypes holds the type sidecar: `a/…`, `c/…`, `r/…`, `i/…` cells.
	FamilyTypes = "_t"
	// FamilyState holds the facade's bookkeeping. It is never part of an
	// item: Place does not write it, Items does not read it.
	FamilyState = "_f"
	// FamilyTombstone holds, in tables of indexes, the mark of a deleted entry until
	// garbage collection removes it. A row with no other cells is not an entry.
	FamilyTombstone = "_x"
	// FamilyPosition holds the position of the last change of each item that a follower has
	// written, and the positions of deleted items and index entries. It is never part of an item.
	FamilyPosition = "_m"
)

// FamilyItem is the family of the default layout, and of index rows.
const FamilyItem = "a"

// Limits of Bigtable. Source: google/bigtable/v2/data.proto (row key,
// qualifier) and bigtable_table_admin.proto (family name).
const (
	MaxRowKeyBytes     = 4096
	MaxQualifierBytes  = 16384
	MaxFamilyNameBytes = 64
)
