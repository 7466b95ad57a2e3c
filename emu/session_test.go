package emu

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/engine"
)

func TestGetClientConfiguration(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	got, err := e.data.GetClientConfiguration(e.ctx(), &btpb.GetClientConfigurationRequest{InstanceName: testInstance})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetSessionConfiguration() == nil || got.GetSessionConfiguration().GetSessionLoad() != 0 || !got.GetStopPolling() {
		t.Errorf("%v: sessions are asked for, or polling goes on", got)
	}
	_, err = e.data.GetClientConfiguration(e.ctx(), &btpb.GetClientConfigurationRequest{InstanceName: "i"})
	wantCode(t, err, codes.InvalidArgument)
}

// testSession is the client side of a session.
type testSession struct {
	t *testing.T
	btpb.Bigtable_OpenTableClient
}

// openSession sends the handshake.
func (e *env) openSession(ctx context.Context, data btpb.BigtableClient, table string, p btpb.OpenTableRequest_Permission, flags *btpb.FeatureFlags) testSession {
	e.t.Helper()
	stream, err := data.OpenTable(ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	payload, err := proto.Marshal(&btpb.OpenTableRequest{TableName: table, Permission: p})
	if err != nil {
		e.t.Fatal(err)
	}
	ss := testSession{e.t, stream}
	ss.send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Flags: flags, Payload: payload}}})
	return ss
}

func (ss testSession) send(r *btpb.SessionRequest) {
	ss.t.Helper()
	if err := ss.Send(r); err != nil && !errors.Is(err, io.EOF) {
		ss.t.Fatal(err)
	}
}

// opened reads the server's handshake.
func (ss testSession) opened() {
	ss.t.Helper()
	resp, err := ss.Recv()
	if err != nil || resp.GetOpenSession() == nil {
		ss.t.Fatalf("%v, %v: want open_session", resp, err)
	}
	resp, err = ss.Recv()
	if err != nil || resp.GetSessionParameters().GetKeepAlive().AsDuration() <= 0 {
		ss.t.Fatalf("%v, %v: want session_parameters with a keep-alive", resp, err)
	}
}

func (ss testSession) sendRPC(id int64, req proto.Message) {
	ss.t.Helper()
	payload, err := proto.Marshal(req)
	if err != nil {
		ss.t.Fatal(err)
	}
	ss.send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_VirtualRpc{VirtualRpc: &btpb.VirtualRpcRequest{
		RpcId: id, Payload: payload, Deadline: durationpb.New(time.Minute),
	}}})
}

// rpc runs a virtual RPC in a session on a table.
func (ss testSession) rpc(id int64, req *btpb.TableRequest) (*btpb.TableResponse, error) {
	ss.t.Helper()
	out := &btpb.TableResponse{}
	if err := ss.call(id, req, out); err != nil {
		return nil, err
	}
	return out, nil
}

// call runs a virtual RPC in any kind of session.
func (ss testSession) call(id int64, req, out proto.Message) error {
	ss.t.Helper()
	ss.sendRPC(id, req)
	resp, err := ss.Recv()
	if err != nil {
		ss.t.Fatal(err)
	}
	if e := resp.GetError(); e != nil {
		if e.GetRpcId() != id || e.GetClusterInfo().GetClusterId() == "" {
			ss.t.Errorf("error of %d: %v", id, e)
		}
		return status.ErrorProto(e.GetStatus())
	}
	v := resp.GetVirtualRpc()
	if v.GetRpcId() != id || v.GetClusterInfo().GetZoneId() == "" || v.GetStats().GetBackendLatency() == nil {
		ss.t.Errorf("answer to %d: %v", id, resp)
	}
	if err := proto.Unmarshal(v.GetPayload(), out); err != nil {
		ss.t.Fatal(err)
	}
	return nil
}

func sessionRead(key string, f *btpb.RowFilter) *btpb.TableRequest {
	return &btpb.TableRequest{Payload: &btpb.TableRequest_ReadRow{ReadRow: &btpb.SessionReadRowRequest{Key: []byte(key), Filter: f}}}
}

func sessionMutate(key string, m ...*btpb.Mutation) *btpb.TableRequest {
	return &btpb.TableRequest{Payload: &btpb.TableRequest_MutateRow{MutateRow: &btpb.SessionMutateRowRequest{Key: []byte(key), Mutations: m}}}
}

