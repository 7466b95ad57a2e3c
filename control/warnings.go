package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/internal/nearest"
)

// warnings returns the reasons why a fault has no effect at present. These are not errors,
// since tables may be created later.
func warnings(ctx context.Context, s *Server, f fault.Spec) ([]string, error) {
	switch {
	case f.Table == "":
		return nil, nil
	case !f.DynamoDB:
		return warningsOfRows(ctx, s, f.Table)
	}
	names, err := s.dynamoDBTables(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, f.Table) {
		return []string{fmt.Sprintf("DynamoDB table %q does not exist at present", f.Table)}, nil
	}
	var described struct {
		Table struct {
			AttributeDefinitions []struct{ AttributeName, AttributeType string }
			KeySchema            []struct{ AttributeName string }
		}
	}
	request, _ := json.Marshal(map[string]string{"TableName": f.Table}) // a map of strings never fails
	answer, err := s.opts.Endpoint.Call(ctx, "DescribeTable", request)
	if err == nil {
		err = json.Unmarshal(answer, &described)
	}
	if err != nil {
		return nil, err
	}
	types, key := map[string]string{}, []string{}
	for _, a := range described.Table.AttributeDefinitions {
		types[a.AttributeName] = a.AttributeType
	}
	for _, k := range described.Table.KeySchema {
		key = append(key, k.AttributeName)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(f.Item)) {
		var value map[string]json.RawMessage
		given := ""
		if json.Unmarshal(f.Item[name], &value) == nil && len(value) == 1 {
			given = slices.Collect(maps.Keys(value))[0]
		}
		switch {
		case !slices.Contains(key, name):
			out = append(out, fmt.Sprintf("%q is not a key attribute of table %s (%s); only puts of whole items contain it", name, f.Table, strings.Join(key, ", ")))
		case types[name] != given:
			out = append(out, fmt.Sprintf("key attribute %q of table %s has type %s, not %s", name, f.Table, types[name], given))
		}
	}
	return out, nil
}

// warningsOfRows returns the warnings for a fault of Bigtable.
func warningsOfRows(ctx context.Context, s *Server, id string) ([]string, error) {
	views, err := s.opts.Lab.Bigtable().Views(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(s.opts.Lab.DB().Tables(""), func(t *engine.Table) bool {
		_, table := ids(t.Name)
		return table == id
	}) || slices.ContainsFunc(views, func(v emu.View) bool { return strings.HasSuffix(v.Name, "/materializedViews/"+id) }) ||
		s.opts.Endpoint.RowsOf(ctx, id) != "" { // the fault affects the rows of this DynamoDB table
		return nil, nil
	}
	return []string{fmt.Sprintf("Bigtable table %q does not exist at present", id)}, nil
}

// noTable returns the error for a missing Bigtable table. For the name of a DynamoDB table it
// includes the place of its rows; it names a view that has the id.
func noTable(ctx context.Context, s *Server, name string) *Error {
	return notFound("table", name, elsewhere(ctx, s, name))
}

// elsewhere describes the place of a table that does not exist under its name.
func elsewhere(ctx context.Context, s *Server, name string) string {
	_, id := ids(name)
	switch v := viewNamed(ctx, s, name); {
	case v == nil:
	case v.Materialized != nil:
		return fmt.Sprintf("%s is a materialized view: \"tabletop ctl rows\" reads its rows, and the RPC DeleteMaterializedView deletes it", id)
	default:
		return fmt.Sprintf("%s is a logical view: \"tabletop sql\" queries it, and the RPC DeleteLogicalView deletes it", id)
	}
	if at := s.opts.Endpoint.RowsOf(ctx, id); at != "" && s.opts.Lab.TableName(at) != name {
		return fmt.Sprintf("the rows of DynamoDB table %s are in Bigtable table %s/%s; %s", id, s.opts.Lab.Options().Instance, at, tablesRemedy)
	}
	return tablesRemedy
}

// naming adds the name of the table in the path to DynamoDB's error for a missing table, which
// names none.
func (s *Server) naming(r *http.Request, err error) error {
	out := asError(err)
	if out.Code != awserr.CodeResourceNotFound {
		return err
	}
	name := r.PathValue("table")
	names, unknown := s.dynamoDBTables(own(r))
	if unknown != nil || slices.Contains(names, name) { // another resource of the table is missing
		return err
	}
	out.Text, out.Remedy = fmt.Sprintf("%s: DynamoDB table %q does not exist", out.Text, name), nearestTable(name, names)
	return out
}

// nearestTable returns the remedy for a misspelled name of a table, given those that exist.
func nearestTable(name string, names []string) string {
	if near := nearest.To(name, names); near != "" {
		return fmt.Sprintf("the nearest name is %q; %s", near, tablesRemedy)
	}
	return tablesRemedy
}
