package limits

import (
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// CheckID checks the id of a new table, or of a new resource under a table or a cluster:
// [_a-zA-Z0-9][-_.a-zA-Z0-9]*, up to 50 characters. what describes the id in errors, such as "a
// table id".
func (m Mode) CheckID(field, what, id string) error {
	if !resname.IsResourceID(id) {
		return refusal.Invalid(field, "%q is not %s; expected [_a-zA-Z0-9][-_.a-zA-Z0-9]*", id, what)
	}
	return m.Check(len(id), MaxResourceIDBytes, field, "characters")
}

// CheckFamilyName checks the name of a family: [-_.a-zA-Z0-9]+, up to 64
// characters.
func (m Mode) CheckFamilyName(field, name string) error {
	if name == "" || !resname.AllBytes(name, resname.IsNameByte) {
		return refusal.Invalid(field, "%q is not a column family name; expected [-_.a-zA-Z0-9]+", name)
	}
	return m.Check(len(name), MaxFamilyNameBytes, field, "characters")
}

// Check returns an error if n exceeds limit, unless the Mode is Off.
func (m Mode) Check(n, limit int, field, unit string) error {
	if !m.Exceeds(n, limit) {
		return nil
	}
	return refusal.Invalid(field, "%d %s; the limit is %d", n, unit, limit)
}

// Exceeds reports whether n exceeds limit and limits are enforced.
func (m Mode) Exceeds(n, limit int) bool { return m != Off && n > limit }

// CheckRowKey checks the key of a row that a request writes: 1 to 4096 bytes.
func (m Mode) CheckRowKey(field string, key []byte) error {
	if len(key) == 0 {
		return refusal.Invalid(field, "Row keys must be non-empty")
	}
	return m.Check(len(key), MaxRowKeyBytes, field, "bytes")
}

// CheckQualifier checks the qualifier of a column that a request writes.
func (m Mode) CheckQualifier(field string, q []byte) error {
	return m.Check(len(q), MaxQualifierBytes, field, "bytes")
}

// CheckValue checks the value of a cell that a request writes.
func (m Mode) CheckValue(field string, v []byte) error {
	return m.Check(len(v), MaxValueBytes, field, "bytes")
}

// CheckMutationCount checks the number of mutations in a request, which is at most 100,000.
func (m Mode) CheckMutationCount(n int) error {
	if m.Exceeds(n, MaxMutations) {
		return refusal.TooManyMutations(n, MaxMutations)
	}
	return nil
}
