package expr

import "github.com/tabletop-emu/tabletop/facade/attr"

// Projection is a parsed projection expression, or any other set of paths that
// do not overlap. It is immutable.
type Projection struct{}

// ParseProjection parses a projection expression. Errors are of type *Error.
func ParseProjection(src string, p *Placeholders) (*Projection, error) { panic("x") }

// ProjectionOf returns the projection onto paths, which may overlap: then the
// shorter one counts.
func ProjectionOf(paths ...Path) *Projection { panic("x") }

// AttributePath returns the path of a top-level attribute.
func AttributePath(name string) Path { return Path{{Name: name}} }

// Apply returns the part of item that the paths lead to: elements of lists
// close up, in their order. The result is empty, not nil, where nothing is
// left; a nil item stays nil.
func (p *Projection) Apply(item attr.Item) attr.Item { panic("x") }

// Paths returns the paths in the order of the text.
func (p *Projection) Paths() []Path { panic("x") }
