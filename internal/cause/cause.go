// Package cause passes on which DynamoDB request a Bigtable call was made for. Within one
// process the id is a value of the context, which costs a call nothing; over a connection it
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

// IsKey reports whether a key of a context is that of a cause: a channel in the process hands its
// value on.
func IsKey(k any) bool { return k == key{} }

// With returns a context whose calls are made for the request with that id, unless they are for another
// already.
func With(ctx context.Context, id string) context.Context {
	if of, _ := Of(ctx); of != "" {
		return ctx
	}
	return context.WithValue(ctx, key{}, id)
}

// Of returns the id of the request that calls with a context are made for, "" if for none. It is not ok
// where the context is not one of this process, and may say so in its metadata.
func Of(ctx context.Context) (id string, ok bool) {
	id, ok = ctx.Value(key{}).(string)
	return id, ok
}

// Carry returns a connection by which the cause of a call arrives: over one to another process
// in its metadata. One with a method CarriesCause is inside the process, and hands the value on.
func Carry(conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	if _, here := conn.(interface{ CarriesCause() }); here {
		return conn
	}
	if n, ok := conn.(named); ok { // messages name it
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
