package facade

import (
	"bytes"
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// Server answers the DynamoDB API over a Bigtable. It is an http.Handler and
// safe for concurrent use.
type Server struct {
	opts  Options
	store *store
	pages *pageMemory

	namespaces *namespaces // nil: all callers share the tables of store

	firstCaller  atomic.Pointer[caller]
	otherCallers atomic.Bool // one was told of
}

// New returns a Server over opts.Conn. It reads the facade's catalog of
// tables from that Bigtable, and creates it there when it is absent; ctx
// bounds that work alone.
func New(ctx context.Context, opts Options) (*Server, error) {
	opts, err := opts.normalized()
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, pages: &pageMemory{}}
	s.store, err = newStore(ctx, opts.store(catalogTable))
	if err != nil {
		return nil, fmt.Errorf("facade: %w", err)
	}
	if opts.Namespaced {
		if err := s.openNamespaces(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("facade: %w", err), s.Close())
		}
	}
	return s, nil
}

const contentTypeJSON = "application/x-amz-json-1.0"

// Bodies that AWS answers outside the JSON protocol.
const (
	unknownOperationXML = "<UnknownOperationException/>\n"
	healthTextFormat    = "healthy: dynamodb.%s.amazonaws.com "
)

// ServeHTTP answers one request: AWS JSON 1.0 at POST /, the health text at
// GET /, CORS preflights at OPTIONS. The order of its checks is AWS's: method
// and content type, size, JSON, target, signature, then the operation.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := s.serve(r)
	a.write(w, r)
	s.pages.giveBack(a.body)
}

// answer is a response before compression.
type answer struct {
	status      int
	contentType string
	body        []byte
	requestID   string
}

func (s *Server) serve(r *http.Request) answer {
	id := s.requestID()
	switch {
	case r.Method == http.MethodOptions && r.Header.Get("Origin") != "":
		return answer{status: http.StatusOK, requestID: id}
	case r.Method == http.MethodGet:
		return answer{status: http.StatusOK, requestID: id, body: fmt.Appendf(nil, healthTextFormat, s.opts.Region)}
	case r.Method != http.MethodPost, !isJSONContentType(r.Header.Get("Content-Type")):
		return answer{status: http.StatusNotFound, requestID: id, body: []byte(unknownOperationXML)}
	}
	body, err := s.call(r)
	if err != nil {
		e, ok := asError(err)
		if !ok {
			e = s.answerableError(r.Context(), err, id)
		}
		return answer{status: e.HTTPStatus, contentType: contentTypeJSON, requestID: id, body: encodeError(e)}
	}
	return answer{status: http.StatusOK, contentType: contentTypeJSON, requestID: id, body: body}
}

// call runs the operation that r asks for and returns the JSON of its answer.
func (s *Server) call(r *http.Request) ([]byte, error) {
	sent, body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	op, noOperation := operationOfTarget(r.Header.Get("X-Amz-Target"))
	req, err := s.readRequest(r.Context(), op, body)
	if err != nil {
		return nil, err
	}
	if noOperation != nil {
		return nil, noOperation
	}
	target, err := s.forSender(r, sent)
	if err != nil {
		return nil, err
	}
	return target.run(r.Context(), op, req)
}

// Call runs one operation by name ("GetItem") without HTTP: request and
// response are the JSON bodies of the AWS JSON 1.0 protocol. It asks for no
// signature. A failure that DynamoDB would answer is an *Error.
func (s *Server) Call(ctx context.Context, operation string, request []byte) (response []byte, err error) {
	op, ok := operationsByTarget[targetDynamoDB+operation]
	if !ok {
		return nil, unknownOperationError("no operation " + strconv.Quote(operation))
	}
	req, err := s.readRequest(ctx, op, request)
	if err != nil {
		return nil, err
	}
	response, err = s.run(ctx, op, req)
	if err != nil {
		if _, ok := asError(err); !ok {
			err = s.answerableError(ctx, err, "")
		}
		return nil, err
	}
	return s.pages.detached(response), nil
}

// CallAs is Call for the sender of r, whose body was sent: where Call asks for
// no signature, that of r has to be good for its own body, and where callers
// have tables of their own, request works on those of the sender.
func (s *Server) CallAs(r *http.Request, sent []byte, operation string, request []byte) (response []byte, err error) {
	target, err := s.forSender(r, sent)
	if err != nil {
		return nil, err
	}
	return target.Call(r.Context(), operation, request)
}

// forSender checks the signature of r, whose body was sent, and returns the
// server that has the tables of its sender.
func (s *Server) forSender(r *http.Request, sent []byte) (*Server, error) {
	who, err := s.authenticate(r, sent)
	if err != nil {
		return nil, err
	}
	return s.forCaller(r.Context(), who)
}

