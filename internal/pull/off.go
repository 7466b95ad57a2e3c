//go:build !race

package pull

import "iter"

// Seq calls iter.Pull.
func Seq[V any](seq iter.Seq[V]) (next func() (V, bool), stop func()) {
	return iter.Pull(seq) //nolint:forbidigo // this is the one place
}

// Seq2 calls iter.Pull2.
func Seq2[K, V any](seq iter.Seq2[K, V]) (next func() (K, V, bool), stop func()) {
	return iter.Pull2(seq) //nolint:forbidigo // likewise
}
