package admin

import (
	"context"
	"maps"
	"slices"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
)

// locationsService implements google.cloud.location.Locations.
type locationsService struct {
	location.UnimplementedLocationsServer
	*Control
}

// ListLocations returns the zones of a project's clusters, and the zone of implicit
// clusters. It rejects filters.
func (s locationsService) ListLocations(_ context.Context, req *location.ListLocationsRequest) (*location.ListLocationsResponse, error) {
	project := strings.TrimSuffix(req.GetName(), "/locations")
	if !resname.HasShape(project, "projects") {
		return nil, refusal.BadName("name", req.GetName(), "projects/PROJECT")
	}
	if req.GetFilter() != "" {
		return nil, refusal.Invalid("filter", "filters of locations are not supported")
	}
	clusters, err := loadRecords[btapb.Cluster](s.DB, kindCluster, project+"/instances/")
	if err != nil {
		return nil, refusal.Of(err)
	}
	names := map[string]bool{project + "/locations/" + instancedef.ImplicitZone: true}
	for _, c := range clusters {
		names[c.Message.GetLocation()] = true
	}
	resp := &location.ListLocationsResponse{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		resp.Locations = append(resp.Locations, toLocation(name))
	}
	resp.Locations, resp.NextPageToken, err = page(resp.GetLocations(), req.GetPageSize(), req.GetPageToken(), (*location.Location).GetName)
	return resp, err
}

// GetLocation returns the zone with any given name, because a cluster may name any zone.
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

// locationsServiceDesc describes the service. Callers must not change it.
var locationsServiceDesc = grpc.ServiceDesc{
	ServiceName: "google.cloud.location.Locations",
	HandlerType: (*location.LocationsServer)(nil),
	Methods: []grpc.MethodDesc{
		locationsMethod("ListLocations", location.LocationsServer.ListLocations),
		locationsMethod("GetLocation", location.LocationsServer.GetLocation),
	},
	Metadata: "google/cloud/location/locations.proto",
}

// locationsMethod describes a method of the service.
func locationsMethod[Req, Resp any](name string, call func(location.LocationsServer, context.Context, *Req) (*Resp, error)) grpc.MethodDesc {
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(impl any, ctx context.Context, decode func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
			req := new(Req)
			if err := decode(req); err != nil {
				return nil, err
			}
			service, ok := impl.(location.LocationsServer)
			if !ok {
				return nil, refusal.NotBuilt("Service google.cloud.location.Locations")
			}
			if ic == nil {
				return call(service, ctx, req)
			}
			info := &grpc.UnaryServerInfo{Server: impl, FullMethod: "/google.cloud.location.Locations/" + name}
			return ic(ctx, req, info, func(ctx context.Context, req any) (any, error) {
				typed, ok := req.(*Req)
				if !ok {
					return nil, refusal.Invalid("request", "%T is not a request of %s", req, name)
				}
				return call(service, ctx, typed)
			})
		},
	}
}
