package replica

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
)

// Token is a consistency token: the unique id of a table, and the last commit
// time of the store. Without recent commits, the time is just before the
// token's creation. The token has no stored state: CheckConsistency reads the
// journal.
type Token struct {
	Table  uint32
	Micros int64
}

// ErrToken is the error of DecodeToken.
var ErrToken = errors.New("not a consistency token")

// NewToken returns a token of a table as of now. Commits that begin to be
// written later do not precede the token, even if the clock does not advance.
func NewToken(table uint32, lastMicros int64, now time.Time) Token {
	return Token{Table: table, Micros: max(lastMicros, now.UnixMicro()-1)}
}

// Made returns a time at or shortly before the creation of the token.
func (t Token) Made() time.Time { return time.UnixMicro(t.Micros + 1) }

// Encode returns the token as text:
//
//	table id, 4 bytes | time in microseconds, 8 bytes | CRC-32 of these, 4 bytes
func (t Token) Encode() string {
	b := binary.BigEndian.AppendUint32(nil, t.Table)
	b = binary.BigEndian.AppendUint64(b, uint64(t.Micros))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// DecodeToken is the inverse of Encode. Errors: ErrToken.
func DecodeToken(text string) (Token, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 16 || crc32.ChecksumIEEE(b[:12]) != binary.BigEndian.Uint32(b[12:]) {
		return Token{}, ErrToken
	}
	return Token{Table: binary.BigEndian.Uint32(b), Micros: int64(binary.BigEndian.Uint64(b[4:]))}, nil
}

// Boosted reports whether Data Boost sees the writes before a token was made.
func (v *View) Boosted(t Token, now time.Time) bool {
	return v == nil || v.boost == 0 || now.UnixMicro() >= wholeMillis(t.Made().UnixMicro())+v.boost.Microseconds()
}
