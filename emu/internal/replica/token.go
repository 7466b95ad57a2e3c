package replica

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
)

// Token is a consistency token. It consists of the unique id of a table and the time of the store's
// last commit. If the store has no recent commits, the time is just before the token's creation. No
// state is stored for a token: CheckConsistency reads the journal.
type Token struct {
	Table  uint32
	Micros int64
}

// ErrToken is the error that DecodeToken returns for invalid tokens.
var ErrToken = errors.New("not a consistency token")

// NewToken returns a token of a table as of now. Commits that start later do not precede the token,
// even if the clock does not advance.
func NewToken(table uint32, lastMicros int64, now time.Time) Token {
	return Token{Table: table, Micros: max(lastMicros, now.UnixMicro()-1)}
}

// Made returns the time of the token, which is at or shortly before its creation.
func (t Token) Made() time.Time { return time.UnixMicro(t.Micros + 1) }

// Encode returns the text form of the token, which encodes:
//
//	table id, 4 bytes | time in microseconds, 8 bytes | CRC-32 of these, 4 bytes
func (t Token) Encode() string {
	b := binary.BigEndian.AppendUint32(nil, t.Table)
	b = binary.BigEndian.AppendUint64(b, uint64(t.Micros))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// DecodeToken parses a token that Encode returned. It returns ErrToken if the text is invalid.
func DecodeToken(text string) (Token, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 16 || crc32.ChecksumIEEE(b[:12]) != binary.BigEndian.Uint32(b[12:]) {
		return Token{}, ErrToken
	}
	return Token{Table: binary.BigEndian.Uint32(b), Micros: int64(binary.BigEndian.Uint64(b[4:]))}, nil
}

// Boosted reports whether Data Boost sees all writes that precede a token.
func (v *View) Boosted(t Token, now time.Time) bool {
	return v == nil || v.boost == 0 || now.UnixMicro() >= wholeMillis(t.Made().UnixMicro())+v.boost.Microseconds()
}
