// Package property limits the cases of property tests in the quick tier.
package property

import (
	"flag"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// First returns a property that checks prop in the first n cases and holds in all others. After a
// failure it is prop, so that the failure can be reproduced and shrunk. In the long tier, and
// with the flag -rapid.checks, it is prop.
func First(n int, prop func(*rapid.T)) func(*rapid.T) {
	all := long.Enabled()
	flag.Visit(func(f *flag.Flag) { all = all || f.Name == "rapid.checks" })
	if all {
		return prop
	}
	return first(n, prop)
}

func first(n int, prop func(*rapid.T)) func(*rapid.T) {
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
