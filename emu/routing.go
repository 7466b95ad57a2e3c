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

// A request of the data API comes through an app profile: the one that it
// names, or the default one. The profile says which cluster answers, and what
// is allowed. An instance that exists implicitly has any profile, which allows
// everything.

// access is what a request does, as far as app profiles tell.
type access uint8

const (
	reads         access = iota
	readsReversed        // not through Data Boost
	writes               // not through Data Boost
	transacts            // CheckAndMutateRow, ReadModifyWriteRow: only where the profile allows it
)

// admit refuses a request through an app profile that does not exist or
// does not allow it: single-row transactions where it routes to any cluster, or
// to a single one without allow_transactional_writes, and writes and reversed
// reads where it uses Data Boost; and one for which no cluster is up. resource is
// or lies in an instance; id is what the request names. From then on the call is
// routed.
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

// admitWrite is admit for a write to a table, whose changes are recorded as taken by
// the cluster that answers where they are recorded. The context is that to write with.
func (c *call) admitWrite(ctx context.Context, req any, t *engine.Table, id string, a access) (context.Context, error) {
	if err := c.admit(req, t.Name, id, a); err != nil {
		return ctx, err
	}
	return c.takenBy(ctx, t, c.at)
}

// route finds the cluster that answers the call, which is to an instance through a
// profile. Errors: that none is up.
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

// findRoute is route for a call that failed before it was routed. Where the profile
// does not exist, the first cluster answers.
func (c *call) findRoute() {
	if c.routed {
		return
	}
	name, id := targetOf(c.req)
	instance := resname.First(name, 4)
	r, p, _ := c.profile(instance, id)
	_ = c.route(instance, r, p, c.req) // it has no cluster then
}

// answeredBy says where the call is answered, as far as a client can tell; nil where no
// cluster is up. The answer is shared.
func (c *call) answeredBy() *btpb.ResponseParams {
	c.findRoute()
	if c.at.Cluster == "" {
		return nil
	}
	return locationOf(c.by)
}

// counted reports whether the call adds to the counts of the load. Not counted are calls that
// no cluster answers or no client made, and those to an instance that nobody created,
// but for Options.CountLoad.
func (c *call) counted(ctx context.Context) bool {
	c.findRoute()
	return c.at.Cluster != "" && (c.by != nil || c.countLoad) && !probe.Is(ctx)
}

// toTable is a request to a table or to a view of one.
type toTable interface {
	GetTableName() string
	GetAuthorizedViewName() string
}

// load returns the counts to which the call adds, which ended with err, nil if it is not
// counted or the table does not exist.
func (c *call) load(ctx context.Context, req toTable, err error) *heat.Table {
	if !c.counted(ctx) {
		return nil
	}
	table := req.GetTableName()
	if table == "" {
		table = resname.First(req.GetAuthorizedViewName(), 6)
	}
	if err != nil && !c.control.HasTable(table) {
		return nil
	}
	return c.heat.Table(c.at.Cluster, table)
}

// profile returns the app profile of an instance through which a request that
// names id comes, or nil if the instance exists implicitly, and what routes it.
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

// place returns the cluster that answers a request through a profile, nil for the
// implicit one: that of an instance that nobody created.
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

// implicitLocation is where requests to an instance are answered that nobody
// created.
var implicitLocation = &btpb.ResponseParams{ZoneId: proto.String(instancedef.ImplicitZone), ClusterId: proto.String(instancedef.ImplicitCluster)}

// locationOf says where a cluster is, nil for the implicit one.
func locationOf(c *btapb.Cluster) *btpb.ResponseParams {
	if c == nil {
		return implicitLocation
	}
	return &btpb.ResponseParams{ZoneId: proto.String(resname.Last(c.GetLocation())), ClusterId: proto.String(resname.Last(c.GetName()))}
}
