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
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/engine"
)

// PingAndWarm answers at once: there is nothing to warm. The instance must
// exist.
func (s dataService) PingAndWarm(_ context.Context, req *btpb.PingAndWarmRequest) (*btpb.PingAndWarmResponse, error) {
	if err := parseInstance("name", req.GetName()); err != nil {
		return nil, err
	}
	if err := checkInstance(s.db, req.GetName()); err != nil {
		return nil, err
	}
	if err := s.checkProfile(req.GetName(), req.GetAppProfileId(), reads); err != nil {
		return nil, err
	}
	return &btpb.PingAndWarmResponse{}, nil
}

// GetClientConfiguration tells a client to send no requests through sessions,
// and not to ask again: in one process a session saves nothing. Sessions that
// a client opens all the same are served.
func (s dataService) GetClientConfiguration(_ context.Context, req *btpb.GetClientConfigurationRequest) (*btpb.ClientConfiguration, error) {
	if err := parseInstance("instance_name", req.GetInstanceName()); err != nil {
		return nil, err
	}
	if err := s.checkProfile(req.GetInstanceName(), req.GetAppProfileId(), reads); err != nil {
		return nil, err
	}
	return &btpb.ClientConfiguration{
		SessionConfiguration: &btpb.SessionClientConfiguration{SessionLoad: 0},
		Polling:              &btpb.ClientConfiguration_StopPolling{StopPolling: true},
	}, nil
}

const (
	// sessionKeepAlive is the longest silence of the server in a session, and
	// sessionHeartbeat the time between its signs of life: these are of the
	// connection, not of the store, and follow the wall clock.
	sessionKeepAlive = time.Minute
	sessionHeartbeat = sessionKeepAlive / 4
)

// OpenTable serves a session on a table: after a handshake, point reads and
// row mutations as virtual RPCs, answered in the order they came. A virtual
// RPC that fails leaves the session as it is; a breach of the protocol ends
// it. Comments of google/bigtable/v2/session.proto.
func (s dataService) OpenTable(stream btpb.Bigtable_OpenTableServer) error {
	first, err := stream.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	open := first.GetOpenSession()
	if open == nil {
		return statusInvalid("payload", "the first message of a session must be open_session")
	}
	req := &btpb.OpenTableRequest{}
	if err := proto.Unmarshal(open.GetPayload(), req); err != nil {
		return statusInvalid("open_session.payload", "is no OpenTableRequest: %v", err)
	}
	ss := &session{s: s.Server, stream: stream, table: req.GetTableName()}
	switch p := req.GetPermission(); p {
	case btpb.OpenTableRequest_PERMISSION_READ:
		ss.mayRead = true
	case btpb.OpenTableRequest_PERMISSION_WRITE:
		ss.mayWrite = true
	case btpb.OpenTableRequest_PERMISSION_READ_WRITE:
		ss.mayRead, ss.mayWrite = true, true
	case btpb.OpenTableRequest_PERMISSION_UNSET:
		fallthrough
	default:
		return statusInvalid("open_session.payload.permission", "%v is not a permission; expected READ, WRITE or READ_WRITE", p)
	}
	if _, err := s.writeTarget(ss.table, ""); err != nil {
		return err
	}
	does := reads
	if ss.mayWrite {
		does = writes
	}
	if err := s.checkProfile(ss.table, req.GetAppProfileId(), does); err != nil {
		return err
	}
	ss.where = s.answeredBy(req)
	if open.GetFlags().GetPeerInfo() {
		info, err := proto.Marshal(&btpb.PeerInfo{TransportType: btpb.PeerInfo_TRANSPORT_TYPE_SESSION_CLOUD_PATH})
		if err != nil {
			return toStatus(err)
		}
		if err := stream.SetHeader(metadata.Pairs("bigtable-peer-info", base64.URLEncoding.EncodeToString(info))); err != nil {
			return err
		}
	}
	opened := &btpb.OpenSessionResponse{Backend: &btpb.BackendIdentifier{ApplicationFrontendZone: ss.where.GetZoneId()}}
	if opened.Payload, err = proto.Marshal(&btpb.OpenTableResponse{}); err != nil {
		return toStatus(err)
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
	stop := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() { ss.heartbeats(stop) })
	defer beating.Wait()
	defer close(stop)
	return ss.serve()
}

