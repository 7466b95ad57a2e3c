package changes

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// Token is a position in a partition of a table's change stream.
type Token struct {
	Table     uint32 // the table's id
	Since     uint64 // distinguishes the stream from earlier streams of the table
	Partition Partition
	Position  Position
}

// The versions of the token format. The second adds origins; the first is used
// for tokens without origins.
const (
	tokenVersion        = 1
	tokenVersionOrigins = 2
)

// ErrToken is the error that Decode returns for invalid tokens.
var ErrToken = errors.New("not a continuation token")

// Encode returns the text form of the token.
func (t *Token) Encode() string {
	b := []byte{tokenVersion}
	if slices.ContainsFunc(t.Position.Ahead, func(a Ahead) bool { return a.Origin != "" }) {
		b[0] = tokenVersionOrigins
	}
	b = binary.BigEndian.AppendUint32(b, t.Table)
	b = binary.AppendUvarint(b, t.Since)
	b = appendPartition(b, t.Partition)
	b = binary.AppendUvarint(b, t.Position.Number)
	for _, a := range t.Position.Ahead {
		b = binary.AppendUvarint(appendPartition(b, a.Partition), a.Number)
		if b[0] == tokenVersionOrigins {
			b = append(binary.AppendUvarint(b, uint64(len(a.Origin))), a.Origin...)
		}
	}
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

func appendPartition(b []byte, p Partition) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(p.Start))), p.Start...)
	return append(binary.AppendUvarint(b, uint64(len(p.End))), p.End...)
}

// Decode parses a token that Encode returned. It returns ErrToken if the text is invalid.
func Decode(text string) (Token, error) {
	var t Token
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 1+4+4 {
		return t, ErrToken
	}
	body := b[:len(b)-4]
	if body[0] != tokenVersion && body[0] != tokenVersionOrigins || crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(b[len(body):]) {
		return t, ErrToken
	}
	r := tokenReader{rest: body[5:]}
	t.Table = binary.BigEndian.Uint32(body[1:])
	t.Since = r.uvarint()
	t.Partition = r.partition()
	t.Position.Number = r.uvarint()
	for len(r.rest) > 0 && !r.bad {
		a := Ahead{Partition: r.partition(), Number: r.uvarint()}
		if body[0] == tokenVersionOrigins {
			a.Origin = string(r.bytes())
		}
		t.Position.Ahead = append(t.Position.Ahead, a)
	}
	if r.bad || t.Partition.Empty() {
		return Token{}, ErrToken
	}
	return t, nil
}

type tokenReader struct {
	rest []byte
	bad  bool
}

func (r *tokenReader) uvarint() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.rest, r.bad = nil, true
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *tokenReader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.rest, r.bad = nil, true
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *tokenReader) partition() Partition { return Partition{Start: r.bytes(), End: r.bytes()} }

// Join combines tokens that together cover a partition, given in any order, into a position in that
// partition. The tokens may also cover keys outside the partition. Error texts complete a sentence
// that begins with "the tokens".
func Join(partition Partition, tokens []Token) (Position, error) {
	sorted := slices.Clone(tokens)
	slices.SortFunc(sorted, func(a, b Token) int { return bytes.Compare(a.Partition.Start, b.Partition.Start) })
	var p Position
	for i, t := range sorted {
		switch {
		case i == 0 && !bytes.Equal(t.Partition.Start, partition.Start):
			return p, fmt.Errorf("begin at %q, but the partition begins at %q", t.Partition.Start, partition.Start)
		case i > 0 && (len(sorted[i-1].Partition.End) == 0 || !bytes.Equal(sorted[i-1].Partition.End, t.Partition.Start)):
			return p, fmt.Errorf("leave a gap or overlap at %q", t.Partition.Start)
		}
		if i == 0 || t.Position.Number < p.Number {
			p.Number = t.Position.Number
		}
	}
	if last := sorted[len(sorted)-1].Partition.End; !bytes.Equal(last, partition.End) {
		return p, fmt.Errorf("end at %q, but the partition ends at %q", last, partition.End)
	}
	for _, t := range sorted {
		if t.Position.Number > p.Number {
			p.Ahead = append(p.Ahead, Ahead{Partition: t.Partition, Number: t.Position.Number})
		}
		p.Ahead = append(p.Ahead, t.Position.Within(t.Partition).Ahead...)
	}
	return p, nil
}
