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
// Bigtable has filled a new view. It returns the errors of [Client.FindView].
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
	switch there, err := c.FindView(ctx, view, query); {
	case err != nil:
		return false, err
	case !there:
		return false, fmt.Errorf("creating the materialized view %s: another view of the instance has that id", view)
	}
	return false, nil
}

// Conflict is the error for an id that a materialized view and something else of the instance need.
type Conflict struct{ text string }

func (c *Conflict) Error() string { return c.text }

// conflict returns a Conflict that names the command that deletes a table or view of the instance.
func (c *Client) conflict(what, kind, id string) error {
	return &Conflict{fmt.Sprintf("%s (gcloud bigtable %s delete %s --instance=%s)", what, kind, id, c.instance[strings.LastIndexByte(c.instance, '/')+1:])}
}

// FindView reports whether a materialized view with a query exists. The error is a *Conflict if the
// view has another query, which cannot be changed, or if a table has its id.
func (c *Client) FindView(ctx context.Context, view, query string) (there bool, err error) {
	have, err := c.ViewQuery(ctx, view)
	switch {
	case err == nil && strings.TrimSpace(have) == strings.TrimSpace(query):
		return true, nil
	case err == nil:
		return false, c.conflict(fmt.Sprintf("the materialized view %s exists with another query, which cannot be changed: delete the view, so that it is created again", view), "materialized-views", view)
	case status.Code(err) != codes.NotFound:
		return false, err
	}
	switch _, err := c.Families(ctx, view); {
	case err == nil:
		return false, c.conflict(fmt.Sprintf("a table has the id of the materialized view %s: delete the table, so that the view is created, or use another instance", view), "tables", view)
	case status.Code(err) != codes.NotFound:
		return false, err
	}
	return false, nil
}

// ViewInPlace returns a *Conflict if a materialized view has the id of a table that does not exist. A
// view that the caller may not read counts as missing.
func (c *Client) ViewInPlace(ctx context.Context, table string) error {
	_, err := c.ViewQuery(ctx, table)
	switch status.Code(err) { //nolint:exhaustive // the default has the others
	case codes.OK:
		return c.conflict(fmt.Sprintf("a materialized view has the id of the table %s: delete the view, so that the table is created, or use another instance", table), "materialized-views", table)
	case codes.NotFound, codes.Unimplemented, codes.PermissionDenied:
		return nil
	}
	return err
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

// DropView deletes a materialized view, if it exists.
func (c *Client) DropView(ctx context.Context, view string) error {
	path := c.viewPath(view)
	_, err := administerViews(ctx, c, c.once(view, "DeleteMaterializedView"), "name", path, btapb.BigtableInstanceAdminClient.DeleteMaterializedView, &btapb.DeleteMaterializedViewRequest{Name: path})
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("deleting the materialized view %s: %w", view, err)
	}
	return nil
}
