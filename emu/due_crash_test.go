package emu

import (
	"slices"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"

	"github.com/tabletop-emu/tabletop/emu/internal/admin"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// dueNames returns the names of resources that due work creates and removes: backups in the API
// and in the engine, views and deleted tables.
func dueNames(t *testing.T, db *engine.DB) (names []string) {
	t.Helper()
	for _, kind := range []string{admin.KindBackup, admin.KindSnapshot, admin.KindAuthorizedView} {
		found, err := db.Resources(kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			names = append(names, r.Name)
		}
	}
	for _, b := range db.Backups().List("") {
		names = append(names, "engine "+b.Name)
	}
	if _, ok := db.NextPurge(); ok {
		names = append(names, "a deleted table")
	}
	return names
}

// A crash before any write of due work leaves each backup whole or absent. The next server does
// the rest: the final store is the same as without a crash.
func TestCrash_Due(t *testing.T) {
	t.Parallel()
	disk := faultdisk.NewCrashing(1)
	e := newEnvWith(t, Options{}, engine.Options{Dir: "data", FS: disk.FS(), KeepDeleted: day, MemTableBytes: faultdisk.MemTableBytes})
	e.mustCreateInstance("i", nodes("z1", 1), nodes("z2", 1))
	e.createTable("t", "f")
	e.mustMutate("r", set("f", "q", 1000, "v"))
	e.setPolicy(keep(3))
	for id, life := range map[string]int{"short": 1, "long": 3} {
		if err := e.tryBackup(id, func(req *btapb.CreateBackupRequest) {
			req.Parent, req.Backup.ExpireTime = testInstance+"/clusters/c1", e.in(day*time.Duration(life))
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.snapshotTable(e.ctx(), testInstance+"/clusters/c1", "s", nil); err != nil {
		t.Fatal(err)
	}
	e.createTable("u", "f")
	if _, err := e.admin.CreateAuthorizedView(e.ctx(), &btapb.CreateAuthorizedViewRequest{
		Parent: testInstance + "/tables/u", AuthorizedViewId: "v", AuthorizedView: viewOf(&btapb.AuthorizedView_SubsetView{}),
	}); err != nil {
		t.Fatal(err)
	}
	e.mustDeleteTable("u")
	disk.Take()
	e.clock.Advance(day)
	if err := e.srv.RunDue(e.ctx()); err != nil {
		t.Fatal(err)
	}
	want, rows := dueNames(t, e.db), e.rowsOf("t")
	if len(want) != 6 {
		t.Fatalf("in the end: %q", want)
	}
	crashes := disk.Take()
	every := 2
	if long.Enabled() {
		every = 1
	}
	for n, x := range crashes {
		if n%every != 0 && n != len(crashes)-1 {
			continue
		}
		c := clock.NewFrozen(e.clock.Now())
		db, err := engine.Open(engine.Options{Dir: "data", FS: x.FS, Now: c.Now, KeepDeleted: day, MemTableBytes: faultdisk.MemTableBytes})
		if err != nil {
			t.Fatalf("crash %d: %v", n, err)
		}
		var api, kept []string
		for _, name := range dueNames(t, db) {
			if name, ok := strings.CutPrefix(name, "engine "); ok {
				kept = append(kept, name)
			} else if _, name, ok := strings.Cut(name, "/"); ok && !strings.Contains(name, "/tables/") {
				api = append(api, name)
			}
		}
		slices.Sort(api)
		if !slices.Equal(api, kept) {
			t.Errorf("crash %d: the API has %q, the engine %q", n, api, kept)
		}
		srv, err := New(Options{DB: db, Clock: c})
		if err != nil {
			t.Fatal(err)
		}
		if err := srv.RunDue(t.Context()); err != nil {
			t.Errorf("crash %d: %v", n, err)
		}
		if got := dueNames(t, db); !slices.Equal(got, want) {
			t.Errorf("crash %d: in the end\n%q, want\n%q", n, got, want)
		}
		again := &env{t: t, clock: c, db: db, srv: srv, data: e.data, admin: btapb.NewBigtableTableAdminClient(srv.Conn())}
		for _, b := range again.backups() {
			if err := db.Backups().Restore(t.Context(), b.GetName(), testInstance+"/tables/check", func(*engine.CatalogTx) error { return nil }); err != nil {
				t.Fatal(err)
			}
			s, err := db.Scan(t.Context(), testInstance+"/tables/check", engine.ScanOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !s.NextRow() || !s.NextCell() || string(s.Cell().Value) != "v" {
				t.Errorf("crash %d: backup %s has no row of\n%s", n, b.GetName(), rows)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := db.UpdateCatalog(t.Context(), func(tx *engine.CatalogTx) error { return tx.DeleteTable(testInstance + "/tables/check") }); err != nil {
				t.Fatal(err)
			}
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d crashes", len(crashes))
	if len(crashes) < 20 {
		t.Errorf("only %d crashes", len(crashes))
	}
}
