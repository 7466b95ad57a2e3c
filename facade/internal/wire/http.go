package wire

import (
	"encoding/base32"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/httpbody"
)

// ContentTypeJSON is the media type of the protocol.
const ContentTypeJSON = "application/x-amz-json-1.0"

// MaxRequestBytes limits the body of a request, before and after decompression.
const MaxRequestBytes = 16 << 20

// minCompressBytes: an answer above this is compressed when asked for.
const minCompressBytes = 4 << 10

// Bodies that AWS answers outside the JSON protocol.
const (
	unknownOperationXML = "<UnknownOperationException/>\n"
	healthTextFormat    = "healthy: dynamodb.%s.amazonaws.com "
)

// Response is an answer before compression.
type Response struct {
	Status      int
	ContentType string // "" leaves the header out
	Body        []byte
	RequestID   string // see RequestID
}

// NewResponse returns the answer to a call, with the HTTP status and the JSON body.
func NewResponse(status int, body []byte) Response {
	return Response{Status: status, ContentType: ContentTypeJSON, Body: body}
}

// OutsideProtocol returns the answer to a request that is no call of the protocol:
// a CORS preflight, the question for health, or what AWS does not know. ok is false
// for a call.
func OutsideProtocol(r *http.Request, region string) (a Response, ok bool) {
	switch {
	case r.Method == http.MethodOptions && r.Header.Get("Origin") != "":
		return Response{Status: http.StatusOK}, true
	case r.Method == http.MethodGet:
		return Response{Status: http.StatusOK, Body: fmt.Appendf(nil, healthTextFormat, region)}, true
	case r.Method != http.MethodPost, !isJSONContentType(r.Header.Get("Content-Type")):
		return Response{Status: http.StatusNotFound, Body: []byte(unknownOperationXML)}, true
	default:
		return Response{}, false
	}
}

// RequestIDBytes is how many random bytes an id of a request takes.
const RequestIDBytes = 32

var requestIDEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

// RequestID writes 32 random bytes as the 52 characters [0-9A-V] of an id.
func RequestID(random []byte) string { return requestIDEncoding.EncodeToString(random) }

func isJSONContentType(header string) bool {
	mediaType, _, _ := strings.Cut(header, ";")
	mediaType = strings.TrimSpace(mediaType)
	return strings.EqualFold(mediaType, ContentTypeJSON) || strings.EqualFold(mediaType, "application/json")
}

// ReadBody reads and decompresses the body, refusing more than MaxRequestBytes on
// either side of the decompression. It returns both sides. Its error is a *Refusal.
func ReadBody(r *http.Request) (sent, body []byte, err error) {
	if r.Body == nil {
		return nil, nil, nil
	}
	if r.ContentLength > MaxRequestBytes {
		return nil, nil, requestTooLargeError(r.ContentLength)
	}
	if sent, err = httpbody.Read(r.Body, r.ContentLength, MaxRequestBytes); err == nil {
		body, err = httpbody.Decode(r.Header.Get("Content-Encoding"), sent, MaxRequestBytes)
	}
	switch {
	case errors.Is(err, httpbody.ErrTooLarge):
		return nil, nil, requestTooLargeError(MaxRequestBytes + 1)
	case err != nil:
		return nil, nil, serializationError(err.Error())
	}
	return sent, body, nil
}

// Write sends a with the headers that AWS sends, as the answer to r.
func (a Response) Write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	if r.Header.Get("Origin") != "" {
		h.Set("Access-Control-Allow-Origin", "*")
		if r.Method == http.MethodOptions {
			echo(h, "Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
			echo(h, "Access-Control-Allow-Methods", r.Header.Get("Access-Control-Request-Method"))
			h.Set("Access-Control-Max-Age", "172800")
		} else {
			h.Set("Access-Control-Expose-Headers", "x-amzn-RequestId,x-amzn-ErrorType,x-amz-request-id,x-amz-id-2,x-amzn-ErrorMessage,x-amz-crc32,Date")
		}
	}
	body := a.Body
	if len(body) > minCompressBytes {
		if coding := httpbody.Accepted(r.Header); coding != "" {
			if packed, err := httpbody.Encode(coding, body); err == nil {
				body = packed
				h.Set("Content-Encoding", coding)
			}
		}
	}
	h["x-amzn-RequestId"] = []string{a.RequestID} // AWS's own spelling
	// The checksum covers the bytes as sent, after compression; the SDK for Go
	// fails the call when it does not match.
	h["x-amz-crc32"] = []string{strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)}
	if a.ContentType != "" {
		h.Set("Content-Type", a.ContentType)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.Status)
	_, _ = w.Write(body) // the client may be gone; there is no one to tell
}

func echo(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}
