package control

import (
	"context"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/control/console"
	"github.com/tabletop-emu/tabletop/control/internal/requests"
	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/internal/hosts"
)

const (
	// Prefix is the common prefix of the API's paths.
	Prefix = "/api/v1/"
	// cookies is the prefix of the cookie that carries the token of a page.
	cookies = "tabletop_console_"
)

// Requests keeps the latest requests of both endpoints: at most 5,000 requests and 16 MiB.
type Requests struct{ log *requests.Log }

// NewRequests returns an empty Requests.
func NewRequests() *Requests { return &Requests{requests.New()} }

// Observe records a call; it is for emu.Options.Observe.
func (r *Requests) Observe(c *emu.Call) { r.log.Bigtable(c) }

// ObserveDynamoDB records a request; it is for facade.Options.Observe.
func (r *Requests) ObserveDynamoDB(c *facade.Call) { r.log.DynamoDB(c) }

// Options configures New.
type Options struct {
	// Lab is the open lab to control. Required.
	Lab *lab.Lab
	// Endpoint is the DynamoDB endpoint of Lab, which need not be open. Required.
	Endpoint *dynamodb.Endpoint
	// Requests holds the recorded requests of both endpoints. Required.
	Requests *Requests
	// Token must be sent with every request of the API. Required.
	Token string
	// AllowHosts lists host names that requests may use in addition to those of this machine.
	AllowHosts []string
	// Version is the version of the program.
	Version string
	// Bigtable and DynamoDB are the addresses of the endpoints for clients, or "" for an endpoint
	// that is not open.
	Bigtable, DynamoDB string
	// ClockMoved is called after each change of the clock. Default: nothing is called.
	ClockMoved func() error
	// Paused is the name of the test that is paused until Resume is called. Default: none.
	Paused string
	Resume func()
	// Documents are the documents of the console. Default: a page says where they are.
	Documents console.Documents
	// Fixtures contains the fixture folders that the migrate paths of the API use. Default: none.
	Fixtures fs.FS
	// Demo lets clients load the shipped fixtures. Default: they cannot.
	Demo bool
}

// Server serves the control API. It is safe for concurrent use.
type Server struct {
	opts      Options
	log       *requests.Log
	handler   http.Handler
	streams   atomic.Int32
	live      news
	runs      runs
	queries   atomic.Uint64
	stopping  chan struct{}
	stop      sync.Once
	snapshots snapshots
	rowLevels rowLevels
	demos     sync.Mutex // held while the demo is loaded

	demoLoaded atomic.Bool
}

// New returns a server that controls o.Lab.
func New(o Options) *Server {
	s := &Server{opts: o, log: o.Requests.log, stopping: make(chan struct{}), rowLevels: lintLevels}
	s.runs.news = &s.live
	api := http.NewServeMux()
	handle := func(pattern, query string, body bool, answer http.HandlerFunc) {
		api.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := errors.Join(known(r, query), receive(w, r, body)); err != nil {
				fail(w, err)
				return
			}
			answer(w, r)
		})
	}
	for pattern, to := range s.routes() {
		handle(pattern, to.query, to.body, func(w http.ResponseWriter, r *http.Request) {
			answer, err := to.do(r)
			if err != nil {
				fail(w, err)
				return
			}
			s.live.changed(to.changes)
			reply(w, http.StatusOK, answer)
		})
	}
	handle("GET "+Prefix+"events", wantedParameters+" after kinds", false, s.events)
	handle("GET "+Prefix+"openapi.yaml", "", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI) // the client may have left
	})
	handle("POST "+Prefix+"session", "", false, s.session)
	api.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		methods := answered(api, r)
		if methods == nil {
			fail(w, s.unknown(r))
			return
		}
		allow := strings.Join(methods, ", ")
		w.Header().Set("Allow", allow)
		fail(w, &Error{http.StatusMethodNotAllowed, "method", fmt.Sprintf("unknown path or method: %s %s", r.Method, r.URL.Path), "this path accepts " + allow})
	})

	all := http.NewServeMux()
	all.Handle(Prefix, s.authorized(api))
	console.Handle(all, s.opts.Documents)
	all.HandleFunc("GET /{$}", home)
	all.HandleFunc("/", s.missing)
	crossing := http.NewCrossOriginProtection()
	crossing.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fail(w, errCrossOrigin) }))
	s.handler = secured(crossing.Handler(all))
	return s
}

// answered returns the methods that a path of the API accepts, besides the request's own.
func answered(api *http.ServeMux, r *http.Request) []string {
	var out []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := api.Handler(&other); pattern != "/" {
			out = append(out, method)
		}
	}
	return out
}

//go:embed openapi.yaml
var openAPI []byte

