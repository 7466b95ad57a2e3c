package admin

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// CreateTable creates a table. It creates families in order of their names, because the request
// holds them in an unordered map.
func (s tableAdminService) CreateTable(ctx context.Context, req *btapb.CreateTableRequest) (*btapb.Table, error) {
	if err := resname.CheckInstance("parent", req.GetParent()); err != nil {
		return nil, err
	}
	if err := s.Limits.CheckID("table_id", "a table id", req.GetTableId()); err != nil {
		return nil, err
	}
	def := engine.Table{Name: resname.TablesOf(req.GetParent()) + req.GetTableId()}
	switch g := req.GetTable().GetGranularity(); g {
	case btapb.Table_TIMESTAMP_GRANULARITY_UNSPECIFIED, btapb.Table_MILLIS:
	case btapb.Table_MICROS:
		def.Granularity = engine.Micros
	default:
		return nil, refusal.Invalid("table.granularity", "%d is not a known granularity", g)
	}
	families := req.GetTable().GetColumnFamilies()
	if err := s.Limits.Check(len(families), limits.MaxFamilies, "table.column_families", "families"); err != nil {
		return nil, err
	}
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
	settings := &settings{Table: &btapb.Table{}}
	proto.Merge(settings.Table, req.GetTable())
	settings.RestoreInfo = nil // output only
	hasFamily := func(name string) bool {
		_, ok := families[name]
		return ok
	}
	if err := settleTable(settings, hasFamily, AutomatedPlan{}, s.now()); err != nil {
		return nil, err
	}
	if def.Meta, err = settings.encode(); err != nil {
		return nil, refusal.Of(err)
	}
	setStream(&def)
	var t *engine.Table
	err = s.change(ctx, func(tx *engine.CatalogTx) error {
		if err := CheckInstance(tx, req.GetParent()); err != nil {
			return err
		}
		if err := s.checkTableCount(tx, req.GetParent()); err != nil {
			return err
		}
		if kind, name, err := idInUse(tx, req.GetParent(), req.GetTableId()); err != nil {
			return err
		} else if kind != "" && kind != "Table" {
			return refusal.Exists(kind, name)
		}
		if err := checkBackupPlaces(tx, req.GetParent(), settings.Table); err != nil {
			return err
		}
		if err := checkTier(tx, req.GetParent(), settings.Table); err != nil {
			return err
		}
		if t, err = tx.CreateTable(def); err != nil {
			return err
		}
		// Drop the resources that UndeleteTable would restore with an earlier
		// table.
		return removeAll(tx, t.Name)
	})
	if err != nil {
		return nil, err
	}
	return shownTable(t), nil
}

// checkTableCount returns an error if an instance has the maximum number of tables. A materialized view counts
// as one.
func (s *Control) checkTableCount(r Catalog, instance string) error {
	if s.Limits == limits.Off {
		return nil
	}
	views, err := r.Resources(kindMaterializedView + instance + "/materializedViews/")
	if err == nil && len(r.Tables(resname.TablesOf(instance)))+len(views) >= limits.MaxTablesPerInstance {
		err = refusal.TooManyTables(instance, limits.MaxTablesPerInstance)
	}
	return err
}

// initialSplits checks the split keys, and returns them sorted and without duplicates.
func (s *Control) initialSplits(splits []*btapb.CreateTableRequest_Split) ([][]byte, error) {
	var keys [][]byte
	for i, split := range splits {
		if err := s.Limits.CheckRowKey(refusal.Element("initial_splits", i), split.GetKey()); err != nil {
			return nil, err
		}
		keys = append(keys, bytes.Clone(split.GetKey()))
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal), nil
}

// FindTable returns the table with the given name; errors name the request field.
func FindTable(r Catalog, field, name string) (*engine.Table, error) {
	if err := resname.CheckTable(field, name); err != nil {
		return nil, err
	}
	t, err := r.Table(name)
	if err != nil {
		return nil, refusal.Of(err)
	}
	return t, nil
}

// GetTable returns a table with the fields of the request's view; by default its schema.
func (s tableAdminService) GetTable(_ context.Context, req *btapb.GetTableRequest) (*btapb.Table, error) {
	view, err := responseView(req.GetView(), btapb.Table_SCHEMA_VIEW, btapb.Table_View_name)
	if err != nil {
		return nil, err
	}
	t, err := FindTable(s.DB, "name", req.GetName())
	if err != nil {
		return nil, err
	}
	clusters, err := shownClusters(s.DB, resname.First(t.Name, 4), s.now())
	if err != nil {
		return nil, err
	}
	s.Replication.View(resname.First(t.Name, 4)).Show(clusters)
	return toTable(t, view, clusters, s.now()), nil
}

