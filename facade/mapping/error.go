package mapping

import (
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// Error says why an item, a key or a row is outside the mapping: its Code, the
// DynamoDB Table, the Rule ("" where none applies), the item's Key attr.Item or
// the Row []byte that it could not be read from, the Attribute, What was wrong
// and what was Expected ("" where What says it). It is the type that packages
// facade and migrate wrap.
type Error = lens.Error

// SpecError is a fault in a mapping file: its Code, the File, the Line and
// Column from 1 (0 where unknown), the Path inside the file, as in
// rules[2].put[0].cell, What was wrong and what was Expected.
type SpecError = mapfile.SpecError

// Code names what was broken. docs/mapping.md lists the codes.
type Code = lens.Code

// The codes of Error and SpecError.
const (
	CodeDelim            = lens.CodeDelim            // a delimiter inside a segment, or a byte below it
	CodeKeySize          = lens.CodeKeySize          // a row key that is empty or longer than 4096 bytes
	CodeUnmatched        = lens.CodeUnmatched        // no rule takes the item
	CodeCollision        = lens.CodeCollision        // two items or rules share a cell
	CodeDomain           = lens.CodeDomain           // a value outside its codec's or encoder's domain
	CodeUnknownAttribute = lens.CodeUnknownAttribute // an attribute that no rule places
	CodeLimit            = lens.CodeLimit            // an item exceeds a limit of Bigtable
	CodeKey              = lens.CodeKey              // a key attribute is missing or has another type
	CodeCorrupt          = lens.CodeCorrupt          // cells that no item can have produced
	CodeSyntax           = lens.CodeSyntax           // a mapping file that is not YAML, or breaks the schema
	CodeInverse          = lens.CodeInverse          // a rule that cannot be inverted
	CodeVersion          = lens.CodeVersion          // a copy of the highest version that differs from it
	CodeFamily           = lens.CodeFamily           // a family that is not declared, or whose GC loses data
)
