package emu

import (
	"bytes"
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"sort"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tabletop-emu/tabletop/engine"
)

// CreateTable creates a table with its families, which come in the order of
// their names: the request holds them in a map, which has no order.
func (s tableAdminService) CreateTable(ctx context.Context, req *btapb.CreateTableRequest) (*btapb.Table, error) {
	if err := parseInstance("parent", req.GetParent()); err != nil {
		return nil, err
	}
	if err := s.checkTableID(req.GetTableId()); err != nil {
		return nil, err
	}
	if err := refuseUnbuiltTable(req.GetTable()); err != nil {
		return nil, err
	}
	def := engine.Table{Name: instancePrefix(req.GetParent()) + req.GetTableId()}
	switch g := req.GetTable().GetGranularity(); g {
	case btapb.Table_TIMESTAMP_GRANULARITY_UNSPECIFIED, btapb.Table_MILLIS:
	case btapb.Table_MICROS:
		def.Granularity = engine.Micros
	default:
		return nil, statusInvalid("table.granularity", "%d is not a granularity", g)
	}
	families := req.GetTable().GetColumnFamilies()
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f, err := s.newFamily("table.column_families["+name+"]", name, families[name])
		if err != nil {
			return nil, err
		}
		def.Families = append(def.Families, f)
	}
	var err error
	if def.Splits, err = s.initialSplits(req.GetInitialSplits()); err != nil {
		return nil, err
	}
	if def.Meta, err = tableMeta(req.GetTable()); err != nil {
		return nil, toStatus(err)
	}
	if s.limits == StrictLimits && len(s.db.Tables(instancePrefix(req.GetParent()))) >= maxTablesPerInstance {
		return nil, statusTooManyTables(req.GetParent())
	}
	t, err := s.db.CreateTable(ctx, def)
	if err != nil {
		return nil, toStatus(err)
	}
	return toTable(t, btapb.Table_SCHEMA_VIEW), nil
}

// refuseUnbuiltTable refuses the settings of a table that would be lost.
func refuseUnbuiltTable(t *btapb.Table) error {
	for _, f := range []struct {
		set  bool
		name string
	}{
		{t.GetChangeStreamConfig() != nil, "change_stream_config"},
		{t.GetAutomatedBackupConfig() != nil, "automated_backup_policy"},
		{t.GetRowKeySchema() != nil, "row_key_schema"},
		{t.GetTieredStorageConfig() != nil, "tiered_storage_config"},
	} {
		if f.set {
			return statusNotBuilt("Field table." + f.name)
		}
	}
	return nil
}

// initialSplits returns the split keys, sorted and each once.
func (s *Server) initialSplits(splits []*btapb.CreateTableRequest_Split) ([][]byte, error) {
	var keys [][]byte
	for i, split := range splits {
		if err := s.checkRowKey(element("initial_splits", i), split.GetKey()); err != nil {
			return nil, err
		}
		keys = append(keys, bytes.Clone(split.GetKey()))
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal), nil
}

// GetTable returns a table in the view asked for; without one, its schema.
func (s tableAdminService) GetTable(_ context.Context, req *btapb.GetTableRequest) (*btapb.Table, error) {
	view, err := tableView(req.GetView(), btapb.Table_SCHEMA_VIEW)
	if err != nil {
		return nil, err
	}
	t, err := s.table("name", req.GetName())
	if err != nil {
		return nil, err
	}
	return toTable(t, view), nil
}

// ListTables returns the tables of one instance, sorted by name, in pages; in
// the view asked for, without one only their names.
func (s tableAdminService) ListTables(_ context.Context, req *btapb.ListTablesRequest) (*btapb.ListTablesResponse, error) {
	if err := parseInstance("parent", req.GetParent()); err != nil {
		return nil, err
	}
	view, err := tableView(req.GetView(), btapb.Table_NAME_ONLY)
	if err != nil {
		return nil, err
	}
	size := int(req.GetPageSize())
	switch {
	case size < 0:
		return nil, statusInvalid("page_size", "%d is negative", size)
	case size == 0 || size > maxListTablesPerPage:
		size = maxListTablesPerPage
	}
	tables := s.db.Tables(instancePrefix(req.GetParent()))
	// The token is the last name of the page before, so that tables that come
	// and go between pages move no other.
	if token := req.GetPageToken(); token != "" {
		last, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return nil, statusInvalid("page_token", "%q is not a token of this server", token)
		}
		tables = tables[sort.Search(len(tables), func(i int) bool { return tables[i].Name > string(last) }):]
	}
	resp := &btapb.ListTablesResponse{}
	if len(tables) > size {
		tables = tables[:size]
		resp.NextPageToken = base64.RawURLEncoding.EncodeToString([]byte(tables[size-1].Name))
	}
	for _, t := range tables {
		resp.Tables = append(resp.Tables, toTable(t, view))
	}
	return resp, nil
}

// tableView resolves the view of a request.
func tableView(v, unspecified btapb.Table_View) (btapb.Table_View, error) {
	if v == btapb.Table_VIEW_UNSPECIFIED {
		return unspecified, nil
	}
	if _, ok := btapb.Table_View_name[int32(v)]; !ok {
		return v, statusInvalid("view", "%d is not a view", v)
	}
	return v, nil
}

// DeleteTable deletes a table and its rows, unless it has deletion_protection.
func (s tableAdminService) DeleteTable(ctx context.Context, req *btapb.DeleteTableRequest) (*emptypb.Empty, error) {
	t, err := s.table("name", req.GetName())
	if err != nil {
		return nil, err
	}
	if protected(t) {
		return nil, statusProtected(t.Name, "DeleteTable")
	}
	if err := s.db.DeleteTable(ctx, t.Name); err != nil {
		return nil, toStatus(err)
	}
	return &emptypb.Empty{}, nil
}
