package admin

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/pending"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/heat"
)

// Control serves table and instance administration. Its fields must be set before it serves
// requests.
type Control struct {
	DB          *engine.DB
	Clock       Clock
	Logger      *slog.Logger
	Limits      limits.Mode
	Delay       time.Duration // how long an operation takes
	Replication *replica.Control
	Rows        *replica.Rows // the replicated state of rows
	Heat        *heat.Store
	// CheckQuery returns an error for a query that no logical view of the instance may have.
	CheckQuery func(r Catalog, instance, query string) error

	Views MaterializedViews

	productionWarned sync.Once
	operationsEnded  pending.Broadcast      // notified when a request cancels or deletes an operation
	routes           atomic.Pointer[Routes] // the last computed routes; see CurrentRoutes
}

// Clock is a time source that callers can wait on; see emu.Clock.
type Clock interface {
	Now() time.Time
	At(t time.Time) (reached <-chan struct{}, stop func())
}

func (s *Control) now() time.Time { return s.Clock.Now() }

// production returns err, the violation of a rule of limits/production.go, if these rules are
// enforced. By default it logs the first violation instead, so that a user learns of it before
// production does.
func (s *Control) production(err error) error {
	if s.Limits == limits.Production {
		return err
	}
	if err != nil && s.Limits == limits.Strict {
		s.productionWarned.Do(func() {
			s.Logger.Warn("production would reject this request; with ProductionLimits (--limits production), this server does too", "error", err)
		})
	}
	return nil
}

// The services of the control plane. Each embeds the generated Unimplemented
// server by value, so that methods of later protos return an error and do not
// panic.
type (
	tableAdminService struct {
		btapb.UnimplementedBigtableTableAdminServer
		*Control
	}
	instanceAdminService struct {
		btapb.UnimplementedBigtableInstanceAdminServer
		*Control
	}
	operationsService struct {
		longrunningpb.UnimplementedOperationsServer
		*Control
	}
)

// Service pairs the description of a gRPC service with its implementation.
type Service struct {
	Desc *grpc.ServiceDesc
	Impl any
}

// Services returns the services of the control plane.
func (s *Control) Services() []Service {
	return []Service{
		{&btapb.BigtableTableAdmin_ServiceDesc, tableAdminService{Control: s}},
		{&btapb.BigtableInstanceAdmin_ServiceDesc, instanceAdminService{Control: s}},
		{&longrunningpb.Operations_ServiceDesc, operationsService{Control: s}},
		{&locationsServiceDesc, locationsService{Control: s}},
	}
}
