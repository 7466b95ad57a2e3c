package wire

import (
	"encoding/base32"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/internal/exchange"
	"github.com/tabletop-emu/tabletop/internal/httpbody"
)

// ContentTypeJSON is the media type of the protocol.
const ContentTypeJSON = "application/x-amz-json-1.0"

// plainJSON is an alternative media type of requests; the answer has the same.
const plainJSON = "application/json"

// MaxRequestBytes is the maximum size of a request's body, both before and after
// decompression.
const MaxRequestBytes = 16 << 20

// maxHeaderBytes limits the request line plus the headers.
const maxHeaderBytes = 16 << 10

// minCompressBytes is the size above which an answer is compressed, if the client accepts it.
const minCompressBytes = 4 << 10

// Bodies of AWS's answers outside the JSON protocol.
const (
	unknownOperationXML = "<UnknownOperationException/>\n"
	healthTextFormat    = "healthy: %s "
	headersTextFormat   = "the line and the headers of the request have %d bytes, but the limit is %d\n" // our own text
)

// Dates formats the Date headers of responses. It caches the last one, because
// consecutive responses are usually sent in the same second.
type Dates struct{ last atomic.Pointer[datedHeader] }

type datedHeader struct {
	second int64
	header string
}

// At returns the value of the Date header at time t.
func (d *Dates) At(t time.Time) string {
	last := d.last.Load()
	if last == nil || last.second != t.Unix() {
		last = &datedHeader{t.Unix(), t.UTC().Format(http.TimeFormat)}
		d.last.Store(last)
	}
	return last.header
}

// Response is an uncompressed response.
type Response struct {
	Status      int
	ContentType string // "" omits the header
	Body        []byte
	RequestID   string        // random bytes, see RequestID
	Date        string        // value from Dates
	Watermark   string        // position up to which a stream was delivered; "" omits the header
	RetryAfter  time.Duration // delay for a throttled client; 0 omits the header
}

// NewResponse returns the response to the call r, with an HTTP status and a JSON body.
func NewResponse(r *exchange.Request, status int, body []byte) Response {
	a := Response{Status: status, ContentType: plainJSON, Body: body}
	if isMediaType(r.Header.Get("Content-Type"), ContentTypeJSON) {
		a.ContentType = ContentTypeJSON
	}
	return a
}

// OutsideProtocol returns the response to a request outside the protocol: a CORS
// preflight, a health check, or a request that AWS does not know. ok is false if the
// request is a call of the protocol.
func OutsideProtocol(r *exchange.Request) (a Response, ok bool) {
	if r.HeadBytes > maxHeaderBytes {
		return Response{Status: http.StatusBadRequest, Body: fmt.Appendf(nil, headersTextFormat, r.HeadBytes, maxHeaderBytes)}, true
	}
	switch {
	case r.Method == http.MethodOptions && r.Header.Get("Origin") != "":
		return Response{Status: http.StatusOK}, true
	case r.Method == http.MethodGet && (r.Path == "/" || r.Path == ""):
		return Response{Status: http.StatusOK, Body: fmt.Appendf(nil, healthTextFormat, r.Host)}, true
	case r.Method == http.MethodPost && r.Length > MaxRequestBytes:
		return Response{}, false // ReadBody rejects it, whatever its media type
	case r.Method != http.MethodPost, !isJSON(r):
		return Response{Status: http.StatusNotFound, Body: []byte(unknownOperationXML)}, true
	default:
		return Response{}, false
	}
}

// RequestIDBytes is the number of random bytes in a request id.
const RequestIDBytes = 32

// requestIDLen is the length of a request id in characters.
const requestIDLen = (RequestIDBytes*8 + 4) / 5

var requestIDEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// RequestID encodes 32 random bytes as a request id of 52 characters in the range
// [0-9A-V].
func RequestID(random []byte) string {
	var id [requestIDLen]byte
	requestIDEncoding.Encode(id[:], random)
	return string(id[:])
}

// isJSON reports whether a request declares a JSON body, or has no body.
func isJSON(r *exchange.Request) bool {
	given := r.Header.Get("Content-Type")
	return isMediaType(given, ContentTypeJSON) || isMediaType(given, plainJSON) || given == "" && r.Length == 0
}

