package emu

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/load"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// PingAndWarm only checks that the instance exists.
func (c *call) PingAndWarm(_ context.Context, req *btpb.PingAndWarmRequest) (*btpb.PingAndWarmResponse, error) {
	if err := resname.CheckInstance("name", req.GetName()); err != nil {
		return nil, err
	}
	if err := admin.CheckInstance(c.db, req.GetName()); err != nil {
		return nil, err
	}
	if err := c.admit(req, req.GetName(), req.GetAppProfileId(), reads); err != nil {
		return nil, err
	}
	return &btpb.PingAndWarmResponse{}, nil
}

// GetClientConfiguration returns a configuration that disables sessions and polling, because a
// session saves nothing within one process. The server still serves sessions that a client opens.
func (c *call) GetClientConfiguration(_ context.Context, req *btpb.GetClientConfigurationRequest) (*btpb.ClientConfiguration, error) {
	if err := resname.CheckInstance("instance_name", req.GetInstanceName()); err != nil {
		return nil, err
	}
	if err := c.admit(req, req.GetInstanceName(), req.GetAppProfileId(), reads); err != nil {
		return nil, err
	}
	return &btpb.ClientConfiguration{
		SessionConfiguration: &btpb.SessionClientConfiguration{SessionLoad: 0},
		Polling:              &btpb.ClientConfiguration_StopPolling{StopPolling: true},
	}, nil
}

const (
	// sessionKeepAlive is the longest silence of the server in a session; sessionHeartbeat is
	// the interval of its heartbeats. Both follow the wall clock, as they concern the
	// connection.
	sessionKeepAlive = time.Minute
	sessionHeartbeat = sessionKeepAlive / 4
)

// sessionKind encodes the messages of sessions on one kind of resource.
type sessionKind struct {
	method string // of the service
	// opens decodes the payload of open_session.
	opens func(payload []byte) (opening, error)
	// opened is the response to open_session.
	opened proto.Message
	// request returns an empty virtual RPC, to decode into.
	request func() virtualRequest
	// read and mutated wrap the responses to virtual RPCs. Sessions without mutated are
	// read-only.
	read    func(*btpb.SessionReadRowResponse) proto.Message
	mutated func(*btpb.SessionMutateRowResponse) proto.Message
	// target resolves the name of the resource.
	target func(ctx context.Context, s *Server, name string) (target, error)
}

// opening is a decoded open_session payload.
type opening struct {
	name, profile string
	permission    interface {
		Number() protoreflect.EnumNumber
		String() string
	}
}

// The numbers of permissions are the same in all kinds of sessions.
const (
	mayRead      = protoreflect.EnumNumber(btpb.OpenTableRequest_PERMISSION_READ)
	mayWrite     = protoreflect.EnumNumber(btpb.OpenTableRequest_PERMISSION_WRITE)
	mayReadWrite = protoreflect.EnumNumber(btpb.OpenTableRequest_PERMISSION_READ_WRITE)
)

var tableSessions = sessionKind{
	method: "OpenTable",
	opens: func(payload []byte) (opening, error) {
		m := &btpb.OpenTableRequest{}
		err := proto.Unmarshal(payload, m)
		return opening{m.GetTableName(), m.GetAppProfileId(), m.GetPermission()}, err
	},
	opened:  &btpb.OpenTableResponse{},
	request: func() virtualRequest { return &btpb.TableRequest{} },
	read: func(r *btpb.SessionReadRowResponse) proto.Message {
		return &btpb.TableResponse{Payload: &btpb.TableResponse_ReadRow{ReadRow: r}}
	},
	mutated: func(r *btpb.SessionMutateRowResponse) proto.Message {
		return &btpb.TableResponse{Payload: &btpb.TableResponse_MutateRow{MutateRow: r}}
	},
	target: func(_ context.Context, s *Server, name string) (target, error) { return s.writeTarget(name, "") },
}

var authorizedViewSessions = sessionKind{
	method: "OpenAuthorizedView",
	opens: func(payload []byte) (opening, error) {
		m := &btpb.OpenAuthorizedViewRequest{}
		err := proto.Unmarshal(payload, m)
		return opening{m.GetAuthorizedViewName(), m.GetAppProfileId(), m.GetPermission()}, err
	},
	opened:  &btpb.OpenAuthorizedViewResponse{},
	request: func() virtualRequest { return &btpb.AuthorizedViewRequest{} },
	read: func(r *btpb.SessionReadRowResponse) proto.Message {
		return &btpb.AuthorizedViewResponse{Payload: &btpb.AuthorizedViewResponse_ReadRow{ReadRow: r}}
	},
	mutated: func(r *btpb.SessionMutateRowResponse) proto.Message {
		return &btpb.AuthorizedViewResponse{Payload: &btpb.AuthorizedViewResponse_MutateRow{MutateRow: r}}
	},
	target: func(_ context.Context, s *Server, name string) (target, error) { return s.viewTarget(name) },
}

