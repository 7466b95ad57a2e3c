package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// recordsOf returns the kinds and keys of the records in a table's log below the floor.
func recordsOf(t *testing.T, s *Store, def *tabledef.Table) (all []string) {
	t.Helper()
	floor, err := s.LogFloor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return recordsBelow(t, s, def, floor)
}

// recordsBelow acts like recordsOf for the records below a sequence number.
func recordsBelow(t *testing.T, s *Store, def *tabledef.Table, before uint64) (all []string) {
	t.Helper()
	for r, err := range s.logs.ReadSlots(t.Context(), def.Log, 0, before) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(r.Kind, " ", string(r.Key.JSON)))
	}
	return all
}

// twiceConn delivers each conditional write of a table twice, and returns the result of the
// second delivery.
type twiceConn struct {
	grpc.ClientConnInterface
	table string
}

func (c *twiceConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	if m, ok := req.(*btpb.CheckAndMutateRowRequest); ok && c.table != "" && strings.HasSuffix(m.GetTableName(), "/"+c.table) {
		first := proto.Clone(resp.(proto.Message))
		if err := c.ClientConnInterface.Invoke(ctx, method, proto.Clone(m), first, opts...); err != nil {
			return err
		}
	}
	return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
}

// A write that arrives twice is one change, with one record, which is in the log when the write
// returns.
func TestLog_ArrivesTwice(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(ctx context.Context, s *Store, def *tabledef.Table) error{
		"one item": func(ctx context.Context, s *Store, def *tabledef.Table) error {
			if err := put(ctx, s, def, account("b", 1)); err != nil {
				return err
			}
			old, _, err := s.WriteItem(ctx, def, keyAttrs(def, account("a", 0)), func(attr.Item) (attr.Item, error) { return nil, nil }, Hint{})
			if err == nil && sumOf(old) != 100 {
				err = fmt.Errorf("the item that was deleted is said to have been %v", old)
			}
			return err
		},
		"several": func(ctx context.Context, s *Store, def *tabledef.Table) error {
			return s.WriteItems(ctx, def, []Replacement{
				{Key: keyAttrs(def, account("b", 0)), Item: account("b", 1)}, {Key: keyAttrs(def, account("a", 0))},
			})
		},
		"transaction": func(ctx context.Context, s *Store, def *tabledef.Table) error {
			ok, _, err := s.Transact(ctx, RequestToken{}, []*Change{
				replaceBy(def, keyAttrs(def, account("b", 0)), account("b", 1)), replaceBy(def, keyAttrs(def, account("a", 0)), nil),
			})
			if err == nil && !ok {
				err = ErrContended
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := clock.NewFrozen(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
			conn := &twiceConn{ClientConnInterface: peer.Bigtable(t, now)}
			o := testOptions(conn)
			o.Now = now.Now
			s := openStore(t, o)
			newTable(t, s, tabledef.Table{Name: "tab", Key: testSchemas["SN"]})
			def := recoverable(t, s, "tab")
			if err := put(t.Context(), s, def, account("a", 100)); err != nil {
				t.Fatal(err)
			}
			conn.table = def.BigtableTable
			if err := write(t.Context(), s, def); err != nil {
				t.Fatal(err)
			}
			conn.table = ""
			got := recordsOf(t, s, def)
			slices.Sort(got)
			want := []string{`INSERT {"p":{"S":"a"},"s":{"N":"0"}}`, `INSERT {"p":{"S":"b"},"s":{"N":"0"}}`, `REMOVE {"p":{"S":"a"},"s":{"N":"0"}}`}
			if !slices.Equal(got, want) {
				t.Errorf("the log has %q", got)
			}
		})
	}
}

// A write of a catalog row that its version guards takes effect once, even if it arrives twice.
func TestCatalog_ArrivesTwice(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	conn := &twiceConn{ClientConnInterface: peer.Bigtable(t, now)}
	o := testOptions(conn)
	o.Now = now.Now
	s := openStore(t, o)
	conn.table = CatalogTable
	newTable(t, s, tabledef.Table{Name: "tab", Key: testSchemas["SN"]})
	def, err := s.UpdateTable(t.Context(), "tab", func(def *tabledef.Table) error {
		def.DeletionProtection = true
		return nil
	})
	if err != nil || !def.DeletionProtection {
		t.Fatalf("%v, %v", def, err)
	}
	token := RequestToken{Token: "again", Hash: [32]byte{1}}
	for i := range 2 { // the second request is a replay
		ok, _, err := s.Transact(t.Context(), token, []*Change{replaceBy(def, keyAttrs(def, account("a", 0)), account("a", int64(i)))})
		if err != nil || !ok {
			t.Errorf("%v, %v", ok, err)
		}
	}
	if got, err := collect(s.Scan(t.Context(), def, nil, 0, 2, nil)); err != nil || len(got) > 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// severalStores opens one store over the same Bigtable for each skew, which is added to its clock,
// and creates a table with a log. All stores know each other.
func severalStores(t *testing.T, skews ...time.Duration) (stores []*Store, def *tabledef.Table, conns []*intercept.Conn, now, wall *clock.Clock) {
	t.Helper()
	now = clock.NewFrozen(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	wall = clock.NewFrozen(now.Now())
	shared := peer.Bigtable(t, now)
	for i, skew := range skews {
		conns = append(conns, intercept.New(shared, nil))
		o := testOptions(conns[i])
		o.Now, o.Wall, o.Rand = func() time.Time { return now.Now().Add(skew) }, wall, rand.NewChaCha8([32]byte{byte(i)})
		stores = append(stores, openStore(t, o))
	}
	newTable(t, stores[0], tabledef.Table{Name: "tab", Key: testSchemas["SN"]})
	def = recoverable(t, stores[0], "tab")
	for range 2 {
		for i, s := range stores {
			if err := put(t.Context(), s, def, account(fmt.Sprint("first", i), 1)); err != nil {
				t.Fatal(err)
			}
			if err := s.logs.Renew(t.Context(), true); err != nil {
				t.Fatal(err)
			}
		}
	}
	return stores, def, conns, now, wall
}

// If a process is considered dead, but renews its registration before another process removes it,
// the registration stays, so that no process reads past its pending writes.
func TestLog_SlowNotDead(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	stores, def, conns, now, wall := severalStores(t, 0, 10*time.Second)
	slow, other := stores[0], stores[1]
	hangs := errors.New("it is stopped")
	conns[0].Before(func(context.Context, any) error { return hangs })
	now.Advance(5 * time.Second)
	var back atomic.Bool
	conns[1].Before(func(_ context.Context, req any) error {
		m, ok := req.(*btpb.CheckAndMutateRowRequest)
		if !ok || !strings.HasPrefix(string(m.GetRowKey()), logRowPrefix+"0") || len(m.GetTrueMutations()) != 1 ||
			m.GetTrueMutations()[0].GetDeleteFromRow() == nil || back.Swap(true) {
			return nil
		}
		conns[0].Before(nil)
		return slow.logs.Renew(ctx, true)
	})
	for range 60 {
		wall.Advance(time.Second)
		if _, err := other.LogFloor(ctx); err != nil {
			t.Fatal(err)
		}
		if back.Load() {
			break
		}
	}
	for i := range 5 {
		if err := put(ctx, other, def, account(fmt.Sprint("others", i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	conns[0].Before(func(_ context.Context, req any) error {
		if m, ok := req.(*btpb.MutateRowRequest); ok && strings.HasSuffix(m.GetTableName(), "/"+def.Log.Table) {
			return errors.New("it appends later")
		}
		return nil
	})
	if err := put(ctx, slow, def, account("late", 1)); err != nil {
		t.Fatal(err)
	}
	floor, err := other.LogFloor(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conns[0].Before(nil)
	before := len(recordsBelow(t, other, def, floor))
	recordsOf(t, slow, def)
	if after := recordsBelow(t, other, def, floor); !back.Load() || len(after) != before {
		t.Errorf("taken for dead: %v; %d of %d records below the floor were there: %q", back.Load(), before, len(after), after)
	}
}

// A record cell stays as long as other processes may use numbers below it, however often its row
// is recovered: the next writer of the item needs the cell.
func TestLog_CellStays(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	stores, def, _, _, _ := severalStores(t, 0, 10*time.Second)
	behind, ahead := stores[0], stores[1]
	for i := range 5 {
		if err := put(ctx, ahead, def, account(fmt.Sprint("other", i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(ctx, ahead, def, account("hot", 1)); err != nil {
		t.Fatal(err)
	}
	c, err := ahead.tables.cat.lookup(ctx, "tab")
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.layout.slot(keyAttrs(def, account("hot", 0)))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := ahead.writer.outbox.recoverAll(ctx, "tab", p.row); err != nil {
			t.Fatal(err)
		}
		if err := ahead.logs.Clear(ctx, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(ctx, behind, def, account("hot", 2)); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, r := range recordsBelow(t, ahead, def, math.MaxUint64) {
		if kind, key, _ := strings.Cut(r, " "); strings.Contains(key, "hot") {
			kinds = append(kinds, kind)
		}
	}
	if got := strings.Join(kinds, ", "); got != "INSERT, MODIFY" {
		t.Errorf("the changes of the item come as %s", got)
	}
}

// The result of Logs.Beyond is also above the records of a removed process.
func TestLog_BeyondTheGone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	stores, def, _, _, _ := severalStores(t, 0, 10*time.Second)
	for i := range 5 {
		if err := put(ctx, stores[1], def, account(fmt.Sprint("ahead", i), 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := stores[1].Close(); err != nil {
		t.Fatal(err)
	}
	above, err := stores[0].logs.Beyond(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(recordsBelow(t, stores[0], def, above)); n != 7 {
		t.Errorf("%d of 7 records are below", n)
	}
	for range 2 { // all records below it are readable
		if floor, err := stores[0].LogFloor(ctx); err != nil || floor < above {
			t.Errorf("the floor is %d, %v; %d was promised", floor, err, above)
		}
	}
}
