package emu

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
)

// answered reads the metrics headers like the official clients: in the header first, then in
// the trailer. It returns "CLUSTER in ZONE".
func answered(t *testing.T, header, trailer metadata.MD) string {
	t.Helper()
	all := metadata.Join(header, trailer)
	timing := all.Get("server-timing")
	if len(timing) != 1 || !strings.HasPrefix(timing[0], "gfet4t7; dur=") || strings.HasSuffix(timing[0], "=0") {
		t.Errorf("server-timing %q", timing)
	}
	params := &btpb.ResponseParams{}
	where := header.Get("x-goog-ext-425905942-bin")
	if len(where) == 0 {
		where = trailer.Get("x-goog-ext-425905942-bin")
	}
	if len(where) != 1 || proto.Unmarshal([]byte(where[0]), params) != nil {
		t.Errorf("location %q", where)
	}
	return params.GetClusterId() + " in " + params.GetZoneId()
}

// TestResponseParams checks the headers of responses and errors in an implicit instance.
func TestResponseParams(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	data := btpb.NewBigtableClient(e.dial())
	const want = instancedef.ImplicitCluster + " in " + instancedef.ImplicitZone
	for _, row := range []string{"r", ""} {
		var header, trailer metadata.MD
		_, err := data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte(row), Mutations: []*btpb.Mutation{set("f", "q", 0, "")}},
			grpc.Header(&header), grpc.Trailer(&trailer))
		if row == "" {
			wantCode(t, err, codes.InvalidArgument)
		} else if err != nil {
			t.Fatal(err)
		}
		if got := answered(t, header, trailer); got != want {
			t.Errorf("MutateRow %q: %s", row, got)
		}
	}
	for _, req := range []*btpb.ReadRowsRequest{
		{TableName: testTable},
		{TableName: testTable, AppProfileId: "any"},
		{TableName: testTable, Filter: qualifierRegexOf("none")},
	} {
		got, err := answeringCluster(t, e, data, req)
		wantCode(t, err, codes.OK)
		if got != want {
			t.Errorf("ReadRows %v: %s", req, got)
		}
	}
}

// answeringCluster runs a read and returns the answering cluster.
func answeringCluster(t *testing.T, e *env, data btpb.BigtableClient, req *btpb.ReadRowsRequest) (string, error) {
	t.Helper()
	stream, err := data.ReadRows(e.ctx(), req)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = stream.Recv()
	}
	header, headerErr := stream.Header()
	if headerErr != nil {
		t.Fatal(headerErr)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return answered(t, header, stream.Trailer()), err
}

// TestResponseParams_Routing: in an instance with two clusters, the app profile's cluster
// answers, or the first one.
func TestResponseParams_Routing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.mustCreateInstance("i", nodes("us-east1-b", 1), nodes("europe-west1-c", 1))
	e.createTable("t", "f")
	data := btpb.NewBigtableClient(e.dial())
	for id, p := range map[string]*btapb.AppProfile{
		"first": singleCluster("c1", true), "second": singleCluster("c2", false), "any": anyCluster(), "only": anyCluster("c2"),
	} {
		if err := e.createAppProfile(testInstance, id, p); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]string{
		"": "c1 in us-east1-b", "default": "c1 in us-east1-b", "any": "c1 in us-east1-b", "first": "c1 in us-east1-b",
		"second": "c2 in europe-west1-c", "only": "c2 in europe-west1-c",
		"none": "c1 in us-east1-b", // an error names a cluster too
	} {
		got, err := answeringCluster(t, e, data, &btpb.ReadRowsRequest{TableName: testTable, AppProfileId: id})
		if id == "none" {
			wantCode(t, err, codes.NotFound)
		} else if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("ReadRows through %q: %s, want %s", id, got, want)
		}
		var header, trailer metadata.MD
		_, _ = data.MutateRow(e.ctx(), &btpb.MutateRowRequest{
			TableName: testTable, AppProfileId: id, RowKey: []byte("r"), Mutations: []*btpb.Mutation{set("f", "q", 0, "")},
		}, grpc.Header(&header), grpc.Trailer(&trailer))
		if got := answered(t, header, trailer); got != want {
			t.Errorf("MutateRow through %q: %s, want %s", id, got, want)
		}
		_, _ = data.PingAndWarm(e.ctx(), &btpb.PingAndWarmRequest{Name: testInstance, AppProfileId: id}, grpc.Header(&header))
		if got := answered(t, header, nil); got != want {
			t.Errorf("PingAndWarm through %q: %s, want %s", id, got, want)
		}
	}

	view := e.mustCreateView("v", viewOf(subset(nil)))
	if got, err := answeringCluster(t, e, data, &btpb.ReadRowsRequest{AuthorizedViewName: view, AppProfileId: "second"}); err != nil || got != "c2 in europe-west1-c" {
		t.Errorf("ReadRows through a view: %s, %v", got, err)
	}

	// A session reports its cluster in its header, its opening and every response.
	stream, err := data.OpenTable(e.ctx())
	if err != nil {
		t.Fatal(err)
	}
	payload, err := proto.Marshal(&btpb.OpenTableRequest{TableName: testTable, AppProfileId: "second", Permission: btpb.OpenTableRequest_PERMISSION_READ})
	if err != nil {
		t.Fatal(err)
	}
	ss := testSession{t, stream}
	ss.send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Payload: payload}}})
	opened, err := stream.Recv()
	if got := opened.GetOpenSession().GetBackend().GetApplicationFrontendZone(); err != nil || got != "europe-west1-c" {
		t.Errorf("the session is opened in %q, %v", got, err)
	}
	header, err := stream.Header()
	if err != nil {
		t.Fatal(err)
	}
	if got := answered(t, header, nil); got != "c2 in europe-west1-c" {
		t.Errorf("the session is served by %s", got)
	}
	if _, err := stream.Recv(); err != nil { // the session parameters
		t.Fatal(err)
	}
	ss.sendRPC(1, sessionRead("r", nil))
	answer, err := stream.Recv()
	if where := answer.GetVirtualRpc().GetClusterInfo(); err != nil || where.GetClusterId() != "c2" || where.GetZoneId() != "europe-west1-c" {
		t.Errorf("%v, %v", answer, err)
	}
}

