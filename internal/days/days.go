// Package days parses durations with days before the hours, such as 400d and 1d12h.
// Retention is usually given in days, a unit that package time does not have.
package days

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Parse is like time.ParseDuration, but the text may begin with a number of days, of 24 hours each,
// as in -1.5d or 30d12h.
func Parse(text string) (time.Duration, error) {
	number, rest, ok := strings.Cut(text, "d")
	if !ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration; expected a duration such as 400d, 720h or 1m30s", text)
		}
		return d, nil
	}
	fault := fmt.Errorf("%q is not a duration; expected a duration such as 400d, 1d12h or 720h", text)
	digits := strings.TrimLeft(number, "+-")
	if len(number)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789.") != "" {
		return 0, fault
	}
	count, err := strconv.ParseFloat(number, 64)
	if err != nil || math.Abs(count) > float64(math.MaxInt64/day) {
		return 0, fault
	}
	whole, part := math.Modf(count)
	d := time.Duration(whole)*day + time.Duration(math.Round(part*float64(day)))
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || strings.ContainsAny(rest[:1], "+-") {
		return 0, fault
	}
	if strings.HasPrefix(number, "-") {
		more = -more
	}
	if sum := d + more; (sum > d) == (more > 0) {
		return sum, nil
	}
	return 0, fault
}
