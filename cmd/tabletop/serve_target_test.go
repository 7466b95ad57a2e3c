package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// TestServe_Cloud serves over a target like Cloud Bigtable, which it checks first, and reports
// the faults of others.
func TestServe_Cloud(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, _ := certificate(t)
	token, other := writeFile(t, dir, "token", "a-static-token\n"), writeFile(t, dir, "other", "another\n")
	ports := filepath.Join(dir, "ports.json")
	serveHere(t, "--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--tls-cert", cert, "--tls-key", key, "--token-file", token, "--port-file", ports)
	text, err := os.ReadFile(ports)
	if err != nil {
		t.Fatal(err)
	}
	var found struct{ Bigtable string }
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	const target = "projects/my-project/instances/my-instance"
	// Servers without the instance, or without answers.
	elsewhere := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(codes.NotFound, "Error while reading instance: instances/missing not found")
	}))
	t.Cleanup(elsewhere.Stop)
	answers, silent := listen(t), listen(t)
	go func() { _ = elsewhere.Serve(answers) }() // until it is stopped
	over := func(lis net.Listener, more ...string) []string {
		return append([]string{"--target", lis.Addr().String(), "--project", "my-project", "--instance", "missing", "--dynamodb", "127.0.0.1:0"}, more...)
	}
	cloud := []string{"--target", target, "--endpoint", found.Bigtable, "--dynamodb", "127.0.0.1:0"}
	for _, c := range []struct {
		flags []string
		code  int
		want  string
	}{
		{slices.Concat(cloud, []string{"--ca", cert, "--target-token-file", token, "--check"}), exitEqual, "ok: instance: " + target + " exists"},
		{slices.Concat(cloud, []string{"--ca", cert, "--target-token-file", token, "--compress", "--check"}), exitEqual, "ok: tables: _tabletop.catalog does not exist yet"},
		{slices.Concat(cloud, []string{"--ca", cert, "--target-token-file", other}), exitEnvironment, "rejects the credentials"},
		{slices.Concat(cloud, []string{"--target-token-file", token}), exitEnvironment, "pass the trusted ones (--ca FILE)"},
		{slices.Concat(cloud, []string{"--ca", cert, "--target-token-file", token, "--app-profile", "mine"}), exitEnvironment, "app profile mine of "},
		{[]string{"--target", web.Listener.Addr().String(), "--dynamodb", "127.0.0.1:0", "--check"}, exitEnvironment, "the server is not a Bigtable"},
		{[]string{"--target", web.Listener.Addr().String(), "--dynamodb", "127.0.0.1:0"}, exitEnvironment, "the server is not a Bigtable"},
		{[]string{"--target", found.Bigtable, "--ca", cert, "--dynamodb", "127.0.0.1:0"}, exitEnvironment, "rejects the credentials"},
		{[]string{"--target", found.Bigtable, "--target-token-file", filepath.Join(dir, "none"), "--dynamodb", "127.0.0.1:0"}, exitBadInput, "--target-token-file: open"},
		{over(answers, "--check"), exitEnvironment, "my-project"},
		{over(answers), exitEnvironment, "instances/missing not found"},
		{over(silent, "--check", "--call-timeout", "10ms"), exitEnvironment, silent.Addr().String()},
		{over(silent, "--call-timeout", "10ms"), exitEnvironment, "no answer from " + silent.Addr().String() + ", projects/my-project/instances/missing to "},
		{[]string{"--dynamodb", "127.0.0.1:0", "--check"}, exitBadInput, "need --target"},
		{[]string{"--target", "projects/p", "--check"}, exitBadInput, "must be HOST:PORT or projects/P/instances/I"},
	} {
		out, code := tabletop(t, append([]string{"serve"}, c.flags...)...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("serve %s: exit code %d, want %d and %q:\n%s", strings.Join(c.flags, " "), code, c.code, c.want, out)
		}
	}
	s := serveHere(t, slices.Concat(cloud, []string{"--ca", cert, "--target-token-file", token})...)
	if s.env["AWS_ENDPOINT_URL_DYNAMODB"] == "" || s.env["BIGTABLE_EMULATOR_HOST"] != "" {
		t.Errorf("it prints %v", s.env)
	}
	dynamoDB(t, s, "CreateTable", `{"TableName": "orders", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
		"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "v", "AttributeType": "N"}],
		"GlobalSecondaryIndexes": [{"IndexName": "by-v", "KeySchema": [{"AttributeName": "v", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}]}`)
	out, code := tabletop(t, slices.Concat([]string{"serve"}, cloud, []string{"--ca", cert, "--target-token-file", token, "--check"})...)
	for _, table := range []string{"_tabletop.catalog", "ddb.orders-", "_tabletop.i.by-v-"} {
		if !strings.Contains(out, "ok: tables: "+table) {
			t.Errorf("the check says nothing of %s:\n%s", table, out)
		}
	}
	if code != exitEqual {
		t.Errorf("the check ends with %d:\n%s", code, out)
	}
}

