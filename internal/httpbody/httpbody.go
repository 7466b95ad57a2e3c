// Package httpbody reads bodies of HTTP messages up to a limit. It supports the content codings
// that DynamoDB and its clients use, gzip and deflate, and limits the uncompressed size too.
package httpbody

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// ErrTooLarge is returned for a body that exceeds the limit.
var ErrTooLarge = errors.New("the body is too large")

// mostAheadBytes is the memory for a body before its first bytes arrive, since an announced
// size may be wrong. After that the memory is four times the received bytes.
const mostAheadBytes = 64 << 10

// Read reads a body of at most maxBytes. sizeHint is the announced size of the body, or -1 if it is
// unknown.
func Read(src io.Reader, sizeHint, maxBytes int64) ([]byte, error) {
	said := min(sizeHint, maxBytes) + 1 // with room to read its end
	ahead := min(said, mostAheadBytes+1)
	if sizeHint <= 0 {
		ahead = bytes.MinRead
	}
	body := make([]byte, 0, ahead)
	for {
		if n := int64(len(body)); n == int64(cap(body)) {
			next := min(2*n, maxBytes+1)
			if n < said {
				next = min(4*n, said)
			}
			body = append(make([]byte, 0, next), body...)
		}
		n, err := src.Read(body[len(body):min(int64(cap(body)), maxBytes+1)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > maxBytes:
			return nil, ErrTooLarge
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, fmt.Errorf("the request body could not be read: %w", err)
		}
	}
}

// Decode returns the content of a body according to its header Content-Encoding. The content of a
// compressed body may have at most maxBytes. A body that is not compressed is returned unchanged.
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

// Accepted chooses the coding for a header Accept-Encoding: "gzip", "deflate" or "". It interprets
// the header like AWS. The coding with the greatest weight wins; among equal weights, the first one.
// "*" means all other codings, and identity is ignored.
func Accepted(header string) string {
	weights := map[string]float64{}
	var named []string
	for field := range strings.SplitSeq(header, ",") {
		coding, params, _ := strings.Cut(field, ";")
		switch coding = strings.ToLower(strings.TrimSpace(coding)); coding {
		case "gzip", "deflate", "*":
			if _, twice := weights[coding]; !twice && coding != "*" {
				named = append(named, coding)
			}
			weights[coding] = max(weights[coding], weight(params))
		}
	}
	for _, coding := range []string{"gzip", "deflate"} {
		if _, ok := weights[coding]; !ok {
			named = append(named, coding)
			weights[coding] = weights["*"]
		}
	}
	best := ""
	for _, coding := range named {
		if weights[coding] > weights[best] {
			best = coding
		}
	}
	return best
}

// weight returns the weight of a coding with these parameters. Like AWS it uses the first
// "q=", and 1 if the value is above 1 or not a number.
func weight(params string) float64 {
	_, q, ok := strings.Cut(params, "q=")
	if !ok {
		return 1
	}
	q, _, _ = strings.Cut(q, ";")
	w, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
	if err != nil || w > 1 || math.IsNaN(w) {
		return 1
	}
	return w
}

// Encode compresses a body with a coding that Accepted returned. It prefers speed to size. The fast
// level stores a body without repetitions unchanged, even if it consists of few different
// characters, so for such a body Encode also tries Huffman codes alone.
func Encode(coding string, body []byte) ([]byte, error) {
	packed, err := encode(coding, gzip.BestSpeed, body)
	if err != nil || len(packed) <= len(body)/5*4 {
		return packed, err
	}
	shorter, err := encode(coding, gzip.HuffmanOnly, body)
	if err == nil && len(shorter) < len(packed) {
		packed = shorter
	}
	return packed, err
}

func encode(coding string, level int, body []byte) ([]byte, error) {
	var buf bytes.Buffer
	var enc io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		enc, err = gzip.NewWriterLevel(&buf, level)
	case "deflate":
		enc, err = zlib.NewWriterLevel(&buf, level)
	default:
		return nil, fmt.Errorf("httpbody: unknown content coding %q, want gzip or deflate", coding)
	}
	if err != nil {
		return nil, err
	}
	_, err = enc.Write(body)
	err = errors.Join(err, enc.Close())
	return buf.Bytes(), err
}
