package function

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"

	farm "github.com/dgryski/go-farm"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

func hashTable() []*Function {
	digest := func(name string, sum func(b []byte) []byte) *Function {
		eval := func(_ *Context, a []value.Value) (value.Value, error) { return value.Bytes(sum(a[0].Bytes())), nil }
		return fn(name, both("X -> BYTES", eval, eval)...)
	}
	fingerprint := func(_ *Context, a []value.Value) (value.Value, error) {
		return value.Int64(int64(farm.Fingerprint64(a[0].Bytes()))), nil
	}
	return []*Function{
		fn("FARM_FINGERPRINT", both("X -> INT64", fingerprint, fingerprint)...),
		digest("MD5", func(b []byte) []byte { sum := md5.Sum(b); return sum[:] }),
		digest("SHA1", func(b []byte) []byte { sum := sha1.Sum(b); return sum[:] }),
		digest("SHA256", func(b []byte) []byte { sum := sha256.Sum256(b); return sum[:] }),
		digest("SHA512", func(b []byte) []byte { sum := sha512.Sum512(b); return sum[:] }),
	}
}
