package exchange

import (
	"cmp"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// FromHTTP returns a request of package net/http.
func FromHTTP(h *http.Request) *Request {
	r := &Request{}
	r.setHTTP(h)
	return r
}

func (r *Request) setHTTP(h *http.Request) {
	*r = Request{
		Method: h.Method, Target: h.RequestURI, Path: h.URL.EscapedPath(), Query: h.URL.RawQuery, Proto: h.Proto,
		Host: cmp.Or(h.Host, h.URL.Host), Header: h.Header, Length: h.ContentLength, http: h,
	}
	r.HeadBytes = len(h.Method) + len(h.RequestURI) + len(h.Proto) + len("Host: ") + len(h.Host)
	for name, values := range h.Header {
		for _, value := range values {
			r.HeadBytes += len(name) + len(": ") + len(value)
		}
	}
	if h.Body != nil {
		r.Body = h.Body
	}
	r.Local, _ = h.Context().Value(http.LocalAddrContextKey).(net.Addr)
}

// reused are a request and its answer, which the next request uses again.
type reused struct {
	request Request
	answer  Answer
}

var pool = sync.Pool{New: func() any { return &reused{} }}

// ServeHTTP answers a request of package net/http.
func ServeHTTP(handler Handler, w http.ResponseWriter, h *http.Request) {
	e := pool.Get().(*reused)
	e.request.setHTTP(h)
	a := &e.answer
	handler.Serve(h.Context(), &e.request, a)
	header := w.Header()
	values := make([]string, len(a.Header)+1)
	add := func(i int, name, value string) {
		values[i] = value
		if given := header[name]; given != nil {
			header[name] = append(given, value)
			return
		}
		header[name] = values[i : i+1 : i+1]
	}
	for i, f := range a.Header {
		add(i, f.Name, f.Value)
	}
	add(len(a.Header), "Content-Length", strconv.Itoa(len(a.Body)))
	if header["Content-Type"] == nil {
		header["Content-Type"] = nil // net/http would guess it
	}
	if a.Close {
		header.Set("Connection", "close")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client may have gone
	a.Written()
	a.Reset()
	e.request = Request{}
	pool.Put(e)
}
