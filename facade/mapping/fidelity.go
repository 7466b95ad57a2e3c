package mapping

// Class describes how well a mapping preserves an attribute.
type Class string

// Classes, from best to worst.
const (
	Lossless         Class = "lossless"
	LosslessInDomain Class = "lossless in domain" // an item outside the domain is rejected
	Lossy            Class = "lossy"              // something is lost, as accept_loss or a GC rule permits
)

// Fidelity describes how well one rule preserves one attribute.
type Fidelity struct {
	Rule      string
	Attribute string
	Class     Class
	Why       string // the domain or the loss; "" if lossless
}

// String returns one line with the rule, the attribute, the class and the reason.
func (f Fidelity) String() string {
	line := f.Rule + " " + f.Attribute + ": " + string(f.Class)
	if f.Why != "" {
		line += " (" + f.Why + ")"
	}
	return line
}

// Fidelity describes how well the mapping preserves the key attributes and each attribute
// of the schema, rule by rule. It returns nil for a default layout, which loses nothing.
func (m *Mapping) Fidelity() []Fidelity {
	var all []Fidelity
	for _, f := range m.compiled().Fidelity() {
		all = append(all, Fidelity{Rule: f.Rule, Attribute: f.Attribute, Class: Class(f.Class.String()), Why: f.Why})
	}
	return all
}
