package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxBodyBytes limits the body of a request.
	maxBodyBytes = 16 << 20
	// bodyTime is the time limit for the arrival of a body.
	bodyTime = 30 * time.Second
)

// from returns the time d from now by the machine's clock, which deadlines of connections
// use.
func from(d time.Duration) time.Time {
	return time.Now().Add(d) //nolint:forbidigo // the clock of the server may stand still
}

// receive reads the whole body of a request before anything is done for it. Unless members is
// set, the body must be empty or an object without members.
func receive(w http.ResponseWriter, r *http.Request, members bool) error {
	if r.ContentLength != 0 {
		to := http.NewResponseController(w)
		if err := to.SetReadDeadline(from(bodyTime)); err != nil {
			return err
		}
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return &Error{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body has more than %d MiB", maxBodyBytes>>20), "send less at a time"}
		}
		if err != nil {
			w.Header().Set("Connection", "close") // the beginning of the next request is unknown
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return &Error{http.StatusRequestTimeout, "timeout", fmt.Sprintf("after %v, only %d bytes of the body had arrived", bodyTime, len(text)), "send as many bytes as Content-Length says, at once"}
		case err != nil:
			return &Error{http.StatusBadRequest, "bad_request", fmt.Sprintf("the body ended early, after %d bytes", len(text)), "send as many bytes as Content-Length says"}
		}
		if err := to.SetReadDeadline(time.Time{}); err != nil { // otherwise it would end slow answers
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
	}
	if members {
		return nil
	}
	return read(r, &nothing{})
}

// known rejects parameters that are not among names, which spaces separate, and parameters
// that occur twice.
func known(r *http.Request, names string) error {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest("the query of the URL cannot be parsed: write %%, &, ; and + in values as %%25, %%26, %%3B and %%2B")
	}
	want := strings.Fields(names)
	for name, values := range given {
		switch {
		case !slices.Contains(want, name) && len(want) == 0:
			return badRequest("unknown parameter %q: %s has no parameters", name, r.URL.Path)
		case !slices.Contains(want, name):
			return badRequest("unknown parameter %q, want %s", name, strings.Join(want, ", "))
		case len(values) > 1:
			return badRequest("the parameter %q occurs %d times, want one", name, len(values))
		}
	}
	return nil
}

// read decodes the body of a request, which may be empty. Its errors use JSON's terms.
func read(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return badRequest("the body contains more than one value")
		}
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at := "the body"
		if wrong.Field != "" {
			at = strconv.Quote(wrong.Field)
		}
		given, _, _ := strings.Cut(wrong.Value, " ")
		return badRequest("%s is %s, want %s", at, jsonTypes[given], jsonType(wrong.Type))
	}
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return badRequest("the body is not JSON: byte %d: %v", wrong.Offset, wrong)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return badRequest("the body is not JSON: it ends too early")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok { // the decoder has no error type for it
		return badRequest("unknown member %s", name)
	}
	return badRequest("the body is invalid: %v", err)
}

// jsonTypes are the decoder's names of given values.
var jsonTypes = map[string]string{"string": "a string", "number": "a number", "bool": "true or false", "array": "an array", "object": "an object"}

// jsonType returns the expected JSON for a value of a type.
func jsonType(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // the others are objects
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	default:
		return "an object"
	}
}
