package partiql

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Next is where the next page of a SELECT begins: in a partition of its plan, behind
// a key, nil for the partition's beginning.
type Next struct {
	Partition int
	Last      attr.Item
}

const (
	tokenVersion  = 1
	tokenSumBytes = 8
)

// Identity is what a page token is bound to: a table, a statement and the values of
// its parameters. zeros is how zeros in these are written.
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

// Encode returns the token of a place in the pages of identity.
func (n Next) Encode(identity [sha256.Size]byte) string {
	text := append([]byte{tokenVersion}, identity[:]...)
	text = binary.AppendUvarint(text, uint64(n.Partition))
	if n.Last != nil {
		text = attr.AppendItemJSON(text, n.Last)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(append(text, sum[:tokenSumBytes]...))
}

// DecodeNext reads a token. Errors are of type *Error: one that no server gave, or
// one of another identity. Parameters that are lists or maps have no next page.
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
