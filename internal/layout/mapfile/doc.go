// Package mapfile reads and writes mapping files and their locks. Reading is strict, errors have
// the line of the mistake, and a file that is written is read back to the same Spec. Package layout
// decides whether the rules can be inverted.
package mapfile
