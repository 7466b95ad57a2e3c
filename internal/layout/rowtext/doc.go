// Package rowtext writes rows as text: the canonical text of a row in golden files and
// dumps, and the meaning of the sidecar's cells.
package rowtext
