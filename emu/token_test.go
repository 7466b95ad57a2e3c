package emu

import (
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/engine"
)

// TestToken: with Options.Token, every service of a listener requires the token; the in-process
// channel does not.
func TestToken(t *testing.T) {
	t.Parallel()
	e := newEnvWith(t, Options{Token: "open sesame"}, engine.Options{})
	conn := e.dial()
	cases := []struct {
		name    string
		headers []string
		want    codes.Code
	}{
		{"none", nil, codes.Unauthenticated},
		{"right", []string{"authorization", "Bearer open sesame"}, codes.OK},
		{"scheme in lower case", []string{"authorization", "bearer open sesame"}, codes.OK},
		{"wrong", []string{"authorization", "Bearer open sesam"}, codes.Unauthenticated},
		{"empty", []string{"authorization", "Bearer "}, codes.Unauthenticated},
		{"no scheme", []string{"authorization", "open sesame"}, codes.Unauthenticated},
		{"another scheme", []string{"authorization", "Basic open sesame"}, codes.Unauthenticated},
		{"twice", []string{"authorization", "Bearer open sesame", "authorization", "Bearer x"}, codes.Unauthenticated},
	}
	for _, c := range cases {
		ctx := metadata.AppendToOutgoingContext(t.Context(), c.headers...)
		calls := map[string]func() error{
			"ListTables": func() error {
				_, err := btapb.NewBigtableTableAdminClient(conn).ListTables(ctx, &btapb.ListTablesRequest{Parent: testInstance})
				return err
			},
			"health": func() error {
				_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
				return err
			},
			"a stream": func() error {
				stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
				if err != nil {
					return err
				}
				_, err = stream.Recv()
				return err
			},
		}
		for what, call := range calls {
			if got := status.Code(call()); got != c.want {
				t.Errorf("%s, token %s: %v, want %v", what, c.name, got, c.want)
			}
		}
	}
	if _, err := btapb.NewBigtableTableAdminClient(e.srv.Conn()).ListTables(t.Context(), &btapb.ListTablesRequest{Parent: testInstance}); err != nil {
		t.Errorf("inside the process: %v", err)
	}
}
