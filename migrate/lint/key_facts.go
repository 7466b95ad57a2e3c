package lint

import (
	"strconv"
	"strings"
)

// width records the number of digits that follow a text.
func (v *segmentFacts) width(before string, digits int) {
	if v.widths == nil {
		v.widths = map[string]int{}
	}
	switch known, ok := v.widths[before]; {
	case ok:
		v.uneven = v.uneven || known != digits
	case len(v.widths) < maxWidths:
		v.widths[before] = digits
	}
}

// lastPart returns the text after the last mark: "8305" of "Comment#8305".
func lastPart(text string) string { return text[strings.LastIndexAny(text, "#_:/|")+1:] }

// add records the first segment of a row key.
func (h *headFacts) add(text string) {
	if h.n++; h.n == 1 {
		h.prefix = typePrefix().FindString(text)
		h.length = -2
	}
	h.prefixes = h.prefixes || !strings.HasPrefix(text, h.prefix)
	again := h.n > 1 && text == h.last
	h.last = text
	text = bare(text, h.prefix)
	h.seen.add([]byte(text))
	if h.example == "" {
		h.example = text
	}
	if ok, _ := isTime(text); ok {
		if h.times++; h.timeExample == "" {
			h.timeExample = text
		}
	}
	if len(text) <= 2 && isDigits(text) {
		h.salts++
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && isDigits(text) {
		switch {
		case h.numbers == 0:
			h.least, h.most = n, n
		case again:
		default:
			if h.steps++; n > h.lastNumber {
				h.rising++
			}
		}
		h.numbers++
		h.least, h.most, h.lastNumber = min(h.least, n), max(h.most, n), n
	}
	switch h.length {
	case -2:
		h.length = len(text)
	case len(text):
	default:
		h.length = -1
	}
	if strings.ContainsAny(text, "0123456789") && strings.ContainsFunc(text, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }) {
		h.mixed++
	}
	if strings.IndexFunc(text, func(r rune) bool { return r > 0x7f || !isHexByte(byte(r)) }) < 0 {
		h.hexes++
	}
	if uuid().MatchString(text) {
		h.uuids++
	}
	if !again {
		h.bytes.add(text)
	}
	if ok, reversed, site := isDomain(text); ok {
		h.domains++
		if reversed {
			h.reversed++
		}
		h.sites.add([]byte(site), 1)
	}
}
