package emu

import (
	"cmp"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
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

// checkProfile refuses a request through an app profile that does not exist or
// does not allow it: single-row transactions where it routes to any cluster, or
// to a single one without allow_transactional_writes, and writes and reversed
// reads where it uses Data Boost. resource is or lies in an instance; id is
// what the request names.
//
// https://cloud.google.com/bigtable/docs/app-profiles,
// https://cloud.google.com/bigtable/docs/data-boost-overview
func (s *Server) checkProfile(resource, id string, a access) error {
	p, err := s.profile(segments(resource, 4), id)
	switch {
	case err != nil:
		return err
	case p == nil || a == reads:
		return nil
	case p.GetDataBoostIsolationReadOnly() != nil && a == readsReversed:
		return refusal.DataBoost(p.GetName(), "reversed reads")
	case p.GetDataBoostIsolationReadOnly() != nil:
		return refusal.DataBoost(p.GetName(), "writes")
	case a == transacts && !p.GetSingleClusterRouting().GetAllowTransactionalWrites():
		return refusal.NoTransactions(p.GetName())
	}
	return nil
}

// profile returns the app profile of an instance through which a request that
// names id comes, or nil if the instance exists implicitly.
func (s *Server) profile(instance, id string) (*btapb.AppProfile, error) {
	routes, err := s.currentRoutes()
	if err != nil {
		return nil, refusal.Of(err)
	}
	r, ok := routes.instances[instance]
	if !ok {
		return nil, nil
	}
	p, ok := r.profiles[cmp.Or(id, defaultAppProfile)]
	if !ok {
		return nil, refusal.NoAppProfile(instance, cmp.Or(id, defaultAppProfile))
	}
	return p, nil
}

// implicitLocation is where requests to an instance are answered that nobody
// created.
var implicitLocation = &btpb.ResponseParams{ZoneId: proto.String(implicitZone), ClusterId: proto.String(implicitCluster)}

// answeredBy says where a request is answered, as far as a client can tell: the
// cluster that its profile routes to; the first one where there are more, or
// where the profile does not exist; and the implicit one in an instance that
// nobody created. The answer is shared.
func (s *Server) answeredBy(req any) *btpb.ResponseParams {
	name, id := targetOf(req)
	instance := segments(name, 4)
	routes, err := s.currentRoutes()
	if err != nil || len(routes.instances[instance].clusters) == 0 {
		return implicitLocation
	}
	r := routes.instances[instance]
	for _, to := range routesTo(r.profiles[cmp.Or(id, defaultAppProfile)]) {
		for _, c := range r.clusters {
			if resname.Last(c.GetName()) == to {
				return locationOf(c)
			}
		}
	}
	return locationOf(r.clusters[0])
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

func locationOf(c *btapb.Cluster) *btpb.ResponseParams {
	return &btpb.ResponseParams{ZoneId: proto.String(resname.Last(c.GetLocation())), ClusterId: proto.String(resname.Last(c.GetName()))}
}

// targetOf returns the name of the table, view or instance that a request is to
// and the app profile that it names. A session is opened by a request inside a
// request.
func targetOf(req any) (name, profile string) {
	if r, ok := req.(*btpb.SessionRequest); ok {
		open := &btpb.OpenTableRequest{} // the same on the wire as the requests of other kinds of sessions
		if proto.Unmarshal(r.GetOpenSession().GetPayload(), open) != nil {
			return "", ""
		}
		req = open
	}
	if r, ok := req.(interface{ GetAppProfileId() string }); ok {
		profile = r.GetAppProfileId()
	}
	if r, ok := req.(interface{ GetTableName() string }); ok {
		name = r.GetTableName()
	}
	if r, ok := req.(interface{ GetAuthorizedViewName() string }); ok && name == "" {
		name = r.GetAuthorizedViewName()
	}
	if r, ok := req.(interface{ GetInstanceName() string }); ok {
		name = r.GetInstanceName()
	}
	if r, ok := req.(*btpb.PingAndWarmRequest); ok {
		name = r.GetName()
	}
	return name, profile
}
