package wire

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
)

// RoundTripper returns a transport that passes requests to server within this process, in
// the goroutine of the caller. It ignores the host in the URL of a request.
func RoundTripper(server http.Handler) http.RoundTripper { return roundTripper{server} }

type roundTripper struct{ server http.Handler }

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	// A RoundTripper must close the body, even on errors.
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := &responseRecorder{header: http.Header{}, status: http.StatusOK}
	t.server.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	// The handler writes AWS's spelling of header names; a client on a socket would read them
	// in canonical form.
	header := make(http.Header, len(w.header))
	for name, values := range w.header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return &http.Response{
		Status:        strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		StatusCode:    w.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(w.body)),
		ContentLength: int64(len(w.body)),
		Request:       r,
	}, nil
}

// responseRecorder records the output of a handler.
type responseRecorder struct {
	header http.Header
	status int
	body   []byte
}

func (w *responseRecorder) Header() http.Header { return w.header }

func (w *responseRecorder) WriteHeader(status int) { w.status = status }

func (w *responseRecorder) Write(b []byte) (int, error) {
	w.body = append(w.body, b...)
	return len(b), nil
}
