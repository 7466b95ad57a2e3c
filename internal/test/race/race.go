// Package race reports whether tests are built with the race detector. The detector allocates and
// takes memory and time, so figures measured with it do not describe the program.
package race

// OneAfterTheOther skips a long test under the race detector if its calls are sequential, because
// other tests find the same races sooner.
func OneAfterTheOther(tb interface {
	Helper()
	Skip(args ...any)
},
) {
	tb.Helper()
	if Enabled {
		tb.Skip("its calls are sequential, and take many times as long with the race detector")
	}
}
