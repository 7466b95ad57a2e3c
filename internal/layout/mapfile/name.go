package mapfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// MaxTableIDChars is the maximum length of a Bigtable table id.
// https://cloud.google.com/bigtable/quotas
const MaxTableIDChars = 50

// BigtableName converts a name to the characters that Bigtable allows in the names of tables and
// families. Every other byte becomes ".hh", and a name longer than longest is shortened and ends in
// a hash.
func BigtableName(name string, longest int) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
			b.WriteByte(c)
		case (c == '-' || c == '.') && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, ".%02x", c)
		}
	}
	s := b.String()
	if strings.HasPrefix(s, ".") {
		s = "_" + s
	}
	if len(s) > longest {
		sum := sha256.Sum256([]byte(name))
		s = s[:longest-9] + "-" + hex.EncodeToString(sum[:4])
	}
	return s
}

// IndexTable returns the id of the Bigtable table or view of an index. It consists of the id of the
// table, "__" and the name of the index, converted by BigtableName.
func IndexTable(table, index string) string {
	return BigtableName(table+"__"+index, MaxTableIDChars)
}
