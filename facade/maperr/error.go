package maperr

import (
	"fmt"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Code names a broken rule of the mapping.
type Code string

// The codes of Error and SpecError.
const (
	CodeDelim            Code = "E-DELIM"             // a delimiter inside a segment, or a byte below it
	CodeKeySize          Code = "E-KEYSIZE"           // a row key that is empty or longer than 4096 bytes
	CodeUnmatched        Code = "E-UNMATCHED"         // no rule matches the item
	CodeCollision        Code = "E-COLLISION"         // two items or rules share a cell
	CodeDomain           Code = "E-DOMAIN"            // a value outside its codec's or encoder's domain
	CodeUnknownAttribute Code = "E-UNKNOWN-ATTRIBUTE" // an attribute without a place in any rule
	CodeLimit            Code = "E-LIMIT"             // an item exceeds a limit of Bigtable
	CodeKey              Code = "E-KEY"               // a key attribute is missing or has another type
	CodeCorrupt          Code = "E-CORRUPT"           // cells that do not come from any item
	CodeSyntax           Code = "E-SYNTAX"            // a mapping file that is not YAML, or breaks the schema
	CodeInverse          Code = "E-INVERSE"           // a rule that cannot be inverted
	CodeVersion          Code = "E-VERSION"           // a copy of the highest version that differs from it
	CodeFamily           Code = "E-FAMILY"            // a family that is not declared, or whose GC loses data
)

// Error explains why an item, a key or a row does not fit the mapping.
type Error struct {
	Code      Code
	Table     string    // DynamoDB table, if known
	Rule      string    // "" if no rule applies
	Key       attr.Item // the item's key attributes, if known
	Row       []byte    // the row from which no item could be read
	Attribute string    // "" if no attribute applies
	What      string    // the fault
	Expected  string    // the expected value, "" if What has it
}

// Error returns the text: code, table, rule, key, attribute, what, expected.
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
