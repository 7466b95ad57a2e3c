package tabledef

import (
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Distance functions of vector indexes, in DynamoDB's words.
const (
	DistanceCosine     = "COSINE"
	DistanceDotProduct = "DOT_PRODUCT"
	DistanceEuclidean  = "EUCLIDEAN"
)

// VectorIndex is a vector index of a table. It has no separate rows: searches read the
// rows of the table, so the index is complete as soon as it is defined.
type VectorIndex struct {
	Name       string `json:"name"`
	Attribute  string `json:"attribute"` // attribute that holds the vectors
	Dimensions int    `json:"dimensions"`
	Distance   string `json:"distance"` // DistanceCosine, DistanceDotProduct or DistanceEuclidean
	// Hash is the attribute that partitions the index, or "" if the index has no
	// partitions.
	Hash string `json:"hash,omitempty"`
	// Schema lists the attributes of the search schema in the given order, including
	// Hash.
	Schema     []string `json:"schema,omitempty"`
	Projection string   `json:"projection"`       // ProjectAll, ProjectKeysOnly or ProjectInclude
	NonKey     []string `json:"nonKey,omitempty"` // attributes of ProjectInclude
	// Transition is the temporary status of the index. An index whose status is DELETING was
	// deleted.
	Transition Transition `json:"transition,omitzero"`
	// FillFrom is the time from which descriptions show an added index as backfilling. It
	// is zero for an index that was created with its table.
	FillFrom time.Time `json:"fillFrom,omitzero"`
}

// IsDeleted reports whether the index was deleted, even if descriptions still list it.
func (ix *VectorIndex) IsDeleted() bool { return ix.Transition.Status == StatusDeleting }

// StatusAt returns the status of the index that descriptions show at a given time.
func (ix *VectorIndex) StatusAt(now time.Time) string {
	if ix.Transition.Lasts(now) {
		return ix.Transition.Status
	}
	return StatusActive
}

// IsFillingAt reports whether descriptions show an added index as backfilling at a given
// time.
func (ix *VectorIndex) IsFillingAt(now time.Time) bool {
	return ix.StatusAt(now) == StatusCreating && !now.Before(ix.FillFrom)
}

// VectorIndex returns the vector index with the given name. It returns nil if there is no
// such index or it was deleted.
func (t *Table) VectorIndex(name string) *VectorIndex {
	for i := range t.Vectors {
		if ix := &t.Vectors[i]; ix.Name == name && !ix.IsDeleted() {
			return ix
		}
	}
	return nil
}

// LiveVectors returns the vector indexes that were not deleted.
func (t *Table) LiveVectors() []VectorIndex {
	return slices.DeleteFunc(slices.Clone(t.Vectors), func(ix VectorIndex) bool { return ix.IsDeleted() })
}

// ShownVectors returns the vector indexes that descriptions list at a given time.
func (t *Table) ShownVectors(now time.Time) []VectorIndex {
	return slices.DeleteFunc(slices.Clone(t.Vectors), func(ix VectorIndex) bool { return ix.IsDeleted() && !ix.Transition.Lasts(now) })
}

// AttributeType returns the type of a defined attribute, or attr.Absent if the attribute
// is not defined.
func (t *Table) AttributeType(name string) attr.Type {
	for _, a := range t.Attributes {
		if a.Name == name {
			return a.Type
		}
	}
	return attr.Absent
}
