package emu

import (
	"cmp"
	"context"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/replica"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
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
// or lies in an instance; id is what the request names. It returns the cluster
// that answers.
//
// https://cloud.google.com/bigtable/docs/app-profiles,
// https://cloud.google.com/bigtable/docs/data-boost-overview
func (s *Server) admit(ctx context.Context, req any, resource, id string, a access) (*btapb.Cluster, error) {
	instance := segments(resource, 4)
	r, p, err := s.profile(instance, id)
	switch {
	case err != nil:
		return nil, err
	case p == nil || a == reads:
	case p.GetDataBoostIsolationReadOnly() != nil && a == readsReversed:
		return nil, refusal.DataBoost(p.GetName(), "reversed reads")
	case p.GetDataBoostIsolationReadOnly() != nil:
		return nil, refusal.DataBoost(p.GetName(), "writes")
	case a == transacts && !p.GetSingleClusterRouting().GetAllowTransactionalWrites():
		return nil, refusal.NoTransactions(p.GetName())
	}
	c, err := s.place(instance, r, p, req)
	if told := s.drawn(ctx); told != nil {
		if told.known = true; err == nil {
			told.where = locationOf(c)
		}
	}
	return c, err
}

// profile returns the app profile of an instance through which a request that
// names id comes, or nil if the instance exists implicitly, and what routes it.
func (s *Server) profile(instance, id string) (route, *btapb.AppProfile, error) {
	routes, err := s.currentRoutes()
	if err != nil {
		return route{}, nil, refusal.Of(err)
	}
	r, ok := routes.instances[instance]
	if !ok {
		return r, nil, nil
	}
	p, ok := r.profiles[cmp.Or(id, defaultAppProfile)]
	if !ok {
		return r, nil, refusal.NoAppProfile(instance, cmp.Or(id, defaultAppProfile))
	}
	return r, p, nil
}

// place returns the cluster that answers a request through a profile, nil for the
// implicit one: that of an instance that nobody created.
func (s *Server) place(instance string, r route, p *btapb.AppProfile, req any) (*btapb.Cluster, error) {
	view := s.replication.View(instance)
	if len(r.clusters) == 0 {
		return nil, view.Check(implicitCluster)
	}
	var row []byte
	if p.GetMultiClusterRoutingUseAny().GetRowAffinity() != nil {
		row = rowOf(req)
	}
	c, err := replica.Routing{View: view, Now: s.now, Draw: s.draw}.Cluster(p, r.clusters, row)
	if c == nil && err == nil {
		c = r.clusters[0]
	}
	return c, err
}

// place is where a call was admitted, for who describes its answer.
type place struct {
	where *btpb.ResponseParams
	known bool
}

// placeKey is the key of a call's place in its context; see drawing.
type placeKey struct{}

// drawing returns the context of a call whose cluster is drawn once, where clusters
// are drawn.
func (s *Server) drawing(ctx context.Context) context.Context {
	if s.draw == nil {
		return ctx
	}
	return context.WithValue(ctx, placeKey{}, &place{})
}

// drawn returns the place of a call, nil where clusters are not drawn: a look into
// the context is not for nothing.
func (s *Server) drawn(ctx context.Context) *place {
	if s.draw == nil {
		return nil
	}
	told, _ := ctx.Value(placeKey{}).(*place)
	return told
}

// implicitLocation is where requests to an instance are answered that nobody
// created.
var implicitLocation = &btpb.ResponseParams{ZoneId: proto.String(implicitZone), ClusterId: proto.String(implicitCluster)}

// answeredBy says where a request is answered, as far as a client can tell: the
// cluster that its profile routes to; the first one where the profile does not
// exist; the implicit one in an instance that nobody created; nil where none is up.
// The answer is shared.
func (s *Server) answeredBy(req any) *btpb.ResponseParams {
	name, id := targetOf(req)
	instance := segments(name, 4)
	r, p, _ := s.profile(instance, id)
	c, err := s.place(instance, r, p, req)
	if err != nil {
		return nil
	}
	return locationOf(c)
}

// routes is where the requests to recorded instances go, as of a version of the
// resources. It is shared and never changed.
type routes struct {
	version   uint64
	instances map[string]route // by name
}

// route is what routes the requests to one instance.
type route struct {
	profiles map[string]*btapb.AppProfile // by id
	clusters []*btapb.Cluster             // sorted by name
}

// currentRoutes returns the routes as they are now. Every request of the data
// API asks for them, so they are gathered only when resources have changed.
func (s *Server) currentRoutes() (*routes, error) {
	version := s.db.ResourceVersion()
	if r := s.routes.Load(); r != nil && r.version == version {
		return r, nil
	}
	// Instances come first: one that is seen has the rest.
	instances, err := s.db.Resources(kindInstance)
	if err != nil {
		return nil, err
	}
	profiles, err := loadAll[btapb.AppProfile](s.db, kindAppProfile, "")
	if err != nil {
		return nil, err
	}
	clusters, err := loadAll[btapb.Cluster](s.db, kindCluster, "")
	if err != nil {
		return nil, err
	}
	now := &routes{version: version, instances: make(map[string]route, len(instances))}
	for _, in := range instances {
		now.instances[strings.TrimPrefix(in.Name, kindInstance)] = route{profiles: map[string]*btapb.AppProfile{}}
	}
	for _, p := range profiles {
		if r, ok := now.instances[segments(p.GetName(), 4)]; ok {
			r.profiles[resname.Last(p.GetName())] = p
		}
	}
	for _, c := range clusters {
		name := segments(c.GetName(), 4)
		if r, ok := now.instances[name]; ok {
			r.clusters = append(r.clusters, c)
			now.instances[name] = r
		}
	}
	s.routes.Store(now)
	return now, nil
}

// locationOf says where a cluster is, nil for the implicit one.
func locationOf(c *btapb.Cluster) *btpb.ResponseParams {
	if c == nil {
		return implicitLocation
	}
	return &btpb.ResponseParams{ZoneId: proto.String(resname.Last(c.GetLocation())), ClusterId: proto.String(resname.Last(c.GetName()))}
}
