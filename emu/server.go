package emu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/due"
	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/materialized"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/emu/internal/wire"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/heat"
	"github.com/tabletop-emu/tabletop/internal/inproc"
)

const (
	// maxReceiveBytes is the largest request. A MutateRows request may carry several values
	// of limits.MaxValueBytes; official clients send up to 256 MiB.
	maxReceiveBytes = 320 << 20
	// streamWindowBytes and connWindowBytes bound the unread bytes of a request and of a
	// connection. They are fixed because gRPC estimates dynamic windows by a ping per request,
	// which takes as long as a small call on a loopback.
	streamWindowBytes = 1 << 20
	connWindowBytes   = 4 << 20
)

// Server serves the Bigtable API from an engine.DB. It is safe for concurrent
// use.
type Server struct {
	control *admin.Control
	db      *engine.DB
	clock   Clock
	logger  *slog.Logger
	limits  limits.Mode
	after   func(time.Duration) <-chan time.Time

	anyPartition bool
	churn        float64 // see churnPartitions
	// stopping is closed when the server stops: it ends streams without an end.
	stopping chan struct{}
	calls    callsInFlight
	queries  queryPlans
	// queryMemory is Options.SQLMemory.
	queryMemory int64
	stopOnce    sync.Once

	randMu sync.Mutex
	rand   *rand.Rand     // guarded by randMu
	sample func() float64 // random, as a value that no call allocates

	draw func(n int) int // nil without Options.RandomRouting

	replication *replica.Control
	rows        *replica.Rows // as each cluster sees them
	views       *materialized.Views
	heat        *heat.Store

	features atomic.Pointer[featureHeader] // of the latest header; see clientFeatures

	due       *due.Queue // see NextDue
	countLoad bool       // in implicit instances too

	tokenPeriod atomic.Int64 // the period in which old idempotency tokens were last removed; see forgetTokens

	grpc      *grpc.Server
	inproc    *inproc.Channel
	token     string                      // Options.Token
	faults    Faults                      // nil for none
	observe   func(*Call)                 // nil for none
	intercept grpc.UnaryServerInterceptor // of requests in sessions; nil for none
	// wireCopies: sending a message over a wire copies it, and no interceptor keeps it.
	wireCopies bool
	health     *health.Server
}

// now returns the time of the clock.
func (s *Server) now() time.Time { return s.clock.Now() }

// New returns a server over o.DB. It opens no port: call Serve with a listener, or use Conn. It
// returns an error if the Options are invalid.
func New(o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Server{
		db:     o.DB,
		clock:  o.Clock,
		logger: o.Logger,
		limits: [...]limits.Mode{StrictLimits: limits.Strict, NoLimits: limits.Off, ProductionLimits: limits.Production}[o.Limits],
		heat:   heat.New(heat.Options{Now: o.Clock.Now}),
		after:  o.After,

		anyPartition: o.AnyPartition,
		churn:        o.PartitionChurn,
		stopping:     make(chan struct{}),
		queryMemory:  o.SQLMemory,

		rand:       rand.New(rand.NewPCG(o.Seed, 0)),
		faults:     o.Faults,
		observe:    o.Observe,
		countLoad:  o.CountLoad,
		wireCopies: o.StreamInterceptor == nil,
		token:      o.Token,
		health:     health.NewServer(),
	}
	s.inproc = inproc.New(inproc.Options{
		Clone: o.CloneInProcess, Unary: o.UnaryInterceptor, Stream: o.StreamInterceptor, CheckAndMutateRows: s.checkAndMutateRows,
	})
	s.sample = s.random
	s.control = &admin.Control{DB: s.db, Clock: s.clock, Logger: s.logger, Limits: s.limits, Delay: o.AdminDelay, Heat: s.heat, CheckQuery: s.checkViewQuery}
	s.views = materialized.New(materialized.Options{DB: s.db, Now: s.now, Lag: o.ViewLag, Limits: s.limits})
	s.control.Views = s.views
	if err := s.connectReplication(o.ReplicationLag); err != nil {
		return nil, err
	}
	s.intercept = s.aroundVirtual(o.UnaryInterceptor)
	s.due = due.NewQueue(s.now, append(s.control.Work(), s.rows, s.views)...)
	if o.RandomRouting {
		s.draw = replica.Draw(o.Seed)
	}
	options := []grpc.ServerOption{
		grpc.UnaryInterceptor(o.UnaryInterceptor), // nil for none, as in gRPC
		grpc.StreamInterceptor(o.StreamInterceptor),
		grpc.MaxRecvMsgSize(maxReceiveBytes),
		grpc.MaxSendMsgSize(maxReceiveBytes),
		grpc.ForceServerCodecV2(wire.NewCodec()),
		grpc.NumStreamWorkers(o.StreamWorkers),
		// The owner closes the DB after Close, so no handler may still read it then.
		grpc.WaitForHandlers(true),
		grpc.StaticStreamWindowSize(streamWindowBytes),
		grpc.StaticConnWindowSize(connWindowBytes),
		// Official clients ping idle channels every 30 seconds; grpc's default policy would
		// close their connections.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime:             5 * time.Second,
			PermitWithoutStream: true,
		}),
	}
	if o.Token != "" {
		options = append(options, grpc.InTapHandle(tokenGate(o.Token)))
	}
	s.grpc = grpc.NewServer(options...)
	s.grpc.RegisterService(s.guard(&btpb.Bigtable_ServiceDesc, true), &call{})
	s.inproc.RegisterService(s.guard(&btpb.Bigtable_ServiceDesc, false), &call{})
	s.registerAdmin(s.grpc, s.inproc)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	for service := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(service, healthpb.HealthCheckResponse_SERVING)
	}
	return s, nil
}

