package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store/marks"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/inproc"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/property"
)

// replaceBy returns a change that puts an item, or deletes it if item is nil, regardless of the
// old item.
func replaceBy(t *tabledef.Table, key, item attr.Item) *Change {
	return &Change{Table: t, Key: key, Fn: func(attr.Item) (attr.Item, error) { return item, nil }}
}

// checkOnly returns a change that only checks the item with fn.
func checkOnly(t *tabledef.Table, key attr.Item, fn func(old attr.Item) error) *Change {
	return &Change{Table: t, Key: key, Check: true, Fn: func(old attr.Item) (attr.Item, error) { return old, fn(old) }}
}

func account(id string, sum int64) attr.Item {
	return attr.Item{"p": attr.String(id), "s": attr.Int(0), "g": attr.String("x"), "h": attr.Int(sum)}
}

func sumOf(item attr.Item) int64 {
	if item == nil {
		return 0
	}
	n, err := strconv.ParseInt(item["h"].Str, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

var errTooPoor = errors.New("not enough")

// transfer returns changes that move an amount between accounts.
func transfer(t *tabledef.Table, from, to string, amount int64) []*Change {
	move := func(id string, by int64) *Change {
		key := keyAttrs(t, account(id, 0))
		return &Change{Table: t, Key: key, Fn: func(old attr.Item) (attr.Item, error) {
			if sumOf(old)+by < 0 {
				return nil, errTooPoor
			}
			return account(id, sumOf(old)+by), nil
		}}
	}
	return []*Change{move(from, -amount), move(to, amount)}
}

// checkNoIntents fails the test if a table has an intent or an outbox cell, or the catalog has a
// transaction.
func checkNoIntents(tb testing.TB, s *Store, tables ...string) {
	tb.Helper()
	s.Wait() // for the removal of records
	for _, table := range tables {
		for row, err := range s.bt.Read(tb.Context(), btclient.Read{Table: table, Spans: []layout.Span{{}}, Filter: btclient.OfFamily(lens.FamilyState)}) {
			if err != nil {
				tb.Fatal(err)
			}
			for _, c := range row.Cells {
				if c.Qualifier[0] != stateQualifier || c.Value[0] != stateLive && c.Value[0] != stateEntering {
					tb.Errorf("row %q of table %s has the cell %q=%q", row.Key, table, c.Qualifier, c.Value)
				}
			}
		}
	}
	for _, row := range dump(tb, s, s.o.Catalog) {
		if strings.HasPrefix(row, `"`+transactionRowPrefix) {
			tb.Errorf("the catalog has %s", row)
		}
	}
}

// Transactions match a model, in a table with indexes, a table without any, and a table whose
// items share rows.
func TestTransact_Model(t *testing.T) {
	t.Parallel()
	for name, start := range backendsAbreast {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			o := testOptions(start(t), loadMapping(t, videoMapping))
			o.Concurrency = lanesOf[name]
			s := openStore(t, o)
			videos, err := s.Table(ctx, "Videos")
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			rapid.Check(t, property.First(10, func(r *rapid.T) {
				n++
				indexed := newTable(t, s, indexedTable("indexed"+strconv.Itoa(n)))
				plain := newTable(t, s, tabledef.Table{Name: "plain" + strconv.Itoa(n), Key: testSchemas["NN"]})
				if err := empty(ctx, s, videos); err != nil {
					r.Fatal(err)
				}
				tables := []*tabledef.Table{indexed, plain, videos}
				models := map[*tabledef.Table]model{indexed: {}, plain: {}, videos: {}}
				genChange := rapid.Custom(func(r *rapid.T) *Change {
					def := rapid.SampledFrom(tables).Draw(r, "table")
					var item attr.Item
					switch def {
					case indexed:
						item = genIndexedItem(r, attr.Item{"p": attr.String("p"), "s": attr.Int(int64(rapid.IntRange(0, 3).Draw(r, "s")))})
					case plain:
						item = genItem(r, attr.Item{"p": attr.Int(1), "s": attr.Int(int64(rapid.IntRange(0, 3).Draw(r, "s")))})
					default:
						item = genVideoItem(r)
					}
					key := keyAttrs(def, item)
					switch rapid.IntRange(0, 5).Draw(r, "action") {
					case 0:
						return replaceBy(def, key, nil)
					case 1:
						return checkOnly(def, key, func(old attr.Item) error {
							if old == nil {
								return errTooPoor
							}
							return nil
						})
					case 2:
						return &Change{Table: def, Key: key, Fn: func(old attr.Item) (attr.Item, error) {
							if old != nil {
								return nil, errTooPoor
							}
							return item, nil
						}}
					}
					return replaceBy(def, key, item)
				})
				for range rapid.IntRange(1, 4).Draw(r, "steps") {
					changes := rapid.SliceOfNDistinct(genChange, 1, 5, func(ch *Change) string {
						return ch.Table.Name + keyText(ch.Key)
					}).Draw(r, "changes")
					failing := make([]bool, len(changes))
					want := true
					for i, ch := range changes {
						_, err := ch.Fn(models[ch.Table][keyText(ch.Key)])
						failing[i], want = err != nil, want && err == nil
					}
					committed, _, err := s.Transact(ctx, RequestToken{}, changes)
					if err != nil || committed != want {
						r.Fatalf("transact: %v, %v; want %v", committed, err, want)
					}
					for i, ch := range changes {
						if failing[i] != (ch.Err != nil) {
							r.Fatalf("change %d: %v, want a failure: %v", i, ch.Err, failing[i])
						}
						m := models[ch.Table]
						if !committed || ch.Check {
							continue
						}
						if !attr.EqualItems(ch.Old, m[keyText(ch.Key)]) {
							r.Fatalf("change %d: old item %v, want %v", i, ch.Old, m[keyText(ch.Key)])
						}
						if m[keyText(ch.Key)] = ch.Updated; ch.Updated == nil {
							delete(m, keyText(ch.Key))
						}
					}
				}
				for _, def := range tables {
					got, err := collect(s.Scan(ctx, def, nil, 0, 1, nil))
					if err != nil {
						r.Fatal(err)
					}
					slices.SortFunc(got, byKey(def.Key))
					if d := diffItems(models[def].sorted(def.Key, func(attr.Item) bool { return true }), got); d != "" {
						r.Fatalf("table %s (-want +got):\n%s", def.Name, d)
					}
					if err := checkIndexes(ctx, s, def, models[def]); err != nil {
						r.Fatal(err)
					}
					checkNoIntents(t, s, def.BigtableTable)
					if err := empty(ctx, s, def); err != nil {
						r.Fatal(err)
					}
					if rows := dump(t, s, def.BigtableTable); len(rows) > 0 {
						r.Fatalf("rows are left behind: %v", rows)
					}
				}
				for _, def := range tables[:2] {
					if _, err := s.DeleteTable(ctx, def.Name); err != nil {
						r.Fatal(err)
					}
				}
			}))
		})
	}
}

