package emu

import (
	"context"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/load"
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
func (s *Server) Heat() *heat.Store { return s.heat }

func (s *Server) hasTable(name string) bool {
	_, err := s.db.Table(name)
	return err == nil
}
