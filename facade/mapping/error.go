package mapping

import "github.com/tabletop-emu/tabletop/internal/layout"

// Error says why an item, a key or a row is outside the mapping: its Code, the
// DynamoDB Table, the Rule ("" where none applies), the item's Key attr.Item or
// the Row []byte that it could not be read from, the Attribute, What was wrong
// and what was Expected ("" where What says it). It is the type that packages
// facade and migrate wrap.
type Error = layout.Error

// SpecError is a fault in a mapping file: its Code, the File, the Line and
// Column from 1 (0 where unknown), the Path inside the file, as in
// rules[2].put[0].cell, What was wrong and what was Expected.
type SpecError = layout.SpecError

// Code names what was broken. docs/mapping.md lists the codes.
type Code = layout.Code

// The codes of Error and SpecError.
const (
	CodeDelim            = layout.CodeDelim            // a delimiter inside a segment, or a byte below it
	CodeKeySize          = layout.CodeKeySize          // a row key that is empty or longer than 4096 bytes
	CodeUnmatched        = layout.CodeUnmatched        // no rule takes the item
	CodeCollision        = layout.CodeCollision        // two items or rules share a cell
	CodeDomain           = layout.CodeDomain           // a value outside its codec's or encoder's domain
	CodeUnknownAttribute = layout.CodeUnknownAttribute // an attribute that no rule places
	CodeLimit            = layout.CodeLimit            // an item exceeds a limit of Bigtable
	CodeKey              = layout.CodeKey              // a key attribute is missing or has another type
	CodeCorrupt          = layout.CodeCorrupt          // cells that no item can have produced
	CodeSyntax           = layout.CodeSyntax           // a mapping file that is not YAML, or breaks the schema
	CodeInverse          = layout.CodeInverse          // a rule that cannot be inverted
	CodeVersion          = layout.CodeVersion          // a copy of the highest version that differs from it
	CodeFamily           = layout.CodeFamily           // a family that is not declared, or whose GC loses data
)