// fate is the outcome of the last write of a process that ends.
type fate string

const (
	fateNever fate = "never" // the write does not happen
	fateDone  fate = "done"  // the write happens, and its response is lost
	fateLater fate = "later" // it happens after other processes' writes
	fateAgain fate = "again" // it happens, and again after other processes' writes
)

// lostConn is the connection of a process that ends after left writes. The next write has the
// given fate, and all later writes fail.
type lostConn struct {
	grpc.ClientConnInterface
	mu    sync.Mutex
	left  int // writes until the end; negative: no end
	fate  fate
	lost  bool
	onWay func(context.Context) error // executes the delayed write
}

func (c *lostConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	c.mu.Lock()
	lost, last := c.lost, c.left == 0
	if c.left > 0 {
		c.left--
	} else if last {
		c.lost = true
	}
	c.mu.Unlock()
	if !lost && !last {
		return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
	}
	if last && !lost {
		if c.fate == fateDone || c.fate == fateAgain {
			if err := c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...); err != nil {
				return err
			}
		}
		if c.fate == fateLater || c.fate == fateAgain {
			sent, answer := proto.Clone(req.(proto.Message)), proto.Clone(resp.(proto.Message))
			c.onWay = func(ctx context.Context) error {
				return c.ClientConnInterface.Invoke(ctx, method, sent, answer, opts...)
			}
		}
	}
	return status.Error(codes.Unavailable, "the process has ended")
}

// arrive executes the delayed write, if any. The write may fail, for example on a deleted table,
// but no process gets the error.
func (c *lostConn) arrive(ctx context.Context) {
	if c.onWay != nil {
		_ = c.onWay(ctx)
	}
}

// crashSteps is one more than the number of writes that crashTransaction makes.
const crashSteps = 27

// nearLostConn is a lostConn to a Bigtable in this process, which makes calls together.
type nearLostConn struct {
	*lostConn
	near interface {
		ReadRows(ctx context.Context, req *btpb.ReadRowsRequest, rows cells.RowSink) (btpb.Bigtable_ReadRowsClient, io.Closer, error)
	}
}

func (c nearLostConn) ReadRows(ctx context.Context, req *btpb.ReadRowsRequest, rows cells.RowSink) (btpb.Bigtable_ReadRowsClient, io.Closer, error) {
	return c.near.ReadRows(ctx, req, rows)
}

// CheckAndMutateRows makes the calls one by one, so that the process can end between them.
func (c nearLostConn) CheckAndMutateRows(ctx context.Context, reqs []*btpb.CheckAndMutateRowRequest, matched []bool, errs []error) bool {
	for i, req := range reqs {
		resp := &btpb.CheckAndMutateRowResponse{}
		errs[i] = c.Invoke(ctx, btpb.Bigtable_CheckAndMutateRow_FullMethodName, req, resp)
		matched[i] = resp.GetPredicateMatched()
	}
	return true
}

