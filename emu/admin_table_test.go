package emu

import (
	"fmt"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/emu/internal/limits"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// TestTableCount fills an instance with tables: creating or undeleting another one fails unless
// limits are off.
func TestTableCount(t *testing.T) {
	t.Parallel()
	for _, mode := range []Limits{StrictLimits, NoLimits} {
		e := newEnvWith(t, Options{Limits: mode}, engine.Options{})
		e.createTable("t")
		if _, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: testTable}); err != nil {
			t.Fatal(err)
		}
		err := e.db.UpdateCatalog(e.ctx(), func(tx *engine.CatalogTx) error {
			for i := range limits.MaxTablesPerInstance {
				if _, err := tx.CreateTable(engine.Table{Name: fmt.Sprint(resname.TablesOf(testInstance), i)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := codes.ResourceExhausted
		if mode == NoLimits {
			want = codes.OK
		}
		_, err = e.admin.UndeleteTable(e.ctx(), &btapb.UndeleteTableRequest{Name: testTable})
		wantCode(t, err, want)
		_, err = e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "another"})
		wantCode(t, err, want)
	}
}
