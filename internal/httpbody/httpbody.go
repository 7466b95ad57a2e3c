// Package httpbody reads bodies of HTTP messages up to a limit, and knows the
// content codings that DynamoDB and its clients use: gzip and deflate. The unpacked
// size of a body is limited as well.
package httpbody

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// ErrTooLarge is the error of a body above the limit.
var ErrTooLarge = errors.New("the body is too large")

// Read reads a body of at most maxBytes. sizeHint is what it may have, or -1.
func Read(src io.Reader, sizeHint, maxBytes int64) ([]byte, error) {
	var buf bytes.Buffer
	if sizeHint > 0 {
		buf.Grow(int(min(sizeHint, maxBytes)) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(src, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("the request body could not be read: %w", err)
	}
	if n > maxBytes {
		return nil, ErrTooLarge
	}
	return buf.Bytes(), nil
}

// Decode returns what a body with the header Content-Encoding holds, at most
// maxBytes of it if it is packed; else the body itself.
func Decode(contentEncoding string, body []byte, maxBytes int64) ([]byte, error) {
	var dec io.ReadCloser
	var err error
	switch coding := strings.ToLower(strings.TrimSpace(contentEncoding)); coding {
	case "", "identity":
		return body, nil
	case "gzip":
		dec, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		dec, err = zlib.NewReader(bytes.NewReader(body))
	default:
		return nil, errors.New("Content-Encoding " + strconv.Quote(coding) + " is not supported")
	}
	if err != nil {
		return nil, fmt.Errorf("the request body does not match its Content-Encoding: %w", err)
	}
	defer func() { _ = dec.Close() }()
	return Read(dec, -1, maxBytes)
}

// Accepted returns the coding that the header Accept-Encoding asks for: "gzip",
// "deflate" or "". Like AWS it looks at the first such header alone.
func Accepted(h http.Header) string {
	accepted := ""
	for field := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		coding, params, _ := strings.Cut(field, ";")
		if q := strings.ReplaceAll(params, " ", ""); q == "q=0" || strings.HasPrefix(q, "q=0.0") && strings.Trim(q, "q=0.") == "" {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "*":
			return "gzip"
		case "deflate":
			accepted = "deflate"
		}
	}
	return accepted
}

// Encode packs a body as a coding that Accepted returned, fast rather than small.
func Encode(coding string, body []byte) ([]byte, error) {
	var buf bytes.Buffer
	var enc io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		enc, err = gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	case "deflate":
		enc, err = zlib.NewWriterLevel(&buf, zlib.BestSpeed)
	default:
		return nil, fmt.Errorf("httpbody: no content coding %q, want gzip or deflate", coding)
	}
	if err != nil {
		return nil, err
	}
	_, err = enc.Write(body)
	err = errors.Join(err, enc.Close())
	return buf.Bytes(), err
}
