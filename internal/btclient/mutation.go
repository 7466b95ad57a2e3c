package btclient

import (
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// A mutation of the API is a message within a message. Every write sends many, so the
// frequent ones are a single allocation.

// setMutation has the messages of a mutation that sets a cell in one allocation.
type setMutation struct {
	mutation btpb.Mutation
	is       btpb.Mutation_SetCell_
	set      btpb.Mutation_SetCell
}

// init makes m set a cell.
func (m *setMutation) init(c *Cell) *btpb.Mutation {
	m.set.FamilyName, m.set.ColumnQualifier, m.set.TimestampMicros, m.set.Value = c.Family, c.Qualifier, c.Timestamp, c.Value
	m.is.SetCell, m.mutation.Mutation = &m.set, &m.is
	return &m.mutation
}

// SetCell returns a mutation that sets a cell.
func SetCell(family string, qualifier []byte, micros int64, value []byte) *btpb.Mutation {
	return new(setMutation).init(&Cell{Family: family, Qualifier: qualifier, Timestamp: micros, Value: value})
}

// AppendSets appends mutations that set the given cells.
func AppendSets(muts []*btpb.Mutation, cells []Cell) []*btpb.Mutation {
	muts = slices.Grow(muts, len(cells))
	sets := make([]setMutation, len(cells))
	for i := range cells {
		muts = append(muts, sets[i].init(&cells[i]))
	}
	return muts
}

// DeleteColumn returns a mutation that deletes the cells of a column with a timestamp in [min,
// max). A max of 0 means no limit.
func DeleteColumn(family string, qualifier []byte, minMicros, maxMicros int64) *btpb.Mutation {
	m := &struct {
		mutation btpb.Mutation
		is       btpb.Mutation_DeleteFromColumn_
		column   btpb.Mutation_DeleteFromColumn
		times    btpb.TimestampRange
	}{
		column: btpb.Mutation_DeleteFromColumn{FamilyName: family, ColumnQualifier: qualifier},
		times:  btpb.TimestampRange{StartTimestampMicros: minMicros, EndTimestampMicros: maxMicros},
	}
	if minMicros != 0 || maxMicros != 0 {
		m.column.TimeRange = &m.times
	}
	m.is.DeleteFromColumn, m.mutation.Mutation = &m.column, &m.is
	return &m.mutation
}

// DeleteFamily returns a mutation that deletes the cells of a family in the row.
func DeleteFamily(family string) *btpb.Mutation {
	m := &struct {
		mutation btpb.Mutation
		is       btpb.Mutation_DeleteFromFamily_
		family   btpb.Mutation_DeleteFromFamily
	}{family: btpb.Mutation_DeleteFromFamily{FamilyName: family}}
	m.is.DeleteFromFamily, m.mutation.Mutation = &m.family, &m.is
	return &m.mutation
}

// DeleteRow returns a mutation that deletes the row.
func DeleteRow() *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}
}

// Increment returns a rule that adds to the newest cell of a column, a 64-bit big-endian integer.
func Increment(family string, qualifier []byte, by int64) *btpb.ReadModifyWriteRule {
	return &btpb.ReadModifyWriteRule{FamilyName: family, ColumnQualifier: qualifier, Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: by}}
}
