package admin

import (
	"context"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/load"
)

// ListHotTablets returns the key ranges that take most of a cluster's load in each minute, hottest
// first.
func (s instanceAdminService) ListHotTablets(_ context.Context, req *btapb.ListHotTabletsRequest) (*btapb.ListHotTabletsResponse, error) {
	if _, err := cluster(s.DB, req.GetParent()); err != nil {
		return nil, err
	}
	return load.ListHotTablets(s.Heat, req, s.now(), s.HasTable)
}

// HasTable reports whether a table exists.
func (s *Control) HasTable(name string) bool {
	_, err := s.DB.Table(name)
	return err == nil
}
