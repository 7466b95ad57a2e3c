// Package property limits the cases of property tests.
package property

import (
	"flag"

	"pgregory.net/rapid"
)

// All is the value of the limit that lets all cases run.
const All = 0

// First returns a property that checks prop in the first n cases and holds in all others. After a
// failure it always checks prop, so that the failure can be reproduced and shrunk. With the limit
// All, or with the flag -rapid.checks, it returns prop.
func First(n int, prop func(*rapid.T)) func(*rapid.T) {
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "rapid.checks" {
			n = All
		}
	})
	if n == All {
		return prop
	}
	ran, failed := 0, false
	return func(t *rapid.T) {
		if ran++; ran > n && !failed {
			return
		}
		ended := false
		defer func() { failed = failed || !ended }()
		prop(t)
		ended = !t.Failed()
	}
}
