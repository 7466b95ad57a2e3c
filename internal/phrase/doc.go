// Package phrase writes short texts that reports and messages share, such as counts with their
// nouns and shortened quotations.
package phrase
