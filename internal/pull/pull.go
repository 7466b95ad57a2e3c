// Package pull provides [iter.Pull] and [iter.Pull2], also for programs built with the race
// detector.
//
// In these programs a sequence runs in a goroutine instead of a coroutine. Up to Go 1.26 the
// race detector does not notice the end of a coroutine, and keeps its history until the
// process ends, up to a few hundred kilobytes each.
package pull
