// Package locations describes the gRPC service google.cloud.location.Locations: its
// generated code keeps the description to itself.
package locations

import (
	"context"

	"google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// ServiceDesc describes the service. It is not to be changed.
var ServiceDesc = grpc.ServiceDesc{
	ServiceName: "google.cloud.location.Locations",
	HandlerType: (*location.LocationsServer)(nil),
	Methods: []grpc.MethodDesc{
		unary("ListLocations", location.LocationsServer.ListLocations),
		unary("GetLocation", location.LocationsServer.GetLocation),
	},
	Metadata: "google/cloud/location/locations.proto",
}

// unary describes a method of the service.
func unary[Req, Resp any](name string, call func(location.LocationsServer, context.Context, *Req) (*Resp, error)) grpc.MethodDesc {
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