// answerPanic, deferred, turns a panic into an error, so that no request ends the
// process.
func (s *Server) answerPanic(ctx context.Context, op *operation, err *error) {
	if p := recover(); p != nil {
		s.opts.Logger.ErrorContext(ctx, "panic in a DynamoDB operation", slog.String("operation", op.name),
			slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		*err = internalServerError()
	}
}

// run calls the operation.
func (s *Server) run(ctx context.Context, op *operation, r request) (response []byte, err error) {
	defer s.answerPanic(ctx, op, &err)
	response, err = op.handle(ctx, s, op, r)
	if s.store.outdated(err) {
		response, err = op.handle(ctx, s, op, request{body: r.body})
	}
	return response, err
}

// answerableError logs an error that is none of DynamoDB's own and returns
// what to answer for it.
func (s *Server) answerableError(ctx context.Context, err error, requestID string) *Error {
	e := foreignError(err)
	if e.HTTPStatus >= http.StatusInternalServerError && ctx.Err() == nil { // else whoever asked has gone
		s.opts.Logger.ErrorContext(ctx, "DynamoDB operation failed", slog.String("requestID", requestID), slog.Any("error", err))
	}
	return e
}

// requestIDEncoding writes 32 random bytes as the 52 characters [0-9A-V].
var requestIDEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

func (s *Server) requestID() string {
	return requestIDEncoding.EncodeToString(s.random(32))
}

// random returns n bytes of Options.Rand; zeros when it fails, since ids need
// no secrecy and a request must not fail for one.
func (s *Server) random(n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(s.opts.Rand, b); err != nil {
		s.opts.Logger.Error("random source failed", slog.Any("error", err))
	}
	return b
}

func isJSONContentType(header string) bool {
	mediaType, _, _ := strings.Cut(header, ";")
	mediaType = strings.TrimSpace(mediaType)
	return strings.EqualFold(mediaType, contentTypeJSON) || strings.EqualFold(mediaType, "application/json")
}

// readBody reads and decompresses the body, refusing more than
// maxRequestBytes on either side of the decompression. It returns both sides.
func readBody(r *http.Request) (sent, body []byte, err error) {
	if r.Body == nil {
		return nil, nil, nil
	}
	if r.ContentLength > maxRequestBytes {
		return nil, nil, requestTooLargeError(fmt.Sprintf(msgRequestTooLarge, r.ContentLength, maxRequestBytes))
	}
	if sent, err = readBounded(r.Body, r.ContentLength); err != nil {
		return nil, nil, err
	}
	body, err = DecodeBody(r.Header.Get("Content-Encoding"), sent)
	return sent, body, err
}

// DecodeBody decompresses the body of a request that was sent with the header
// Content-Encoding. What DynamoDB refuses is an *Error.
func DecodeBody(contentEncoding string, sent []byte) (body []byte, err error) {
	var dec io.ReadCloser
	switch encoding := strings.ToLower(strings.TrimSpace(contentEncoding)); encoding {
	case "", "identity":
		return sent, nil
	case "gzip":
		dec, err = gzip.NewReader(bytes.NewReader(sent))
	case "deflate":
		dec, err = zlib.NewReader(bytes.NewReader(sent))
	default:
		return nil, serializationError("Content-Encoding " + strconv.Quote(encoding) + " is not supported")
	}
	if err != nil {
		return nil, serializationError("the request body does not match its Content-Encoding: " + err.Error())
	}
	defer func() { _ = dec.Close() }()
	return readBounded(dec, -1)
}

func readBounded(src io.Reader, sizeHint int64) ([]byte, error) {
	var buf bytes.Buffer
	if sizeHint > 0 {
		buf.Grow(int(sizeHint) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(src, maxRequestBytes+1))
	if err != nil {
		return nil, serializationError("the request body could not be read: " + err.Error())
	}
	if n > maxRequestBytes {
		return nil, requestTooLargeError(fmt.Sprintf(msgRequestTooLarge, n, maxRequestBytes))
	}
	return buf.Bytes(), nil
}

// write sends a with the headers that AWS sends.
func (a answer) write(w http.ResponseWriter, r *http.Request) {
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
	body := a.body
	if len(body) > minCompressBytes {
		switch encoding := acceptedEncoding(r.Header); encoding {
		case "gzip", "deflate":
			if packed, err := compress(encoding, body); err == nil {
				body = packed
				h.Set("Content-Encoding", encoding)
			}
		}
	}
	h["x-amzn-RequestId"] = []string{a.requestID} // AWS's own spelling
	// The checksum covers the bytes as sent, after compression; the SDK for Go
	// fails the call when it does not match.
	h["x-amz-crc32"] = []string{strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)}
	if a.contentType != "" {
		h.Set("Content-Type", a.contentType)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(body) // the client may be gone; there is no one to tell
}

func echo(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

// acceptedEncoding returns "gzip", "deflate" or "". Like AWS it looks at the
// first Accept-Encoding header alone.
func acceptedEncoding(h http.Header) string {
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

func compress(encoding string, body []byte) ([]byte, error) {
	var buf bytes.Buffer
	var enc io.WriteCloser
	if encoding == "gzip" {
		gz, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
		if err != nil {
			return nil, err
		}
		enc = gz
	} else {
		z, err := zlib.NewWriterLevel(&buf, zlib.BestSpeed)
		if err != nil {
			return nil, err
		}
		enc = z
	}
	_, err := enc.Write(body)
	err = errors.Join(err, enc.Close())
	return buf.Bytes(), err
}
