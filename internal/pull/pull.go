// Package pull provides [iter.Pull] and [iter.Pull2], also for programs built with the race
// detector.
//
// In those, a sequence runs in a goroutine of its own and not as a coroutine: up
// to Go 1.26 the race detector does not learn that a coroutine has ended, and keeps
// its history, up to a few hundred kilobytes each, until the process ends.
package pull
