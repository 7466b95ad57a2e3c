package hllpp

import (
	"encoding/binary"
	"math/bits"
)

// Multipliers of fingerprint.
const (
	prime0 uint64 = 0xa5b85c5e198ed849
	prime1 uint64 = 0x8d58ac26afe12e47
	prime2 uint64 = 0xc47b6e9e3a970ed3
	prime3 uint64 = 0xc6a4a7935bd1e995
)

// fingerprint returns the 64-bit hash of sketches, Fingerprint2011: a relative of MurmurHash64 and
// CityHash64. It must be the same in every program whose sketches are merged.
func fingerprint(b []byte) uint64 {
	var h uint64
	switch {
	case len(b) <= 32:
		h = murmur(b, prime0^prime1^prime2)
	case len(b) <= 64:
		h = hash33To64(b)
	default:
		h = hashLong(b)
	}
	first, last := prime0, prime0
	if len(b) >= 8 {
		first = word(b)
	}
	if len(b) >= 9 {
		last = word(b[len(b)-8:])
	}
	h = combine(h+last, first)
	if h <= 1 {
		h -= 2
	}
	return h
}

// fingerprintInt64 returns the hash of the eight bytes of n, little-endian.
func fingerprintInt64(n int64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	return fingerprint(b[:])
}

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func mix(h uint64) uint64 { return h ^ h>>47 }

func rotateRight(h uint64, n int) uint64 { return bits.RotateLeft64(h, -n) }

// combine hashes two words to one.
func combine(high, low uint64) uint64 {
	a := mix((low ^ high) * prime3)
	return mix((high^a)*prime3) * prime3
}

// murmur hashes up to 32 bytes.
func murmur(b []byte, seed uint64) uint64 {
	h := seed ^ uint64(len(b))*prime3
	for ; len(b) >= 8; b = b[8:] {
		h = (h ^ mix(word(b)*prime3)*prime3) * prime3
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		h = (h ^ word(tail[:])) * prime3
	}
	return mix(mix(h) * prime3)
}

// hash33To64 hashes 33 to 64 bytes: the first 32 and the last 32.
func hash33To64(b []byte) uint64 {
	half := func(a, z, second, third uint64) (first, sum uint64) {
		y := rotateRight(a+z, 52)
		x := rotateRight(a, 37)
		a += second
		x += rotateRight(a, 7)
		a += third
		return a + z, y + rotateRight(a, 31) + x
	}
	n := len(b)
	v1, v2 := half(word(b)+(uint64(n)+word(b[n-16:]))*prime0, word(b[24:]), word(b[8:]), word(b[16:]))
	w1, w2 := half(word(b[16:])+word(b[n-32:]), word(b[n-8:]), word(b[n-24:]), word(b[n-16:]))
	r := mix((v1+w2)*prime2 + (w1+v2)*prime0)
	return mix(r*prime0+v2) * prime2
}

// pair is a state of 16 bytes.
type pair struct{ a, b uint64 }

// weak hashes 32 bytes into a pair.
func weak(s []byte, a, b uint64) pair {
	w0, w1, w2, w3 := word(s), word(s[8:]), word(s[16:]), word(s[24:])
	a += w0
	b = rotateRight(b+a+w3, 51)
	c := a
	a += w1 + w2
	b += rotateRight(a, 23)
	return pair{a + w3, b + c}
}

// hashLong hashes more than 64 bytes: the last 64 first, then from the start in blocks of 64. The
// last block may be shorter.
func hashLong(b []byte) uint64 {
	n := len(b)
	x := word(b)
	y := word(b[n-16:]) ^ prime1
	z := word(b[n-56:]) ^ prime0
	v := weak(b[n-64:], uint64(n), y)
	w := weak(b[n-32:], uint64(n)*prime1, prime0)
	z += mix(v.b) * prime1
	x = rotateRight(z+x, 39) * prime1
	y = rotateRight(y, 33) * prime1
	for range (n - 1) / 64 {
		x = rotateRight(x+y+v.a+word(b[16:]), 37) * prime1
		y = rotateRight(y+v.b+word(b[48:]), 42) * prime1
		x ^= w.b
		y ^= v.a
		z = rotateRight(z^w.a, 33)
		v = weak(b, v.b*prime1, x+w.a)
		w = weak(b[32:], z+w.b, y)
		x, z = z, x
		b = b[64:]
	}
	return combine(combine(v.a, w.a)+mix(y)*prime1+z, combine(v.b, w.b)+x)
}
