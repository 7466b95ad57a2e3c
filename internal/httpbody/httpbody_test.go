package httpbody_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/httpbody"
)

// What is packed in each coding is unpacked again, up to the limit.
func TestEncode_Decode(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("text ", 1000))
	for _, coding := range []string{"gzip", "deflate"} {
		packed, err := httpbody.Encode(coding, text)
		if err != nil || len(packed) >= len(text) {
			t.Fatalf("%s: %d bytes, %v", coding, len(packed), err)
		}
		got, err := httpbody.Decode(" "+strings.ToUpper(coding)+" ", packed, int64(len(text)))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes, %v", coding, len(got), err)
		}
		if _, err := httpbody.Decode(coding, packed, int64(len(text))-1); !errors.Is(err, httpbody.ErrTooLarge) {
			t.Errorf("%s, a byte too many: %v", coding, err)
		}
		if _, err := httpbody.Decode(coding, packed[:len(packed)/2], 1<<20); err == nil {
			t.Errorf("%s: half of it is taken", coding)
		}
	}
	if got, err := httpbody.Decode("identity", text, 1); err != nil || !bytes.Equal(got, text) {
		t.Errorf("identity: %d bytes, %v", len(got), err)
	}
	if _, err := httpbody.Encode("br", text); err == nil {
		t.Error("br is known")
	}
}

// Which coding AWS chooses for a header.
func TestFaultD18_Accepted(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "", "identity": "", "br": "", "zstd": "", "compress": "", "x-gzip": "", "gzip": "gzip", "deflate": "deflate",
		"gzip, deflate": "gzip", "br, identity, deflate, gzip": "deflate", "GZIP, identity": "gzip", "dog, gzip ,, cat": "gzip",
		"gzip;q=0.8, deflate;q=0.5": "gzip", "deflate, GZIP;q=0.5": "deflate", "deflate;q=0.5, gzip;q=0.2": "deflate",
		"br, gzip;q=0, deflate; q = 0.5 , identity;q=0": "deflate",
		// What is not named.
		"*": "gzip", "*, deflate;q=0.5": "gzip", "*, deflate": "deflate", "*, identity": "gzip", "*, gzip;q=0.5": "deflate",
		"*;q=0": "", "*;q=0.5,identity": "gzip", "br;q=0.8,identity;q=0.5,*;q=0": "",
		"gzip;q=0": "", "gzip ;q=0": "", "gzip; q=0.00, deflate": "deflate", "gzip;q=0.01": "gzip", "identity;q=0": "",
		"gzip;q=0.5,identity;q=0.8": "gzip", "br,identity;q=0.5,gzip;q=0.0001": "gzip",
		// What is not as it should be.
		`"gzip"`: "", "gzip br": "", "gzip:q=1": "", "deflate;q=0.5, gzip;q=31": "gzip", "gzip;q=31,deflate;q=51": "gzip",
		"deflate;q=0.5, gzip;q=1;q=0.2": "gzip", "deflate;q=0.5,gzip;q=0.": "deflate", "deflate;q=0.5,gzip;q=0.x": "gzip",
		"deflate;q=0.5,gzip;q=0. x": "gzip", "deflate;q=-0.5,gzip;q=0.2": "gzip", "deflate;q=-0.5": "", "gzip;q= 0;q=1": "", "gzip;q =0;q=1": "gzip",
		"gzip; q=0;q=1": "", "gzip;nq=0;q=1": "", "gzip;q=0, gzip;q=1, gzip;q=0": "gzip", "deflate;q=0.5,gzip;q=NaN": "gzip",
	} {
		if got := httpbody.Accepted(http.Header{"Accept-Encoding": {header, "gzip"}}); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}

// What repeats nothing is packed too, where it has few characters.
func TestFaultD18_RandomLetters(t *testing.T) {
	t.Parallel()
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 200<<10)
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
	}
	for _, coding := range []string{"gzip", "deflate"} {
		packed, err := httpbody.Encode(coding, text)
		if err != nil || len(packed)*3 > len(text)*2 {
			t.Errorf("%s: %d bytes, %v; want two thirds of %d at most", coding, len(packed), err, len(text))
		}
		if got, err := httpbody.Decode(coding, packed, int64(len(text))); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: unpacked %d bytes, %v", coding, len(got), err)
		}
	}
}
