package emu

import (
	"errors"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/engine"
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
	instance := segments(resource, 4)
	p, err := s.profile(instance, id)
	switch {
	case err != nil:
		return err
	case p == nil || a == reads:
		return nil
	case p.GetDataBoostIsolationReadOnly() != nil && a == readsReversed:
		return statusDataBoost(p.GetName(), "reversed reads")
	case p.GetDataBoostIsolationReadOnly() != nil:
		return statusDataBoost(p.GetName(), "writes")
	case a == transacts && !p.GetSingleClusterRouting().GetAllowTransactionalWrites():
		return statusNoTransactions(p.GetName())
	}
	return nil
}

// profile returns the app profile of an instance through which a request that
// names id comes, or nil if the instance exists implicitly.
func (s *Server) profile(instance, id string) (*btapb.AppProfile, error) {
	if _, err := s.db.Resource(kindInstance + instance); errors.Is(err, engine.ErrResourceNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, toStatus(err)
	}
	if id == "" {
		id = defaultAppProfile
	}
	p := &btapb.AppProfile{}
	if found, err := load(s.db, kindAppProfile+instance+"/appProfiles/"+id, p); err != nil {
		return nil, toStatus(err)
	} else if !found {
		return nil, statusNoAppProfile(instance, id)
	}
	return p, nil
}

// answeredBy says where a request is answered, as far as a client can tell: the
// cluster that its profile routes to; the first one where there are more, or
// where the profile does not exist; and the implicit one in an instance that
// nobody created.
func (s *Server) answeredBy(req any) *btpb.ResponseParams {
	instance, id := routeOf(req)
	clusters, err := loadAll[btapb.Cluster](s.db, kindCluster, instance+"/clusters/")
	if err != nil || len(clusters) == 0 {
		return &btpb.ResponseParams{ZoneId: proto.String(implicitZone), ClusterId: proto.String(implicitCluster)}
	}
	if p, err := s.profile(instance, id); err == nil {
		for _, to := range routesTo(p) {
			for _, c := range clusters {
				if lastSegment(c.GetName()) == to {
					return locationOf(c)
				}
			}
		}
	}
	return locationOf(clusters[0])
}

func locationOf(c *btapb.Cluster) *btpb.ResponseParams {
	return &btpb.ResponseParams{ZoneId: proto.String(lastSegment(c.GetLocation())), ClusterId: proto.String(lastSegment(c.GetName()))}
}

// routeOf returns the instance that a request is to and the app profile that it
// names. A session is opened by a request inside a request.
func routeOf(req any) (instance, profile string) {
	if r, ok := req.(*btpb.SessionRequest); ok {
		open := &btpb.OpenTableRequest{}
		if proto.Unmarshal(r.GetOpenSession().GetPayload(), open) != nil {
			return "", ""
		}
		req = open
	}
	if r, ok := req.(interface{ GetAppProfileId() string }); ok {
		profile = r.GetAppProfileId()
	}
	var name string
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
	return segments(name, 4), profile
}
