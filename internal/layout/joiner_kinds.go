package layout

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// joinKind is how the segments of a row key are put together.
type joinKind uint8

const (
	joinPlain   joinKind = iota // delimiter; last segment unrestricted
	joinEscaped                 // delimiter; bytes up to '$' of earlier segments as $hh
	joinOC                      // 00 as 00 FF, joined by 00 01
	joinFixed                   // nothing between
)

// joiner puts segments together so that they can be taken apart again.
type joiner struct {
	kind  joinKind
	delim byte
	auto  bool // escaped, until a proof says plain: which makes the same bytes
}

// escapeMax is the highest byte that joinEscaped escapes: the escape itself.
const escapeMax = '$'

func parseJoiner(text string) (joiner, error) {
	switch text {
	case "", "auto":
		return joiner{kind: joinEscaped, delim: '#', auto: true}, nil
	case "oc":
		return joiner{kind: joinOC}, nil
	case "fixed":
		return joiner{kind: joinFixed}, nil
	case "escaped":
		return joiner{kind: joinEscaped, delim: '#'}, nil
	}
	for name, kind := range map[string]joinKind{"plain": joinPlain, "escaped": joinEscaped} {
		arg, ok := strings.CutPrefix(text, name+"('")
		if !ok {
			continue
		}
		arg, ok = strings.CutSuffix(arg, "')")
		switch {
		case !ok || len(arg) != 1:
			return joiner{}, fmt.Errorf("joiner %s: expected %s('d') with one byte", text, name)
		case kind == joinEscaped && arg[0] >= escapeMax:
			return joiner{}, fmt.Errorf("joiner %s: expected a delimiter below '$'", text)
		}
		return joiner{kind: kind, delim: arg[0]}, nil
	}
	return joiner{}, fmt.Errorf("unknown joiner %q; expected plain('#'), escaped('#'), oc, fixed or auto", text)
}

func (j joiner) String() string {
	switch {
	case j.auto:
		return "auto"
	case j.kind == joinPlain:
		return fmt.Sprintf("plain('%c')", j.delim)
	case j.kind == joinEscaped:
		return fmt.Sprintf("escaped('%c')", j.delim)
	case j.kind == joinOC:
		return "oc"
	}
	return "fixed"
}

// delimiter is what stands between two segments.
func (j joiner) delimiter() []byte {
	switch j.kind {
	case joinPlain, joinEscaped:
		return []byte{j.delim}
	case joinOC:
		return []byte{0, 1}
	case joinFixed:
	}
	return nil
}

// delimOffence returns the first byte of a segment that is not last which
// plain cannot take, or -1. Under auto the escape counts too: what is free of
// it looks the same plain and escaped.
func (j joiner) delimOffence(seg []byte) int {
	limit := j.delim
	if j.auto {
		limit = escapeMax
	}
	return slices.IndexFunc(seg, func(c byte) bool { return c <= limit })
}

// appendSegment appends one segment in the form it has in the key, without a
// delimiter; last says that no other follows.
func (j joiner) appendSegment(dst, seg []byte, last bool) []byte {
	switch {
	case j.kind == joinOC:
		return appendOC(dst, seg)
	case j.kind == joinEscaped && !last:
		for _, c := range seg {
			if c <= escapeMax {
				dst = fmt.Appendf(dst, "$%02x", c)
			} else {
				dst = append(dst, c)
			}
		}
		return dst
	}
	return append(dst, seg...)
}

// split takes a key apart into n segments; widths are those of the first n-1
// for joinFixed.
func (j joiner) split(key []byte, n int, widths []int) ([][]byte, bool) {
	segs := make([][]byte, 0, n)
	switch j.kind {
	case joinOC:
		for {
			seg, rest, more, ok := cutOC(key)
			if !ok {
				return nil, false
			}
			segs = append(segs, seg)
			if !more {
				return segs, len(segs) == n
			}
			if len(segs) == n {
				return nil, false
			}
			key = rest
		}
	case joinFixed:
		for _, w := range widths {
			if len(key) < w {
				return nil, false
			}
			segs, key = append(segs, key[:w]), key[w:]
		}
	case joinPlain, joinEscaped:
		for range n - 1 {
			seg, rest, ok := bytes.Cut(key, []byte{j.delim})
			if !ok {
				return nil, false
			}
			if j.kind == joinEscaped {
				if seg, ok = unescape(seg); !ok {
					return nil, false
				}
			}
			segs, key = append(segs, seg), rest
		}
	}
	return append(segs, key), true
}

func unescape(seg []byte) ([]byte, bool) {
	if bytes.IndexByte(seg, escapeMax) < 0 {
		return seg, true
	}
	out := make([]byte, 0, len(seg))
	for i := 0; i < len(seg); i++ {
		if seg[i] != escapeMax {
			out = append(out, seg[i])
			continue
		}
		if i+3 > len(seg) {
			return nil, false
		}
		var c [1]byte
		if _, err := hex.Decode(c[:], seg[i+1:i+3]); err != nil || c[0] > escapeMax {
			return nil, false
		}
		out, i = append(out, c[0]), i+2
	}
	return out, true
}

// appendOC appends seg with 00 as 00 FF.
func appendOC(dst, seg []byte) []byte {
	dst = slices.Grow(dst, len(seg)+2) // the delimiter follows
	for _, c := range seg {
		dst = append(dst, c)
		if c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return dst
}

// cutOC takes the first segment off an oc key. more says that a delimiter
// followed it. The segment may be a part of key.
func cutOC(key []byte) (seg, rest []byte, more, ok bool) {
	switch i := bytes.IndexByte(key, 0); {
	case i < 0:
		return key[:len(key):len(key)], nil, false, true
	case i+1 < len(key) && key[i+1] == 1:
		return key[:i:i], key[i+2:], true, true
	}
	seg = make([]byte, 0, len(key))
	for i := 0; i < len(key); i++ {
		seg = append(seg, key[i])
		if key[i] != 0 {
			continue
		}
		i++
		switch {
		case i == len(key):
			return nil, nil, false, false
		case key[i] == 1:
			return seg[:len(seg)-1], key[i+1:], true, true
		case key[i] != 0xff:
			return nil, nil, false, false
		}
	}
	return seg, nil, false, true
}

// prefixEnd is the least key above all that begin with prefix; nil where there
// is none.
func prefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
