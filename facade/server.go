package facade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/insights"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/throttle"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/exchange"
)

// Server serves the DynamoDB API over a Bigtable. It is an http.Handler and safe for
// concurrent use.
type Server struct {
	opts  Options
	store *store.Store
	pages *wire.PageMemory
	dates wire.Dates

	namespaces *namespaceSet // nil: all callers share the tables of store

	firstCaller  atomic.Pointer[wire.Caller]
	otherCallers atomic.Bool // noteCaller has logged its warning

	spareParameters atomic.Bool // an unused parameter of a statement has been logged

	throttle *throttle.Limiter // nil: no throttling
	keys     *insights.Keys    // used keys in all namespaces
}

// New returns a Server over opts.Conn. It reads the catalog of tables from that Bigtable,
// and creates the catalog if it does not exist. It also creates the tables of new mappings,
// and finishes the work of servers that were killed. ctx applies only to that work. The
// caller must call Close.
func New(ctx context.Context, opts Options) (*Server, error) {
	opts, err := opts.normalized()
	if err != nil {
		return nil, err
	}
	if err := opts.openSink(); err != nil {
		return nil, err
	}
	s := &Server{opts: opts, pages: &wire.PageMemory{}, keys: &insights.Keys{}}
	s.throttle = s.newLimiter()
	s.store, err = opts.open(ctx, store.CatalogTable)
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

// ServeHTTP serves a request: AWS JSON 1.0 at POST /, the health text at GET /, or a CORS
// preflight at OPTIONS. It checks requests in AWS's order: headers, method and content
// type, size, JSON, target, signature, and then the members of the operation.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	exchange.ServeHTTP(s.Handler(), w, r)
}

// Handler returns what ServeHTTP calls, for other servers of this module than package net/http.
func (s *Server) Handler() exchange.Handler { return (*served)(s) }

// RoundTripper returns a transport that passes requests to s within this process, in the
// goroutine of the caller. An AWS SDK whose http.Client uses it does not need a port. It
// ignores the host in the URL of a request.
func (s *Server) RoundTripper() http.RoundTripper { return wire.RoundTripper(s) }

// served is a Server as a handler of any HTTP server.
type served Server

// Serve implements exchange.Handler.
func (h *served) Serve(ctx context.Context, r *exchange.Request, a *exchange.Answer) {
	s := (*Server)(h)
	id := wire.RequestID(s.opts.random(wire.RequestIDBytes))
	ctx, call := s.observing(ctx, r, id)
	defer s.answerCrash(ctx, r, id, a)
	response := s.respond(ctx, r, id, call)
	packed := response.Fill(a, r)
	call.done(s, &response)
	if packed {
		s.pages.GiveBack(response.Body)
	} else {
		a.Memory = s.pages
	}
}

// answerCrash answers a request whose handling panicked outside an operation, so that no request
// ends the process. The rest of the connection's input may be part of it.
func (s *Server) answerCrash(ctx context.Context, r *exchange.Request, id string, a *exchange.Answer) {
	if p := recover(); p != nil {
		s.logPanic(ctx, r.Header.Get("X-Amz-Target"), p)
		e := awserr.InternalServerError()
		response := wire.NewResponse(r, e.HTTPStatus, wire.EncodeError(e))
		response.RequestID, response.Date = id, s.dates.At(s.opts.Now())
		a.Reset()
		response.Fill(a, r)
		a.Close = true
	}
}

// respond returns the response to r.
func (s *Server) respond(ctx context.Context, r *exchange.Request, id string, observed *Call) wire.Response {
	a, ok := wire.OutsideProtocol(r)
	if !ok {
		a = s.answer(ctx, r, id, observed)
	}
	a.RequestID, a.Date = id, s.dates.At(s.opts.Now())
	return a
}

// answer runs the operation that r requests, and returns the response, even for an error.
func (s *Server) answer(ctx context.Context, r *exchange.Request, requestID string, observed *Call) wire.Response {
	var watermark string
	body, err := s.call(ctx, r, &watermark, observed)
	if err != nil {
		e := s.answerableError(ctx, err, requestID)
		answer := wire.NewResponse(r, e.HTTPStatus, wire.EncodeError(e))
		answer.RetryAfter = e.RetryAfter
		return answer
	}
	answer := wire.NewResponse(r, http.StatusOK, body)
	answer.Watermark = watermark
	return answer
}

// rawRequest is a request before its operation decodes it.
type rawRequest struct {
	body []byte
	host string // host that the request was sent to
	// scanned is the result of operation.scan. If it is nil, body must be decoded.
	scanned any
	// watermark receives the position up to which a stream was delivered. It may be nil.
	watermark *string
}

// readRequest returns the request with the given body, scanned if op allows it. It rejects a
// body that is not a JSON object. op is nil for an unknown operation.
func (s *Server) readRequest(ctx context.Context, op *operation, host string, body []byte) (r rawRequest, err error) {
	r.body, r.host = body, host
	if op == nil {
		return r, wire.CheckJSON(body)
	}
	defer s.answerPanic(ctx, op, &err)
	if op.scan != nil {
		r.scanned = op.scan(body)
	}
	if r.scanned == nil {
		err = wire.CheckJSON(body)
	}
	return r, err
}