// The location is in the header and in the trailer: the clients of Node and C++ only read the
// trailer, others read the header first. The clients of Go and Java get no trailer, as they do
// not need it.
func TestLocationInTrailer(t *testing.T) {
	t.Parallel()
	for agent, trailers := range map[string]bool{
		"gl-node grpc-node-js/1.13.4": true, "gcloud-cpp/2.40.0 grpc-c++/1.74.1 grpc-c/48.0.0": true, "somebody": false, // of Go
		"": false, "cbt-go/1.58.0": false, "bigtable-java/2.60.0 grpc-java-netty/1.71.0": false,
	} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			testLocationInTrailer(t, agent, trailers)
		})
	}
}

// testLocationInTrailer makes calls with a user agent, to which grpc-go appends its own name.
func testLocationInTrailer(t *testing.T, agent string, trailers bool) {
	t.Helper()
	e := newTable(t, "f")
	data := btpb.NewBigtableClient(e.dial(grpc.WithUserAgent(agent)))
	check := func(call string, header, trailer metadata.MD) {
		t.Helper()
		in, where := header.Get(locationHeader), trailer.Get(locationHeader)
		if len(in) != 1 || trailers && !slices.Equal(where, in) || !trailers && len(where) > 0 {
			t.Errorf("%s: header %q, trailer %q", call, in, where)
		}
	}
	var header, trailer metadata.MD
	both := []grpc.CallOption{grpc.Header(&header), grpc.Trailer(&trailer)}
	for _, row := range []string{"r", ""} {
		_, err := data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte(row), Mutations: []*btpb.Mutation{set("f", "q", 0, "")}}, both...)
		wantCode(t, err, codes.OK, codes.InvalidArgument)
		check("MutateRow "+row, header, trailer)
	}
	if _, err := data.PingAndWarm(e.ctx(), &btpb.PingAndWarmRequest{Name: testInstance}, both...); err != nil {
		t.Fatal(err)
	}
	check("PingAndWarm", header, trailer)
	for name, req := range map[string]*btpb.ReadRowsRequest{
		"rows": {TableName: testTable}, "no rows": {TableName: testTable, Filter: qualifierRegexOf("none")}, "refused": {TableName: testTable, RowsLimit: -1},
	} {
		stream, err := data.ReadRows(e.ctx(), req)
		for err == nil {
			_, err = stream.Recv()
		}
		header, err := stream.Header()
		if err != nil {
			t.Fatal(err)
		}
		check("ReadRows "+name, header, stream.Trailer())
	}
}

