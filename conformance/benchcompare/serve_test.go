package main

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade"
)

// serveBigtable serves a Bigtable until the test ends. Calls of the method named refused
// fail with err.
func serveBigtable(t *testing.T, refused string, err error) (srv *emu.Server, addr string) {
	t.Helper()
	db, openErr := engine.Open(engine.Options{})
	if openErr != nil {
		t.Fatal(openErr)
	}
	srv, newErr := emu.New(emu.Options{
		DB: db, UnaryInterceptor: func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if info.FullMethod == refused {
				return nil, err
			}
			return handler(ctx, req)
		},
	})
	if newErr != nil {
		t.Fatal(newErr)
	}
	lis, listenErr := net.Listen("tcp", "127.0.0.1:0")
	if listenErr != nil {
		t.Fatal(listenErr)
	}
	served := make(chan error)
	go func() { served <- srv.Serve(lis) }()
	t.Cleanup(func() {
		if err := errors.Join(srv.Close(), <-served, db.Close()); err != nil {
			t.Error(err)
		}
	})
	return srv, lis.Addr().String()
}

// serveDynamoDB serves a DynamoDB until the test ends, and returns its URL.
func serveDynamoDB(t *testing.T) string {
	t.Helper()
	bigtable, _ := serveBigtable(t, "", nil)
	endpoint, err := facade.New(t.Context(), facade.Options{Conn: bigtable.Conn()})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(endpoint)
	t.Cleanup(func() {
		srv.Close()
		if err := endpoint.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv.URL
}