func TestOpenTable(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f", "g")
	ss := e.openSession(e.ctx(), btpb.NewBigtableClient(e.dial()), testTable,
		btpb.OpenTableRequest_PERMISSION_READ_WRITE, &btpb.FeatureFlags{PeerInfo: true})
	ss.opened()
	header, err := ss.Header()
	if err != nil {
		t.Fatal(err)
	}
	peer := &btpb.PeerInfo{}
	if v := header.Get("bigtable-peer-info"); len(v) != 1 {
		t.Errorf("headers %v: no peer info", header)
	} else if raw, err := base64.URLEncoding.DecodeString(v[0]); err != nil || proto.Unmarshal(raw, peer) != nil ||
		peer.GetTransportType() == btpb.PeerInfo_TRANSPORT_TYPE_UNKNOWN {
		t.Errorf("peer info %q: %v, %v", v, peer, err)
	}

	if _, err := ss.rpc(1, sessionMutate("r", set("g", "q", 2000, "2"), set("f", "q", 1000, "1"), set("f", "q", 2000, "2"))); err != nil {
		t.Fatal(err)
	}
	e.wantCells(nil, "r f:q@2000=2", "r f:q@1000=1", "r g:q@2000=2")
	got, err := ss.rpc(5, sessionRead("r", chainOf(columnLimitOf(1), labelOf("l")))) // ids may have gaps
	if err != nil {
		t.Fatal(err)
	}
	if text := rowText(got.GetReadRow().GetRow()); text != "r\n  f:q @2000 = \"2\" [l]\n  g:q @2000 = \"2\" [l]\n" {
		t.Errorf("read:\n%s", text)
	}
	seen := got.GetReadRow().GetStats().GetFullReadStatsView().GetReadIterationStats()
	if seen.GetRowsReturnedCount() != 1 || seen.GetCellsReturnedCount() != 2 || seen.GetCellsSeenCount() < 2 {
		t.Errorf("stats %v", seen)
	}
	// A missing row, and a row that the filter removes.
	for i, req := range []*btpb.TableRequest{sessionRead("no", nil), sessionRead("r", qualifierRegexOf("x"))} {
		got, err := ss.rpc(int64(8+i), req)
		if err != nil || got.GetReadRow() == nil || got.GetReadRow().GetRow() != nil {
			t.Errorf("%v: %v, %v", req, got, err)
		}
	}
	// Errors only fail the virtual RPC.
	for i, c := range []struct {
		req  *btpb.TableRequest
		want codes.Code
	}{
		{sessionMutate("r", set("nope", "q", 0, "")), codes.NotFound},
		{sessionMutate("r"), codes.InvalidArgument},
		{sessionMutate("", set("f", "q", 0, "")), codes.InvalidArgument},
		{sessionRead("", nil), codes.InvalidArgument},
		{sessionRead("r", valueRegexOf("(")), codes.InvalidArgument},
		{&btpb.TableRequest{}, codes.InvalidArgument},
	} {
		_, err := ss.rpc(int64(100+i), c.req)
		wantCode(t, err, c.want)
	}
	if _, err := ss.rpc(200, sessionRead("r", nil)); err != nil {
		t.Errorf("after errors: %v", err)
	}
	ss.send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_CloseSession{CloseSession: &btpb.CloseSessionRequest{}}})
	if _, err := ss.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after close_session: %v", err)
	}
}

