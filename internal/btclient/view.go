package btclient

import (
	"context"
	"fmt"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// administerViews sends a request about the materialized views of the instance, routed by a field.
func administerViews[Req, Resp any](
	ctx context.Context, c *Client, t tries, field, name string,
	send func(btapb.BigtableInstanceAdminClient, context.Context, *Req, ...grpc.CallOption) (*Resp, error), req *Req,
) (*Resp, error) {
	return unary(metadata.AppendToOutgoingContext(ctx, routingHeader, route(field, name)), c, t, send, c.instances, req)
}

// viewPath returns the resource name of a materialized view.
func (c *Client) viewPath(view string) string { return c.instance + "/materializedViews/" + view }

// kindOf returns the words that errors put before the id of a table or a materialized view.
func kindOf(view bool) string {
	if view {
		return "the materialized view "
	}
	return "table "
}

// EnsureView creates a materialized view with a query, unless the view exists. It does not wait until
// Bigtable has filled a new view. It returns an error if the view exists with another query, since
// the query of a view cannot be changed.
func (c *Client) EnsureView(ctx context.Context, view, query string) (created bool, err error) {
	// A view that an earlier attempt created counts as an existing one, so the call is idempotent.
	op, err := administerViews(ctx, c, c.writing(view, "CreateMaterializedView"), "parent", c.instance, btapb.BigtableInstanceAdminClient.CreateMaterializedView,
		&btapb.CreateMaterializedViewRequest{Parent: c.instance, MaterializedViewId: view, MaterializedView: &btapb.MaterializedView{Query: query}})
	if err == nil {
		if failed := op.GetError(); failed != nil {
			err = status.FromProto(failed).Err()
		}
	}
	if err == nil {
		return true, nil
	}
	if status.Code(err) != codes.AlreadyExists {
		return false, fmt.Errorf("creating the materialized view %s: %w", view, err)
	}
	there, err := c.ViewQuery(ctx, view)
	switch {
	case status.Code(err) == codes.NotFound:
		return false, fmt.Errorf("creating the materialized view %s: a table or another view has that id", view)
	case err != nil:
		return false, err
	case !SameQuery(there, query):
		return false, fmt.Errorf("the materialized view %s exists with another query, which cannot be changed: delete the view, so that it is created again; expected\n%s", view, query)
	}
	return false, nil
}

// ViewQuery returns the query of a materialized view. The error has the code NotFound if the view does
// not exist.
func (c *Client) ViewQuery(ctx context.Context, view string) (string, error) {
	path := c.viewPath(view)
	there, err := administerViews(ctx, c, c.reading(view, "GetMaterializedView"), "name", path, btapb.BigtableInstanceAdminClient.GetMaterializedView, &btapb.GetMaterializedViewRequest{Name: path})
	if err != nil {
		return "", fmt.Errorf("reading the query of the materialized view %s: %w", view, err)
	}
	return there.GetQuery(), nil
}

// SameQuery reports whether two queries are equal, except for white space around them.
func SameQuery(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }

// DropView deletes a materialized view, if it exists.
func (c *Client) DropView(ctx context.Context, view string) error {
	path := c.viewPath(view)
	_, err := administerViews(ctx, c, c.once(view, "DeleteMaterializedView"), "name", path, btapb.BigtableInstanceAdminClient.DeleteMaterializedView, &btapb.DeleteMaterializedViewRequest{Name: path})
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("deleting the materialized view %s: %w", view, err)
	}
	return nil
}
