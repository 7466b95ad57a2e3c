// Package long separates the two tiers of tests: `go test ./...` runs the quick tier, and
// `make test-long` sets [Variable] and runs both.
//
// A test of the long tier calls [Test]. A test with a small instance in the quick tier and a
// large one in the long tier calls [Enabled], and a property test calls property.First. Each
// such test has a row in tests.tsv, with the reason and the quick test that can still fail in
// its place.
package long

import "os"

// Variable is the environment variable that enables the long tier when it is "1". Unlike the
// variables of the program's flags, it does not begin with TABLETOP_.
const Variable = "LONG_TESTS"

// Enabled reports whether the long tier runs. It must be called inside a test and not during the
// initialization of a package, because go test caches results by the variables that tests read.
func Enabled() bool { return os.Getenv(Variable) == "1" }

// Test skips tb unless the long tier runs.
func Test(tb interface {
	Helper()
	Skip(args ...any)
},
) {
	tb.Helper()
	if !Enabled() {
		tb.Skip("the test is in the long tier: run make test-long, or set " + Variable + "=1")
	}
}
