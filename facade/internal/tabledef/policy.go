package tabledef

import "strconv"

// Policy is the resource policy of a table or of a stream, or what is left of one
// that was deleted. Package policy makes it.
type Policy struct {
	// Document is in its stored form, without the version that it did not name;
	// "" once it is deleted.
	Document string `json:"document,omitempty"`
	// Changed is the time of the last change in milliseconds since 1970.
	Changed int64 `json:"changed"`
	// Last and LastChanged are what they were before, where a change does not show at
	// once.
	Last        string `json:"last,omitempty"`
	LastChanged int64  `json:"lastChanged,omitempty"`
}

// Revision returns the id of the last change, which may be the deletion.
func (p Policy) Revision() string { return strconv.FormatInt(p.Changed, 10) }
