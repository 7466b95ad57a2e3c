// Package mapfile reads and writes mapping files and their locks. Reading is strict, errors have
// the line of the mistake, and reading a written file returns the same Spec. Package layout decides
// whether the rules can be inverted.
package mapfile
