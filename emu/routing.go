package emu

import (
	"cmp"
	"context"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/heat"
	"github.com/tabletop-emu/tabletop/internal/probe"
)

// A request of the data API uses the app profile that it names, or the default one. The profile
// selects the cluster and the allowed operations. An implicit instance has every profile, and
// allows everything.

// access is the kind of a request, as app profiles distinguish them.
type access uint8

const (
	reads         access = iota
	readsReversed        // not through Data Boost
	writes               // not through Data Boost
	transacts            // CheckAndMutateRow, ReadModifyWriteRow: only if the profile allows it
)

// admit routes the call. resource is the instance, or is inside it; id is the app profile of
// the request. It rejects unknown profiles and requests without an available cluster. It also
// rejects single-row transactions unless the profile allows them and routes to a single
// cluster, and writes and reversed reads with Data Boost.
//
// https://cloud.google.com/bigtable/docs/app-profiles,
// https://cloud.google.com/bigtable/docs/data-boost-overview
func (c *call) admit(req any, resource, id string, a access) error {
	instance := resname.First(resource, 4)
	r, p, err := c.profile(instance, id)
	switch {
	case err != nil:
		return err
	case p == nil || a == reads:
	case p.GetDataBoostIsolationReadOnly() != nil && a == readsReversed:
		return refusal.DataBoost(p.GetName(), "reversed reads")
	case p.GetDataBoostIsolationReadOnly() != nil:
		return refusal.DataBoost(p.GetName(), "writes")
	case a == transacts && !p.GetSingleClusterRouting().GetAllowTransactionalWrites():
		return refusal.NoTransactions(p.GetName())
	}
	return c.route(instance, r, p, req)
}

// admitWrite acts like admit for a write to a table. The returned context attributes recorded
// changes to the answering cluster.
func (c *call) admitWrite(ctx context.Context, req any, t *engine.Table, id string, a access) (context.Context, error) {
	if err := c.admit(req, t.Name, id, a); err != nil {
		return ctx, err
	}
	return c.takenBy(ctx, t, c.at)
}

// route sets c.by and c.at to the cluster to which profile p routes req in an instance. It
// returns an error if no cluster is available.
func (c *call) route(instance string, r admin.Route, p *btapb.AppProfile, req any) error {
	by, err := c.place(instance, r, p, req)
	c.routed, c.by, c.at = true, by, replica.At{Control: c.replication, Instance: instance}
	switch {
	case err != nil:
	case by == nil:
		c.at.Cluster = instancedef.ImplicitCluster
	default:
		c.at.Cluster = resname.Last(by.GetName())
	}
	return err
}

// findRoute acts like route for a call that failed before it was routed. The first cluster
// answers if the profile does not exist.
func (c *call) findRoute() {
	if c.routed {
		return
	}
	name, id := targetOf(c.req)
	instance := resname.First(name, 4)
	r, p, _ := c.profile(instance, id)
	_ = c.route(instance, r, p, c.req) // on an error, the call has no cluster
}

// answeredBy returns the location that clients see for the call; nil if no cluster is
// available. The result is shared.
func (c *call) answeredBy() *btpb.ResponseParams {
	c.findRoute()
	if c.at.Cluster == "" {
		return nil
	}
	return locationOf(c.by)
}

// counted reports whether the call counts as load. It excludes calls without a cluster, probes,
// and, without Options.CountLoad, calls to implicit instances.
func (c *call) counted(ctx context.Context) bool {
	c.findRoute()
	return c.at.Cluster != "" && (c.by != nil || c.countLoad) && !probe.Is(ctx)
}

// toTable is a request to a table or to a view of one.
type toTable interface {
	GetTableName() string
	GetAuthorizedViewName() string
}

// load returns the load counts for a call that ended with err; nil if the call is not counted
// or the table does not exist.
func (c *call) load(ctx context.Context, req toTable, err error) *heat.Table {
	if !c.counted(ctx) {
		return nil
	}
	table := req.GetTableName()
	if r, ok := req.(interface{ GetMaterializedViewName() string }); ok && table == "" {
		table = r.GetMaterializedViewName()
	}
	if table == "" {
		table = resname.First(req.GetAuthorizedViewName(), 6)
	}
	if err != nil && !c.control.HasTable(table) {
		return nil
	}
	return c.heat.Table(c.at.Cluster, table)
}

// profile returns an instance's routes and the app profile for id; the profile is nil for an
// implicit instance.
func (s *Server) profile(instance, id string) (admin.Route, *btapb.AppProfile, error) {
	routes, err := s.control.CurrentRoutes()
	if err != nil {
		return admin.Route{}, nil, refusal.Of(err)
	}
	r, ok := routes.Instances[instance]
	if !ok {
		return r, nil, nil
	}
	p, ok := r.Profiles[cmp.Or(id, admin.DefaultAppProfile)]
	if !ok {
		return r, nil, refusal.NoAppProfile(instance, cmp.Or(id, admin.DefaultAppProfile))
	}
	return r, p, nil
}

// place returns the cluster that answers a request with a profile; nil in an implicit instance.
func (s *Server) place(instance string, r admin.Route, p *btapb.AppProfile, req any) (*btapb.Cluster, error) {
	view := s.replication.View(instance)
	if len(r.Clusters) == 0 {
		return nil, view.Check(instancedef.ImplicitCluster)
	}
	var row []byte
	if p.GetMultiClusterRoutingUseAny().GetRowAffinity() != nil {
		row = rowOf(req)
	}
	c, err := replica.Routing{View: view, Now: s.now, Draw: s.draw}.Cluster(p, r.Clusters, row)
	switch {
	case err != nil:
		return nil, err
	case c == nil:
		c = r.Clusters[0]
	}
	return c.Message, nil
}

// implicitLocation is the location of an implicit instance.
var implicitLocation = &btpb.ResponseParams{ZoneId: proto.String(instancedef.ImplicitZone), ClusterId: proto.String(instancedef.ImplicitCluster)}

// locationOf returns the location of a cluster; nil is the implicit cluster.
func locationOf(c *btapb.Cluster) *btpb.ResponseParams {
	if c == nil {
		return implicitLocation
	}
	return &btpb.ResponseParams{ZoneId: proto.String(resname.Last(c.GetLocation())), ClusterId: proto.String(resname.Last(c.GetName()))}
}
