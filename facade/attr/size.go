package attr

import "strings"

// Bytes that a list or map counts for by itself, and each of its elements.
const (
	documentBytes = 3
	elementBytes  = 1
)

// Size returns the bytes of the item as DynamoDB counts them: names in UTF-8
// and values.
func (i Item) Size() int {
	size := 0
	for name, v := range i {
		size += len(name) + v.Size()
	}
	return size
}

// JSONSizeHint returns about how many bytes AppendItemJSON appends for i.
func (i Item) JSONSizeHint() int {
	const overhead = 16 // of an attribute, besides its name and value
	return i.Size() + overhead*(1+len(i))
}

// Size returns the bytes that v counts for against DynamoDB's item limit:
// strings and binaries their bytes, BOOL and NULL 1, sets the sum of their
// members, lists and maps 3 and 1 more for each element, numbers by their
// digits. An absent value counts 0. Source: developer guide, "DynamoDB item
// sizes and formats"; for numbers the exact rule as observed on the service.
func (v Value) Size() int {
	switch v.Type {
	case Absent:
		return 0
	case S, B:
		return len(v.Str)
	case N:
		return numberSize(v.Str)
	case BOOL, NULL:
		return 1
	case SS, BS:
		size := 0
		for _, m := range v.Set {
			size += len(m)
		}
		return size
	case NS:
		size := 0
		for _, m := range v.Set {
			size += numberSize(m)
		}
		return size
	case L:
		size := documentBytes
		for _, e := range v.List {
			size += elementBytes + e.Size()
		}
		return size
	case M:
		size := documentBytes
		for name, e := range v.Map {
			size += elementBytes + len(name) + e.Size()
		}
		return size
	}
	return 0
}

// numberSize counts a canonical number: one byte for each two digits before
// the point (without the zeros that only hold the place) and each two behind
// it, one more, and one more for a minus sign.
func numberSize(text string) int {
	size := 1
	if strings.HasPrefix(text, "-") {
		size++
		text = text[1:]
	}
	whole, fraction, hasFraction := strings.Cut(text, ".")
	if !hasFraction {
		whole = strings.TrimRight(whole, "0")
	}
	if whole == "0" {
		whole = ""
	}
	// Leading zeros of a pure fraction hold the place just the same.
	if whole == "" {
		significant := strings.TrimLeft(fraction, "0")
		zeros := len(fraction) - len(significant)
		fraction = fraction[zeros&^1:]
	}
	return size + (len(whole)+1)/2 + (len(fraction)+1)/2
}

// Depth returns the levels of v: 1 for a scalar or set, one more than the
// deepest element for a list or map. See MaxDepth.
func (v Value) Depth() int {
	deepest := 0
	for _, e := range v.List {
		deepest = max(deepest, e.Depth())
	}
	for _, e := range v.Map {
		deepest = max(deepest, e.Depth())
	}
	return deepest + 1
}
