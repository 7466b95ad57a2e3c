package rowkey

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// JoinKind selects how a Joiner joins the segments of a row key.
type JoinKind uint8

// These are the kinds of joiners.
const (
	JoinPlain   JoinKind = iota // delimiter; the last segment is unrestricted
	JoinEscaped                 // delimiter; bytes up to '$' as $hh, except in open segments
	JoinOC                      // 00 as 00 FF, joined by 00 01
	JoinFixed                   // no delimiter
)

// Joiner joins segments so that they can be split again.
type Joiner struct {
	Kind  JoinKind
	Delim byte
	Auto  bool // like escaped, until a proof shows that plain gives the same bytes
	// All means that last segments are escaped too, except those of the rules with the most
	// segments. Rows of rules with different numbers of segments are then never equal.
	All bool
}

// escapeMax is the highest byte that JoinEscaped escapes: the escape itself.
const escapeMax = '$'

// ParseJoiner returns the joiner for its text in a mapping file.
func ParseJoiner(text string) (Joiner, error) {
	switch text {
	case "", "auto":
		return Joiner{Kind: JoinEscaped, Delim: '#', Auto: true}, nil
	case "oc":
		return Joiner{Kind: JoinOC}, nil
	case "fixed":
		return Joiner{Kind: JoinFixed}, nil
	case "escaped":
		return Joiner{Kind: JoinEscaped, Delim: '#'}, nil
	}
	for name, kind := range map[string]JoinKind{"plain": JoinPlain, "escaped": JoinEscaped, "escaped-all": JoinEscaped} {
		arg, ok := strings.CutPrefix(text, name+"('")
		if !ok {
			continue
		}
		arg, ok = strings.CutSuffix(arg, "')")
		switch {
		case !ok || len(arg) != 1:
			return Joiner{}, fmt.Errorf("joiner %s: expected %s('d') with one byte", text, name)
		case kind == JoinEscaped && arg[0] >= escapeMax:
			return Joiner{}, fmt.Errorf("joiner %s: expected a delimiter below '$'", text)
		}
		return Joiner{Kind: kind, Delim: arg[0], All: name == "escaped-all"}, nil
	}
	return Joiner{}, fmt.Errorf("unknown joiner %q; expected plain('#'), escaped('#'), escaped-all('#'), oc, fixed or auto", text)
}

// String returns the text that ParseJoiner parses.
func (j Joiner) String() string {
	switch {
	case j.Auto:
		return "auto"
	case j.Kind == JoinPlain:
		return fmt.Sprintf("plain('%c')", j.Delim)
	case j.Kind == JoinEscaped && j.All:
		return fmt.Sprintf("escaped-all('%c')", j.Delim)
	case j.Kind == JoinEscaped:
		return fmt.Sprintf("escaped('%c')", j.Delim)
	case j.Kind == JoinOC:
		return "oc"
	}
	return "fixed"
}

// Delimiter returns the bytes between two segments.
func (j Joiner) Delimiter() []byte {
	switch j.Kind {
	case JoinPlain, JoinEscaped:
		return []byte{j.Delim}
	case JoinOC:
		return []byte{0, 1}
	case JoinFixed:
	}
	return nil
}

// DelimOffence returns the index of the first byte that plain does not allow in a segment before
// the last, or -1. With auto, the escape character is not allowed either, so that the plain and the
// escaped form of a segment are equal.
func (j Joiner) DelimOffence(seg []byte) int {
	limit := j.Delim
	if j.Auto {
		limit = escapeMax
	}
	return slices.IndexFunc(seg, func(c byte) bool { return c <= limit })
}

// AppendSegment appends the form that a segment has in the key, without a delimiter. open means
// that the segment is the last one, so it may contain any bytes.
func (j Joiner) AppendSegment(dst, seg []byte, open bool) []byte {
	switch {
	case j.Kind == JoinOC:
		return AppendOC(dst, seg)
	case j.Kind == JoinEscaped && !open:
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

// Split splits a key into n segments. The last segment takes the rest of the key. For JoinFixed,
// widths holds the widths of the first n-1 segments.
func (j Joiner) Split(key []byte, n int, widths []int) ([][]byte, bool) {
	segs := make([][]byte, 0, n)
	switch j.Kind {
	case JoinOC:
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
	case JoinFixed:
		for _, w := range widths {
			if len(key) < w {
				return nil, false
			}
			segs, key = append(segs, key[:w]), key[w:]
		}
	case JoinPlain, JoinEscaped:
		for range n - 1 {
			seg, rest, ok := bytes.Cut(key, []byte{j.Delim})
			if !ok {
				return nil, false
			}
			if j.Kind == JoinEscaped {
				if seg, ok = unescape(seg); !ok {
					return nil, false
				}
			}
			segs, key = append(segs, seg), rest
		}
	}
	return append(segs, key), true
}

// SplitClosed is like Split, but expects the last segment in the same form as the others.
func (j Joiner) SplitClosed(key []byte, n int, widths []int) ([][]byte, bool) {
	segs, ok := j.Split(key, n, widths)
	if !ok || j.Kind != JoinEscaped {
		return segs, ok
	}
	last := &segs[len(segs)-1]
	if bytes.IndexByte(*last, j.Delim) >= 0 {
		return nil, false
	}
	*last, ok = unescape(*last)
	return segs, ok
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

// AppendOC appends seg with each 00 escaped as 00 FF.
func AppendOC(dst, seg []byte) []byte {
	dst = slices.Grow(dst, len(seg)+2) // the delimiter follows
	for _, c := range seg {
		dst = append(dst, c)
		if c == 0 {
			dst = append(dst, 0xff)
		}
	}
	return dst
}

// cutOC cuts the first segment off an oc key. more reports that a delimiter followed it. The
// segment may share the memory of key.
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
