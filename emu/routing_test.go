package emu

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
)

// drained reads a stream to its end.
func drained[M any](s interface{ Recv() (*M, error) }, err error) error {
	for err == nil {
		_, err = s.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// TestAppProfiles_Requests sends every request with an app profile field through profiles of
// all kinds.
func TestAppProfiles_Requests(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	wire := btpb.NewBigtableClient(e.dial())
	ctx := withFeatures(e.ctx(), &btpb.FeatureFlags{ReverseScans: true}, base64.URLEncoding)
	one := []*btpb.Mutation{set("f", "q", 0, "v")}
	session := func(profile string, p btpb.OpenTableRequest_Permission) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := wire.OpenTable(ctx)
		if err != nil {
			return err
		}
		payload, err := proto.Marshal(&btpb.OpenTableRequest{TableName: testTable, AppProfileId: profile, Permission: p})
		if err != nil {
			return err
		}
		if err := stream.Send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Payload: payload}}}); err != nil {
			return err
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		return drained[btpb.SessionResponse](stream, nil)
	}
	requests := []struct {
		name string
		does access
		send func(profile string) error
	}{
		{"ReadRows", reads, func(profile string) error {
			return drained(e.data.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: testTable, AppProfileId: profile}))
		}},
		{"ReadRows reversed", readsReversed, func(profile string) error {
			return drained(e.data.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: testTable, AppProfileId: profile, Reversed: true}))
		}},
		{"SampleRowKeys", reads, func(profile string) error {
			return drained(e.data.SampleRowKeys(ctx, &btpb.SampleRowKeysRequest{TableName: testTable, AppProfileId: profile}))
		}},
		{"MutateRow", writes, func(profile string) error {
			_, err := e.data.MutateRow(ctx, &btpb.MutateRowRequest{TableName: testTable, AppProfileId: profile, RowKey: []byte("r"), Mutations: one})
			return err
		}},
		{"MutateRows", writes, func(profile string) error {
			return drained(e.data.MutateRows(ctx, &btpb.MutateRowsRequest{TableName: testTable, AppProfileId: profile, Entries: []*btpb.MutateRowsRequest_Entry{entry("r", one...)}}))
		}},
		{"CheckAndMutateRow", transacts, func(profile string) error {
			_, err := e.data.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{TableName: testTable, AppProfileId: profile, RowKey: []byte("r"), FalseMutations: one})
			return err
		}},
		{"ReadModifyWriteRow", transacts, func(profile string) error {
			_, err := e.data.ReadModifyWriteRow(ctx, &btpb.ReadModifyWriteRowRequest{
				TableName: testTable, AppProfileId: profile, RowKey: []byte("r"), Rules: []*btpb.ReadModifyWriteRule{appendRule("f", "a", "x")},
			})
			return err
		}},
		{"PingAndWarm", reads, func(profile string) error {
			_, err := e.data.PingAndWarm(ctx, &btpb.PingAndWarmRequest{Name: testInstance, AppProfileId: profile})
			return err
		}},
		{"GetClientConfiguration", reads, func(profile string) error {
			_, err := e.data.GetClientConfiguration(ctx, &btpb.GetClientConfigurationRequest{InstanceName: testInstance, AppProfileId: profile})
			return err
		}},
		{"OpenTable to read", reads, func(profile string) error { return session(profile, btpb.OpenTableRequest_PERMISSION_READ) }},
		{"OpenTable to write", writes, func(profile string) error { return session(profile, btpb.OpenTableRequest_PERMISSION_WRITE) }},
	}
	check := func(profile string, want map[access]codes.Code) {
		t.Helper()
		for _, r := range requests {
			if err := r.send(profile); status.Code(err) != want[r.does] {
				t.Errorf("%s through %q: %v, want %v", r.name, profile, err, want[r.does])
			}
		}
	}
	all := map[access]codes.Code{}
	none := map[access]codes.Code{reads: codes.NotFound, readsReversed: codes.NotFound, writes: codes.NotFound, transacts: codes.NotFound}
	noTransactions := map[access]codes.Code{transacts: codes.FailedPrecondition}
	onlyForward := map[access]codes.Code{readsReversed: codes.FailedPrecondition, writes: codes.FailedPrecondition, transacts: codes.FailedPrecondition}

	// In an implicit instance, every profile exists and allows everything.
	for _, id := range []string{"", "default", "any"} {
		check(id, all)
	}
	for id, p := range map[string]*btapb.AppProfile{
		"yes": singleCluster(instancedef.ImplicitCluster, true), "no": singleCluster(instancedef.ImplicitCluster, false), "multi": anyCluster(),
		"standard": standard(singleCluster(instancedef.ImplicitCluster, true), btapb.AppProfile_PRIORITY_LOW),
		"boost":    dataBoost(singleCluster(instancedef.ImplicitCluster, false), btapb.AppProfile_DataBoostIsolationReadOnly_HOST_PAYS),
	} {
		if err := e.createAppProfile(testInstance, id, p); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]map[access]codes.Code{
		"": all, "default": all, "yes": all, "standard": all, "no": noTransactions, "multi": noTransactions, "boost": onlyForward,
		"unknown": none, "x/y": none, "Yes": none,
	} {
		check(id, want)
	}
	// Requests without a profile use the default one, which may be deleted.
	op, err := e.instances().UpdateAppProfile(e.ctx(), &btapb.UpdateAppProfileRequest{
		AppProfile: &btapb.AppProfile{Name: testInstance + "/appProfiles/default", RoutingPolicy: anyCluster().GetRoutingPolicy()},
		UpdateMask: mask("multi_cluster_routing_use_any"),
	})
	response[*btapb.AppProfile](e, op, err)
	check("", noTransactions)
	check("yes", all)
	if _, err := e.instances().DeleteAppProfile(e.ctx(), &btapb.DeleteAppProfileRequest{Name: testInstance + "/appProfiles/default", IgnoreWarnings: true}); err != nil {
		t.Fatal(err)
	}
	check("", none)
	check("yes", all)

	_, err = e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, AppProfileId: "nope", RowKey: []byte("r"), Mutations: one})
	if got, want := status.Convert(err).Message(), `Requested app profile not found. Instance projects/p/instances/i has no app profile "nope".`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestRoutes_GatheredOnce: routes are gathered after a change, including a restore of the
// store, and not for each request.
func TestRoutes_GatheredOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("z", 1))
	e.createTable("t", "f")
	if err := e.createAppProfile(testInstance, "p", singleCluster("c1", true)); err != nil {
		t.Fatal(err)
	}
	wire := btpb.NewBigtableClient(e.dial())
	request := func() error {
		_, err := wire.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, AppProfileId: "p", RowKey: []byte("r"), Mutations: []*btpb.Mutation{set("f", "q", 0, "")}})
		return err
	}
	wantCode(t, request(), codes.OK)
	routes := func() *admin.Routes {
		r, err := e.srv.control.CurrentRoutes()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	gathered := routes()
	e.createTable("u") // is not a resource
	for range 3 {
		wantCode(t, request(), codes.OK)
	}
	if routes() != gathered {
		t.Error("the routes were gathered again, and nothing has changed")
	}
	base, err := e.db.Snapshot(e.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.instances().DeleteAppProfile(e.ctx(), &btapb.DeleteAppProfileRequest{Name: testInstance + "/appProfiles/p", IgnoreWarnings: true}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, request(), codes.NotFound)
	if err := e.db.Restore(e.ctx(), base); err != nil {
		t.Fatal(err)
	}
	wantCode(t, request(), codes.OK)
}
