// Package phrase has the small texts that reports and messages share: numbers of
// things, and quotations that are not too long.
package phrase
