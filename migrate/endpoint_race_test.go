package migrate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// itemOfA reports whether the table holds item a of plainStates.
func itemOfA(t *testing.T, conn grpc.ClientConnInterface) bool {
	t.Helper()
	return strings.Contains("\n"+tableText(t, conn, "t"), "\n"+`a\x00\x01x`)
}

// An endpoint that checked for a load just before one came still notes the deletion of one of
// its items: the load waits, after its own note, for the endpoint's interval of checks. It does
// not wait if no endpoint can have checked, or it has no clock.
func TestCatchUp_LookedBeforeTheLoad(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}
	o.knobs = table.Knobs{Batch: 1}
	for name, write := range map[string]struct{ operation, body string }{
		"DeleteItem":         {"DeleteItem", deleteOfA},
		"TransactWriteItems": {"TransactWriteItems", `{"TransactItems":[{"Delete":` + deleteOfA + `}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newBigtableServer(t)
			now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
			endpoint := endpointOver(t, server, &now)
			callEndpoint(t, endpoint, "DeleteItem", deleteOfA) // it has checked: there is no load
			var waited time.Duration
			o := o
			o.Sleep = func(_ context.Context, d time.Duration) error {
				if text := tableText(t, server, "t"); text != "" {
					t.Errorf("rows are written before the wait:\n%s", text)
				}
				waited += d
				now = now.Add(d)
				return nil
			}
			conn := &failing{ClientConnInterface: server}
			deleted := false
			conn.fail = func(_ int, _ *btpb.MutateRowsRequest) error {
				if !deleted && itemOfA(t, server) {
					deleted = true
					callEndpoint(t, endpoint, write.operation, write.body)
				}
				return nil
			}
			if _, err := Load(t.Context(), conn, exports(t, true, before), LoadOptions{Common: o}); err != nil {
				t.Fatal(err)
			}
			if !deleted || itemOfA(t, server) {
				t.Fatalf("the item is not deleted within the load:\n%s", tableText(t, server, "t"))
			}
			if waited < 2*loadnote.MaxAge {
				t.Errorf("the load waits %v, want at least %v", waited, 2*loadnote.MaxAge)
			}
			_, err := Load(t.Context(), server, exports(t, true, before, after), LoadOptions{Common: o})
			WantDamage(t, err, source.TargetWritten, "Bigtable table t: a DynamoDB endpoint has written to it since the load")
		})
	}
	t.Run("no wait", func(t *testing.T) {
		t.Parallel()
		conn, waits := newBigtableServer(t), 0
		o := o
		o.Sleep = func(context.Context, time.Duration) error { waits++; return nil }
		for _, states := range [][]itemsAt{{before}, {before}, {before, after}, {before, after}} {
			if _, err := Load(t.Context(), conn, exports(t, true, states...), LoadOptions{Common: o}); err != nil {
				t.Fatal(err)
			}
		}
		if waits > 0 {
			t.Errorf("loads of a table that they made themselves wait %d times", waits)
		}
	})
}

// A write that an endpoint began before it could know of a load, and that ends after it, is
// noted before it is acknowledged.
func TestCatchUp_DoneAfterTheLoad(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}
	for name, write := range map[string]struct{ operation, body string }{
		"DeleteItem":         {"DeleteItem", deleteOfA},
		"TransactWriteItems": {"TransactWriteItems", `{"TransactItems":[{"Delete":` + deleteOfA + `}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
			conn := &checkWrites{ClientConnInterface: newBigtableServer(t)}
			endpoint := endpointOver(t, conn, &now)
			callEndpoint(t, endpoint, "PutItem", `{"TableName":"Tee","Item":{"PK":{"S":"a"},"SK":{"S":"x"},"n":{"N":"0"}}}`)
			on := 0
			conn.fail = func(table string) error { // the last write to the item is pending
				if table != "t" {
					return nil
				}
				if on++; on == map[string]int{"DeleteItem": 1, "TransactWriteItems": 2}[write.operation] {
					now = now.Add(time.Minute)
					_, err := Load(t.Context(), conn.ClientConnInterface, exports(t, true, before), LoadOptions{Common: o})
					return err
				}
				return nil
			}
			callEndpoint(t, endpoint, write.operation, write.body)
			conn.fail = nil
			if text := tableText(t, conn, layout.SchemaTable); !strings.Contains(text, loadnote.WrittenColumn) || itemOfA(t, conn) {
				t.Errorf("an acknowledged delete behind a load is not noted:\n%s%s", text, tableText(t, conn, "t"))
			}
			_, err := Load(t.Context(), conn, exports(t, true, before, after), LoadOptions{Common: o})
			WantDamage(t, err, source.TargetWritten, "Bigtable table t: a DynamoDB endpoint has ")
		})
	}
}

// An endpoint that opens while a load creates its table has checked earlier: it checks again
// before its first write.
func TestCatchUp_OpenedWithinTheLoad(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	conn := &checkWrites{ClientConnInterface: newBigtableServer(t)}
	loads := 0
	conn.fail = func(table string) error {
		if loads++; loads > 1 {
			return nil
		}
		_, err := Load(t.Context(), conn.ClientConnInterface, exports(t, true, before), LoadOptions{Common: o})
		return err
	}
	endpoint := endpointOver(t, conn, &now)
	if loads == 0 {
		t.Fatal("the endpoint defines no table as it opens")
	}
	callEndpoint(t, endpoint, "DeleteItem", deleteOfA)
	_, err := Load(t.Context(), conn, exports(t, true, before, after), LoadOptions{Common: o})
	WantDamage(t, err, source.TargetWritten, fmt.Sprintf("Bigtable table %s: a DynamoDB endpoint has written to it since the load", "t"))
}
