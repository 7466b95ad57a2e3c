package testkit

import (
	"io"
	"testing"
)

// PauseTo is Pause that prints somewhere else.
func (e *Env) PauseTo(tb testing.TB, out io.Writer) {
	tb.Helper()
	e.pause(tb, out)
}
