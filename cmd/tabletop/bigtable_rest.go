package main

import (
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/hosts"
	"github.com/tabletop-emu/tabletop/internal/rest"
)

// openBigtableREST opens the Bigtable endpoint that speaks HTTP with JSON, if its flag is set.
func (s *serving) openBigtableREST() error {
	addr := s.command.BigtableREST
	if addr == "" || addr == off {
		return nil
	}
	handler, err := s.lab.Bigtable().REST()
	if err != nil {
		return err
	}
	lis, tracked, err := s.listen("--bigtable-rest", addr, "http/1.1", 0)
	if err != nil {
		return err
	}
	s.restAddr = lis.Addr()
	s.serveWeb("--bigtable-rest", s.webServer(s.command.Web.guardREST(handler)), lis, tracked, nil)
	return nil
}

// restURL returns the URL of the endpoint.
func (s *serving) restURL() string { return s.url(s.restAddr) }

// guardREST rejects requests from pages of web sites, which have no use for the endpoint.
func (w *webFlags) guardREST(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case !hosts.Allowed(r, w.AllowHost):
			rest.WriteError(rw, status.Error(codes.PermissionDenied, strangeHost(r.Host)))
		case r.Header.Get("Origin") != "":
			rest.WriteError(rw, status.Error(codes.PermissionDenied, "Web pages may not use this endpoint."))
		default:
			next.ServeHTTP(rw, r)
		}
	})
}
