package function

// missingTable has the documented functions that are not implemented. Geography is refused by
// Lookup; UNPACK is part of FROM.
func missingTable() []*Function {
	// It reads the timestamp of a cell, which its value does not have.
	return []*Function{{Name: "WRITE_TIMESTAMP", missing: true}}
}
