package emu

import (
	"bytes"
	"errors"
	"slices"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// plainFamily acts like admin.FindFamily for a family that must not be an aggregate. field is the
// path, below the element at, of the field that names the family.
func plainFamily(t *engine.Table, at listed, field, name string) (*engine.Family, error) {
	f, err := admin.FindFamily(t, name)
	if err == nil && f.Aggregate != engine.NoAggregate {
		err = refusal.Invalid(at.member(field), "family %q is an aggregate; only add_to_cell and merge_to_cell write to it", name)
	}
	return f, err
}

// granular checks that a timestamp is a multiple of the table's granularity, or truncates a
// timestamp that the client's library chose.
func granular(t *engine.Table, micros int64, origin btpb.Mutation_TimestampOrigin) (int64, error) {
	if t.Granularity == engine.Micros || micros%1000 == 0 {
		return micros, nil
	}
	if origin != btpb.Mutation_CLIENT_AUTO_GENERATED {
		return micros, refusal.Granularity(micros)
	}
	return micros - micros%1000, nil
}

// mutations validates and converts the mutations of a row of t and appends them to dst. The
// result shares the bytes of muts.
func (s *Server) mutations(dst []engine.Mutation, t *engine.Table, field string, muts []*btpb.Mutation) ([]engine.Mutation, error) {
	dst = slices.Grow(dst, len(muts))
	for i, m := range muts {
		converted, err := s.mutation(t, listed{field, i}, m)
		if err != nil {
			return nil, err
		}
		dst = append(dst, converted)
	}
	return dst, nil
}

// listed is an element of a repeated field. It builds its name only for an error, as a field
// may have 100,000 elements.
type listed struct {
	field string
	n     int
}

func (l listed) name() string              { return refusal.Element(l.field, l.n) }
func (l listed) member(name string) string { return l.name() + "." + name }

func (s *Server) mutation(t *engine.Table, at listed, m *btpb.Mutation) (engine.Mutation, error) {
	var none engine.Mutation
	switch k := m.GetMutation().(type) {
	case *btpb.Mutation_SetCell_:
		return s.setCell(t, at, k.SetCell, m.GetTimestampOrigin())
	case *btpb.Mutation_DeleteFromColumn_:
		return s.deleteFromColumn(t, at, k.DeleteFromColumn)
	case *btpb.Mutation_DeleteFromFamily_:
		f, err := admin.FindFamily(t, k.DeleteFromFamily.GetFamilyName())
		if err != nil {
			return none, err
		}
		return engine.Mutation{Kind: engine.DeleteFromFamily, Family: f.Name, Ordinal: f.Ordinal}, nil
	case *btpb.Mutation_DeleteFromRow_:
		return engine.Mutation{Kind: engine.DeleteFromRow}, nil
	case *btpb.Mutation_AddToCell_:
		return s.addToCell(t, at.member("add_to_cell"), k.AddToCell, m.GetTimestampOrigin())
	case *btpb.Mutation_MergeToCell_:
		return s.mergeToCell(t, at.member("merge_to_cell"), k.MergeToCell, m.GetTimestampOrigin())
	default:
		return none, refusal.Invalid(at.name(), "no mutation is set")
	}
}

func (s *Server) setCell(t *engine.Table, at listed, m *btpb.Mutation_SetCell, origin btpb.Mutation_TimestampOrigin) (engine.Mutation, error) {
	f, err := plainFamily(t, at, "set_cell.family_name", m.GetFamilyName())
	if err != nil {
		return engine.Mutation{}, err
	}
	out := engine.Mutation{
		Kind:      engine.SetCell,
		Family:    f.Name,
		Ordinal:   f.Ordinal,
		Qualifier: m.GetColumnQualifier(),
		Timestamp: m.GetTimestampMicros(),
		Value:     m.GetValue(),
	}
	switch {
	case s.limits.Exceeds(len(out.Qualifier), limits.MaxQualifierBytes):
		return out, s.limits.CheckQualifier(at.member("set_cell.column_qualifier"), out.Qualifier)
	case s.limits.Exceeds(len(out.Value), limits.MaxValueBytes):
		return out, s.limits.CheckValue(at.member("set_cell.value"), out.Value)
	}
	switch ts := out.Timestamp; {
	case ts == -1:
		out.Timestamp = engine.ServerTimestamp
	case ts < -1:
		return out, refusal.Invalid(at.member("set_cell.timestamp_micros"), "Timestamps must be >= -1, but got %d", ts)
	default:
		if out.Timestamp, err = granular(t, ts, origin); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (s *Server) deleteFromColumn(t *engine.Table, at listed, m *btpb.Mutation_DeleteFromColumn) (engine.Mutation, error) {
	f, err := admin.FindFamily(t, m.GetFamilyName())
	if err != nil {
		return engine.Mutation{}, err
	}
	out := engine.Mutation{
		Kind:      engine.DeleteFromColumn,
		Family:    f.Name,
		Ordinal:   f.Ordinal,
		Qualifier: m.GetColumnQualifier(),
		Start:     m.GetTimeRange().GetStartTimestampMicros(),
		End:       m.GetTimeRange().GetEndTimestampMicros(),
	}
	if s.limits.Exceeds(len(out.Qualifier), limits.MaxQualifierBytes) {
		return out, s.limits.CheckQualifier(at.member("delete_from_column.column_qualifier"), out.Qualifier)
	}
	if out.Start < 0 || out.End < 0 {
		return out, refusal.Invalid(at.member("delete_from_column.time_range"), "[%d, %d) has a negative bound", out.Start, out.End)
	}
	if out.End != 0 && out.Start >= out.End {
		return out, refusal.Invalid(at.member("delete_from_column.time_range"), "[%d, %d) starts at or after its end", out.Start, out.End)
	}
	if t.Granularity == engine.Millis && out.Start%1000 == 0 && out.End-out.Start == 1000 {
		out.End = out.Start + 1 // the range has one possible timestamp: to the engine, one version
	}
	return out, nil
}

// readModifyWriteRules validates and converts rules.
func (s *Server) readModifyWriteRules(t *engine.Table, rules []*btpb.ReadModifyWriteRule) ([]engine.RuleReadModifyWrite, error) {
	if len(rules) == 0 {
		return nil, refusal.Invalid("rules", "must specify at least one rule")
	}
	if err := s.limits.Check(len(rules), limits.MaxMutations, "rules", "rules"); err != nil {
		return nil, err
	}
	out := make([]engine.RuleReadModifyWrite, len(rules))
	for i, r := range rules {
		at, qualifier := listed{"rules", i}, r.GetColumnQualifier()
		f, err := plainFamily(t, at, "family_name", r.GetFamilyName())
		if err != nil {
			return nil, err
		}
		if s.limits.Exceeds(len(qualifier), limits.MaxQualifierBytes) {
			return nil, s.limits.CheckQualifier(at.member("column_qualifier"), qualifier)
		}
		out[i] = engine.RuleReadModifyWrite{Family: f.Name, Qualifier: qualifier}
		switch k := r.GetRule().(type) {
		case *btpb.ReadModifyWriteRule_AppendValue:
			if s.limits.Exceeds(len(k.AppendValue), limits.MaxValueBytes) {
				return nil, s.limits.CheckValue(at.member("append_value"), k.AppendValue)
			}
			out[i].Append = k.AppendValue
			if out[i].Append == nil {
				out[i].Append = []byte{} // nil would mean increment
			}
			if s.limits != limits.Off {
				out[i].MaxBytes = limits.MaxValueBytes
			}
		case *btpb.ReadModifyWriteRule_IncrementAmount:
			out[i].Increment = k.IncrementAmount
		default:
			return nil, refusal.Invalid(at.name(), "neither append_value nor increment_amount is set")
		}
	}
	return out, nil
}

// toRow converts cells in ReadRows order to a row. It copies their bytes.
func toRow(key []byte, cells []engine.Cell) *btpb.Row {
	out := wholeRow{row: &btpb.Row{Key: bytes.Clone(key)}}
	for i := range cells {
		c := &cells[i]
		// add fails only with a limit.
		_ = out.add(&filter.Cell{Family: c.Family, Qualifier: c.Qualifier, TimestampMicros: c.Timestamp, Value: c.Value})
	}
	return out.row
}

// compileFilter compiles the filter of a request on t. field is its name in errors.
func (s *Server) compileFilter(field string, t *engine.Table, f *btpb.RowFilter) (*filter.Program, error) {
	o := filter.Options{Random: s.sample}
	if s.limits != limits.Off {
		o.MaxBytes, o.MaxDepth = limits.MaxFilterBytes, limits.MaxFilterDepth
	}
	o.Ordinal = func(name string) (uint16, bool) {
		if f := admin.LookUpFamily(t, name); f != nil {
			return f.Ordinal, true
		}
		return 0, false
	}
	p, err := filter.Compile(f, o)
	if empty, ok := errors.AsType[*filter.EmptyError](err); ok {
		return nil, refusal.EmptyRegex(empty.Field)
	}
	if err != nil {
		return nil, refusal.Invalid(field, "%v", err)
	}
	return p, nil
}

// latencyProto converts a duration. A clock that was set back may make it negative.
func latencyProto(d time.Duration) *durationpb.Duration { return durationpb.New(max(d, 0)) }
