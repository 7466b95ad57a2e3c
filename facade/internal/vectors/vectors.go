// Package vectors finds the items whose vectors are nearest to a given one.
//
//   - vectors.go: vectors of 32-bit floats, in the form of attributes.
//   - entry.go: what a vector index holds of an item, and what writing that costs.
//   - nearest.go: distances, and the best results of a search in bounded memory.
//
// Vector search is exact: it compares all vectors, where the service's approximate search may
// miss some.
package vectors

import (
	"math"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Problem is the reason why a value cannot be a vector of an index.
type Problem uint8

// The problems of values.
const (
	Fits       Problem = iota // it is a vector
	NoList                    // the value is not a list
	WrongSize                 // the list has another number of elements
	NoNumber                  // an element is not a number
	OutOfRange                // an element is beyond the range of 32-bit floats
)

// Fault says what is wrong with a value; the zero value: nothing.
type Fault struct {
	Problem Problem
	At      int        // of an element
	Element attr.Value // that element
}

// Parse returns the vector that a value is, if it has that number of dimensions.
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

// ParseElement returns an element of a vector.
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

// value is the attribute of a vector, with the precision of the index.
func value(vector []float32) attr.Value {
	elements := make([]attr.Value, len(vector))
	for i, f := range vector {
		elements[i], _ = attr.Number(strconv.FormatFloat(float64(f), 'g', -1, 32)) // attributes have a wider range
	}
	return attr.ListOf(elements...)
}

// NumberText is a number beyond the range of 32-bit floats as AWS shows it (belief, but for
// powers of ten): digits and exponent. Its text ends with zeros, as it has 38 digits at most.
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
