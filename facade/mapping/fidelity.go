package mapping

// Class is how well an attribute survives the mapping.
type Class uint8

// The classes, best first.
const (
	Lossless         Class = iota
	LosslessInDomain       // outside the domain an item is refused
	Lossy                  // accepted by accept_loss
)

// Fidelity is the class of one attribute under one rule.
type Fidelity struct {
	Rule, Attribute string
	Class           Class
	Why             string // the domain, or what is lost
}

// Fidelity classifies what the mapping does to each attribute of the schema.
func (m *Mapping) Fidelity() []Fidelity { return nil }
