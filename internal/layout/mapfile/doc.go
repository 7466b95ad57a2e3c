// Package mapfile reads and writes mapping files and their locks: strictly, back to the same
// Spec, and with the line of every error. Package layout decides whether the rules can be
// inverted.
package mapfile