var materializedViewSessions = sessionKind{
	method: "OpenMaterializedView",
	opens: func(payload []byte) (opening, error) {
		m := &btpb.OpenMaterializedViewRequest{}
		err := proto.Unmarshal(payload, m)
		return opening{m.GetMaterializedViewName(), m.GetAppProfileId(), m.GetPermission()}, err
	},
	opened:  &btpb.OpenMaterializedViewResponse{},
	request: func() virtualRequest { return &btpb.MaterializedViewRequest{} },
	read: func(r *btpb.SessionReadRowResponse) proto.Message {
		return &btpb.MaterializedViewResponse{Payload: &btpb.MaterializedViewResponse_ReadRow{ReadRow: r}}
	},
	target: func(ctx context.Context, s *Server, name string) (target, error) {
		return s.materializedTarget(ctx, name, false)
	},
}

// OpenTable serves a session on a table. After a handshake, it handles point reads and row
// mutations as virtual RPCs, in order. A failed virtual RPC does not end the session; a protocol
// error does. Source: comments of google/bigtable/v2/session.proto.
func (c *call) OpenTable(stream btpb.Bigtable_OpenTableServer) error {
	return c.openSession(&tableSessions, stream)
}

// OpenAuthorizedView serves a session on an authorized view. It looks up the view for each virtual
// RPC, so a change of the view affects the next virtual RPC.
func (c *call) OpenAuthorizedView(stream btpb.Bigtable_OpenAuthorizedViewServer) error {
	return c.openSession(&authorizedViewSessions, stream)
}

// OpenMaterializedView serves a session on a materialized view, which can only be read.
func (c *call) OpenMaterializedView(stream btpb.Bigtable_OpenMaterializedViewServer) error {
	return c.openSession(&materializedViewSessions, stream)
}

// sessionStream is the server side of a session of any kind.
type sessionStream = grpc.BidiStreamingServer[btpb.SessionRequest, btpb.SessionResponse]

// openSession runs the handshake of a session, then serves it.
func (c *call) openSession(kind *sessionKind, stream sessionStream) error {
	first, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	open := first.GetOpenSession()
	if open == nil {
		return refusal.Invalid("payload", "the first message of a session must be open_session")
	}
	how, err := kind.opens(open.GetPayload())
	if err != nil {
		return refusal.Invalid("open_session.payload", "is not a %sRequest: %v", kind.method, err)
	}
	ss := &session{s: c.Server, kind: kind, stream: stream, name: how.name, profile: how.profile}
	switch p := how.permission.Number(); {
	case p == mayRead:
		ss.mayRead = true
	case p == mayWrite && kind.mutated != nil:
		ss.mayWrite = true
	case p == mayReadWrite && kind.mutated != nil:
		ss.mayRead, ss.mayWrite = true, true
	case kind.mutated == nil:
		return refusal.Invalid("open_session.payload.permission", "%v is not a permission; expected READ", how.permission)
	default:
		return refusal.Invalid("open_session.payload.permission", "%v is not a permission; expected READ, WRITE or READ_WRITE", how.permission)
	}
	if _, err := kind.target(stream.Context(), c.Server, ss.name); err != nil {
		return err
	}
	does := reads
	if ss.mayWrite {
		does = writes
	}
	if err := c.admit(first, ss.name, how.profile, does); err != nil {
		return err
	}
	ss.where, ss.at, ss.counted = locationOf(c.by), c.at, c.counted(stream.Context())
	if open.GetFlags().GetPeerInfo() {
		info, err := proto.Marshal(&btpb.PeerInfo{TransportType: btpb.PeerInfo_TRANSPORT_TYPE_SESSION_CLOUD_PATH})
		if err != nil {
			return refusal.Of(err)
		}
		if err := stream.SetHeader(metadata.Pairs("bigtable-peer-info", base64.URLEncoding.EncodeToString(info))); err != nil {
			return err
		}
	}
	opened := &btpb.OpenSessionResponse{Backend: &btpb.BackendIdentifier{ApplicationFrontendZone: ss.where.GetZoneId()}}
	if opened.Payload, err = proto.Marshal(kind.opened); err != nil {
		return refusal.Of(err)
	}
	err = ss.send(&btpb.SessionResponse{Payload: &btpb.SessionResponse_OpenSession{OpenSession: opened}})
	if err != nil {
		return err
	}
	err = ss.send(&btpb.SessionResponse{Payload: &btpb.SessionResponse_SessionParameters{
		SessionParameters: &btpb.SessionParametersResponse{KeepAlive: durationpb.New(sessionKeepAlive)},
	}})
	if err != nil {
		return err
	}
	c.calls.Endless()
	defer c.calls.Ended()
	stop := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() { ss.heartbeats(stop) })
	defer beating.Wait()
	defer close(stop)
	return ss.serve()
}

