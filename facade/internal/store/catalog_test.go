package store

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
)

func TestStore_Catalog(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			ctx := t.Context()
			s := openStore(t, testOptions(conn))
			long := strings.Repeat("long.name-", 25) + "12345"
			want := tabledef.Table{
				Name: long, Key: testSchemas["SN"], Attributes: []attr.KeyAttr{stringKey("p"), numberKey("s")},
				BillingMode: "PROVISIONED", Provisioned: tabledef.Provisioned{ReadUnits: 3, WriteUnits: 4}, DeletionProtection: true,
				Tags: map[string]string{"a": "b"}, Indexes: indexedTable("").Indexes,
			}
			def := newTable(t, s, want)
			if def.Status != tabledef.StatusActive || len(def.ID) != 36 || len(def.BigtableTable) > maxBigtableNameChars {
				t.Errorf("created %+v", def)
			}
			if _, err := s.CreateTable(ctx, &want); !errors.Is(err, ErrTableExists) {
				t.Errorf("second creation: %v", err)
			}
			for _, name := range []string{"abc", "zzz", "mmm"} {
				newTable(t, s, tabledef.Table{Name: name, Key: testSchemas["S"]})
			}

			s = openStore(t, testOptions(conn))
			again, err := s.Table(ctx, long)
			if err != nil {
				t.Fatal(err)
			}
			if d := gocmp.Diff(def, again); d != "" {
				t.Errorf("after a restart (-want +got):\n%s", d)
			}
			names, more, err := s.ListTables(ctx, "abc", 2)
			if d := gocmp.Diff([]string{long, "mmm"}, names); d != "" || !more || err != nil {
				t.Errorf("tables %v, %v, %v", names, more, err)
			}
			if _, err := s.Table(ctx, "none"); !errors.Is(err, ErrTableNotFound) {
				t.Errorf("unknown table: %v", err)
			}

			stop := errors.New("stop")
			if _, err := s.UpdateTable(ctx, long, func(*tabledef.Table) error { return stop }); !errors.Is(err, stop) {
				t.Errorf("update: %v", err)
			}
			updated, err := s.UpdateTable(ctx, long, func(d *tabledef.Table) error { d.Tags["c"] = "d"; return nil })
			if err != nil || updated.Tags["c"] != "d" || def.Tags["c"] != "" {
				t.Errorf("update: %+v, %v", updated, err)
			}

			deleted, err := s.DeleteTable(ctx, long)
			if err != nil || deleted.Status != tabledef.StatusDeleting {
				t.Errorf("delete: %+v, %v", deleted, err)
			}
			if _, err := s.Table(ctx, long); !errors.Is(err, ErrTableNotFound) {
				t.Errorf("deleted table: %v", err)
			}
			if err := put(ctx, s, def, attr.Item{"p": attr.String("x"), "s": attr.Int(1)}); !errors.Is(err, ErrTableNotFound) {
				t.Errorf("write to a deleted table: %v", err)
			}
			if fresh := newTable(t, s, want); fresh.ID == def.ID || fresh.BigtableTable == def.BigtableTable {
				t.Errorf("a new table has the id of a deleted one: %+v", fresh)
			}
		})
	}
}

// An index added to a table with items is filled during writes.
func TestStore_AddIndex(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			ctx := t.Context()
			s := openStore(t, testOptions(conn))
			full := indexedTable("grown")
			def := newTable(t, s, tabledef.Table{Name: full.Name, Key: full.Key})
			m := model{}
			rng := rand.New(rand.NewPCG(1, 2))
			write := func() {
				item := attr.Item{"p": attr.String("p"), "s": attr.Int(int64(rng.IntN(40)))}
				key := maps.Clone(item)
				item["g"], item["h"] = attr.String(strconv.Itoa(rng.IntN(5))), attr.Int(int64(rng.IntN(5)))
				if rng.IntN(4) == 0 {
					delete(m, keyText(key))
					if err := remove(ctx, s, def, key); err != nil {
						t.Error(err)
					}
					return
				}
				m[keyText(key)] = item
				if err := put(ctx, s, def, item); err != nil {
					t.Error(err)
				}
			}
			for range 60 {
				write()
			}
			grown, err := s.UpdateTable(ctx, def.Name, func(d *tabledef.Table) error { d.Indexes = full.Indexes; return nil })
			if err != nil || grown.Status != tabledef.StatusUpdating || !grown.Indexes[0].Backfilling {
				t.Fatalf("update: %+v, %v", grown, err)
			}
			for range 60 {
				write()
			}
			s.Wait()
			if grown, err = s.Table(ctx, def.Name); err != nil || grown.Status != tabledef.StatusActive || grown.Indexes[3].Status != tabledef.StatusActive {
				t.Fatalf("after backfill: %+v, %v", grown, err)
			}
			if err := checkIndexes(ctx, s, grown, m); err != nil {
				t.Error(err)
			}
			shrunk, err := s.UpdateTable(ctx, def.Name, func(d *tabledef.Table) error { d.Indexes = d.Indexes[1:3]; return nil })
			if err != nil || len(shrunk.Indexes) != 2 {
				t.Fatalf("update: %+v, %v", shrunk, err)
			}
			for range 20 {
				write()
			}
			if err := checkIndexes(ctx, s, shrunk, m); err != nil {
				t.Error(err)
			}
		})
	}
}

// A store counts the tables only when it may have reached the limit, or other processes may have
// created tables since the last count; not at each creation.
func TestStore_TableLimit(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			now := clock.NewFrozen(testTime)
			conn := start(t)
			var lists atomic.Int64 // reads of lists of tables
			o := testOptions(intercept.New(conn, func(_ context.Context, req any) error {
				if r, ok := req.(*btpb.ReadRowsRequest); ok {
					for _, span := range r.GetRows().GetRowRanges() {
						if strings.HasPrefix(string(span.GetStartKeyClosed()), tableRowPrefix) && r.GetRowsLimit() > 0 {
							lists.Add(1)
						}
					}
				}
				return nil
			}))
			o.Now, o.MaxTables = now.Now, 6
			s := openStore(t, o)
			other := openStore(t, testOptions(conn))
			create := func(s *Store, name string) error {
				_, err := s.CreateTable(ctx, &tabledef.Table{
					Name: name, Key: testSchemas["S"], Attributes: []attr.KeyAttr{stringKey("p")}, BillingMode: "PAY_PER_REQUEST",
				})
				return err
			}
			lists.Store(0)
			for _, step := range []struct {
				name  string
				by    *Store
				later time.Duration
				want  error
				lists int64 // total afterwards
			}{
				{"a", s, 0, nil, 1},
				{"b", s, 0, nil, 1},
				{"c", s, 0, nil, 1},
				{"d", other, 0, nil, 1},
				{"e", s, catalogMaxAge, nil, 2},
				{"f", s, 0, nil, 2},
				{"g", s, 0, ErrTooManyTables, 3},
				{"g", s, 0, ErrTooManyTables, 4},
			} {
				now.Advance(step.later)
				if err := create(step.by, step.name); !errors.Is(err, step.want) {
					t.Errorf("creating %s: %v, want %v", step.name, err, step.want)
				}
				if n := lists.Load(); n != step.lists {
					t.Errorf("after %s: %d lists of tables, want %d", step.name, n, step.lists)
				}
			}
			if _, err := s.DeleteTable(ctx, "b"); err != nil {
				t.Fatal(err)
			}
			if err := create(s, "g"); err != nil {
				t.Errorf("creating g where b was: %v", err)
			}
		})
	}
}
