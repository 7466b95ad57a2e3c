package preflight

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const noBigtable = "what answers is no Bigtable: a server of its gRPC API is expected"

// explained is an error of a call, with what it means in words.
type explained struct {
	meaning string
	cause   error
}

func (e *explained) Error() string { return fmt.Sprintf("%s (%v)", e.meaning, e.cause) }

func (e *explained) Unwrap() error { return e.cause }

// Explain says in words what the error of a call means that met something else than a
// Bigtable that may be used, and what can be done. Any other error is returned as it is.
func Explain(err error) error {
	if _, done := errors.AsType[*explained](err); err == nil || done {
		return err
	}
	text := err.Error()
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	switch {
	case status.Code(err) == codes.Unauthenticated:
		return &explained{"the Bigtable does not take the credentials: are they those of the project, is the token still good?", err}
	case has("unexpected HTTP status code") && has(" 429 (", " 502 (", " 503 (", " 504 ("):
		return &explained{"what answered was not the Bigtable, but perhaps a proxy before it", err}
	case has("unexpected HTTP status code", "unexpected content-type", "error reading server preface", "looked like an HTTP/1.1 header"):
		return &explained{noBigtable, err}
	case has("there is no token to show") && has("x509: certificate signed by unknown authority"):
		return &explained{"the certificate of the server of tokens is not trusted: it is looked for among those of the system, or of $SSL_CERT_FILE", err}
	case has("x509: certificate signed by unknown authority"):
		return &explained{"the certificate of the server is not trusted: name those to trust (--ca FILE)", err}
	case has("first record does not look like a TLS handshake"):
		return &explained{"the server does not speak TLS, which was spoken to it: HOST:PORT without --ca is reached in plain text", err}
	}
	return err
}