// session is an open session on a table.
type session struct {
	s                 *Server
	table             string
	where             *btpb.ResponseParams // who answers
	mayRead, mayWrite bool
	lastRPC           int64

	mu     sync.Mutex // serializes sending
	stream btpb.Bigtable_OpenTableServer
}

func (ss *session) send(r *btpb.SessionResponse) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.stream.Send(r)
}

// heartbeats tells the client until stop is closed that the session is alive.
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
				return // serve sees it too
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
				return statusInvalid("virtual_rpc.rpc_id", "%d does not follow %d", id, ss.lastRPC)
			}
			ss.lastRPC = id
			if err := ss.send(ss.virtualRPC(p.VirtualRpc)); err != nil {
				return err
			}
		default:
			return statusInvalid("payload", "expected close_session or virtual_rpc")
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
		return &btpb.SessionResponse{Payload: &btpb.SessionResponse_Error{Error: &btpb.ErrorResponse{
			RpcId: req.GetRpcId(), ClusterInfo: where, Status: status.Convert(toStatus(err)).Proto(),
		}}}
	}
	return &btpb.SessionResponse{Payload: &btpb.SessionResponse_VirtualRpc{VirtualRpc: &btpb.VirtualRpcResponse{
		RpcId: req.GetRpcId(), ClusterInfo: where, Payload: payload,
		Stats: &btpb.SessionRequestStats{BackendLatency: latencyProto(ss.s.now().Sub(began))},
	}}}
}

// run executes a TableRequest and returns a TableResponse, both serialized.
func (ss *session) run(ctx context.Context, payload []byte) (out []byte, err error) {
	defer ss.s.recoverPanic("google.bigtable.v2.Bigtable/OpenTable", &err)
	req := &btpb.TableRequest{}
	if err := proto.Unmarshal(payload, req); err != nil {
		return nil, statusInvalid("virtual_rpc.payload", "is no TableRequest: %v", err)
	}
	table, err := ss.s.writeTarget(ss.table, "")
	if err != nil {
		return nil, err
	}
	resp := &btpb.TableResponse{}
	switch p := req.GetPayload().(type) {
	case *btpb.TableRequest_ReadRow:
		if !ss.mayRead {
			return nil, statusSessionPermission("read_row", "READ")
		}
		row, stats, err := ss.s.readRow(ctx, table, p.ReadRow.GetKey(), p.ReadRow.GetFilter())
		if err != nil {
			return nil, err
		}
		resp.Payload = &btpb.TableResponse_ReadRow{ReadRow: &btpb.SessionReadRowResponse{Row: row, Stats: stats}}
	case *btpb.TableRequest_MutateRow:
		if !ss.mayWrite {
			return nil, statusSessionPermission("mutate_row", "WRITE")
		}
		if err := ss.s.mutateRow(ctx, table, p.MutateRow.GetKey(), p.MutateRow.GetMutations(), nil); err != nil {
			return nil, err
		}
		resp.Payload = &btpb.TableResponse_MutateRow{MutateRow: &btpb.SessionMutateRowResponse{}}
	default:
		return nil, statusInvalid("virtual_rpc.payload", "neither read_row nor mutate_row is set")
	}
	return proto.Marshal(resp)
}

// readRow reads one row whole through a filter. The row is nil if nothing is
// left of it.
func (s *Server) readRow(ctx context.Context, table *engine.Table, key []byte, f *btpb.RowFilter) (*btpb.Row, *btpb.RequestStats, error) {
	if err := s.checkRowKey("key", key); err != nil {
		return nil, nil, err
	}
	program, err := s.compileFilter("filter", table, f)
	if err != nil {
		return nil, nil, err
	}
	began := s.now()
	out := &wholeRow{key: key, limitBytes: s.rowLimitBytes()}
	stats := &btpb.ReadIterationStats{}
	if spans, ok := engineSpans(filter.OneRow(key).Intersect(program.Rows())); ok {
		scan, err := s.db.Scan(ctx, table.Name, engine.ScanOptions{Spans: spans})
		if err != nil {
			return nil, nil, err
		}
		defer func() { _ = scan.Close() }()
		if scan.NextRow() {
			stats.RowsSeenCount = 1
			if stats.CellsSeenCount, err = program.Run(ctx, scan.Row(), &source{Scan: scan}, out.add); err != nil {
				return nil, nil, err
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
	limitBytes int // 0 is none

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
		return statusLargeRow(w.key)
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
