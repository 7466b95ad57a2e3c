package attr

import "strings"

// documentBytes is the size of a list or map without its elements; elementBytes is added for
// each element.
const (
	documentBytes = 3
	elementBytes  = 1
)

// Size returns the size of the item in bytes, as DynamoDB counts it: the UTF-8 length of
// the names plus the sizes of the values.
func (i Item) Size() int {
	size := 0
	for name, v := range i {
		size += len(name) + v.Size()
	}
	return size
}

// JSONSizeHint estimates the number of bytes that AppendItemJSON would append.
func (i Item) JSONSizeHint() int {
	const overhead = 16 // bytes of an attribute besides its name and value
	return i.Size() + overhead*(1+len(i))
}

// Size returns the number of bytes that v counts toward DynamoDB's item size limit.
// Strings and binaries count their bytes, BOOL and NULL count 1, and sets count the sum
// of their members. Lists and maps count 3 plus 1 for each element, and numbers count by
// their digits. An absent value counts 0. Source: developer guide, "DynamoDB item sizes
// and formats"; the exact rule for numbers was observed on the service.
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

// numberSize returns the size in bytes of a canonical number: 1, plus 1 for each pair of digits
// before the point, 1 for each pair after it, and 1 for a minus sign. A single digit counts as a
// pair. Trailing zeros of an integer do not count, nor do pairs of zeros after "0.".
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
	// Drop the pairs of zeros at the beginning of a pure fraction.
	if whole == "" {
		significant := strings.TrimLeft(fraction, "0")
		zeros := len(fraction) - len(significant)
		fraction = fraction[zeros&^1:]
	}
	return size + (len(whole)+1)/2 + (len(fraction)+1)/2
}

// Depth returns the number of levels of v. A scalar or set has depth 1; a list or map is
// one level deeper than its deepest element. See MaxDepth.
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
