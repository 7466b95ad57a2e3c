package rowkey

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Digests lists the hash functions of the encoders salt and hash.
var Digests = map[string]func(text string) []byte{
	"fnv1a32": func(text string) []byte { h := fnv.New32a(); _, _ = h.Write([]byte(text)); return h.Sum(nil) },
	"crc32":   func(text string) []byte { return binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))) },
	"md5":     func(text string) []byte { h := md5.Sum([]byte(text)); return h[:] },
	"sha256":  func(text string) []byte { h := sha256.Sum256([]byte(text)); return h[:] },
}

// minIdentityBytes is the minimum length of a digest that can identify a value.
const minIdentityBytes = md5.Size

// ParseDigest returns the function in Digests with the given name.
func ParseDigest(name string) (func(text string) []byte, error) {
	f, ok := Digests[name]
	if !ok {
		return nil, fmt.Errorf("unknown hash %q; expected %s", name, strings.Join(slices.Sorted(maps.Keys(Digests)), ", "))
	}
	return f, nil
}

// MaxShards limits the number of ranges to which a read fans out.
const MaxShards = 1000

// ShardOf returns the shard of a text, in [0, n): the first eight bytes of its digest
// (fewer if the digest is shorter), as a big-endian number, modulo n.
func ShardOf(digest func(string) []byte, text string, n int) int {
	var b [8]byte
	sum := digest(text)
	sum = sum[:min(len(sum), len(b))]
	copy(b[len(b)-len(sum):], sum)
	return int(binary.BigEndian.Uint64(b[:]) % uint64(n))
}

// appendShard appends the text of a shard.
func (e *Encoder) appendShard(dst []byte, shard int) []byte {
	return fmt.Appendf(dst, "%0*d", e.Width, shard)
}

// derivedFrom makes e write a derived text that does not determine its value.
func (e *Encoder) derivedFrom(operand attr.Type) {
	e.Derived, e.In = true, operand
	if operand == attr.Absent { // a capture with a time
		e.In = attr.N
	}
}

// saltEncoder makes e write the shard of a value, as w digits: salt(hash,n,w).
func saltEncoder(e *Encoder, arg string, operand attr.Type) error {
	args := strings.Split(arg, ",")
	if len(args) != 3 {
		return errors.New("encoder salt: expected salt(hash,n,w): a hash, the number of shards and of digits")
	}
	digest, err := ParseDigest(strings.TrimSpace(args[0]))
	if err != nil {
		return err
	}
	n, errN := strconv.Atoi(strings.TrimSpace(args[1]))
	w, errW := strconv.Atoi(strings.TrimSpace(args[2]))
	if errN != nil || errW != nil || n < 1 || n > MaxShards || w < 1 || w > 18 || int64(n) > Pow10(w) {
		return fmt.Errorf("encoder salt: %s shards of %s digits; expected 1 to %d shards, and enough digits for all of them", args[1], args[2], MaxShards)
	}
	e.derivedFrom(operand)
	e.Shards, e.Width = n, w
	e.encode = func(dst []byte, v attr.Value) ([]byte, bool) {
		return e.appendShard(dst, ShardOf(digest, v.Str, n)), true
	}
	return nil
}

// hashEncoder makes e write the digest of a value, in hex: hash(name).
func hashEncoder(e *Encoder, arg string, operand attr.Type) error {
	digest, err := ParseDigest(arg)
	if err != nil {
		return err
	}
	e.derivedFrom(operand)
	e.Width = 2 * len(digest(""))
	e.Identifies = len(digest("")) >= minIdentityBytes
	e.encode = func(dst []byte, v attr.Value) ([]byte, bool) { return hex.AppendEncode(dst, digest(v.Str)), true }
	return nil
}