// session is an open session on a resource.
type session struct {
	s                 *Server
	kind              *sessionKind
	name, profile     string               // of the resource, and of the app profile
	where             *btpb.ResponseParams // the location of at
	at                replica.At           // the answering cluster
	mayRead, mayWrite bool
	counted           bool // as load
	lastRPC           int64

	mu     sync.Mutex // serializes sending
	stream sessionStream
}

func (ss *session) send(r *btpb.SessionResponse) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.stream.Send(r)
}

// heartbeats sends heartbeats until stop is closed.
func (ss *session) heartbeats(stop <-chan struct{}) {
	ticker := time.NewTicker(sessionHeartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			r := &btpb.SessionResponse{Payload: &btpb.SessionResponse_Heartbeat{Heartbeat: &btpb.HeartbeatResponse{}}}
			if ss.send(r) != nil {
				return // serve fails too
			}
		}
	}
}

// serve answers virtual RPCs until the client ends the session.
func (ss *session) serve() error {
	for {
		req, err := ss.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch p := req.GetPayload().(type) {
		case *btpb.SessionRequest_CloseSession:
			return nil
		case *btpb.SessionRequest_VirtualRpc:
			id := p.VirtualRpc.GetRpcId()
			if id <= ss.lastRPC {
				return refusal.Invalid("virtual_rpc.rpc_id", "%d does not follow %d", id, ss.lastRPC)
			}
			ss.lastRPC = id
			if err := ss.send(ss.virtualRPC(p.VirtualRpc)); err != nil {
				return err
			}
		default:
			return refusal.Invalid("payload", "expected close_session or virtual_rpc")
		}
	}
}

// virtualRPC runs one virtual RPC and returns its answer.
func (ss *session) virtualRPC(req *btpb.VirtualRpcRequest) *btpb.SessionResponse {
	ctx := ss.stream.Context()
	if d := req.GetDeadline(); d != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.AsDuration())
		defer cancel()
	}
	began := ss.s.now()
	where := &btpb.ClusterInformation{ClusterId: ss.where.GetClusterId(), ZoneId: ss.where.GetZoneId()}
	payload, err := ss.run(ctx, req.GetPayload())
	if err != nil {
		return virtualError(req.GetRpcId(), where, refusal.Of(err))
	}
	return &btpb.SessionResponse{Payload: &btpb.SessionResponse_VirtualRpc{VirtualRpc: &btpb.VirtualRpcResponse{
		RpcId: req.GetRpcId(), ClusterInfo: where, Payload: payload,
		Stats: &btpb.SessionRequestStats{BackendLatency: latencyProto(ss.s.now().Sub(began))},
	}}}
}

// run executes a serialized virtual RPC and returns its serialized response.
func (ss *session) run(ctx context.Context, payload []byte) (out []byte, err error) {
	defer recoverPanic(ss.s.logger, "google.bigtable.v2.Bigtable/"+ss.kind.method, &err)
	req := ss.kind.request()
	if err := proto.Unmarshal(payload, req); err != nil {
		return nil, refusal.Invalid("virtual_rpc.payload", "is not a %s: %v", req.ProtoReflect().Descriptor().Name(), err)
	}
	return callVirtual(ctx, ss.s.intercept, ss.name, ss.profile, req, func(ctx context.Context) ([]byte, error) { return ss.answer(ctx, req) })
}