func isMediaType(header, want string) bool {
	mediaType, _, _ := strings.Cut(header, ";")
	return strings.EqualFold(strings.TrimSpace(mediaType), want)
}

// ReadBody reads and decompresses the body of a request. It rejects a body that exceeds
// MaxRequestBytes before or after decompression, and returns both forms. Errors are of
// type *awserr.Error.
func ReadBody(r *exchange.Request) (sent, body []byte, err error) {
	if r.Body == nil {
		return nil, nil, nil
	}
	if r.Length > MaxRequestBytes {
		return nil, nil, awserr.New(awserr.CodeRequestTooLarge, awserr.MsgRequestTooLarge, r.Length, MaxRequestBytes)
	}
	if sent, err = httpbody.Read(r.Body, r.Length, MaxRequestBytes); err == nil {
		body, err = httpbody.Decode(r.Header.Get("Content-Encoding"), sent, MaxRequestBytes)
	} else if !errors.Is(err, httpbody.ErrTooLarge) {
		return nil, nil, serializationError("%s", err)
	}
	switch {
	case errors.Is(err, httpbody.ErrTooLarge):
		return nil, nil, awserr.New(awserr.CodeRequestTooLarge, awserr.MsgRequestTooLarge, MaxRequestBytes+1, MaxRequestBytes)
	case err != nil: // AWS treats a failed decompression as its own fault
		return nil, nil, awserr.New(awserr.CodeInternalServerError, "%s", err)
	}
	return sent, body, nil
}

// Bounds for draining a rejected body. Package net/http itself reads up to minDrainBytes; the
// rest beyond maxDrainBytes stays unread.
const (
	minDrainBytes = 256 << 10
	maxDrainBytes = 4 * MaxRequestBytes
)

// drain reads the rest of a rejected body: a client that still writes when the connection
// closes may see a reset instead of the answer. A client that waits for 100 Continue sends no
// body.
func drain(r *exchange.Request) {
	short := r.Length >= 0 && r.Length <= minDrainBytes
	if r.Body != nil && !short && r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, r.Body, maxDrainBytes) // an error does not change the answer
	}
}

// Fill fills the answer to r with the response and AWS's headers. It reports whether it compressed
// the body.
func (a Response) Fill(out *exchange.Answer, r *exchange.Request) (packed bool) {
	drain(r)
	out.Status, out.Body = a.Status, a.Body
	if r.Header.Get("Origin") != "" {
		out.Set("Access-Control-Allow-Origin", "*")
		if r.Method == http.MethodOptions {
			echo(out, "Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			echo(out, "Access-Control-Allow-Methods", r.Header.Get("Access-Control-Request-Method"))
			out.Set("Access-Control-Max-Age", "172800")
		}
		out.Set("Access-Control-Expose-Headers", "x-amzn-RequestId,x-amzn-ErrorType,x-amz-request-id,x-amz-id-2,x-amzn-ErrorMessage,x-amz-crc32,Date")
	}
	if len(a.Body) > minCompressBytes {
		if coding := httpbody.Accepted(r.Header.Get("Accept-Encoding")); coding != "" {
			if body, err := httpbody.Encode(coding, a.Body); err == nil {
				out.Body, packed = body, true
				out.Set("Content-Encoding", coding)
			}
		}
	}
	out.Set("Server", "Server")
	out.Set("Date", a.Date)
	// The checksum covers the bytes as sent, after compression; on a mismatch, the SDK for Go
	// fails the call.
	out.Set("x-amzn-RequestId", a.RequestID) // in AWS's spelling
	out.Set("x-amz-crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(out.Body)), 10))
	if a.Watermark != "" {
		out.Set("X-Tabletop-Watermark", a.Watermark)
	}
	if a.RetryAfter > 0 {
		wait := (a.RetryAfter + time.Millisecond - 1) / time.Millisecond
		out.Set("X-Amz-Retry-After", strconv.FormatInt(int64(wait), 10))
	}
	if a.ContentType != "" {
		out.Set("Content-Type", a.ContentType)
	}
	return packed
}

func echo(out *exchange.Answer, name, value string) {
	if value != "" {
		out.Set(name, value)
	}
}
