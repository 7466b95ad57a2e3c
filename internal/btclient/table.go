package btclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// administer sends a request of table administration, routed by a field.
func administer[Req, Resp any](
	ctx context.Context, c *Client, t tries, field, name string,
	send func(btapb.BigtableTableAdminClient, context.Context, *Req, ...grpc.CallOption) (*Resp, error), req *Req,
) (*Resp, error) {
	return unary(metadata.AppendToOutgoingContext(ctx, routingHeader, route(field, name)), c, t, send, c.admin, req)
}

// Tables returns the ids of the instance's tables, sorted.
func (c *Client) Tables(ctx context.Context) ([]string, error) {
	var ids []string
	req := &btapb.ListTablesRequest{Parent: c.instance, View: btapb.Table_NAME_ONLY}
	for {
		resp, err := administer(ctx, c, c.reading("", "ListTables"), "parent", c.instance, btapb.BigtableTableAdminClient.ListTables, req)
		if err != nil {
			return nil, fmt.Errorf("listing the tables of %s: %w", c.instance, err)
		}
		for _, t := range resp.GetTables() {
			ids = append(ids, t.GetName()[strings.LastIndexByte(t.GetName(), '/')+1:])
		}
		if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
			slices.Sort(ids)
			return ids, nil
		}
	}
}

// Families returns the garbage-collection rules of a table's families by name. The rule of a family
// is nil if it has no rule.
func (c *Client) Families(ctx context.Context, table string) (map[string]*btapb.GcRule, error) {
	path := c.TablePath(table)
	t, err := administer(ctx, c, c.reading(table, "GetTable"), "name", path, btapb.BigtableTableAdminClient.GetTable, &btapb.GetTableRequest{Name: path, View: btapb.Table_SCHEMA_VIEW})
	if err != nil {
		return nil, fmt.Errorf("reading the families of table %s: %w", table, err)
	}
	rules := make(map[string]*btapb.GcRule, len(t.GetColumnFamilies()))
	for name, f := range t.GetColumnFamilies() {
		if rules[name] = f.GetGcRule(); rules[name].GetRule() == nil {
			rules[name] = nil // an empty message is not a rule
		}
	}
	return rules, nil
}

// EnsureTable creates a table, or the missing families of an existing table. It does not change
// families that have a different rule. Before any change, it calls differs with the name of each
// such family, and returns the error of differs, if any. A nil differs accepts all differences. The
// error is a *Conflict if a materialized view has the id.
func (c *Client) EnsureTable(ctx context.Context, table string, families []Family, differs func(family string, have, want *btapb.GcRule) error) (created bool, err error) {
	want := map[string]*btapb.ColumnFamily{}
	for _, f := range families {
		want[f.Name] = &btapb.ColumnFamily{GcRule: GCRule(f.GC)}
	}
	// A table that an earlier attempt created counts as an existing one, so the call is
	// idempotent.
	_, err = administer(ctx, c, c.writing(table, "CreateTable"), "parent", c.instance, btapb.BigtableTableAdminClient.CreateTable,
		&btapb.CreateTableRequest{Parent: c.instance, TableId: table, Table: &btapb.Table{ColumnFamilies: want}})
	if err == nil {
		return true, nil
	}
	if status.Code(err) != codes.AlreadyExists {
		return false, fmt.Errorf("creating table %s: %w", table, err)
	}
	have, err := c.Families(ctx, table)
	if status.Code(err) == codes.NotFound {
		err = cmp.Or(c.ViewInPlace(ctx, table), err)
	}
	if err != nil {
		return false, err
	}
	path := c.TablePath(table)
	change := &btapb.ModifyColumnFamiliesRequest{Name: path}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		rule, ok := have[name]
		switch {
		case !ok:
			change.Modifications = append(change.Modifications, &btapb.ModifyColumnFamiliesRequest_Modification{
				Id: name, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: want[name]},
			})
		case differs != nil && !proto.Equal(rule, want[name].GetGcRule()):
			if err := differs(name, rule, want[name].GetGcRule()); err != nil {
				return false, err
			}
		}
	}
	if len(change.GetModifications()) == 0 {
		return false, nil
	}
	if _, err := administer(ctx, c, c.once(table, "ModifyColumnFamilies"), "name", path, btapb.BigtableTableAdminClient.ModifyColumnFamilies, change); err != nil {
		return false, fmt.Errorf("adding families to table %s: %w", table, err)
	}
	return false, nil
}

