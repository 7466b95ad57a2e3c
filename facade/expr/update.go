package expr

import "github.com/tabletop-emu/tabletop/facade/attr"

// Update is a parsed update expression. It is immutable.
type Update struct{}

// ParseUpdate parses an update expression. Errors are of type *Error.
func ParseUpdate(src string, p *Placeholders) (*Update, error) { panic("x") }

// Apply returns item as the update leaves it; item itself stays as it is, and
// may be nil. All clauses see the item as it was. Errors are of type *Error.
//
// What the update touched, for UPDATED_OLD and UPDATED_NEW, is
// ProjectionOf(u.Paths()...).Apply on the item before and after.
func (u *Update) Apply(item attr.Item) (attr.Item, error) { panic("x") }

// Paths returns the paths that the update changes, in the order of the text.
func (u *Update) Paths() []Path { panic("x") }

// ReadPaths returns the paths that the operands of the update read.
func (u *Update) ReadPaths() []Path { panic("x") }
