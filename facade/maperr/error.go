package maperr

import (
	"fmt"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Code names a rule of mappings that was violated.
type Code string

// Codes of Error and SpecError.
const (
	CodeDelim            Code = "E-DELIM"             // a segment cannot be separated or ordered: it has the delimiter, a lower byte, or no fixed width
	CodeKeySize          Code = "E-KEYSIZE"           // a row key is empty or longer than 4096 bytes
	CodeUnmatched        Code = "E-UNMATCHED"         // no rule matches the item
	CodeCollision        Code = "E-COLLISION"         // two items or rules share a cell
	CodeDomain           Code = "E-DOMAIN"            // a value is outside the domain of its codec or encoder
	CodeUnknownAttribute Code = "E-UNKNOWN-ATTRIBUTE" // an attribute has no place in any rule
	CodeLimit            Code = "E-LIMIT"             // an item exceeds a limit of Bigtable
	CodeKey              Code = "E-KEY"               // a key attribute is missing or has the wrong type
	CodeCorrupt          Code = "E-CORRUPT"           // the cells do not encode any item
	CodeSyntax           Code = "E-SYNTAX"            // a mapping file is not YAML, or violates the schema
	CodeInverse          Code = "E-INVERSE"           // a rule cannot be inverted
	CodeVersion          Code = "E-VERSION"           // a copy of the highest version differs from that version
	CodeFamily           Code = "E-FAMILY"            // a family is not declared, or its garbage collection loses data
)

// Error explains why an item, a key or a row does not fit the mapping.
type Error struct {
	Code      Code
	Table     string    // name of the DynamoDB table, if known
	Rule      string    // name of the rule; "" if no rule applies
	Key       attr.Item // key attributes of the item, if known
	Row       []byte    // key of the row from which no item could be read
	Attribute string    // name of the attribute; "" if no attribute applies
	What      string    // description of the fault
	Expected  string    // expected value; "" if What contains it
}

// Error returns the code, table, rule, key, attribute, fault and expected value as text.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	b.WriteString(": ")
	if e.Table != "" {
		fmt.Fprintf(&b, "table %s: ", e.Table)
	}
	if e.Rule != "" {
		fmt.Fprintf(&b, "rule %s: ", e.Rule)
	}
	if len(e.Key) > 0 {
		fmt.Fprintf(&b, "item %s: ", attr.AppendItemJSON(nil, e.Key))
	}
	if len(e.Row) > 0 {
		fmt.Fprintf(&b, "row %q: ", e.Row)
	}
	if e.Attribute != "" {
		fmt.Fprintf(&b, "attribute %q: ", e.Attribute)
	}
	b.WriteString(e.What)
	if e.Expected != "" {
		b.WriteString("; expected ")
		b.WriteString(e.Expected)
	}
	return b.String()
}