// If a process ends at any step of a transaction, all changes happen or none, whatever comes
// next: another process, or a reader or a writer of an item, at the same moment or later.
func TestTransact_Crash(t *testing.T) {
	t.Parallel()
	fates := []fate{fateNever, fateDone, fateLater, fateAgain}
	all := long.Enabled()
	cases := maps.Clone(backends)
	cases["together"] = cases["emu"]
	for name, start := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := start(t)
			near, isNear := conn.(*inproc.Channel)
			if name == "together" && !isNear {
				t.Skip("the Bigtable is in another process")
			}
			nexts := []string{"start", "read", "write", "timer", "snapshot"}
			if name == "bttest" {
				nexts = nexts[:1] // over a network, once
			}
			for n, next := range nexts {
				for step := range crashSteps {
					if !all && name != "emu" && (step+n)%3 != 0 {
						continue // the others have each fate too, in turn
					}
					for i, last := range fates {
						if !all && i != (step+n)%len(fates) {
							continue // try each step with each fate, but not with each next
						}
						t.Run(fmt.Sprintf("%s/%d/%s", next, step, last), func(t *testing.T) {
							t.Parallel()
							lost := &lostConn{ClientConnInterface: conn, left: -1, fate: last}
							var ending endingConn = lost
							if name == "together" {
								ending = nearLostConn{lost, near}
							}
							crashTransaction(t, conn, ending, next, fmt.Sprintf("%s-%d-%s", next, step, last), step, step == crashSteps-1)
						})
					}
				}
			}
		})
	}
}

// endingConn is the connection of a process that ends.
type endingConn interface {
	grpc.ClientConnInterface
	end(step int)                  // makes the process end at that step, counted from now
	arrive(context.Context)        // executes a delayed write after the end
	change(o Options) (of Options) // returns the options of the process
}

func (c *lostConn) change(o Options) Options { return o }

func (c *lostConn) end(step int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = step
}

func crashTransaction(t *testing.T, conn grpc.ClientConnInterface, lost endingConn, next, instance string, step int, whole bool) {
	t.Helper()
	ctx := t.Context()
	now := clock.NewFrozen(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	o := lost.change(testOptions(lost))
	o.Now = now.Now
	o.Instance = instance
	s, err := Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // its process has ended
	spec := indexedTable("crash")
	spec.Indexes = spec.Indexes[:1]
	def := newTable(t, s, spec)
	for _, item := range []attr.Item{account("a", 100), account("b", 5), account("gone", 1)} {
		if err := put(ctx, s, def, item); err != nil {
			t.Fatal(err)
		}
	}
	o.Conn = conn
	other := s // opened before the crash, so that it has not examined all records
	if next != "start" {
		other = openStore(t, o)
	}
	changes := append(transfer(def, "a", "b", 30),
		replaceBy(def, keyAttrs(def, account("gone", 0)), nil),
		replaceBy(def, keyAttrs(def, account("new", 0)), account("new", 7)),
		checkOnly(def, keyAttrs(def, account("none", 0)), func(attr.Item) error { return nil }))
	req := RequestToken{Token: "token", Hash: [32]byte{1}}
	lost.end(step)
	committed, _, err := s.Transact(ctx, req, changes)
	if whole && (err != nil || !committed) {
		t.Errorf("the transaction has more than %d steps: %v", step, err)
	}

	before := model{}
	for _, item := range []attr.Item{account("a", 100), account("b", 5), account("gone", 1)} {
		before[keyText(keyAttrs(def, item))] = item
	}
	after := model{}
	for _, item := range []attr.Item{account("a", 70), account("b", 35), account("new", 7)} {
		after[keyText(keyAttrs(def, item))] = item
	}
	keys := slices.Collect(maps.Values(before))
	keys = append(keys, account("new", 0), account("none", 0))
	for i := range keys {
		keys[i] = keyAttrs(def, keys[i])
	}
	if next != "start" {
		// Pending transactions are valid until their timeout.
		now.Advance(transactionTimeout)
	}
	switch next {
	case "start":
		other = openStore(t, o)
	case "timer":
		if err := other.recoverTransactions(ctx, false); err != nil {
			t.Fatal(err)
		}
	case "write":
		for _, key := range keys {
			_, _, err := other.WriteItem(ctx, def, key, func(old attr.Item) (attr.Item, error) { return old, nil }, Hint{})
			if err != nil {
				t.Fatal(err)
			}
		}
	case "snapshot":
		var reads []*ItemRead
		for _, key := range keys {
			reads = append(reads, &ItemRead{Table: def, Key: key})
		}
		if ok, err := other.Snapshot(ctx, reads); !ok || err != nil {
			t.Fatalf("snapshot: %v, %v", ok, err)
		}
	}
	lost.arrive(ctx)
	var items []attr.Item
	got := model{}
	for _, key := range keys {
		item, err := other.GetItem(ctx, def, key)
		if err != nil {
			t.Fatal(err)
		}
		if item != nil {
			items, got[keyText(key)] = append(items, item), item
		}
	}
	want := before
	if sumOf(got[keyText(keys[slices.IndexFunc(keys, func(k attr.Item) bool { return k["p"].Str == "a" })])]) == 70 {
		want = after
	}
	all := func(attr.Item) bool { return true }
	if d := diffItems(want.sorted(def.Key, all), got.sorted(def.Key, all)); d != "" {
		t.Errorf("neither all nor nothing (-want +got):\n%s", d)
	}
	if committed && len(want) > 0 && sumOf(want[keyText(keyAttrs(def, account("b", 0)))]) != 35 {
		t.Errorf("committed, but not done: %v, %v", texts(items), err)
	}
	if scanned, err := collect(other.Scan(ctx, def, nil, 0, 1, nil)); err != nil || len(scanned) != len(want) {
		t.Errorf("scan: %v, %v", texts(scanned), err)
	}
	// A start or the timer removes the remaining records and tokens.
	now.Advance(transactionTimeout)
	if err := other.recoverTransactions(ctx, false); err != nil {
		t.Fatal(err)
	}
	checkNoIntents(t, other, def.BigtableTable)
	if err := checkIndexes(ctx, other, def, want); err != nil {
		t.Error(err)
	}
	// The same request is now recognized if it was committed, and otherwise executed.
	again := append(transfer(def, "a", "b", 30),
		replaceBy(def, keyAttrs(def, account("gone", 0)), nil),
		replaceBy(def, keyAttrs(def, account("new", 0)), account("new", 7)))
	ok, replayed, err := other.Transact(ctx, req, again)
	if done := sumOf(want[keyText(keyAttrs(def, account("a", 0)))]) == 70; err != nil || !ok || replayed != done {
		t.Errorf("the same request again: %v, %v, %v", ok, replayed, err)
	}
	for _, ch := range again { // whichever process finished the first run
		key := keyText(ch.Key)
		if larger := max(before[key].Size(), after[key].Size()); replayed && ch.ImageBytes != larger {
			t.Errorf("%v: a replay is of an image of %d bytes, want %d", ch.Key, ch.ImageBytes, larger)
		}
	}
	if err := checkIndexes(ctx, other, def, after); err != nil {
		t.Error(err)
	}
}

// againConn delivers the write number copied a second time, after the write number at, and fails
// all later writes.
type againConn struct {
	grpc.ClientConnInterface
	copied, at int
	writes     int
	send       func(context.Context) error
}

func (c *againConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	n := c.writes
	c.writes++
	if c.at >= 0 && n > c.at {
		return status.Error(codes.Unavailable, "the process has ended")
	}
	if n == c.copied {
		sent, answer := proto.Clone(req.(proto.Message)), proto.Clone(resp.(proto.Message))
		c.send = func(ctx context.Context) error {
			return c.ClientConnInterface.Invoke(ctx, method, sent, answer, opts...)
		}
	}
	if err := c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...); err != nil || n != c.at {
		return err
	}
	return c.send(ctx)
}

