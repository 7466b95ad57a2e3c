package mapping

import "github.com/tabletop-emu/tabletop/internal/layout"

// Class says how well a mapping preserves an attribute.
type Class = layout.Class

// The classes, best first.
const (
	Lossless         = layout.Lossless
	LosslessInDomain = layout.LosslessInDomain // outside the domain, an item is refused
	Lossy            = layout.Lossy            // something is lost, and accept_loss or a GC rule says so
)

// Fidelity is the class of one attribute under one rule.
type Fidelity struct {
	Rule      string
	Attribute string
	Class     Class
	Why       string // the domain, or what is lost; "" if lossless
}

// String returns one line: rule, attribute, class, reason.
func (f Fidelity) String() string { return layout.Fidelity(f).String() }

// Fidelity classifies what the mapping does to the key attributes and to each
// attribute of the schema, rule by rule. A default layout loses nothing and
// yields nil.
func (m *Mapping) Fidelity() []Fidelity {
	var all []Fidelity
	for _, f := range m.compiled().Fidelity() {
		all = append(all, Fidelity(f))
	}
	return all
}
