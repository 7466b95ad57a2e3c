package emu

import (
	"context"
	"maps"
	"slices"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/genproto/googleapis/cloud/location"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// locationsService answers google.cloud.location.Locations.
type locationsService struct {
	location.UnimplementedLocationsServer
	*Server
}

// ListLocations returns the zones that a project's clusters are in, and the
// zone of clusters that nobody created. Filters are refused.
func (s locationsService) ListLocations(_ context.Context, req *location.ListLocationsRequest) (*location.ListLocationsResponse, error) {
	project := strings.TrimSuffix(req.GetName(), "/locations")
	if !resname.HasShape(project, "projects") {
		return nil, refusal.BadName("name", req.GetName(), "projects/PROJECT")
	}
	if req.GetFilter() != "" {
		return nil, refusal.Invalid("filter", "filters of locations are not supported")
	}
	clusters, err := loadAll[btapb.Cluster](s.db, kindCluster, project+"/instances/")
	if err != nil {
		return nil, refusal.Of(err)
	}
	names := map[string]bool{project + "/locations/" + implicitZone: true}
	for _, c := range clusters {
		names[c.GetLocation()] = true
	}
	resp := &location.ListLocationsResponse{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		resp.Locations = append(resp.Locations, toLocation(name))
	}
	resp.Locations, resp.NextPageToken, err = page(resp.GetLocations(), req.GetPageSize(), req.GetPageToken(), (*location.Location).GetName)
	return resp, err
}

// GetLocation returns a zone. Every zone exists: a cluster may name any.
func (s locationsService) GetLocation(_ context.Context, req *location.GetLocationRequest) (*location.Location, error) {
	if !resname.HasShape(req.GetName(), "projects", "locations") {
		return nil, refusal.BadName("name", req.GetName(), "projects/PROJECT/locations/ZONE")
	}
	return toLocation(req.GetName()), nil
}

func toLocation(name string) *location.Location {
	zone := resname.Last(name)
	return &location.Location{Name: name, LocationId: zone, DisplayName: zone}
}
