// Package rowtext writes rows as text, in the canonical format of golden files and dumps, and
// describes the meaning of sidecar cells.
package rowtext