// SetGC sets the garbage-collection rule of a family.
func (c *Client) SetGC(ctx context.Context, table string, f Family) error {
	path := c.TablePath(table)
	_, err := administer(ctx, c, c.once(table, "ModifyColumnFamilies"), "name", path, btapb.BigtableTableAdminClient.ModifyColumnFamilies, &btapb.ModifyColumnFamiliesRequest{
		Name: path, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{{
			Id: f.Name, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Update{Update: &btapb.ColumnFamily{GcRule: GCRule(f.GC)}},
		}},
		IgnoreWarnings: true, // in a replicated table a longer age causes one
	})
	if err != nil {
		return fmt.Errorf("setting the garbage-collection rule of family %s of table %s: %w", f.Name, table, err)
	}
	return nil
}

// DropFamily deletes a family of a table with all its cells. It succeeds if the family
// or the table does not exist.
func (c *Client) DropFamily(ctx context.Context, table, family string) error {
	there, err := c.Families(ctx, table)
	if _, ok := there[family]; !ok && (err == nil || status.Code(err) == codes.NotFound) {
		return nil
	}
	if err == nil {
		path := c.TablePath(table)
		_, err = administer(ctx, c, c.once(table, "ModifyColumnFamilies"), "name", path, btapb.BigtableTableAdminClient.ModifyColumnFamilies, &btapb.ModifyColumnFamiliesRequest{
			Name: path, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{{Id: family, Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}}},
		})
	}
	if err != nil {
		return fmt.Errorf("deleting family %s of table %s: %w", family, table, err)
	}
	return nil
}

// DropTable deletes a table, if it exists.
func (c *Client) DropTable(ctx context.Context, table string) error {
	path := c.TablePath(table)
	_, err := administer(ctx, c, c.once(table, "DeleteTable"), "name", path, btapb.BigtableTableAdminClient.DeleteTable, &btapb.DeleteTableRequest{Name: path})
	if err != nil && status.Code(err) != codes.NotFound {
		return fmt.Errorf("deleting table %s: %w", table, err)
	}
	return nil
}

// dropPatience is the longest time for Bigtable to drop rows.
// https://cloud.google.com/bigtable/docs/deleting-data
const dropPatience = time.Hour

// DropRows deletes the rows whose keys begin with prefix, which must not be empty. Regardless of
// Options.Deadline, the call may take up to an hour.
func (c *Client) DropRows(ctx context.Context, table string, prefix []byte) error {
	err := c.drop(ctx, table, &btapb.DropRowRangeRequest{Target: &btapb.DropRowRangeRequest_RowKeyPrefix{RowKeyPrefix: prefix}})
	if err != nil {
		return fmt.Errorf("dropping the rows of table %s that begin with %q: %w", table, prefix, err)
	}
	return nil
}

// EmptyTable deletes all rows of a table but keeps its families. See [Client.DropRows].
func (c *Client) EmptyTable(ctx context.Context, table string) error {
	err := c.drop(ctx, table, &btapb.DropRowRangeRequest{Target: &btapb.DropRowRangeRequest_DeleteAllDataFromTable{DeleteAllDataFromTable: true}})
	if err != nil {
		return fmt.Errorf("emptying table %s: %w", table, err)
	}
	return nil
}

func (c *Client) drop(ctx context.Context, table string, req *btapb.DropRowRangeRequest) error {
	req.Name = c.TablePath(table)
	t := c.once(table, "DropRowRange")
	if t.deadline > 0 {
		t.deadline = dropPatience
	}
	_, err := administer(ctx, c, t, "name", req.GetName(), btapb.BigtableTableAdminClient.DropRowRange, req)
	return err
}

