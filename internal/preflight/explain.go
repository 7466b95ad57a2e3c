package preflight

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const noBigtable = "the server is not a Bigtable: expected its gRPC API"

// explained is an error of a call, with its meaning in words.
type explained struct {
	meaning string
	cause   error
}

func (e *explained) Error() string { return fmt.Sprintf("%s (%v)", e.meaning, e.cause) }

func (e *explained) Unwrap() error { return e.cause }

// Explain adds an explanation and a remedy to the error of a call if the server cannot be used as a
// Bigtable. It returns any other error unchanged.
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
		return &explained{"the Bigtable rejects the credentials: check that they belong to the project and that the token is valid", err}
	case has("unexpected HTTP status code") && has(" 429 (", " 502 (", " 503 (", " 504 ("):
		return &explained{"a server other than the Bigtable answered, perhaps a proxy", err}
	case has("unexpected HTTP status code", "unexpected content-type", "error reading server preface", "looked like an HTTP/1.1 header"):
		return &explained{noBigtable, err}
	case has("no access token is available") && has("x509: certificate signed by unknown authority"):
		return &explained{"the certificate of the token server is not trusted: add it to the trusted certificates of the system, or set $SSL_CERT_FILE", err}
	case has("x509: certificate signed by unknown authority"):
		return &explained{"the certificate of the server is not trusted: pass the trusted ones (--ca FILE)", err}
	case has("first record does not look like a TLS handshake"):
		return &explained{"the server does not speak TLS: for plain text use HOST:PORT without --ca", err}
	}
	return err
}
