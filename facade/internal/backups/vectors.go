package backups

import (
	"fmt"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
)

// vectorConstraints checks the override of vector indexes against the model.
func (s *Service) vectorConstraints(o *Overrides) {
	for i, ix := range o.VectorIndexOverride {
		tablespec.Constraints{Validator: &s.V}.VectorIndex(fmt.Sprintf("VectorIndexOverride.%d.member", i+1), ix)
	}
}

// vectors sets the vector indexes of a restored table, from the source or the override. An
// index of the override must be defined like an index of the source; its name may differ
// (assumption: as for global indexes).
func (o *Overrides) vectors(t, src *tabledef.Table) error {
	for _, ix := range src.LiveVectors() {
		ix.Transition, ix.FillFrom = tabledef.Transition{}, time.Time{}
		t.Vectors = append(t.Vectors, ix)
	}
	if o.VectorIndexOverride != nil {
		all := t.Vectors
		t.Vectors = nil
		for _, asked := range o.VectorIndexOverride {
			i := slices.IndexFunc(all, func(ix tabledef.VectorIndex) bool { return asked.IsVector(&ix) })
			if i < 0 {
				return awserr.Validation(awserr.MsgRestoreIndexUnknown, *asked.IndexName)
			}
			ix := all[i]
			ix.Name = *asked.IndexName
			if t.Index(ix.Name) != nil || t.VectorIndex(ix.Name) != nil {
				return awserr.Validation(awserr.MsgDuplicateIndex, ix.Name)
			}
			t.Vectors = append(t.Vectors, ix)
		}
	}
	if len(t.Vectors) > 0 && t.BillingMode != tablespec.BillingOnDemand {
		return awserr.Validation(awserr.MsgVectorsProvisioned)
	}
	return tablespec.CheckVectors(t)
}