// Close ends all event streams, and removes all snapshots.
func (s *Server) Close() error {
	s.stop.Do(func() { close(s.stopping) })
	return s.snapshots.close()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !hosts.Allowed(r, s.opts.AllowHosts) {
		fail(w, &Error{http.StatusForbidden, "host", fmt.Sprintf("this server does not accept the host %q", r.Host), "use localhost, or start the server with --allow-host"})
		return
	}
	if path := r.URL.EscapedPath(); path != cleaned(path) { // otherwise the mux would redirect it with HTML
		secured(http.HandlerFunc(s.missing)).ServeHTTP(w, r)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// cleaned returns a path without empty parts, "." and "..".
func cleaned(name string) string {
	clean := path.Clean(name)
	if clean != "/" && strings.HasSuffix(name, "/") {
		clean += "/"
	}
	return clean
}

// Error is the API's response to a failed request.
type Error struct {
	Status int    `json:"-"`
	Code   string `json:"code"`   // a stable code for programs
	Text   string `json:"text"`   // describes the problem
	Remedy string `json:"remedy"` // says how to fix it
}

// Error returns the text and the remedy.
func (e *Error) Error() string { return strings.TrimSuffix(e.Text, ".") + ": " + e.Remedy }

var errCrossOrigin = &Error{http.StatusForbidden, "cross_origin", "the request comes from a page of another origin", "send it from the server's own pages, or from a program"}

func badRequest(format string, args ...any) *Error {
	return &Error{http.StatusBadRequest, "bad_request", fmt.Sprintf(format, args...), "see docs/control.md"}
}

func notFound(what, name, remedy string) *Error {
	return &Error{http.StatusNotFound, "not_found", fmt.Sprintf("there is no %s %q", what, name), remedy}
}

func (s *Server) unknown(r *http.Request) *Error {
	return &Error{http.StatusNotFound, "not_found", fmt.Sprintf("unknown path or method: %s %s", r.Method, r.URL.Path), "GET / lists the paths"}
}

// missing answers a request of an unknown path: a browser gets the page that leads to the
// existing ones.
func (s *Server) missing(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && acceptsHTML(r) && !strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, "/static/") {
		console.Missing(w)
		return
	}
	fail(w, s.unknown(r))
}

func acceptsHTML(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// asError converts any error to an answer.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := awserr.As(err); ok {
		out := &Error{e.HTTPStatus, e.Code[strings.LastIndex(e.Code, "#")+1:], e.Message, "this is DynamoDB's own answer: change the request"}
		by, faulted := errors.AsType[*dynamodb.FaultError](err)
		switch {
		case faulted:
			out.Remedy = fmt.Sprintf("a fault caused this response: DELETE %sfaults/dynamodb/%d removes the fault", Prefix, by.Fault.ID())
		case e.HTTPStatus >= http.StatusInternalServerError:
			out.Remedy = mayBeFault
		case out.Code == awserr.CodeResourceNotFound:
			out.Remedy = tablesRemedy
		case strings.HasPrefix(e.Message, outsideMapping):
			out.Remedy = "the mapping of the table refuses this item, and DynamoDB would not: change the item or the mapping"
		}
		return out
	}
	if errors.Is(err, dynamodb.ErrClosed) {
		return &Error{http.StatusConflict, "endpoint_closed", err.Error(), "start the server with --dynamodb HOST:PORT"}
	}
	if st, said := statusOf(err); st != nil {
		e := &Error{http.StatusBadRequest, st.Code().String(), said, "this is Bigtable's own answer: change the request"}
		switch st.Code() { //nolint:exhaustive // the others are of the request
		case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Unknown, codes.ResourceExhausted, codes.DataLoss:
			e.Remedy = mayBeFault
		case codes.NotFound:
			if e.Status, e.Remedy = http.StatusNotFound, tablesRemedy; strings.Contains(st.Message(), "column family") {
				e.Remedy = "GET " + Prefix + "tables has the families of each table"
			}
		}
		return e
	}
	return &Error{http.StatusInternalServerError, "internal", err.Error(), "the log of the server may say more"}
}

// statusOf returns the status in an error and its text: the action, and Bigtable's message. It
// is nil for an error without a Bigtable status.
func statusOf(err error) (*status.Status, string) {
	inner, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	if !ok {
		return nil, ""
	}
	st := inner.GRPCStatus()
	return st, strings.Replace(err.Error(), inner.Error(), st.Message(), 1)
}

// tablesRemedy is the remedy for an unknown table.
const tablesRemedy = "GET " + Prefix + "tables lists the tables of both endpoints, by Bigtable's names too"

// outsideMapping begins the messages of the DynamoDB endpoint about items that the mapping of their
// table refuses.
const outsideMapping = awserr.MsgInvalidParameterPrefix + "outside the table's mapping"

// mayBeFault is the remedy for errors whose request is correct.
const mayBeFault = "try again; GET " + Prefix + "faults lists the faults that strike such calls, with their hits"

func fail(w http.ResponseWriter, err error) {
	e := asError(err)
	reply(w, e.Status, struct {
		Error *Error `json:"error"`
	}{e})
}

func reply(w http.ResponseWriter, code int, answer any) {
	text, err := json.Marshal(answer)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","text":"the response cannot be written","remedy":"report it"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // the client may have left
}

// secured sets the security headers of every answer.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// authorized passes on requests that have the token and do not come from a page of another
// origin.
func (s *Server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !sameOrigin(r) {
			fail(w, errCrossOrigin)
			return
		}
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if c, err := r.Cookie(cookieName(r)); err == nil && token == "" {
			token = c.Value
		}
		if subtle.ConstantTimeCompare([]byte(token), []byte(s.opts.Token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			fail(w, &Error{http.StatusUnauthorized, "token", "the request has no token, or a wrong one", "send \"Authorization: Bearer TOKEN\" with the token that the server printed; it is also in the port file, or in the file of --token-file"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin reports whether a request comes from no web page, or from one of the server's
// own. A browser may omit Sec-Fetch-Site, as over HTTP with a name other than this machine's;
// then its Origin decides, even for reads.
func sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "":
	case "none", "same-origin":
		return true
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, r.Host)
}

// cookieName contains the port: browsers share a cookie among all servers of a host.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "default"
	}
	return cookies + port
}

// session sets a page's cookie for the token in its request.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: s.opts.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	reply(w, http.StatusOK, struct{}{})
}

// home serves the first page to a browser, and a list of the API to other clients.
func home(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	if acceptsHTML(r) {
		console.Index(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, homeText) // the client may have left
}

// own returns the context of the API's own reads: faults do not affect them, and they are not
// recorded.
func own(r *http.Request) context.Context { return lab.Probe(r.Context()) }
