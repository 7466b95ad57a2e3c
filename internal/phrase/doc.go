// Package phrase has the small texts that reports and messages share: counts with
// their nouns, and quotations that are not too long.
package phrase