// ListTables returns the tables of an instance, sorted by name, in pages, with the
// fields of the request's view; by default only their names.
func (s tableAdminService) ListTables(ctx context.Context, req *btapb.ListTablesRequest) (*btapb.ListTablesResponse, error) {
	if err := resname.CheckInstance("parent", req.GetParent()); err != nil {
		return nil, err
	}
	view, err := responseView(req.GetView(), btapb.Table_NAME_ONLY, btapb.Table_View_name)
	if err != nil {
		return nil, err
	}
	var clusters []*btapb.Cluster
	var tables []*engine.Table
	err = s.change(ctx, func(tx *engine.CatalogTx) error {
		var err error
		clusters, err = shownClusters(tx, req.GetParent(), s.now())
		s.Replication.View(req.GetParent()).Show(clusters)
		tables = tx.Tables(resname.TablesOf(req.GetParent()))
		return err
	})
	if err != nil {
		return nil, err
	}
	resp := &btapb.ListTablesResponse{}
	tables, resp.NextPageToken, err = page(tables, req.GetPageSize(), req.GetPageToken(), func(t *engine.Table) string { return t.Name })
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		resp.Tables = append(resp.Tables, toTable(t, view, clusters, s.now()))
	}
	return resp, nil
}

// responseView returns v, the view that a request selects for its response, or unspecified if v
// is 0. It returns an error if names does not contain v.
func responseView[V ~int32](v, unspecified V, names map[int32]string) (V, error) {
	if v == 0 {
		return unspecified, nil
	}
	if _, ok := names[int32(v)]; !ok {
		return v, refusal.Invalid("view", "%d is not a known view", v)
	}
	return v, nil
}

// UpdateTable replaces the settings of a table that the mask names: change_stream_config,
// deletion_protection, automated_backup_policy, tiered_storage_config, their fields, and
// row_key_schema. A row key schema can be added, and removed with ignore_warnings, but not changed.
func (s tableAdminService) UpdateTable(ctx context.Context, req *btapb.UpdateTableRequest) (*longrunningpb.Operation, error) {
	for _, path := range req.GetUpdateMask().GetPaths() {
		if path == "column_families" || strings.HasPrefix(path, "column_families.") {
			return nil, refusal.NotBuilt("Updating column_families in UpdateTable instead of ModifyColumnFamilies")
		}
	}
	paths, err := maskPaths(req.GetUpdateMask(), "change_stream_config", "deletion_protection", "automated_backup_policy", "tiered_storage_config", "row_key_schema")
	if err != nil {
		return nil, err
	}
	if fieldsUnder(paths, "row_key_schema") && !slices.Contains(paths, "row_key_schema") {
		return nil, refusal.Invalid("update_mask", "row_key_schema can only be updated as a whole")
	}
	if _, err := FindTable(s.DB, "table.name", req.GetTable().GetName()); err != nil {
		return nil, err
	}
	began, doneAt := s.span()
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		if fieldsUnder(paths, "tiered_storage_config") {
			if err := checkTier(tx, resname.First(req.GetTable().GetName(), 4), req.GetTable()); err != nil {
				return nil, err
			}
		}
		t, err := tx.UpdateTable(req.GetTable().GetName(), func(t *engine.Table) error {
			return s.updateSettings(tx, t, req.GetTable(), paths, req.GetIgnoreWarnings())
		})
		if err != nil {
			return nil, err
		}
		metadata := &btapb.UpdateTableMetadata{Name: t.Name, StartTime: began, EndTime: doneAt}
		return s.start(tx, resname.First(t.Name, 4), metadata, shownTable(t), doneAt.AsTime())
	})
}

// checkTier rejects a storage tier that the instance does not support.
func checkTier(r Catalog, instance string, settings *btapb.Table) error {
	clusters, err := ClustersOf(r, instance)
	if err != nil {
		return err
	}
	return checkTierStorage(settings.GetTieredStorageConfig(), clusters)
}

