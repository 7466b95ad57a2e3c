package layout

import (
	"fmt"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// JoinerProof checks, over a stream of keys, whether plain('#') is safe, that is, whether only last
// segments contain the delimiter or a byte below it.
//
// A mapping with the joiner auto writes the escaped form. For keys that the proof finds safe (they
// do not contain '$' either), plain and escaped produce the same bytes, so the outcome does not
// change any row. The outcome can be reported, recorded next to the rows (Mapping.Proven), or
// written into a mapping file (Mapping.WithJoiner). If rows of rules with different numbers of
// segments could be equal, auto also escapes the last segments, and the outcome is escaped-all.
type JoinerProof struct {
	l        *rules
	offender *maperr.Error
}

// ProveJoiner begins a proof. It returns nil if no proof is needed, because the joiner is not auto
// or the layout is the default one.
func (m *Mapping) ProveJoiner() *JoinerProof {
	l, ok := m.layout.(*rules)
	if !ok || !l.joiner.Auto {
		return nil
	}
	return &JoinerProof{l: l}
}

// Add adds the key of an item; the item may have other attributes too. It returns a *maperr.Error
// if no rule matches, or if a value is outside the domain of its encoder.
func (p *JoinerProof) Add(key attr.Item) error {
	r, vars, bad := p.l.bind(key)
	if bad != nil {
		return bad
	}
	for i, t := range r.row {
		seg, outside := t.Render(nil, vars, "")
		if outside != nil {
			return p.l.outside(r, outside, vars, key)
		}
		k := p.l.joiner.DelimOffence(seg)
		if i == len(r.row)-1 && !r.closed || k < 0 || p.offender != nil {
			continue
		}
		p.offender = p.l.fault(maperr.CodeDelim, r, key, "", fmt.Sprintf("segment %q of the row key (%s) holds byte %q", seg, t.Src, seg[k]), "no byte up to '$' for joiner plain")
	}
	return nil
}

// The outcomes of auto.
const (
	joinerPlain   = "plain('#')"
	joinerEscaped = "escaped('#')"
	joinerAll     = "escaped-all('#')"
)

// Joiner returns the proven joiner: "plain('#')", "escaped('#')" or "escaped-all('#')".
func (p *JoinerProof) Joiner() string {
	switch {
	case p.Apart():
		return joinerAll
	case p.offender != nil:
		return joinerEscaped
	}
	return joinerPlain
}

// Safe returns a joiner that is safe even for keys that the proof has not seen.
func (p *JoinerProof) Safe() string {
	if p.Apart() {
		return joinerAll
	}
	return joinerEscaped
}

// JoinerOfAll combines the joiners that were proven for parts of the keys to the joiner for all
// keys.
func JoinerOfAll(of ...string) string {
	for _, joiner := range []string{joinerAll, joinerEscaped} {
		if slices.Contains(of, joiner) {
			return joiner
		}
	}
	return joinerPlain
}

// Apart reports whether last segments are escaped too, because rules have different numbers of
// segments.
func (p *JoinerProof) Apart() bool { return p.l.joiner.All }

// Apart reports whether the joiner escapes last segments too.
func (m *Mapping) Apart() bool {
	l, ok := m.layout.(*rules)
	return ok && l.joiner.All
}

// Offender returns the first key that plain does not allow, or nil.
func (p *JoinerProof) Offender() *maperr.Error { return p.offender }

// Joiner returns the joiner of the row keys as the mapping file writes it, or "" for the
// default layout.
func (m *Mapping) Joiner() string {
	if l, ok := m.layout.(*rules); ok {
		return l.joiner.String()
	}
	return ""
}

// Proven returns the mapping with the outcome of its joiner auto: plain('#'), escaped('#') or
// escaped-all('#'). The mapping file still has auto; SchemaRows contains the unchanged file and,
// separately, the joiner of the rows. Errors are *maperr.SpecError.
func (m *Mapping) Proven(joiner string) (*Mapping, error) {
	switch {
	case m.ProveJoiner() == nil:
		return nil, &maperr.SpecError{Code: maperr.CodeSyntax, What: "the joiner is not auto: there is nothing to prove"}
	case joiner != joinerPlain && joiner != joinerEscaped && joiner != joinerAll:
		return nil, &maperr.SpecError{Code: maperr.CodeSyntax, What: "joiner auto cannot have the outcome " + joiner, Expected: joinerPlain + ", " + joinerEscaped + " or " + joinerAll}
	}
	return compile(m.spec, joiner)
}

// WithJoiner returns a copy of the mapping with another joiner in its file. Errors are
// *maperr.SpecError.
func (m *Mapping) WithJoiner(joiner string) (*Mapping, error) {
	if m.spec == nil {
		return nil, &maperr.SpecError{Code: maperr.CodeSyntax, What: "the default layout has no joiner"}
	}
	spec := *m.spec
	spec.Target.Joiner = joiner
	return Compile(&spec)
}

// Changed applies change to a copy of the mapping file and compiles the result. It keeps the
// outcome of the joiner auto. The mapping must have a file, which a default layout does not. Errors
// are *maperr.SpecError.
func (m *Mapping) Changed(change func(*mapfile.Spec)) (*Mapping, error) {
	spec := *m.spec
	change(&spec)
	return compile(&spec, m.proven)
}
