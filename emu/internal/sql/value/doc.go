// Package value implements the types and values of GoogleSQL for Bigtable.
//
// A [Type] is immutable. A [Value] is small and is copied freely; values of scalar types need no
// memory of their own, and a STRING or BYTES points into the memory that it was made from. NULL is
// a state of a value, and the value knows its kind but not its type: the plan of a statement knows
// the types.
//
// The package compares and orders values, encodes them as keys of groups, casts them
// ([Caster]), prints and reads dates and timestamps, and converts types and values from and to the
// messages of the API. Errors are of type *[Error].
package value
