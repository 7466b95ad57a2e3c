package mapping

// Class is how well a mapping preserves an attribute.
type Class string

// The classes, best first.
const (
	Lossless         Class = "lossless"
	LosslessInDomain Class = "lossless in domain" // an item outside the domain is rejected
	Lossy            Class = "lossy"              // something is lost, as accept_loss or a GC rule permits
)

// Fidelity is the class of one attribute under one rule.
type Fidelity struct {
	Rule      string
	Attribute string
	Class     Class
	Why       string // the domain, or the loss; "" if lossless
}

// String returns one line: rule, attribute, class, reason.
func (f Fidelity) String() string {
	line := f.Rule + " " + f.Attribute + ": " + string(f.Class)
	if f.Why != "" {
		line += " (" + f.Why + ")"
	}
	return line
}

// Fidelity returns how well the mapping preserves the key attributes and each attribute of
// the schema, rule by rule. For a default layout, which loses nothing, it returns nil.
func (m *Mapping) Fidelity() []Fidelity {
	var all []Fidelity
	for _, f := range m.compiled().Fidelity() {
		all = append(all, Fidelity{Rule: f.Rule, Attribute: f.Attribute, Class: Class(f.Class.String()), Why: f.Why})
	}
	return all
}
