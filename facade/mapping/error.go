package mapping

import (
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// Error reports that an item, a key or a row is outside the mapping. It has the Code, the
// DynamoDB Table, the Rule ("" if none applies), the item's Key attr.Item or the unreadable Row
// []byte, and the Attribute. What describes the fault, and Expected the valid form ("" if What
// includes it). Packages facade and migrate wrap this type.
type Error = lens.Error

// SpecError is a fault in a mapping file. It has the Code, the File, the Line and Column from 1
// (0 if unknown), and the Path inside the file, such as rules[2].put[0].cell. What describes
// the fault, and Expected the valid form.
type SpecError = mapfile.SpecError

// Code is the broken rule. docs/mapping.md lists the codes.
type Code = lens.Code

// The codes of Error and SpecError.
const (
	CodeDelim            = lens.CodeDelim            // a delimiter inside a segment, or a byte below it
	CodeKeySize          = lens.CodeKeySize          // an empty row key, or one longer than 4096 bytes
	CodeUnmatched        = lens.CodeUnmatched        // no rule accepts the item
	CodeCollision        = lens.CodeCollision        // two items or rules share a cell
	CodeDomain           = lens.CodeDomain           // a value outside its codec's or encoder's domain
	CodeUnknownAttribute = lens.CodeUnknownAttribute // an attribute without a place in any rule
	CodeLimit            = lens.CodeLimit            // an item exceeds a limit of Bigtable
	CodeKey              = lens.CodeKey              // a key attribute is missing or has another type
	CodeCorrupt          = lens.CodeCorrupt          // cells that do not come from any item
	CodeSyntax           = lens.CodeSyntax           // a mapping file that is not YAML, or breaks the schema
	CodeInverse          = lens.CodeInverse          // a rule that cannot be inverted
	CodeVersion          = lens.CodeVersion          // a copy of the highest version with different contents
	CodeFamily           = lens.CodeFamily           // an undeclared family, or one whose GC loses data
)
