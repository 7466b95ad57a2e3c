package testkit

import (
	"io"
	"testing"
)

// HoldTo is Hold that prints somewhere else.
func (e *Env) HoldTo(tb testing.TB, out io.Writer) {
	tb.Helper()
	e.hold(tb, out)
}
