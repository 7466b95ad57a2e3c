package mapping

import "github.com/tabletop-emu/tabletop/facade/attr"

// JoinerProof finds out, over a stream of keys, whether `plain` is safe for a
// mapping whose joiner is auto.
type JoinerProof struct{}

// ProveJoiner begins a proof.
func (m *Mapping) ProveJoiner() *JoinerProof { return nil }

// Add looks at one key. Errors are *Error (no rule matches, a value outside
// its encoder's domain).
func (p *JoinerProof) Add(key attr.Item) error { return nil }

// Joiner is what auto comes to: "plain('#')" or "escaped('#')".
func (p *JoinerProof) Joiner() string { return "" }

// Offender is the first error that plain would have met, or nil.
func (p *JoinerProof) Offender() *Error { return nil }

// WithJoiner returns the mapping with another joiner.
func (m *Mapping) WithJoiner(joiner string) (*Mapping, error) { return nil, nil }
