package emu

import "github.com/tabletop-emu/tabletop/emu/internal/support"

// Status says whether the server implements a feature.
type Status = support.Status

// The states of an RPC, filter, mutation or rule.
const (
	Served  = support.Served
	Refused = support.Refused // answers Unimplemented by name
)

// Feature is one row of the support table.
type Feature = support.Feature

// Support returns every RPC of the registered services and every member of the
// oneofs of RowFilter, Mutation and GcRule, in a fixed order. The caller owns
// the slice.
func Support() []Feature { return support.All() }
