// Package pull provides replacements for [iter.Pull] and [iter.Pull2] that also suit programs
// built with the race detector.
//
// In these programs a sequence runs in a goroutine instead of a coroutine. Up to Go 1.26, the race
// detector does not notice the end of a coroutine. It keeps the history of each, up to a few
// hundred kilobytes, until the process ends.
package pull
