package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/internal/exchange"
	"github.com/tabletop-emu/tabletop/internal/hosts"
)

// webFlags configure the access of browsers to the HTTP endpoints.
type webFlags struct {
	AllowHost []string `name:"allow-host" help:"Accept HTTP requests to this host name, in addition to localhost and loopback addresses. May be repeated." placeholder:"NAME" rare:""`
	CORS      []string `name:"cors" help:"Origin whose pages may use the DynamoDB endpoint, such as http://app.example:3000, or * for all. May be repeated. Default: origins on this machine." placeholder:"ORIGIN" rare:""`
	Like      string   `help:"Imitate another server for tools that probe for it; dynamodb-local answers GET / with 400." placeholder:"dynamodb-local" rare:""`
}

const likeDynamoDBLocal = "dynamodb-local"

func (w *webFlags) check() error {
	for i, name := range w.AllowHost {
		odd := strings.ContainsFunc(name, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._:[]", r)
		})
		if w.AllowHost[i] = hosts.Name(name); odd || w.AllowHost[i] == "" {
			return fmt.Errorf("--allow-host: %q must be a host name, such as desk.example", name)
		}
	}
	for _, origin := range w.CORS {
		if u, err := url.Parse(origin); origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Path != "") {
			return fmt.Errorf("--cors: %q must be an origin, such as http://localhost:3000, or *", origin)
		}
	}
	if w.Like != "" && w.Like != likeDynamoDBLocal {
		return fmt.Errorf("--like: %q must be %s", w.Like, likeDynamoDBLocal)
	}
	return nil
}

// allows reports whether pages of an origin may use the DynamoDB endpoint.
func (w *webFlags) allows(origin string) bool {
	if len(w.CORS) > 0 {
		return slices.Contains(w.CORS, "*") || slices.Contains(w.CORS, origin)
	}
	u, err := url.Parse(origin)
	return err == nil && hosts.Local(u.Host)
}

// strangeHost returns the message for a request whose host name hosts.Allowed rejects.
func strangeHost(host string) string {
	return fmt.Sprintf("The host name %q does not belong to this server: use localhost, or start the server with --allow-host.", host)
}

// guarded rejects requests from pages of other web sites to the DynamoDB endpoint.
type guarded struct {
	flags *webFlags
	next  exchange.Handler
}

// Serve implements exchange.Handler.
func (g guarded) Serve(ctx context.Context, r *exchange.Request, a *exchange.Answer) {
	origin := r.Header.Get("Origin")
	switch {
	case !hosts.AllowedAt(r.Local, r.Host, g.flags.AllowHost):
		refuse(a, http.StatusForbidden, awserr.CodeAccessDenied, strangeHost(r.Host))
	case origin != "" && !g.flags.allows(origin):
		refuse(a, http.StatusForbidden, awserr.CodeAccessDenied, fmt.Sprintf("Pages of the origin %q may not use this server: start it with --cors to allow them.", origin))
	case g.flags.Like == likeDynamoDBLocal && r.Method == http.MethodGet:
		a.Close = true // a tool that waits for the status does not read the body, and would wait for the end of the connection
		refuse(a, http.StatusBadRequest, "MissingAuthenticationToken", "Request must contain either a valid (registered) AWS access key ID or X.509 certificate.")
	default:
		g.next.Serve(ctx, r, a)
	}
}

// refuse answers with a DynamoDB error, without CORS headers.
func refuse(a *exchange.Answer, status int, code, message string) {
	a.Status, a.Body = status, facade.ErrorBody(&awserr.Error{HTTPStatus: status, Code: code, Message: message})
	a.Set("Content-Type", "application/x-amz-json-1.0")
}