// SampleKeys returns the keys at which the Bigtable splits a table, in ascending order, and the
// approximate size of the table.
func (c *Client) SampleKeys(ctx context.Context, table string) (keys [][]byte, sizeBytes int64, err error) {
	return c.sample(ctx, table, false)
}

// SampleViewKeys acts like SampleKeys for a materialized view.
func (c *Client) SampleViewKeys(ctx context.Context, view string) (keys [][]byte, sizeBytes int64, err error) {
	return c.sample(ctx, view, true)
}

func (c *Client) sample(ctx context.Context, id string, view bool) (keys [][]byte, sizeBytes int64, err error) {
	for again := c.reading(id, "SampleRowKeys"); ; {
		if keys, sizeBytes, err = c.sampleOnce(ctx, id, view); err == nil {
			return keys, sizeBytes, nil
		}
		if err := again.again(ctx, err); err != nil {
			return nil, 0, fmt.Errorf("sampling %s: %w", kindOf(view)+id, err)
		}
	}
}

func (c *Client) sampleOnce(ctx context.Context, id string, view bool) (keys [][]byte, sizeBytes int64, err error) {
	w := c.watch(ctx, "SampleRowKeys", c.o.Deadline)
	defer w.end()
	t := c.target(id)
	req := &btpb.SampleRowKeysRequest{TableName: t.path, AppProfileId: c.o.AppProfile}
	if view {
		req.TableName, req.MaterializedViewName = "", c.viewPath(id)
	}
	stream, err := c.data.SampleRowKeys(t.outgoing(w.ctx), req)
	for err == nil {
		w.hear()
		var sample *btpb.SampleRowKeysResponse
		if sample, err = stream.Recv(); err != nil {
			break
		}
		w.heard()
		sizeBytes = sample.GetOffsetBytes()
		if key := sample.GetRowKey(); len(key) > 0 {
			keys = append(keys, key)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, 0, w.why(err)
	}
	return keys, sizeBytes, nil
}

// GCRule returns the wire form of a rule, or nil if the rule is empty.
func GCRule(gc GC) *btapb.GcRule {
	var rules []*btapb.GcRule
	if gc.Versions > 0 {
		rules = append(rules, &btapb.GcRule{Rule: &btapb.GcRule_MaxNumVersions{MaxNumVersions: int32(gc.Versions)}})
	}
	if gc.MaxAge > 0 {
		rules = append(rules, &btapb.GcRule{Rule: &btapb.GcRule_MaxAge{MaxAge: durationpb.New(gc.MaxAge)}})
	}
	switch len(rules) {
	case 0:
		return nil
	case 1:
		return rules[0]
	}
	return &btapb.GcRule{Rule: &btapb.GcRule_Union_{Union: &btapb.GcRule_Union{Rules: rules}}}
}

// GCOf converts the wire form of a rule. It returns false if no GC is equivalent, for example for
// an intersection of conditions.
func GCOf(rule *btapb.GcRule) (GC, bool) {
	switch of := rule.GetRule().(type) {
	case nil:
		return GC{}, true
	case *btapb.GcRule_MaxNumVersions:
		return GC{Versions: int(of.MaxNumVersions)}, of.MaxNumVersions > 0
	case *btapb.GcRule_MaxAge:
		age := of.MaxAge.AsDuration()
		return GC{MaxAge: age}, age > 0
	case *btapb.GcRule_Union_:
		var all GC
		for _, r := range of.Union.GetRules() {
			one, ok := GCOf(r)
			if !ok {
				return GC{}, false
			}
			all.Versions, all.MaxAge = stricter(all.Versions, one.Versions), stricter(all.MaxAge, one.MaxAge)
		}
		return all, true
	case *btapb.GcRule_Intersection_:
		if rules := of.Intersection.GetRules(); len(rules) == 1 {
			return GCOf(rules[0])
		}
	}
	return GC{}, false
}

// stricter returns the smaller of two limits; 0 means no limit.
func stricter[N int | time.Duration](a, b N) N {
	if a == 0 || b == 0 {
		return cmp.Or(a, b)
	}
	return min(a, b)
}
