package httpbody_test

import (
	"bytes"
	"errors"
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

func TestAccepted(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "", "identity": "", "br": "", "gzip": "gzip", "*": "gzip", "deflate": "deflate", "deflate, GZIP;q=0.5": "gzip",
		"gzip;q=0": "", "gzip; q=0.00, deflate": "deflate", "gzip;q=0.01": "gzip",
	} {
		if got := httpbody.Accepted(http.Header{"Accept-Encoding": {header, "gzip"}}); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
