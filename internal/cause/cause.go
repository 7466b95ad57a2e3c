// Package cause passes the id of a DynamoDB request to the Bigtable calls that it makes. Within
// one process the id is a value of the context, without a cost for calls; over a connection it
// is metadata.
package cause

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Header names the id of the request in the metadata of a call.
const Header = "x-tabletop-cause"

type key struct{}

// IsKey reports whether a key of a context is that of a cause: a channel inside the process
// passes its value on.
func IsKey(k any) bool { return k == key{} }

// With returns a context whose calls belong to the request with that id, unless they belong to
// another already.
func With(ctx context.Context, id string) context.Context {
	if of, _ := Of(ctx); of != "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, id)
}

// Of returns the id of the request that the calls of a context belong to, or "". ok is false if
// the context has no such value; its metadata may then have the id.
func Of(ctx context.Context) (id string, ok bool) {
	id, ok = ctx.Value(key{}).(string)
	return id, ok
}

// Carry returns a connection that passes the cause of each call on, in its metadata. A
// connection with a method CarriesCause stays inside the process and passes the value itself.
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