func TestOpenTable_Refusals(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	data := btpb.NewBigtableClient(e.dial())
	const both = btpb.OpenTableRequest_PERMISSION_READ_WRITE
	ended := func(ss testSession, want codes.Code) {
		t.Helper()
		_, err := ss.Recv()
		wantCode(t, err, want)
	}
	ended(e.openSession(e.ctx(), data, testTable+"x", both, nil), codes.NotFound)
	ended(e.openSession(e.ctx(), data, "t", both, nil), codes.InvalidArgument)
	ended(e.openSession(e.ctx(), data, testTable, btpb.OpenTableRequest_PERMISSION_UNSET, nil), codes.InvalidArgument)
	ended(e.openSession(e.ctx(), data, testTable, 77, nil), codes.InvalidArgument)
	for _, first := range []*btpb.SessionRequest{
		{},
		{Payload: &btpb.SessionRequest_VirtualRpc{}},
		{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Payload: []byte{0xff}}}},
	} {
		stream, err := data.OpenTable(e.ctx())
		if err != nil {
			t.Fatal(err)
		}
		ss := testSession{t, stream}
		ss.send(first)
		ended(ss, codes.InvalidArgument)
	}

	// Protocol errors end a session.
	for _, breach := range []func(testSession){
		func(ss testSession) { ss.send(&btpb.SessionRequest{}) },
		func(ss testSession) { ss.sendRPC(0, sessionRead("r", nil)) },
		func(ss testSession) { ss.send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{}}) },
	} {
		ss := e.openSession(e.ctx(), data, testTable, both, nil)
		ss.opened()
		breach(ss)
		ended(ss, codes.InvalidArgument)
	}

	// Permissions, and a deleted table.
	reader := e.openSession(e.ctx(), data, testTable, btpb.OpenTableRequest_PERMISSION_READ, nil)
	reader.opened()
	writer := e.openSession(e.ctx(), data, testTable, btpb.OpenTableRequest_PERMISSION_WRITE, nil)
	writer.opened()
	_, err := reader.rpc(1, sessionMutate("r", set("f", "q", 0, "")))
	wantCode(t, err, codes.PermissionDenied)
	_, err = writer.rpc(1, sessionRead("r", nil))
	wantCode(t, err, codes.PermissionDenied)
	if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
		t.Fatal(err)
	}
	_, err = writer.rpc(2, sessionMutate("r", set("f", "q", 0, "")))
	wantCode(t, err, codes.NotFound)

	// The client disconnects without closing.
	ctx, cancel := context.WithCancel(e.ctx())
	ss := e.openSession(ctx, data, testTable, both, nil)
	cancel()
	if _, err := ss.Recv(); err == nil {
		t.Error("a session went on after its context")
	}
	// The in-process channel does not support client streams.
	_, err = e.data.OpenTable(e.ctx())
	if st := status.Convert(err); st.Code() != codes.Unimplemented || !strings.Contains(st.Message(), "OpenTable") {
		t.Errorf("over Conn: %v", err)
	}
}

func TestTrap170_RetryInfo(t *testing.T) {
	t.Parallel()
	again := func(c codes.Code, after time.Duration) error {
		st := status.New(c, "scripted")
		if after > 0 {
			var err error
			if st, err = st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)}); err != nil {
				t.Fatal(err)
			}
		}
		return st.Err()
	}
	var fault atomic.Pointer[error]
	methods := make(chan string, 8)
	e := newEnvWith(t, Options{UnaryInterceptor: func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		name := ""
		switch r := req.(type) {
		case *btpb.ReadRowsRequest:
			name = r.GetTableName() + " " + string(r.GetRows().GetRowKeys()[0])
		case *btpb.MutateRowRequest:
			name = r.GetTableName() + " " + string(r.GetRowKey())
		}
		if err := fault.Load(); err != nil && name != "" {
			methods <- info.FullMethod + " " + name
			return nil, *err
		}
		return handler(ctx, req)
	}}, engine.Options{})
	e.createTable("t", "f")
	ss := e.openSession(t.Context(), btpb.NewBigtableClient(e.dial()), testTable, btpb.OpenTableRequest_PERMISSION_READ_WRITE, nil)
	ss.opened()
	read := &btpb.TableRequest{Payload: &btpb.TableRequest_ReadRow{ReadRow: &btpb.SessionReadRowRequest{Key: []byte("r")}}}
	write := &btpb.TableRequest{Payload: &btpb.TableRequest_MutateRow{MutateRow: &btpb.SessionMutateRowRequest{Key: []byte("r"), Mutations: []*btpb.Mutation{set("f", "q", 0, "v")}}}}
	for i, c := range []struct {
		req    *btpb.TableRequest
		err    error
		method string
		retry  time.Duration
	}{
		{write, again(codes.FailedPrecondition, time.Second), "MutateRow", time.Second},
		{read, again(codes.FailedPrecondition, time.Minute), "ReadRows", time.Minute},
		{read, again(codes.Unavailable, 0), "ReadRows", 0},
	} {
		fault.Store(&c.err)
		ss.sendRPC(int64(i+1), c.req)
		resp, err := ss.Recv()
		got := resp.GetError()
		if err != nil || got.GetRpcId() != int64(i+1) || got.GetClusterInfo().GetClusterId() == "" || !proto.Equal(got.GetStatus(), status.Convert(c.err).Proto()) {
			t.Errorf("%v, %v; want an error %v", resp, err, c.err)
		}
		if (got.GetRetryInfo() != nil) != (c.retry > 0) || got.GetRetryInfo().GetRetryDelay().AsDuration() != c.retry {
			t.Errorf("retry_info %v, want %v", got.GetRetryInfo(), c.retry)
		}
		if got, want := <-methods, "/google.bigtable.v2.Bigtable/"+c.method+" "+testTable+" r"; got != want {
			t.Errorf("intercepted %s, want %s", got, want)
		}
	}
	fault.Store(nil)
	if _, err := ss.rpc(8, write); err != nil { // the failed write was not applied, and the session continues
		t.Error(err)
	}
	if out, err := ss.rpc(9, read); err != nil || len(out.GetReadRow().GetRow().GetFamilies()) != 1 {
		t.Errorf("%v, %v", out, err)
	}
}

