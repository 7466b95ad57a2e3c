// Package rowtext says in text what rows hold: the canonical text of a row, which
// golden files and dumps have, and what the cells of the sidecar say.
package rowtext
