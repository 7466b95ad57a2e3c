package rowkey

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// CaptureName matches the names of captures. The name of a key attribute may be any text without a
// colon.
var CaptureName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// These are the slots of a rule's variables: first the key attributes, then the captures.
const (
	SlotHash = iota
	SlotRange
	FirstCapture
)

// These are the slots of names that only a cell template can use.
const (
	SlotNone   = -1 - iota
	SlotAttr   // {attr}: the attribute's name
	SlotMember // {member}: a member of a set
	SlotKey    // {key}: a key of a map
)

// Part is a literal or, if Lit is nil, a reference to a variable.
type Part struct {
	Lit  []byte
	Slot int
	Enc  *Encoder
}

// Template is text with references in braces, such as `VideoComment#{t:revms(13)}`.
type Template struct {
	Src   string
	Parts []Part
}

// ParseTemplate parses src. resolve returns the meaning of a reference.
func ParseTemplate(src string, resolve func(name, enc string) (slot int, e *Encoder, err error)) (*Template, error) {
	t := &Template{Src: src}
	last := "" // the name in the previous braces
	for rest := src; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			t.Parts = append(t.Parts, Part{Lit: []byte(rest), Slot: SlotNone})
			break
		}
		if i > 0 {
			t.Parts = append(t.Parts, Part{Lit: []byte(rest[:i]), Slot: SlotNone})
		}
		end := strings.IndexByte(rest, '}')
		if rest[i] == '}' || end < 0 {
			return nil, fmt.Errorf("template %q: unpaired brace", src)
		}
		name, enc, _ := strings.Cut(rest[i+1:end], ":")
		if name == "" {
			return nil, fmt.Errorf("template %q: %q is not a name; expected {name} or {name:encoder}", src, name)
		}
		slot, e, err := resolve(name, enc)
		if err != nil {
			return nil, fmt.Errorf("template %q: %w", src, err)
		}
		if n := len(t.Parts); n > 0 && t.Parts[n-1].Lit == nil && t.Parts[n-1].Enc.Width == 0 {
			return nil, fmt.Errorf("template %q: nothing separates {%s} from {%s}, which has no fixed width; expected a literal between them", src, name, last)
		}
		t.Parts = append(t.Parts, Part{Slot: slot, Enc: e})
		last, rest = name, rest[end+1:]
	}
	return t, nil
}

// Slots returns the variables that the text of the template determines.
func (t *Template) Slots() []int {
	var s []int
	for _, p := range t.Parts {
		if p.Lit == nil && !p.Enc.Derived {
			s = append(s, p.Slot)
		}
	}
	return s
}

// Uses reports whether the text of the template determines a variable.
func (t *Template) Uses(slot int) bool { return slices.Contains(t.Slots(), slot) }

// Width returns the width of every text of the template, or 0 if it varies.
func (t *Template) Width() int {
	w := 0
	for _, p := range t.Parts {
		switch {
		case p.Lit != nil:
			w += len(p.Lit)
		case p.Enc.Width == 0:
			return 0
		default:
			w += p.Enc.Width
		}
	}
	return w
}

// Special returns the slot of the reference {attr}, {member} or {key}, or SlotNone if the template
// has no such reference.
func (t *Template) Special() int {
	for _, p := range t.Parts {
		if p.Slot < SlotNone {
			return p.Slot
		}
	}
	return SlotNone
}

// IsLiteral reports whether the template has no references.
func (t *Template) IsLiteral() bool {
	return !slices.ContainsFunc(t.Parts, func(p Part) bool { return p.Lit == nil })
}

// Render appends the text of the template. special is the value of {attr}, {member} or {key}. bad
// is a reference whose variable has no value, or a value outside the domain of its encoder.
func (t *Template) Render(dst []byte, vars []attr.Value, special string) (out []byte, bad *Part) {
	for i := range t.Parts {
		p := &t.Parts[i]
		switch {
		case p.Lit != nil:
			dst = append(dst, p.Lit...)
		default:
			v := attr.Value{Type: p.Enc.In, Str: special}
			if p.Slot >= 0 {
				v = vars[p.Slot]
			}
			var ok bool
			if dst, ok = p.Enc.EncodeKey(dst, v); !ok {
				return dst, p
			}
		}
	}
	return dst, nil
}

