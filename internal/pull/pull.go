// Package pull is [iter.Pull] and [iter.Pull2], also for programs that look for
// data races.
//
// In those a sequence runs in a goroutine of its own and not as a coroutine: up
// to Go 1.26 the race detector is not told that a coroutine has ended, and keeps
// its history, up to some hundred kilobytes each, until the process ends.
package pull