// updateSettings replaces the settings of t at paths.
func (s *Control) updateSettings(r Catalog, t *engine.Table, from *btapb.Table, paths []string, ignoreWarnings bool) error {
	settings := settingsOf(t)
	was, plan := settings.GetRowKeySchema(), settings.plan()
	plan.Policy = proto.CloneOf(plan.Policy)
	if err := applyMask(settings.Table, proto.CloneOf(from), paths); err != nil {
		return err
	}
	switch is := settings.GetRowKeySchema(); {
	case was == nil:
	case is == nil && !ignoreWarnings:
		return refusal.Invalid("table.row_key_schema", "removing it may break queries; set ignore_warnings to do so")
	case is != nil && !proto.Equal(was, is):
		return refusal.Invalid("table.row_key_schema", "a row key schema cannot be changed, only removed")
	}
	err := settleTable(settings, func(name string) bool {
		_, err := FindFamily(t, name)
		return err == nil
	}, plan, s.now())
	if err == nil && fieldsUnder(paths, "automated_backup_policy") {
		err = checkBackupPlaces(r, resname.First(t.Name, 4), settings.Table)
	}
	if err != nil {
		return err
	}
	if t.Meta, err = settings.encode(); err != nil {
		return err
	}
	setStream(t)
	return nil
}

// checkBackupPlaces checks a policy of automated backups against its instance.
func checkBackupPlaces(r Catalog, name string, settings *btapb.Table) error {
	p := settings.GetAutomatedBackupPolicy()
	if !(AutomatedPlan{Policy: p}).inForce() {
		return nil
	}
	in, _, err := instance(r, name)
	if err != nil {
		return err
	}
	clusters, err := ClustersOf(r, name)
	if err != nil {
		return err
	}
	return checkAutomatedPlaces(p, in, clusters)
}

// DeleteTable deletes a table with its rows and authorized views. It returns an error if the
// table or a view has deletion_protection, if the change stream is enabled, or if a materialized
// view reads the table. UndeleteTable can restore the table for a while; see engine.Options.
func (s tableAdminService) DeleteTable(ctx context.Context, req *btapb.DeleteTableRequest) (*emptypb.Empty, error) {
	return empty(s.change(ctx, func(tx *engine.CatalogTx) error {
		t, err := FindTable(tx, "name", req.GetName())
		if err != nil {
			return err
		}
		if protected(t) {
			return refusal.Protected(t.Name, "DeleteTable")
		}
		if err := checkNoStream(t, "DeleteTable"); err != nil {
			return err
		}
		if err := checkUnprotectedViews(tx, t.Name+"/", "DeleteTable"); err != nil {
			return err
		}
		if err := s.checkUnread(tx, t.Name); err != nil {
			return err
		}
		return tx.SoftDeleteTable(t.Name)
	}))
}

// UndeleteTable restores the most recently deleted table with the given name, together with its
// rows, settings, views and policies. It returns an error if the name is in use.
func (s tableAdminService) UndeleteTable(ctx context.Context, req *btapb.UndeleteTableRequest) (*longrunningpb.Operation, error) {
	if err := resname.CheckTable("name", req.GetName()); err != nil {
		return nil, err
	}
	parent := resname.First(req.GetName(), 4)
	began, doneAt := s.span()
	return changed(ctx, s.Control, func(tx *engine.CatalogTx) (*longrunningpb.Operation, error) {
		if err := CheckInstance(tx, parent); err != nil {
			return nil, err
		}
		if err := s.checkTableCount(tx, parent); err != nil {
			return nil, err
		}
		if _, err := tx.UndeleteTable(req.GetName()); err != nil {
			return nil, err
		}
		t, err := tx.UpdateTable(req.GetName(), func(t *engine.Table) error {
			return Replan(t, func(p *AutomatedPlan) { p.skip(s.now()) })
		})
		if err != nil {
			return nil, err
		}
		metadata := &btapb.UndeleteTableMetadata{Name: t.Name, StartTime: began, EndTime: doneAt}
		return s.start(tx, parent, metadata, shownTable(t), doneAt.AsTime())
	})
}

// setStream makes the engine retain the changes of a table for the retention of its change
// stream.
func setStream(t *engine.Table) {
	t.Journal[engine.JournalStream].Keep = settingsOf(t).GetChangeStreamConfig().GetRetentionPeriod().AsDuration()
}

// checkNoStream returns an error if the change stream of a table is enabled.
func checkNoStream(t *engine.Table, what string) error {
	if t.Journal[engine.JournalStream].Keep > 0 {
		return refusal.Precondition("Table %s has a change stream; disable it before %s.", t.Name, what)
	}
	return nil
}
