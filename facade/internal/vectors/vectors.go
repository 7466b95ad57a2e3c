// Package vectors finds the items whose vectors are nearest to a given one.
//
//   - vectors.go: vectors of 32-bit floats, in the form of attributes.
//   - entry.go: the entry of an item in a vector index, and the cost of writing it.
//   - nearest.go: distances, and the best results of a search in bounded memory.
//
// Vector search is exact: it compares all vectors. The service's approximate search may miss
// some.
package vectors

import (
	"math"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Problem is the reason why a value cannot be a vector of an index.
type Problem uint8

// Problems of values.
const (
	Fits       Problem = iota // the value is a vector
	NoList                    // the value is not a list
	WrongSize                 // the number of elements differs from that of the index
	NoNumber                  // an element is not a number
	OutOfRange                // an element is beyond the range of 32-bit floats
)

// Fault explains why a value is not a vector. The zero value means that there is no
// fault.
type Fault struct {
	Problem Problem
	At      int        // index of the element
	Element attr.Value // invalid element, if any
}

// Parse converts a value to a vector with the given number of dimensions.
func Parse(v attr.Value, dimensions int) ([]float32, Fault) {
	if v.Type != attr.L {
		return nil, Fault{Problem: NoList}
	}
	if len(v.List) != dimensions {
		return nil, Fault{Problem: WrongSize}
	}
	vector := make([]float32, dimensions)
	for i, element := range v.List {
		f, problem := ParseElement(element)
		if problem != Fits {
			return nil, Fault{Problem: problem, At: i, Element: element}
		}
		vector[i] = f
	}
	return vector, Fault{}
}

// ParseElement converts a value to an element of a vector.
func ParseElement(v attr.Value) (float32, Problem) {
	if v.Type != attr.N {
		return 0, NoNumber
	}
	f, err := strconv.ParseFloat(v.Str, 32)
	if err != nil || math.IsInf(f, 0) {
		return 0, OutOfRange
	}
	return float32(f), Fits
}

// value converts a vector to an attribute value, in the precision of the index.
func value(vector []float32) attr.Value {
	elements := make([]attr.Value, len(vector))
	for i, f := range vector {
		elements[i], _ = attr.Number(strconv.FormatFloat(float64(f), 'g', -1, 32)) // attributes have a wider range
	}
	return attr.ListOf(elements...)
}

// NumberText returns the text with which AWS shows a number beyond the range of 32-bit
// floats: digits and an exponent. Except for powers of ten, that form is an assumption.
// number ends with zeros, since attributes have at most 38 digits.
func NumberText(number string) string {
	sign, digits := "", number
	if rest, negative := strings.CutPrefix(number, "-"); negative {
		sign, digits = "-", rest
	}
	exponent := len(digits) - 1
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return number
	}
	mantissa := digits[:1]
	if len(digits) > 1 {
		mantissa += "." + digits[1:]
	}
	return sign + mantissa + "E+" + strconv.Itoa(exponent)
}