// A write of a transaction arrives twice, the second time after any later write, and then the
// process ends. All changes happen or none, and acknowledged results hold.
func TestTransact_ArrivesAgain(t *testing.T) {
	t.Parallel()
	stride := 3
	if long.Enabled() {
		stride = 1
	}
	conn := backends["emu"](t)
	for copied := range crashSteps - 1 {
		t.Run(strconv.Itoa(copied), func(t *testing.T) {
			t.Parallel()
			for at := copied; at < crashSteps-1; at += stride {
				ctx := t.Context()
				c := &againConn{ClientConnInterface: conn, copied: -1, at: -1}
				now := clock.NewFrozen(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
				o := testOptions(c)
				o.Now, o.Instance = now.Now, fmt.Sprintf("again-%d-%d", copied, at)
				s := openStore(t, o)
				spec := indexedTable("again")
				spec.Indexes = spec.Indexes[:1]
				def := newTable(t, s, spec)
				for _, item := range []attr.Item{account("a", 100), account("gone", 1)} {
					if err := put(ctx, s, def, item); err != nil {
						t.Fatal(err)
					}
				}
				c.copied, c.at = c.writes+copied, c.writes+at
				changes := append(transfer(def, "a", "b", 30),
					replaceBy(def, keyAttrs(def, account("gone", 0)), nil),
					checkOnly(def, keyAttrs(def, account("none", 0)), func(attr.Item) error { return nil }))
				ok, _, _ := s.Transact(ctx, RequestToken{Token: "token"}, changes)
				c.copied, c.at = -1, -1
				now.Advance(transactionTimeout)
				s = openStore(t, o)
				if err := s.recoverTransactions(ctx, false); err != nil {
					t.Error(err)
				}
				item, err := s.GetItem(ctx, def, keyAttrs(def, account("a", 0)))
				if err != nil {
					t.Error(err)
				}
				after := []attr.Item{account("a", 70), account("b", 30)}
				if sumOf(item) == 100 && !ok {
					after = []attr.Item{account("a", 100), account("gone", 1)}
				}
				want := model{}
				for _, item := range after {
					want[keyText(keyAttrs(def, item))] = item
				}
				got, err := collect(s.Scan(ctx, def, nil, 0, 1, nil))
				if d := diffItems(want.sorted(def.Key, func(attr.Item) bool { return true }), got); d != "" || err != nil {
					t.Errorf("write %d again after write %d: %v (-want +got):\n%s", copied, at, err, d)
				}
				checkNoIntents(t, s, def.BigtableTable)
				if err := checkIndexes(ctx, s, def, want); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A process must not report a cancellation of a committed transaction, even if other processes
// finish it before the process gets the response.
func TestTransact_FinishedByOthers(t *testing.T) {
	t.Parallel()
	for _, expired := range []bool{false, true} {
		for _, answer := range []error{nil, status.Error(codes.Unavailable, "lost")} {
			t.Run(fmt.Sprintf("%v/%v", expired, answer), func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				c := &hookConn{ClientConnInterface: backends["emu"](t)}
				now := clock.NewFrozen(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
				o := testOptions(c)
				o.Now = now.Now
				s := openStore(t, o)
				def := newTable(t, s, indexedTable("finished"))
				if err := put(ctx, s, def, account("a", 50)); err != nil {
					t.Fatal(err)
				}
				c.committed = func() error {
					if expired {
						now.Advance(transactionTimeout)
					}
					openStore(t, o)
					return answer
				}
				changes := transfer(def, "a", "b", 20)
				ok, _, err := s.Transact(ctx, RequestToken{}, changes)
				if !ok && err == nil {
					t.Errorf("the transaction was canceled: %v, %v", changes[0].Err, changes[1].Err)
				}
				if ok == expired {
					t.Errorf("transact: %v, %v", ok, err)
				}
				now.Advance(transactionTimeout)
				if err := s.recoverTransactions(ctx, false); err != nil {
					t.Error(err)
				}
				want := model{}
				for _, item := range []attr.Item{account("a", 30), account("b", 20)} {
					want[keyText(keyAttrs(def, item))] = item
				}
				checkNoIntents(t, s, def.BigtableTable)
				if err := checkIndexes(ctx, s, def, want); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Fn of a change is called only once if its item stays unchanged.
func TestTransact_Asks(t *testing.T) {
	t.Parallel()
	s := openStore(t, testOptions(backends["emu"](t)))
	def := newTable(t, s, indexedTable("asks"))
	key := keyAttrs(def, account("a", 1))
	change, calls := replaceBy(def, key, account("a", 1)), 0
	change.Fn = func(attr.Item) (attr.Item, error) { calls++; return account("a", 1), nil }
	if ok, _, err := s.Transact(t.Context(), RequestToken{}, []*Change{change}); !ok || err != nil || calls != 1 {
		t.Error(ok, err, calls)
	}
}

// hookConn calls hook before the next change of a transaction's state, and committed after it. An
// error of committed replaces the response; if committed returns nil, the request is delivered
// again. Both are called once.
type hookConn struct {
	grpc.ClientConnInterface
	mu        sync.Mutex
	hook      func()
	committed func() error
}

func (c *hookConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	r, ok := req.(*btpb.CheckAndMutateRowRequest)
	if !ok || !strings.HasPrefix(string(r.GetRowKey()), transactionRowPrefix) || len(r.GetTrueMutations()) == 0 { // not a decision
		return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
	}
	c.mu.Lock()
	hook, committed := c.hook, c.committed
	c.hook, c.committed = nil, nil
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	err := c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
	if err == nil && committed != nil {
		if err = committed(); err == nil {
			err = c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
		}
	}
	return err
}

// While a transaction runs, its items read as before, and other writes of them fail. After its
// timeout, a writer aborts it and continues.
func TestTransact_Conflicts(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			c := &hookConn{ClientConnInterface: start(t)}
			now := clock.NewFrozen(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
			o := testOptions(c)
			o.Now = now.Now
			s := openStore(t, o)
			def := newTable(t, s, indexedTable("conflicts"))
			for _, id := range []string{"a", "b"} {
				if err := put(ctx, s, def, account(id, 50)); err != nil {
					t.Fatal(err)
				}
			}
			other := openStore(t, o)
			keyA, keyC := keyAttrs(def, account("a", 0)), keyAttrs(def, account("c", 0))
			req := RequestToken{Token: "token"}
			run := func(hook func()) (bool, []*Change) {
				c.mu.Lock()
				c.hook = hook
				c.mu.Unlock()
				changes := append(transfer(def, "a", "b", 10), replaceBy(def, keyC, nil))
				committed, _, err := s.Transact(ctx, req, changes)
				if err != nil {
					t.Error(err)
				}
				return committed, changes
			}
			committed, _ := run(func() {
				for _, st := range []*Store{s, other} {
					if item, err := st.GetItem(ctx, def, keyA); err != nil || sumOf(item) != 50 {
						t.Errorf("get: %v, %v", item, err)
					}
					cond := attr.KeyRange{Hash: attr.String("a")}
					if items, err := collect(st.Query(ctx, def, nil, cond, true, nil)); err != nil || len(items) != 1 || sumOf(items[0]) != 50 {
						t.Errorf("query: %v, %v", texts(items), err)
					}
					if items, err := getItems(ctx, st, def, []attr.Item{keyA, keyC}); err != nil || sumOf(items[0]) != 50 || items[1] != nil {
						t.Errorf("get of several: %v, %v", texts(items), err)
					}
					for _, err := range []error{
						put(ctx, st, def, account("a", 1)), put(ctx, st, def, account("c", 1)),
						remove(ctx, st, def, keyA), remove(ctx, st, def, keyC),
					} {
						if !errors.Is(err, ErrIntent) {
							t.Errorf("write: %v", err)
						}
					}
					changes := transfer(def, "b", "d", 1)
					if ok, _, err := st.Transact(ctx, RequestToken{}, changes); ok || err != nil || !errors.Is(changes[0].Err, ErrIntent) || changes[1].Err != nil {
						t.Errorf("transaction: %v, %v, %v", ok, err, changes[0].Err)
					}
					reads := []*ItemRead{{Table: def, Key: keyAttrs(def, account("d", 0))}, {Table: def, Key: keyA}}
					if ok, err := st.Snapshot(ctx, reads); ok || err != nil || !errors.Is(reads[1].Err, ErrIntent) {
						t.Errorf("snapshot: %v, %v", ok, err)
					}
					if _, _, err := st.Transact(ctx, req, transfer(def, "a", "b", 10)); !errors.Is(err, ErrTokenRunning) {
						t.Errorf("the same token: %v", err)
					}
				}
			})
			if !committed {
				t.Error("the transaction was canceled")
			}
			if err := put(ctx, other, def, account("c", 1)); err != nil {
				t.Errorf("write after the transaction: %v", err)
			}
			req.Token = "another"
			committed, changes := run(func() {
				now.Advance(transactionTimeout)
				if err := put(ctx, other, def, account("a", 1)); err != nil {
					t.Errorf("write after the time-out: %v", err)
				}
			})
			if committed || !errors.Is(changes[0].Err, ErrIntent) {
				t.Errorf("the transaction was committed after its time: %v", changes[0].Err)
			}
			want := model{}
			for _, item := range []attr.Item{account("a", 1), account("b", 60), account("c", 1)} {
				want[keyText(keyAttrs(def, item))] = item
			}
			checkNoIntents(t, s, def.BigtableTable)
			if err := checkIndexes(ctx, s, def, want); err != nil {
				t.Error(err)
			}

			// A token is remembered for ten minutes.
			req.Token = "token"
			mismatch := RequestToken{Token: "token", Hash: [32]byte{1}}
			if _, _, err := other.Transact(ctx, mismatch, transfer(def, "b", "a", 1)); !errors.Is(err, ErrTokenMismatch) {
				t.Errorf("the same token for another request: %v", err)
			}
			now.Advance(requestTokenAge)
			if ok, replayed, err := other.Transact(ctx, mismatch, transfer(def, "b", "a", 1)); !ok || replayed || err != nil {
				t.Errorf("a token after its time: %v, %v, %v", ok, replayed, err)
			}
		})
	}
}

// 32 writers run transfers, increments, and transfers into and out of absent items, through
// two stores. Sums are exact, snapshots are consistent, and the indexes match the items.
func TestTransact_Transfers(t *testing.T) {
	t.Parallel()
	for name, start := range backendsAbreast {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			o := testOptions(start(t))
			o.Concurrency = lanesOf[name]
			a := openStore(t, o)
			def := newTable(t, a, indexedTable("bank"))
			b := openStore(t, o)
			ids := []string{"0", "1", "2", "3", "4", "5", "6", "7"}
			var total int64
			for _, id := range ids {
				if err := put(ctx, a, def, account(id, 10)); err != nil {
					t.Fatal(err)
				}
				total += 10
			}
			rounds := 2
			switch {
			case long.Enabled():
				rounds = 3
			case name == "bttest":
				rounds = 1 // over a network
			}
			counter := attr.Item{"p": attr.String("counter"), "s": attr.Int(1)}
			var mu sync.Mutex
			counted, commits := int64(0), 0
			var wg sync.WaitGroup
			for w := range 32 {
				s, rng := a, rand.New(rand.NewPCG(2, uint64(w)))
				if w%2 == 1 {
					s = b
				}
				wg.Go(func() {
					for range rounds {
						from, to := rng.IntN(len(ids)), rng.IntN(len(ids)-1)
						if to >= from {
							to++
						}
						changes := transfer(def, ids[from], ids[to], rng.Int64N(8))
						// An account without money is deleted.
						for _, ch := range changes {
							fn := ch.Fn
							ch.Fn = func(old attr.Item) (attr.Item, error) {
								item, err := fn(old)
								if err == nil && sumOf(item) == 0 {
									item = nil
								}
								return item, err
							}
						}
						ok, _, err := s.Transact(ctx, RequestToken{}, changes)
						if err != nil {
							t.Error(err)
						}
						increment := func(old attr.Item) (attr.Item, error) {
							return attr.Item{"p": counter["p"], "s": counter["s"], "g": attr.String("c"), "h": attr.Int(sumOf(old) + 1)}, nil
						}
						_, _, err = s.WriteItem(ctx, def, counter, increment, Hint{})
						if err != nil && !errors.Is(err, ErrContended) {
							t.Error(err)
						}
						mu.Lock()
						if err == nil {
							counted++
						}
						if ok {
							commits++
						}
						mu.Unlock()
						var reads []*ItemRead
						for _, id := range ids {
							reads = append(reads, &ItemRead{Table: def, Key: keyAttrs(def, account(id, 0))})
						}
						ok, err = s.Snapshot(ctx, reads)
						if err != nil {
							t.Error(err)
						}
						var sum int64
						for _, r := range reads {
							sum += sumOf(r.Item)
						}
						if ok && sum != total {
							t.Errorf("a snapshot adds up to %d, want %d", sum, total)
						}
					}
				})
			}
			wg.Wait()
			if commits == 0 {
				t.Error("no transaction was committed")
			}
			m := model{}
			var sum int64
			for item, err := range decode(a.Scan(ctx, def, nil, 0, 1, nil)) {
				if err != nil {
					t.Fatal(err)
				}
				m[keyText(keyAttrs(def, item))] = item
				if item["p"].Str == "counter" {
					if sumOf(item) != counted {
						t.Errorf("the counter is %d, want %d", sumOf(item), counted)
					}
					continue
				}
				sum += sumOf(item)
			}
			if sum != total {
				t.Errorf("the accounts add up to %d, want %d", sum, total)
			}
			b.Wait()
			checkNoIntents(t, a, def.BigtableTable)
			if err := checkIndexes(ctx, b, def, m); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTransact_IndexFails commits a transaction whose index entries cannot be written, and cannot
// be postponed because too many rows lag. A reader of the index writes them after the lag.
func TestTransact_IndexFails(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	conn := intercept.New(backends["emu"](t), nil)
	now := clock.NewFrozen(testTime)
	o := testOptions(conn)
	o.Now, o.IndexLag = now.Now, time.Minute
	s := openStore(t, o)
	def := newTable(t, s, indexedTable("failing"))
	lagging := make([][]byte, marks.MaxLagging)
	for i := range lagging {
		lagging[i] = fmt.Append(nil, i)
	}
	others, err := s.marks.MarkRows(ctx, "another", lagging)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range others {
		s.marks.Unmark(m, false, nil)
	}
	item := attr.Item{"p": attr.String("p"), "s": attr.Int(1), "g": attr.String("g"), "h": attr.Int(2)}
	conn.Before(failIndexWrites(0))
	if ok, _, err := s.Transact(ctx, RequestToken{}, []*Change{replaceBy(def, keyAttrs(def, item), item)}); err != nil || !ok {
		t.Fatalf("committed: %v, %v", ok, err)
	}
	conn.Before(nil)
	now.Advance(2 * o.IndexLag)
	items, err := collect(s.Scan(ctx, def, def.Index("all"), 0, 1, nil))
	if err != nil || len(items) != 1 {
		t.Errorf("the index holds %v, %v, want the item", texts(items), err)
	}
	if err := s.marks.Forget(ctx, "another"); err != nil {
		t.Error(err)
	}
}

// If an index is created after an intent was placed and before it is carried out, the index has
// the item.
func TestTransact_NewIndex(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := &hookConn{ClientConnInterface: backends["emu"](t)}
	s := openStore(t, testOptions(c))
	spec := indexedTable("grown")
	later := spec.Indexes[0]
	spec.Indexes = nil
	def := newTable(t, s, spec)
	if err := put(ctx, s, def, account("a", 50)); err != nil {
		t.Fatal(err)
	}
	c.hook = func() {
		if _, err := s.UpdateTable(ctx, def.Name, func(d *tabledef.Table) error {
			d.Indexes = append(d.Indexes, later)
			return nil
		}); err != nil {
			t.Error(err)
		}
		s.Wait()
	}
	if ok, _, err := s.Transact(ctx, RequestToken{}, transfer(def, "a", "b", 20)); !ok || err != nil {
		t.Fatalf("transact: %v, %v", ok, err)
	}
	def, err := s.Table(ctx, def.Name)
	if err != nil {
		t.Fatal(err)
	}
	m := model{}
	for _, item := range []attr.Item{account("a", 30), account("b", 20)} {
		m[keyText(keyAttrs(def, item))] = item
	}
	if err := checkIndexes(ctx, s, def, m); err != nil || len(def.Indexes) != 1 {
		t.Error(err)
	}
}

// readHookConn calls hook before each read of a row by key. It splits a read of several rows into
// reads of one row.
type readHookConn struct {
	grpc.ClientConnInterface
	mu   sync.Mutex
	hook func(table string, key []byte)
}

func (c *readHookConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	open := func() (grpc.ClientStream, error) { return c.ClientConnInterface.NewStream(ctx, desc, method, opts...) }
	stream, err := open()
	return &hookedStream{ClientStream: stream, c: c, open: open}, err
}

type hookedStream struct {
	grpc.ClientStream // reads the current row
	c                 *readHookConn
	open              func() (grpc.ClientStream, error)
	rest              []*btpb.ReadRowsRequest
}

func (s *hookedStream) SendMsg(m any) error {
	r, ok := m.(*btpb.ReadRowsRequest)
	if !ok || len(r.GetRows().GetRowKeys()) == 0 {
		return s.ClientStream.SendMsg(m)
	}
	for _, key := range r.GetRows().GetRowKeys() {
		s.rest = append(s.rest, &btpb.ReadRowsRequest{
			TableName: r.GetTableName(), Filter: r.GetFilter(), Rows: &btpb.RowSet{RowKeys: [][]byte{key}},
		})
	}
	return s.sendNext()
}

func (s *hookedStream) sendNext() error {
	r := s.rest[0]
	s.rest = s.rest[1:]
	s.c.mu.Lock()
	hook := s.c.hook
	s.c.mu.Unlock()
	if hook != nil {
		hook(r.GetTableName(), r.GetRows().GetRowKeys()[0])
	}
	return s.ClientStream.SendMsg(r)
}

func (s *hookedStream) RecvMsg(m any) error {
	for {
		err := s.ClientStream.RecvMsg(m)
		if !errors.Is(err, io.EOF) || len(s.rest) == 0 {
			return err
		}
		if s.ClientStream, err = s.open(); err == nil {
			err = s.sendNext()
		}
		if err == nil {
			err = s.CloseSend()
		}
		if err != nil {
			return err
		}
	}
}

// An item is always in one of two places, but moves so that each read of a place finds it absent.
// No snapshot finds it in neither place.
func TestTransact_SnapshotOfAbsentItems(t *testing.T) {
	t.Parallel()
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			conn := start(t)
			c := &readHookConn{ClientConnInterface: conn}
			s := openStore(t, testOptions(c))
			def := newTable(t, s, tabledef.Table{Name: "places", Key: testSchemas["S"]})
			other := openStore(t, testOptions(conn))
			a, b := attr.Item{"p": attr.String("a")}, attr.Item{"p": attr.String("b")}
			if err := put(ctx, s, def, b); err != nil {
				t.Fatal(err)
			}
			moves, limit := 0, 1000
			hook := func(table string, key []byte) {
				if !strings.HasSuffix(table, def.BigtableTable) || moves == limit {
					return
				}
				from, to := a, b
				if strings.HasPrefix(string(key), "b") {
					from, to = b, a
				}
				item, err := other.GetItem(ctx, def, from)
				if err != nil {
					t.Error(err)
				}
				if item == nil {
					return
				}
				moves++
				changes := []*Change{replaceBy(def, from, nil), replaceBy(def, to, to)}
				if ok, _, err := other.Transact(ctx, RequestToken{}, changes); !ok || err != nil {
					t.Errorf("move: %v, %v, %v, %v", ok, err, changes[0].Err, changes[1].Err)
				}
			}
			for _, limit = range []int{1000, 6} {
				moves = 0
				reads := []*ItemRead{{Table: def, Key: a}, {Table: def, Key: b}}
				c.mu.Lock()
				c.hook = hook
				c.mu.Unlock()
				ok, err := s.Snapshot(ctx, reads)
				if err != nil || ok && (reads[0].Item == nil) == (reads[1].Item == nil) {
					t.Errorf("snapshot: %v, %v: %v, %v", ok, err, reads[0].Item, reads[1].Item)
				}
				// A snapshot fails while the item keeps moving.
				if ok == (limit == 1000) {
					t.Errorf("snapshot with %d moves: %v", moves, ok)
				}
			}
			checkNoIntents(t, other, def.BigtableTable)

			c.mu.Lock()
			c.hook = nil
			c.mu.Unlock()
			for _, item := range []attr.Item{a, b} {
				if err := remove(ctx, other, def, item); err != nil {
					t.Fatal(err)
				}
			}
			reads := []*ItemRead{{Table: def, Key: a}, {Table: def, Key: b}}
			if ok, err := s.Snapshot(ctx, reads); !ok || err != nil || reads[0].Item != nil || reads[1].Item != nil {
				t.Errorf("snapshot of nothing: %v, %v", ok, err)
			}
			if rows := dump(t, s, def.BigtableTable); len(rows) > 0 {
				t.Errorf("rows are left behind: %v", rows)
			}
		})
	}
}
