// Package cause says which request of the DynamoDB door a call to the Bigtable behind
// it was made for.
package cause

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// Header names the id of the request in the metadata of a call.
const Header = "x-tabletop-cause"

// With returns a context whose calls are made for the request with that id.
func With(ctx context.Context, id string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, Header, id)
}
