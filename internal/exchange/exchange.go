// Package exchange carries an HTTP request to a handler and its answer back, whatever server holds
// the connection. One handler serves both package net/http and internal/fastserver.
package exchange

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Handler answers requests. It is safe for concurrent use, and keeps neither a Request nor an
// Answer.
type Handler interface {
	// Serve answers a request. ctx ends when the client leaves.
	Serve(ctx context.Context, r *Request, a *Answer)
}

// Header has the header fields of a request, without Host. http.Header implements it.
type Header interface {
	Get(name string) string // of the first field with the name; "" without one
	Values(name string) []string
}

// Request is a request whose head has arrived.
type Request struct {
	Method    string
	Target    string // as in the request line
	Path      string // of Target, escaped
	Query     string // of Target
	Proto     string // such as HTTP/1.1
	Host      string
	Header    Header
	HeadBytes int       // of the request line and the headers, without line ends
	Length    int64     // announced size of the body; -1 if it is unknown
	Body      io.Reader // nil without a body
	Local     net.Addr  // address of the server's end of the connection; nil if unknown

	http *http.Request // nil if another server received it
}

// Field is a header field.
type Field struct{ Name, Value string }

// Fields are header fields in order. They implement Header.
type Fields []Field

// Get implements Header.
func (f Fields) Get(name string) string {
	for i := range f {
		if f[i].is(name) {
			return f[i].Value
		}
	}
	return ""
}

// Values implements Header.
func (f Fields) Values(name string) (values []string) {
	for i := range f {
		if f[i].is(name) {
			values = append(values, f[i].Value)
		}
	}
	return values
}

func (f *Field) is(name string) bool {
	return len(f.Name) == len(name) && strings.EqualFold(f.Name, name)
}

// HTTP returns the request in the form of package net/http, with a context. It has the same body.
func (r *Request) HTTP(ctx context.Context) *http.Request {
	if r.http != nil {
		return r.http.WithContext(ctx)
	}
	header := http.Header{}
	if fields, ok := r.Header.(*Fields); ok {
		for _, f := range *fields {
			header.Add(f.Name, f.Value)
		}
	}
	h := &http.Request{
		Method: r.Method, URL: &url.URL{Path: "/"}, RequestURI: r.Target, Host: r.Host, Header: header,
		Proto: r.Proto, ProtoMajor: 1, ContentLength: r.Length, Body: http.NoBody,
	}
	if u, err := url.ParseRequestURI(r.Target); err == nil { // a server has parsed it before
		h.URL = u
	}
	if r.Proto == "HTTP/1.1" {
		h.ProtoMinor = 1
	}
	if r.Body != nil {
		h.Body = io.NopCloser(r.Body)
	}
	return h.WithContext(ctx)
}

// Memory takes back the memory of a body.
type Memory interface{ GiveBack(body []byte) }

// Answer is the answer to a request. A handler fills it; its server writes it later.
type Answer struct {
	Status int
	Header Fields // without Content-Length, which the server adds
	Body   []byte
	Memory Memory // receives Body once it is written; nil: nothing does
	Close  bool   // the connection ends after the answer
}

// Set appends a header field.
func (a *Answer) Set(name, value string) { a.Header = append(a.Header, Field{name, value}) }

// Reset empties an answer, so that it can be filled again. It keeps the memory of the fields.
func (a *Answer) Reset() { *a = Answer{Header: a.Header[:0]} }

// Written gives the memory of the body back. The server calls it after writing the answer.
func (a *Answer) Written() {
	if a.Memory != nil {
		a.Memory.GiveBack(a.Body)
	}
}