// TestConnect_Pool: data calls of Cloud Bigtable use as many connections as the official Go
// client, in turn, and admin calls use a separate one.
func TestConnect_Pool(t *testing.T) {
	t.Parallel()
	cert, key, _ := certificate(t)
	pair, err := credentials.NewServerTLSFromFile(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	lis := listen(t)
	var mu sync.Mutex
	calls := map[string]map[string]int{} // by service and connection
	srv := grpc.NewServer(grpc.Creds(pair), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		from, _ := peer.FromContext(stream.Context())
		method, _ := grpc.MethodFromServerStream(stream)
		mu.Lock()
		defer mu.Unlock()
		service := path.Dir(method)
		if calls[service] == nil {
			calls[service] = map[string]int{}
		}
		calls[service][from.Addr.String()]++
		return status.Error(codes.Unimplemented, "no such method")
	}))
	go func() { _ = srv.Serve(lis) }() // until it is stopped
	t.Cleanup(srv.Stop)
	flags := connectFlags{Endpoint: lis.Addr().String(), CA: cert, TokenFile: writeFile(t, t.TempDir(), "token", "a-static-token\n")}
	c, err := flags.connect(t.Context(), "projects/p/instances/i")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}()
	const rounds, pool = 3, 10
	for range rounds * pool {
		_, dataErr := btpb.NewBigtableClient(c.conn).MutateRow(t.Context(), &btpb.MutateRowRequest{})
		_, adminErr := btapb.NewBigtableTableAdminClient(c.conn).ListTables(t.Context(), &btapb.ListTablesRequest{})
		if status.Code(dataErr) != codes.Unimplemented || status.Code(adminErr) != codes.Unimplemented {
			t.Fatal(dataErr, adminErr)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	data, admin := calls["/google.bigtable.v2.Bigtable"], calls["/google.bigtable.admin.v2.BigtableTableAdmin"]
	if len(data) != pool || len(admin) != 1 {
		t.Errorf("calls on data go over %d connections, those of administration over %d; want %d and 1", len(data), len(admin), pool)
	}
	for from, n := range data {
		if n != rounds {
			t.Errorf("%d calls go over %s, want %d", n, from, rounds)
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lis.Close() })
	return lis
}

// TestConnect_Compress: with --compress messages are compressed, over plain gRPC and over TLS.
func TestConnect_Compress(t *testing.T) {
	t.Parallel()
	cert, key, _ := certificate(t)
	pair, err := credentials.NewServerTLSFromFile(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, secured := range []bool{false, true} {
		seen := &packingSeen{}
		options := []grpc.ServerOption{grpc.StatsHandler(seen)}
		flags := connectFlags{Project: "p", Instance: "i"}
		if secured {
			options, flags.CA = append(options, grpc.Creds(pair)), cert
		}
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := grpc.NewServer(options...)
		served := make(chan error, 1)
		go func() { served <- srv.Serve(lis) }()
		for _, flags.Compress = range []bool{false, true} {
			c, err := flags.connect(t.Context(), lis.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_, err = btapb.NewBigtableTableAdminClient(c.conn).ListTables(t.Context(), &btapb.ListTablesRequest{})
			if status.Code(err) != codes.Unimplemented {
				t.Error(err)
			}
			if err := c.close(); err != nil {
				t.Error(err)
			}
		}
		srv.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if want := []string{"", "gzip"}; !slices.Equal(seen.names, want) {
			t.Errorf("secured %t: calls are packed by %q, want %q", secured, seen.names, want)
		}
	}
}

// packingSeen records the compression of a server's calls.
type packingSeen struct {
	mu    sync.Mutex
	names []string
}

func (p *packingSeen) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (p *packingSeen) HandleRPC(_ context.Context, s stats.RPCStats) {
	if header, ok := s.(*stats.InHeader); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.names = append(p.names, header.Compression)
	}
}

func (p *packingSeen) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (p *packingSeen) HandleConn(context.Context, stats.ConnStats) {}