// registerAdmin adds all services except the data API, with guarded methods.
func (s *Server) registerAdmin(to ...grpc.ServiceRegistrar) {
	for _, service := range s.control.Services() {
		guarded := s.guard(service.Desc, false)
		for _, r := range to {
			r.RegisterService(guarded, service.Impl)
		}
	}
}

// Serve serves requests on l until GracefulStop or Close, and then returns nil. It closes l. It may
// be called for several listeners at the same time.
func (s *Server) Serve(l net.Listener) error {
	err := s.grpc.Serve(l)
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// Conn returns an in-process channel to the server. It uses no port and does not copy messages, so
// neither side may change a message after sending it. It works without Serve, until Close. It
// rejects client streams.
func (s *Server) Conn() grpc.ClientConnInterface { return s.inproc }

// GracefulStop stops accepting connections, ends change streams and sessions, and waits for the
// other RPCs in flight. It disconnects clients that do not read their last message. The channel
// of Conn stays open until Close.
func (s *Server) GracefulStop() {
	end := func() {
		s.stopOnce.Do(func() { close(s.stopping) })
		s.health.Shutdown()
	}
	s.calls.Stop(end, s.grpc.GracefulStop, s.grpc.Stop, s.after)
}

// Close ends all RPCs and connections at once. It does not close the DB.
func (s *Server) Close() error {
	s.stopOnce.Do(func() { close(s.stopping) })
	s.health.Shutdown()
	s.grpc.Stop()
	return s.inproc.Close()
}

// RunGC removes expired backups and snapshots, and applies the garbage-collection rules of every
// family once, at the current time of the DB's clock.
func (s *Server) RunGC(ctx context.Context) (engine.GCStats, error) {
	if err := s.control.SweepBackups(ctx); err != nil {
		return engine.GCStats{}, err
	}
	// The views read all changes before the collection may trim their journals.
	if err := s.views.CatchUpAll(ctx); err != nil {
		return engine.GCStats{}, err
	}
	stats, err := s.db.RunGC(ctx)
	return stats, errors.Join(err, s.rows.Collected(s.now()))
}

// NextDue returns the time of the next scheduled work, which may be in the past. It returns false
// if no work is scheduled. RunDue does the work.
func (s *Server) NextDue() (time.Time, bool, error) { return s.due.Next() }

// RunDue does all due work, such as automated backups and the removal of expired data, in order of
// due times and names. Each item runs as of its due time. Only the owner of the Server may call
// RunDue: on a timer, or after moving the clock. Failed work does not delay the rest; the next call
// retries it. RunDue returns the errors of all failed work.
func (s *Server) RunDue(ctx context.Context) error {
	if err := s.due.Run(ctx); err != nil {
		return fmt.Errorf("emu: %w", err)
	}
	return nil
}

// Resource is a created resource that is not a table.
type Resource struct {
	Kind    string        // "instance", "cluster", "memory layer", "app profile", "logical view", "materialized view", "authorized view", "schema bundle", "backup", "snapshot", or "policy"
	Name    string        // resource name; for a policy, the name of the resource it governs
	Message proto.Message // *btapb.Instance, …, *iampb.Policy; owned by the caller
}

// Resources returns all instances, clusters, memory layers, app profiles, views, schema
// bundles, backups and snapshots that were created, and all policies that were set, by kind and
// name. It omits implicit resources, operations, and the resources of deleted tables.
func (s *Server) Resources() ([]Resource, error) {
	found, err := s.control.Resources()
	out := make([]Resource, len(found))
	for i, r := range found {
		out[i] = Resource(r)
	}
	return out, err
}

// random returns a number in [0, 1) from the generator that Options.Seed seeds.
func (s *Server) random() float64 {
	s.randMu.Lock()
	defer s.randMu.Unlock()
	return s.rand.Float64()
}