// A session on a materialized view reads its rows as they are at each request.
func TestOpenMaterializedView_Reads(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	const view = testInstance + "/materializedViews/v"
	_, err := e.instances().CreateMaterializedView(e.ctx(), &btapb.CreateMaterializedViewRequest{
		Parent: testInstance, MaterializedViewId: "v", MaterializedView: &btapb.MaterializedView{Query: "SELECT _key, COUNT(f['q']) AS n FROM t GROUP BY _key"},
	})
	if err != nil {
		t.Fatal(err)
	}
	data := btpb.NewBigtableClient(e.dial())
	open := func(name string) testSession {
		stream, err := data.OpenMaterializedView(e.ctx())
		if err != nil {
			t.Fatal(err)
		}
		payload, err := proto.Marshal(&btpb.OpenMaterializedViewRequest{MaterializedViewName: name, Permission: btpb.OpenMaterializedViewRequest_PERMISSION_READ})
		if err != nil {
			t.Fatal(err)
		}
		ss := testSession{t, stream}
		ss.send(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Payload: payload}}})
		return ss
	}
	ss := open(view)
	ss.opened()
	for id, want := range []int{0, 2} { // the empty cell, and n
		if want > 0 {
			e.mustMutate("r", set("f", "q", 1000, "v"))
		}
		out := &btpb.MaterializedViewResponse{}
		req := &btpb.MaterializedViewRequest{Payload: &btpb.MaterializedViewRequest_ReadRow{ReadRow: &btpb.SessionReadRowRequest{Key: []byte("r")}}}
		if err := ss.call(int64(id+1), req, out); err != nil {
			t.Fatal(err)
		}
		columns := 0
		for _, f := range out.GetReadRow().GetRow().GetFamilies() {
			columns += len(f.GetColumns())
		}
		if columns != want {
			t.Errorf("the row of the view is %v, want %d cells", out, want)
		}
	}
	_, err = open(view + "x").Recv()
	wantCode(t, err, codes.NotFound)
	_, err = open(testTable).Recv()
	wantCode(t, err, codes.InvalidArgument)
}

// An instance is deleted with its materialized views, unless one of them is protected.
func TestDeleteInstance_MaterializedViews(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	const view = testInstance + "/materializedViews/v"
	_, err := e.instances().CreateMaterializedView(e.ctx(), &btapb.CreateMaterializedViewRequest{
		Parent: testInstance, MaterializedViewId: "v", MaterializedView: &btapb.MaterializedView{Query: "SELECT _key AS k FROM t ORDER BY k", DeletionProtection: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	remove := func() error {
		_, err := e.instances().DeleteInstance(e.ctx(), &btapb.DeleteInstanceRequest{Name: testInstance})
		return err
	}
	wantCode(t, remove(), codes.FailedPrecondition)
	_, err = e.instances().UpdateMaterializedView(e.ctx(), &btapb.UpdateMaterializedViewRequest{MaterializedView: &btapb.MaterializedView{Name: view}, UpdateMask: mask("deletion_protection")})
	if err := errors.Join(err, remove()); err != nil {
		t.Fatal(err)
	}
	if left := e.srv.db.Tables(engine.InternalTables); len(left) > 0 {
		t.Errorf("the instance leaves %v", left)
	}
	_, err = e.instances().GetMaterializedView(e.ctx(), &btapb.GetMaterializedViewRequest{Name: view})
	wantCode(t, err, codes.NotFound)
}
