package layout

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// captureName is what a capture may be called; the name of a key attribute may
// be anything that ends before the colon.
var captureName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// The slots of a rule's variables: the key attributes first, then the captures.
const (
	slotHash = iota
	slotRange
	firstCapture
)

// Slots of the names that only a cell template can use.
const (
	slotNone   = -1 - iota
	slotAttr   // {attr}: the attribute's name
	slotMember // {member}: a member of a set
	slotKey    // {key}: a key of a map
)

// part is a literal, or (lit is nil) a reference to a variable.
type part struct {
	lit  []byte
	slot int
	enc  *encoder
}

// template is text with references in braces: `VideoComment#{t:revms(13)}`.
type template struct {
	src   string
	parts []part
}

// parseTemplate reads src. resolve says what a reference stands for.
func parseTemplate(src string, resolve func(name, enc string) (slot int, e *encoder, err error)) (*template, error) {
	t := &template{src: src}
	for rest := src; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			t.parts = append(t.parts, part{lit: []byte(rest), slot: slotNone})
			break
		}
		if i > 0 {
			t.parts = append(t.parts, part{lit: []byte(rest[:i]), slot: slotNone})
		}
		end := strings.IndexByte(rest, '}')
		if rest[i] == '}' || end < 0 {
			return nil, fmt.Errorf("template %q: unpaired brace", src)
		}
		name, enc, _ := strings.Cut(rest[i+1:end], ":")
		if name == "" {
			return nil, fmt.Errorf("template %q: %q is no name; expected {name} or {name:encoder}", src, name)
		}
		slot, e, err := resolve(name, enc)
		if err != nil {
			return nil, fmt.Errorf("template %q: %w", src, err)
		}
		if n := len(t.parts); n > 0 && t.parts[n-1].lit == nil && t.parts[n-1].enc.width == 0 {
			return nil, fmt.Errorf("template %q: nothing separates {%s} from what stands before it; expected a literal between", src, name)
		}
		t.parts = append(t.parts, part{slot: slot, enc: e})
		rest = rest[end+1:]
	}
	return t, nil
}

// slots are the variables that the template tells.
func (t *template) slots() []int {
	var s []int
	for _, p := range t.parts {
		if p.lit == nil && !p.enc.derived {
			s = append(s, p.slot)
		}
	}
	return s
}

// uses reports whether the template tells a variable.
func (t *template) uses(slot int) bool { return slices.Contains(t.slots(), slot) }

// width is that of every text of the template, 0 where it varies.
func (t *template) width() int {
	w := 0
	for _, p := range t.parts {
		switch {
		case p.lit != nil:
			w += len(p.lit)
		case p.enc.width == 0:
			return 0
		default:
			w += p.enc.width
		}
	}
	return w
}

// special is the slot of {attr}, {member} or {key}, slotNone without them.
func (t *template) special() int {
	for _, p := range t.parts {
		if p.slot < slotNone {
			return p.slot
		}
	}
	return slotNone
}

// isLiteral reports whether the template refers to nothing.
func (t *template) isLiteral() bool {
	return !slices.ContainsFunc(t.parts, func(p part) bool { return p.lit == nil })
}

// render appends the template's text; special is the value of {attr}, {member}
// or {key}. bad is the reference whose variable has no value or is outside of its
// encoder's domain.
func (t *template) render(dst []byte, vars []attr.Value, special string) (out []byte, bad *part) {
	for i := range t.parts {
		p := &t.parts[i]
		switch {
		case p.lit != nil:
			dst = append(dst, p.lit...)
		default:
			v := attr.Value{Type: p.enc.in, Str: special}
			if p.slot >= 0 {
				v = vars[p.slot]
			}
			var ok bool
			if dst, ok = p.enc.encodeKey(dst, v); !ok {
				return dst, p
			}
		}
	}
	return dst, nil
}

// renderKnown appends the text up to the first reference whose variable has no
// value; whole says that there was none such. A salt of such a variable is
// that of shard, unless shard is negative. A value outside of its encoder's
// domain gives bad.
func (t *template) renderKnown(dst []byte, vars []attr.Value, shard int) (out []byte, whole bool, bad *part) {
	for i := range t.parts {
		p := &t.parts[i]
		switch {
		case p.lit != nil:
			dst = append(dst, p.lit...)
		case shard >= 0 && p.unknownSalt(vars):
			dst = p.enc.appendShard(dst, shard)
		case p.slot < 0 || vars[p.slot].IsAbsent():
			return dst, false, nil
		default:
			var ok bool
			if dst, ok = p.enc.encodeKey(dst, vars[p.slot]); !ok {
				return dst, false, p
			}
		}
	}
	return dst, true, nil
}

// unknownSalt reports whether the part is a salt of a variable without a value.
func (p *part) unknownSalt(vars []attr.Value) bool {
	return p.lit == nil && p.enc.shards > 0 && vars[p.slot].IsAbsent()
}

// match takes text apart and sets the variables; one that has a value already
// must get the same. special gets the value of {attr}, {member} or {key}. A
// reference takes its fixed width, or the least up to the literal after it, or
// the rest.
func (t *template) match(text []byte, vars []attr.Value, special *string) bool {
	for i := range t.parts {
		p := &t.parts[i]
		if p.lit != nil {
			var ok bool
			if text, ok = bytes.CutPrefix(text, p.lit); !ok {
				return false
			}
			continue
		}
		n := len(text)
		switch {
		case p.enc.width > 0:
			n = p.enc.width
		case i+1 < len(t.parts):
			n = bytes.Index(text, t.parts[i+1].lit)
		}
		if n < 0 || n > len(text) {
			return false
		}
		switch {
		case p.slot < 0:
			v, ok := p.enc.decodeKey(text[:n])
			if !ok {
				return false
			}
			if special != nil {
				*special = v.Str
			}
		case p.enc.derived: // the caller renders again, and compares
		default:
			v, ok := p.enc.decodeKey(text[:n])
			if !ok || !vars[p.slot].IsAbsent() && !attr.Equal(v, vars[p.slot]) {
				return false
			}
			vars[p.slot] = v
		}
		text = text[n:]
	}
	return len(text) == 0
}

// ambiguous reports whether a rendered text might be taken apart otherwise
// than it was put together: a reference of varying width before a literal.
func (t *template) ambiguous() bool {
	for i, p := range t.parts {
		if p.lit == nil && p.enc.width == 0 && i+1 < len(t.parts) {
			return true
		}
	}
	return false
}

// literalEnds returns what every text of the template begins and ends with;
// prefixOf gives the known start of a reference's text.
func (t *template) literalEnds(prefixOf func(p *part) []byte) (prefix, suffix []byte) {
	for i := range t.parts {
		p := &t.parts[i]
		if p.lit == nil {
			if prefixOf != nil {
				prefix = append(prefix, prefixOf(p)...)
			}
			break
		}
		prefix = append(prefix, p.lit...)
	}
	if n := len(t.parts); n > 0 && t.parts[n-1].lit != nil {
		suffix = t.parts[n-1].lit
	}
	return prefix, suffix
}

// unknown is the first reference without a value, a salt not counted where
// the shard is given.
func (t *template) unknown(vars []attr.Value, shard int) *part {
	for i := range t.parts {
		if p := &t.parts[i]; p.lit == nil && (p.slot < 0 || vars[p.slot].IsAbsent() && (shard < 0 || p.enc.shards == 0)) {
			return p
		}
	}
	return nil
}

func (t *template) usesCapture() bool {
	return slices.ContainsFunc(t.slots(), func(s int) bool { return s >= firstCapture })
}
