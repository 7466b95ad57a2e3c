// Package mapfile is the model of a mapping file and of the lock beside it: read
// strictly, written back as the same Spec, with the line of whatever is wrong. It
// does not know whether rules can be inverted: package layout compiles them.
package mapfile
