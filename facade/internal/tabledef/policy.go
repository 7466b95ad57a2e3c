package tabledef

import "strconv"

// Policy is the current or deleted resource policy of a table or a stream. Package policy
// creates it.
type Policy struct {
	// Document is the stored form of the document, without a default version. It is ""
	// after a deletion.
	Document string `json:"document,omitempty"`
	// Changed is the time of the last change in milliseconds since 1970.
	Changed int64 `json:"changed"`
	// Last and LastChanged are the previous values, while a change is not yet visible.
	Last        string `json:"last,omitempty"`
	LastChanged int64  `json:"lastChanged,omitempty"`
}

// Revision returns the id of the last change, which may be a deletion.
func (p Policy) Revision() string { return strconv.FormatInt(p.Changed, 10) }
