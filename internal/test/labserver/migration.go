package labserver

import (
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
)

// WriteState writes a row of the table _migration_state into the instance of a lab. It creates
// the table if it does not exist.
func WriteState[V ms.Value](t *testing.T, l *lab.Lab, family string, row []byte, v V) {
	t.Helper()
	o := l.Options()
	c := btclient.New(l.Bigtable().Conn(), o.Project, o.Instance, btclient.Options{})
	value, err := ms.Encode(v)
	if err == nil {
		_, err = c.EnsureTable(t.Context(), ms.Table, ms.Families(), nil)
	}
	if err == nil {
		err = c.MutateRow(t.Context(), ms.Table, row, []*btpb.Mutation{btclient.SetCell(family, []byte(ms.Column), 1000, value)})
	}
	if err != nil {
		t.Fatal(err)
	}
}
