package iontext

import "bytes"

// AppendRecord acts like AppendJSON for a line whose members are items or strings. A string becomes
// an attribute value.
func AppendRecord(dst, line []byte) ([]byte, error) {
	return appendLine(dst, line, func(r *reader) error {
		if r.space(); bytes.HasPrefix(r.rest(), []byte{'"'}) {
			return r.value(1)
		}
		return r.structure(func() error { return r.value(1) })
	})
}
