package expr

import "github.com/tabletop-emu/tabletop/facade/attr"

// Step is one step of a path: into a map by Name, or, where Name is "" and
// IsIndex, into a list by Index.
type Step struct {
	Name    string
	Index   int
	IsIndex bool
}

// Path is a document path with all placeholders resolved. The first step is
// the name of a top-level attribute.
type Path []Step

// Attribute returns the name of the top-level attribute.
func (p Path) Attribute() string { return p[0].Name }

// String returns the path in DynamoDB's notation for messages: "[a, b, [0]]".
func (p Path) String() string { panic("x") }

// Lookup returns the value at p, absent where there is none.
func (p Path) Lookup(item attr.Item) attr.Value { panic("x") }
