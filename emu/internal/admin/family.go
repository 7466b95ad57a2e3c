package admin

import (
	"context"
	"slices"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// ModifyColumnFamilies creates, updates and drops families in the given order. Either all
// modifications take effect or none.
func (s tableAdminService) ModifyColumnFamilies(ctx context.Context, req *btapb.ModifyColumnFamiliesRequest) (*btapb.Table, error) {
	if len(req.GetModifications()) == 0 {
		return nil, refusal.Invalid("modifications", "must specify at least one modification")
	}
	var t *engine.Table
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		var err error
		if t, err = FindTable(tx, "name", req.GetName()); err != nil {
			return err
		}
		clusters, err := ClustersOf(tx, resname.First(t.Name, 4))
		if err != nil {
			return err
		}
		relax := relaxation(len(clusters), req.GetIgnoreWarnings())
		changes, families := make([]engine.FamilyChange, 0, len(req.GetModifications())), len(t.Families)
		for i, m := range req.GetModifications() {
			change, err := s.familyChange(t, changes, refusal.Element("modifications", i), m, relax)
			if err != nil {
				return err
			}
			switch changes = append(changes, *change); {
			case change.Create != nil:
				families++
			case change.Drop != "":
				families--
			}
		}
		if err := s.Limits.Check(max(families, len(t.Families)), max(limits.MaxFamilies, len(t.Families)), "modifications", "families in the table"); err != nil {
			return err
		}
		t, err = tx.ModifyFamilies(t.Name, changes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return shownTable(t), nil
}

// familyChange converts modification m of t, which follows the changes in before. An updated rule
// may keep cells longer than the old one by at most relax.
func (s *Control) familyChange(t *engine.Table, before []engine.FamilyChange, field string, m *btapb.ModifyColumnFamiliesRequest_Modification, relax time.Duration) (*engine.FamilyChange, error) {
	switch k := m.GetMod().(type) {
	case *btapb.ModifyColumnFamiliesRequest_Modification_Create:
		f, err := s.newFamily(field+".create", m.GetId(), k.Create)
		if err != nil {
			return nil, err
		}
		for _, key := range settingsOf(t).GetRowKeySchema().GetFields() {
			if key.GetFieldName() == f.Name {
				return nil, refusal.Invalid(field+".id", "%q is a field of the row key schema", f.Name)
			}
		}
		return &engine.FamilyChange{Create: &f}, nil
	case *btapb.ModifyColumnFamiliesRequest_Modification_Update:
		if err := s.Limits.CheckFamilyName(field+".id", m.GetId()); err != nil {
			return nil, err
		}
		is, err := familyAfter(t, before, m.GetId())
		if err != nil {
			return nil, err
		}
		return s.familyUpdate(is, field, k.Update, m.GetUpdateMask(), relax)
	case *btapb.ModifyColumnFamiliesRequest_Modification_Drop:
		if !k.Drop {
			return nil, refusal.Invalid(field+".drop", "must be true")
		}
		if err := s.Limits.CheckFamilyName(field+".id", m.GetId()); err != nil {
			return nil, err
		}
		if protected(t) {
			return nil, refusal.Protected(t.Name, "dropping a column family")
		}
		return &engine.FamilyChange{Drop: m.GetId()}, nil
	default:
		return nil, refusal.Invalid(field, "none of create, update and drop is set")
	}
}

// familyAfter returns the family of t with the given name as it is after changes, or an error
// status if it does not exist then.
func familyAfter(t *engine.Table, changes []engine.FamilyChange, name string) (*engine.Family, error) {
	for _, c := range slices.Backward(changes) {
		switch {
		case c.Create != nil && c.Create.Name == name:
			return c.Create, nil
		case c.Update != nil && c.Update.Name == name:
			return c.Update, nil
		case c.Drop == name:
			return nil, refusal.NoFamily(t.Name, name)
		}
	}
	return FindFamily(t, name)
}

// familyUpdate converts an update of a family, whose current definition is the parameter is. "If
// unset or empty, we treat it as updating gc_rule" (Modification.update_mask): without a mask,
// other fields are ignored. The new rule may keep cells longer than the old one by at most relax.
func (s *Control) familyUpdate(is *engine.Family, field string, to *btapb.ColumnFamily, mask *fieldmaskpb.FieldMask, relax time.Duration) (*engine.FamilyChange, error) {
	f := engine.Family{Name: is.Name, GC: is.GC, Aggregate: is.Aggregate, Meta: is.Meta}
	paths := mask.GetPaths()
	if len(paths) == 0 {
		paths = []string{"gc_rule"}
	}
	for _, path := range paths {
		var err error
		switch path {
		case "gc_rule":
			if f.GC, err = gcRule(s.Limits, field+".update.gc_rule", to.GetGcRule()); err == nil {
				err = checkRelaxed(f.Name, is.GC, f.GC, relax)
			}
		case "value_type":
			err = changeValueType(&f, is, field+".update", to.GetValueType())
		default:
			err = refusal.Invalid(field+".update_mask", "%q cannot be updated; expected gc_rule or value_type", path)
		}
		if err != nil {
			return nil, err
		}
	}
	return &engine.FamilyChange{Update: &f}, nil
}

// newFamily validates and converts the definition of a new family.
func (s *Control) newFamily(field, name string, f *btapb.ColumnFamily) (engine.Family, error) {
	out, err := s.family(field, name, f)
	if err != nil {
		return out, err
	}
	return out, setValueType(&out, field+".value_type", f.GetValueType())
}

// family validates and converts the definition of a family, except for its
// value type.
func (s *Control) family(field, name string, f *btapb.ColumnFamily) (engine.Family, error) {
	out := engine.Family{Name: name}
	if err := s.Limits.CheckFamilyName(field, name); err != nil {
		return out, err
	}
	var err error
	out.GC, err = gcRule(s.Limits, field+".gc_rule", f.GetGcRule())
	return out, err
}
