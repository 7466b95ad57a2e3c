// Package race reports whether tests are built with the race detector: it allocates, and
// takes memory and time, so that figures measured with it say nothing about the program.
package race

// OneAfterTheOther skips a test that is long and makes its calls one after the other, where the
// race detector would find what it finds in others too, and only later.
func OneAfterTheOther(tb interface {
	Helper()
	Skip(args ...any)
},
) {
	tb.Helper()
	if Enabled {
		tb.Skip("its calls come one after the other, and take many times as long with the race detector")
	}
}
