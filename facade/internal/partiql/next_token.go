package partiql

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Next is the start of the next page of a SELECT: the position after a key in a partition
// of its plan. A nil key means the beginning of the partition.
type Next struct {
	Partition int
	Last      attr.Item
}

const (
	tokenVersion  = 1
	tokenSumBytes = 8
)

// Identity returns a hash of everything that a page token depends on: the table, the
// statement and the values of its parameters. zeros is the spelling of zeros in these
// values.
func Identity(tableID, statement string, parameters []attr.Value, zeros string) [sha256.Size]byte {
	text := appendText(appendText(nil, tableID), statement)
	for _, v := range parameters {
		text = attr.AppendJSON(text, v)
	}
	return sha256.Sum256(append(text, zeros...))
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// Encode returns the token for a position in the pages of a statement with the given
// identity.
func (n Next) Encode(identity [sha256.Size]byte) string {
	text := append([]byte{tokenVersion}, identity[:]...)
	text = binary.AppendUvarint(text, uint64(n.Partition))
	if n.Last != nil {
		text = attr.AppendItemJSON(text, n.Last)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(append(text, sum[:tokenSumBytes]...))
}

// DecodeNext decodes a token. It returns an *Error if no server issued the token, or if
// the token belongs to another identity. A statement with a parameter that is a list or a
// map has no next page.
func DecodeNext(token string, identity [sha256.Size]byte, parameters []attr.Value) (Next, error) {
	var n Next
	text, err := base64.RawURLEncoding.DecodeString(token)
	end := len(text) - tokenSumBytes
	if err != nil || end < 2+sha256.Size || text[0] != tokenVersion {
		return n, refuse(msgInvalidToken)
	}
	if sum := sha256.Sum256(text[:end]); !bytes.Equal(sum[:tokenSumBytes], text[end:]) {
		return n, refuse(msgInvalidToken)
	}
	if !bytes.Equal(text[1:1+sha256.Size], identity[:]) {
		return n, refuse(msgOtherToken)
	}
	for _, v := range parameters {
		if v.Type == attr.L || v.Type == attr.M {
			return n, refuse(msgOtherToken)
		}
	}
	rest := text[1+sha256.Size : end]
	partition, size := binary.Uvarint(rest)
	if size <= 0 || partition > 1<<20 {
		return n, refuse(msgInvalidToken)
	}
	n.Partition = int(partition)
	if rest = rest[size:]; len(rest) > 0 {
		if n.Last, err = attr.UnmarshalItem(rest); err != nil {
			return n, refuse(msgInvalidToken)
		}
	}
	return n, nil
}
