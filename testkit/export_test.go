package testkit

import (
	"io"
	"testing"
)

// PauseTo is Pause with output to a writer.
func (e *Env) PauseTo(tb testing.TB, out io.Writer) {
	tb.Helper()
	e.pause(tb, out)
}