// A call to a missing resource has no location. Clients then report the zone "global" and the
// cluster "<unspecified>", which the metrics tests of the Java client expect.
func TestTrap169_NoLocation(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	e.createTable("gone", "f")
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testInstance + "/tables/gone"}); err != nil {
		t.Fatal(err)
	}
	data := btpb.NewBigtableClient(e.dial(grpc.WithUserAgent("grpc-node-js/1.13.4")))
	muts := []*btpb.Mutation{set("nope", "q", 0, "")}
	for _, table := range []string{testTable + "x", testInstance + "/tables/gone", "no name", "", testTable} {
		exists := table == testTable
		var header, trailer metadata.MD
		both := []grpc.CallOption{grpc.Header(&header), grpc.Trailer(&trailer)}
		check := func(call string, err error) {
			t.Helper()
			wantCode(t, err, codes.NotFound, codes.InvalidArgument)
			for in, md := range map[string]metadata.MD{"header": header, "trailer": trailer} {
				if got := md.Get(locationHeader); (len(got) > 0) != exists {
					t.Errorf("%s of %q: location %q in the %s", call, table, got, in)
				}
			}
			if got := append(header.Get(serverTimingHeader), trailer.Get(serverTimingHeader)...); len(got) != 1 {
				t.Errorf("%s of %q: %s %q", call, table, serverTimingHeader, got)
			}
		}
		_, err := data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: table, RowKey: []byte("r"), Mutations: muts}, both...)
		check("MutateRow", err)
		if view := table + "/authorizedViews/v"; !exists { // nor does one
			_, err = data.MutateRow(e.ctx(), &btpb.MutateRowRequest{AuthorizedViewName: view, RowKey: []byte("r"), Mutations: muts}, both...)
			check("MutateRow through a view", err)
			_, err = data.MutateRow(e.ctx(), &btpb.MutateRowRequest{AuthorizedViewName: viewName("none"), RowKey: []byte("r"), Mutations: muts}, both...)
			check("MutateRow through a view that is missing", err)
		}
		_, err = data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{TableName: table, RowKey: []byte("r"), TrueMutations: muts}, both...)
		check("CheckAndMutateRow", err)
		_, err = data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: table, RowKey: []byte("r")}, both...)
		check("ReadModifyWriteRow", err)
		for call, open := range map[string]func() (grpc.ClientStream, error){
			"ReadRows": func() (grpc.ClientStream, error) {
				return data.ReadRows(e.ctx(), &btpb.ReadRowsRequest{TableName: table, RowsLimit: -1})
			},
			"MutateRows": func() (grpc.ClientStream, error) {
				return data.MutateRows(e.ctx(), &btpb.MutateRowsRequest{TableName: table})
			},
			"ReadRows through a profile": func() (grpc.ClientStream, error) {
				return data.ReadRows(e.ctx(), &btpb.ReadRowsRequest{TableName: table, AppProfileId: "!", RowsLimit: -1})
			},
			"OpenTable": func() (grpc.ClientStream, error) {
				return e.openSession(e.ctx(), data, table, btpb.OpenTableRequest_PERMISSION_UNSET, nil).Bigtable_OpenTableClient, nil
			},
		} {
			stream, err := open()
			if err != nil {
				t.Fatal(err)
			}
			err = stream.RecvMsg(&btpb.ReadRowsResponse{})
			if header, trailer = nil, stream.Trailer(); err == nil {
				t.Fatalf("%s of %q succeeds", call, table)
			}
			header, _ = stream.Header()
			check(call, err)
		}
	}
	// So does a call to a missing instance.
	e.mustCreateInstance("other", nodes("z", 1))
	var header metadata.MD
	_, err := data.PingAndWarm(e.ctx(), &btpb.PingAndWarmRequest{Name: "projects/p/instances/none"}, grpc.Header(&header))
	wantCode(t, err, codes.NotFound)
	if got := header.Get(locationHeader); len(got) > 0 {
		t.Errorf("PingAndWarm of no instance: %q", got)
	}
}

// A latency is in tenths of a millisecond, so that it does not exceed the client's total for a
// short call.
func TestServerTiming_Fractions(t *testing.T) {
	t.Parallel()
	for tenths, want := range map[int64]string{0: "0.1", 1: "0.1", 4: "0.4", 10: "1", 25: "2.5", 12_340: "1234"} {
		if got := serverTimingValues(tenths); got[0] != "gfet4t7; dur="+want {
			t.Errorf("%d tenths are %q, want %s", tenths, got, want)
		}
	}
}
