// Package phrase writes the small texts that reports and messages share: counts with their
// nouns, and shortened quotations.
package phrase