// answer executes a virtual RPC after the interceptors.
func (ss *session) answer(ctx context.Context, req virtualRequest) ([]byte, error) {
	t, err := ss.kind.target(ctx, ss.s, ss.name)
	if err == nil {
		err = ss.at.Check()
	}
	if err != nil {
		return nil, err
	}
	if read := req.GetReadRow(); read != nil {
		if !ss.mayRead {
			return nil, refusal.SessionPermission("read_row", "READ")
		}
		row, stats, err := ss.s.readRow(ctx, t, ss.at, read.GetKey(), read.GetFilter())
		if ss.counted {
			load.SessionRead(ss.s.heat.Table(ss.at.Cluster, t.resource()), read.GetKey(), row, err)
		}
		if err != nil {
			return nil, err
		}
		return proto.Marshal(ss.kind.read(&btpb.SessionReadRowResponse{Row: row, Stats: stats}))
	}
	if writer, ok := req.(interface {
		GetMutateRow() *btpb.SessionMutateRowRequest
	}); ok && writer.GetMutateRow() != nil {
		if !ss.mayWrite {
			return nil, refusal.SessionPermission("mutate_row", "WRITE")
		}
		write := writer.GetMutateRow()
		if ctx, err = ss.s.takenBy(ctx, t.Table, ss.at); err != nil {
			return nil, err
		}
		err := ss.s.mutateRow(ctx, t, write.GetKey(), write.GetMutations(), nil)
		if ss.counted {
			load.SessionWrite(ss.s.heat.Table(ss.at.Cluster, t.resource()), write.GetKey(), write.GetMutations(), err)
		}
		if err != nil {
			return nil, err
		}
		return proto.Marshal(ss.kind.mutated(&btpb.SessionMutateRowResponse{}))
	}
	return nil, refusal.Invalid("virtual_rpc.payload", "neither read_row nor mutate_row is set")
}

// readRow reads one row through a filter. The row is nil if no cells remain.
func (s *Server) readRow(ctx context.Context, t target, at replica.At, key []byte, f *btpb.RowFilter) (*btpb.Row, *btpb.RequestStats, error) {
	if err := s.limits.CheckRowKey("key", key); err != nil {
		return nil, nil, err
	}
	program, err := s.compileFilter("filter", t.Table, f)
	if err != nil {
		return nil, nil, err
	}
	began := s.now()
	out := &wholeRow{key: key, limitBytes: s.rowLimitBytes()}
	stats := &btpb.ReadIterationStats{}
	if spans, ok := engineSpans(nil, t.rows(filter.OneRow(key)).Intersect(program.Rows())); ok {
		scan, err := s.scan(ctx, t, at, engine.ScanOptions{Spans: spans})
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = scan.Close() }()
		cells, gate, ok := t.cells(scan)
		if ok && scan.NextRow() {
			if stats.CellsSeenCount, err = program.Run(ctx, scan.Row(), cells, out.add); err != nil {
				return nil, nil, err
			}
			if gate == nil || gate.Seen() {
				stats.RowsSeenCount = 1
			}
		}
		if err := errors.Join(scan.Err(), ctx.Err()); err != nil {
			return nil, nil, err
		}
	}
	if out.row != nil {
		stats.RowsReturnedCount, stats.CellsReturnedCount = 1, out.cells
	}
	return out.row, readStats(stats, s.now().Sub(began)), nil
}

// wholeRow collects the cells of a row.
type wholeRow struct {
	key        []byte
	limitBytes int // 0 for unlimited

	row    *btpb.Row
	bytes  int
	cells  int64
	family *btpb.Family
	column *btpb.Column
}

func (w *wholeRow) add(c *filter.Cell) error {
	if w.row == nil {
		w.row, w.bytes = &btpb.Row{Key: bytes.Clone(w.key)}, len(w.key)
	}
	w.bytes += len(c.Family) + len(c.Qualifier) + len(c.Value)
	if w.limitBytes > 0 && w.bytes > w.limitBytes {
		return refusal.LargeRow(w.key, limits.MaxRowBytes)
	}
	if w.family == nil || w.family.GetName() != c.Family {
		w.family, w.column = &btpb.Family{Name: c.Family}, nil
		w.row.Families = append(w.row.GetFamilies(), w.family)
	}
	if w.column == nil || !bytes.Equal(w.column.GetQualifier(), c.Qualifier) {
		w.column = &btpb.Column{Qualifier: bytes.Clone(c.Qualifier)}
		w.family.Columns = append(w.family.GetColumns(), w.column)
	}
	cell := &btpb.Cell{TimestampMicros: c.TimestampMicros, Value: bytes.Clone(c.Value)}
	if c.Label != "" {
		cell.Labels = []string{c.Label}
	}
	w.column.Cells = append(w.column.GetCells(), cell)
	w.cells++
	return nil
}
