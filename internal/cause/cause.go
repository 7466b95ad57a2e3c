// Package cause passes the id of a DynamoDB request to the Bigtable calls that the request causes.
// Within a process, the id is a context value, which costs nothing per call; over a connection it
// is metadata.
package cause

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Header is the metadata key for the id of the request.
const Header = "x-tabletop-cause"

type key struct{}

// IsKey reports whether a context key is that of a cause. An in-process channel passes on the
// values of such keys.
func IsKey(k any) bool { return k == key{} }

// With returns a context for calls that belong to the request with the given id. If ctx already
// belongs to another request, it is returned unchanged.
func With(ctx context.Context, id string) context.Context {
	if of, _ := Of(ctx); of != "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, id)
}

// Of returns the id of the request to which the calls of a context belong, or "". ok is false if
// the context has no such value, in which case its metadata may have the id.
func Of(ctx context.Context) (id string, ok bool) {
	id, ok = ctx.Value(key{}).(string)
	return id, ok
}

// Carry returns a connection that adds the cause of each call to its metadata. If conn has a method
// CarriesCause, it is returned as is: it stays inside the process and passes the context value.
func Carry(conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	if _, here := conn.(interface{ CarriesCause() }); here {
		return conn
	}
	if n, ok := conn.(named); ok { // for error messages
		return namedInMetadata{inMetadata{conn}, n}
	}
	return inMetadata{conn}
}

type inMetadata struct{ grpc.ClientConnInterface }

type named interface{ Target() string }

type namedInMetadata struct {
	inMetadata
	named
}

// Invoke implements grpc.ClientConnInterface.
func (c inMetadata) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(carried(ctx), method, args, reply, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (c inMetadata) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.ClientConnInterface.NewStream(carried(ctx), desc, method, opts...)
}

func carried(ctx context.Context) context.Context {
	if id, _ := Of(ctx); id != "" {
		return metadata.AppendToOutgoingContext(ctx, Header, id)
	}
	return ctx
}