// call runs the operation that r requests, and returns the JSON of its response. If the response
// has records of a stream, call sets watermark to the position up to which the stream was
// delivered.
func (s *Server) call(ctx context.Context, r *exchange.Request, watermark *string, observed *Call) ([]byte, error) {
	sent, body, err := wire.ReadBody(r)
	if err != nil {
		return nil, err
	}
	observed.asks(body)
	op, noOperation := operationOfTarget(r.Header.Get("X-Amz-Target"))
	var req rawRequest
	if len(body) > 0 {
		if req, err = s.readRequest(ctx, op, r.Host, body); err != nil {
			return nil, err
		}
	}
	if noOperation != nil {
		return nil, noOperation
	}
	target, err := s.forSender(ctx, r, sent)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 { // rejected only here: AWS checks the signature first
		return nil, wire.CheckJSON(body)
	}
	req.watermark = watermark
	return target.run(ctx, op, req)
}

// Call runs one operation by name, such as "GetItem", without HTTP. request and the
// result are the JSON bodies of the AWS JSON 1.0 protocol. No signature is required. If
// DynamoDB would respond with an error, the error is an *awserr.Error.
func (s *Server) Call(ctx context.Context, operation string, req []byte) (response []byte, err error) {
	return s.callAt(ctx, "dynamodb."+s.opts.Region+".amazonaws.com", operation, req)
}

// callAt acts like Call for a request that was sent to host.
func (s *Server) callAt(ctx context.Context, host, operation string, body []byte) (response []byte, err error) {
	op, ok := operationsByTarget[targetDynamoDB+operation]
	if !ok {
		op, ok = operationsByTarget[targetStreams+operation]
	}
	if !ok {
		return nil, awserr.New(awserr.CodeUnknownOperation, awserr.MsgOperationUnknown, operation)
	}
	req, err := s.readRequest(ctx, op, host, body)
	if err == nil {
		response, err = s.run(ctx, op, req)
	}
	if err != nil {
		return nil, s.answerableError(ctx, err, "")
	}
	return s.pages.Detached(response), nil
}

// Mapping returns the mapping of a table, which is the one in Options or the default
// layout.
func (s *Server) Mapping(ctx context.Context, table string) (*mapping.Mapping, error) {
	m, err := s.store.Layout(ctx, table)
	return (*mapping.Mapping)(m), err
}

// CallAs is like Call, but runs the operation on behalf of the sender of r, whose body was
// sent. Like ServeHTTP, it checks the signature of r. If Options.Namespaced is set, the
// operation uses the tables of the sender.
func (s *Server) CallAs(r *http.Request, sent []byte, operation string, req []byte) (response []byte, err error) {
	ctx, received := r.Context(), exchange.FromHTTP(r)
	target, err := s.forSender(ctx, received, sent)
	if err != nil {
		return nil, s.answerableError(ctx, err, "")
	}
	return target.callAt(ctx, received.Host, operation, req)
}

// forSender checks the signature of r, unless Options.NoAuth is set, and returns the server for
// its sender. sent is the body of r.
func (s *Server) forSender(ctx context.Context, r *exchange.Request, sent []byte) (*Server, error) {
	if s.opts.NoAuth {
		return s.forCaller(ctx, wire.CallerOf(r))
	}
	who, err := wire.Authenticate(r, sent, s.opts.AccessKeys, s.opts.Now(), s.opts.wall.Now())
	if err != nil {
		return nil, err
	}
	return s.forCaller(ctx, who)
}

// answerPanic logs a panic and converts it to an error, so that no request ends the process.
// Callers defer it.
func (s *Server) answerPanic(ctx context.Context, op *operation, err *error) {
	if p := recover(); p != nil {
		s.logPanic(ctx, op.name, p)
		*err = awserr.InternalServerError()
	}
}

func (s *Server) logPanic(ctx context.Context, operation string, p any) {
	s.opts.Logger.ErrorContext(ctx, "panic in a DynamoDB operation", slog.String("operation", operation),
		slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
}

// run calls the operation. If a cached table definition proves to be outdated, it calls the
// operation again.
func (s *Server) run(ctx context.Context, op *operation, r rawRequest) (response []byte, err error) {
	defer s.answerPanic(ctx, op, &err)
	if err := s.throttle.Call(op.name); err != nil {
		return nil, err
	}
	response, err = op.handle(ctx, s, op, r)
	if s.store.Outdated(err) {
		response, err = op.handle(ctx, s, op, rawRequest{body: r.body, host: r.host, watermark: r.watermark})
	}
	return response, err
}

// ErrorBody returns the JSON body with which DynamoDB responds to an error.
func ErrorBody(e *awserr.Error) []byte { return wire.EncodeError(e) }

// answerableError returns the DynamoDB error of the response for err. If err is a failure of
// the Bigtable or of this server, it also logs err.
func (s *Server) answerableError(ctx context.Context, err error, requestID string) *awserr.Error {
	if e, ok := awserr.As(err); ok {
		return e
	}
	e := foreignError(err)
	if (e.HTTPStatus >= http.StatusInternalServerError || e.Code == awserr.CodeRequestLimit) && ctx.Err() == nil { // otherwise the client has disconnected
		s.opts.Logger.ErrorContext(ctx, "DynamoDB operation failed", slog.String("requestID", requestID), slog.Any("error", err))
	}
	return e
}

// random returns n bytes of Options.Rand. If reading them fails, it logs the error and returns
// zeros: ids need no secrecy, and a request must not fail for lack of an id.
func (o Options) random(n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(o.Rand, b); err != nil {
		o.Logger.Error("random source failed", slog.Any("error", err))
	}
	return b
}