// RenderKnown appends the text up to the first reference whose variable has no value. whole reports
// whether all variables have values. A salt of a variable without a value is rendered as shard,
// unless shard is negative. bad is a reference whose value is outside the domain of its encoder.
func (t *Template) RenderKnown(dst []byte, vars []attr.Value, shard int) (out []byte, whole bool, bad *Part) {
	for i := range t.Parts {
		p := &t.Parts[i]
		switch {
		case p.Lit != nil:
			dst = append(dst, p.Lit...)
		case shard >= 0 && p.UnknownSalt(vars):
			dst = p.Enc.appendShard(dst, shard)
		case p.Slot < 0 || vars[p.Slot].IsAbsent():
			return dst, false, nil
		default:
			var ok bool
			if dst, ok = p.Enc.EncodeKey(dst, vars[p.Slot]); !ok {
				return dst, false, p
			}
		}
	}
	return dst, true, nil
}

// UnknownSalt reports whether the part is a salt of a variable without a value.
func (p *Part) UnknownSalt(vars []attr.Value) bool {
	return p.Lit == nil && p.Enc.Shards > 0 && vars[p.Slot].IsAbsent()
}

// Match parses text and sets the variables. A variable that already has a value must match it.
// special is set to the value of {attr}, {member} or {key}. A reference takes its fixed width, or
// the text up to the next literal, or the rest of the text.
func (t *Template) Match(text []byte, vars []attr.Value, special *string) bool {
	for i := range t.Parts {
		p := &t.Parts[i]
		if p.Lit != nil {
			var ok bool
			if text, ok = bytes.CutPrefix(text, p.Lit); !ok {
				return false
			}
			continue
		}
		n := t.length(i, text)
		if n < 0 || n > len(text) {
			return false
		}
		switch {
		case p.Slot < 0:
			v, ok := p.Enc.DecodeKey(text[:n])
			if !ok {
				return false
			}
			if special != nil {
				*special = v.Str
			}
		case p.Enc.Derived: // the caller renders again, and compares
		default:
			v, ok := p.Enc.DecodeKey(text[:n])
			if !ok || !vars[p.Slot].IsAbsent() && !attr.Equal(v, vars[p.Slot]) {
				return false
			}
			vars[p.Slot] = v
		}
		text = text[n:]
	}
	return len(text) == 0
}

// length returns the length of the reference at i in text. It is invalid if negative or
// greater than the length of text.
func (t *Template) length(i int, text []byte) int {
	switch {
	case t.Parts[i].Enc.Width > 0:
		return t.Parts[i].Enc.Width
	case i+1 < len(t.Parts):
		return bytes.Index(text, t.Parts[i+1].Lit)
	}
	return len(text)
}

// Cut splits a text into the texts of the template's parts. It returns nil if the text is too
// short for them. It does not compare literals.
func (t *Template) Cut(text []byte) [][]byte {
	cut := make([][]byte, len(t.Parts))
	for i := range t.Parts {
		n := len(t.Parts[i].Lit)
		if t.Parts[i].Lit == nil {
			n = t.length(i, text)
		}
		if n < 0 || n > len(text) {
			return nil
		}
		cut[i], text = text[:n], text[n:]
	}
	return cut
}

// Ambiguous reports whether Match may split a text differently than it was rendered,
// because a reference of varying width comes before a literal.
func (t *Template) Ambiguous() bool {
	for i, p := range t.Parts {
		if p.Lit == nil && p.Enc.Width == 0 && i+1 < len(t.Parts) {
			return true
		}
	}
	return false
}

// LiteralEnds returns the prefix and the suffix that all texts of the template share. prefixOf
// returns the known prefix of the text of a reference.
func (t *Template) LiteralEnds(prefixOf func(p *Part) []byte) (prefix, suffix []byte) {
	for i := range t.Parts {
		p := &t.Parts[i]
		if p.Lit == nil {
			if prefixOf != nil {
				prefix = append(prefix, prefixOf(p)...)
			}
			break
		}
		prefix = append(prefix, p.Lit...)
	}
	if n := len(t.Parts); n > 0 && t.Parts[n-1].Lit != nil {
		suffix = t.Parts[n-1].Lit
	}
	return prefix, suffix
}

// Unknown returns the first reference without a value. It ignores salts unless shard is negative.
func (t *Template) Unknown(vars []attr.Value, shard int) *Part {
	for i := range t.Parts {
		if p := &t.Parts[i]; p.Lit == nil && (p.Slot < 0 || vars[p.Slot].IsAbsent() && (shard < 0 || p.Enc.Shards == 0)) {
			return p
		}
	}
	return nil
}

// UsesCapture reports whether the template refers to a capture.
func (t *Template) UsesCapture() bool {
	return slices.ContainsFunc(t.Slots(), func(s int) bool { return s >= FirstCapture })
}
