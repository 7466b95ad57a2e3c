package emu

import (
	"context"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/load"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/internal/heat"
)

// ListHotTablets returns the ranges of keys that took most of a cluster's load,
// minute by minute, the hottest first.
func (s instanceAdminService) ListHotTablets(_ context.Context, req *btapb.ListHotTabletsRequest) (*btapb.ListHotTabletsResponse, error) {
	if _, err := cluster(s.db, req.GetParent()); err != nil {
		return nil, err
	}
	return load.ListHotTablets(s.Heat(), req, s.now(), s.hasTable)
}

// Heat returns the counts of what requests do to which keys.
func (s *Server) Heat() *heat.Store { return s.meter.Heat }

func (s *Server) hasTable(name string) bool {
	_, err := s.db.Table(name)
	return err == nil
}

// newMeter returns what counts requests: those to instances that were created, or all.
func (s *Server) newMeter(all bool) *load.Meter {
	return &load.Meter{
		Heat:   heat.New(heat.Options{Now: s.clock.Now}),
		Exists: s.hasTable,
		Cluster: func(req any) (string, bool) {
			routes, err := s.currentRoutes()
			if err != nil || len(routes.instances) == 0 && !all {
				return "", false
			}
			name, _ := targetOf(req)
			switch clusters := routes.instances[segments(name, 4)].clusters; len(clusters) {
			case 0:
				return implicitCluster, all
			case 1:
				return resname.Last(clusters[0].GetName()), true
			}
			id := s.answeredBy(req).GetClusterId() // "": none is up
			return id, id != ""
		},
	}
}
