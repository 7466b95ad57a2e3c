package store

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/inproc"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// backendsAbreast holds the backends, and "abreast", whose stores make concurrent calls. lanesOf
// holds the Options.Concurrency of each backend.
var (
	backendsAbreast = func() map[string]func(testing.TB) grpc.ClientConnInterface {
		all := maps.Clone(backends)
		all["abreast"] = backends["emu"]
		return all
	}()
	lanesOf = map[string]int{"abreast": 100}
)

// roundTrip is the duration of a call, in the time of the synctest bubble.
const roundTrip = time.Millisecond

// cutConn is the connection of a process that ends at a given time. Each call takes roundTrip
// before it arrives. A random part of the calls in progress at the end arrives, and none of them
// returns a response.
type cutConn struct {
	grpc.ClientConnInterface
	mu   sync.Mutex
	cut  time.Time // zero: never
	coin *rand.Rand
}

func (c *cutConn) end(step int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = time.Now().Add(time.Duration(step)*roundTrip + roundTrip/2)
}

func (c *cutConn) arrive(context.Context) {}

func (c *cutConn) change(o Options) Options {
	o.Concurrency = 100
	return o
}

// ended reports whether the process has ended and, if it has, whether the call that was in
// progress arrives.
func (c *cutConn) ended() (ended, arrives bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended = !c.cut.IsZero() && time.Now().After(c.cut)
	return ended, ended && c.coin.IntN(2) == 0
}

var errEnded = status.Error(codes.Unavailable, "the process has ended")

func (c *cutConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	if ended, _ := c.ended(); ended {
		return errEnded
	}
	time.Sleep(roundTrip)
	ended, arrives := c.ended()
	if ended && !arrives {
		return errEnded
	}
	if err := c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...); err != nil || !ended {
		return err
	}
	return errEnded
}

func (c *cutConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if ended, _ := c.ended(); ended {
		return nil, errEnded
	}
	time.Sleep(roundTrip)
	ended, arrives := c.ended()
	if ended && !arrives {
		return nil, errEnded
	}
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil || !ended {
		return stream, err
	}
	return lostStream{stream}, nil
}

// lostStream is a call that was executed, but whose response is lost.
type lostStream struct{ grpc.ClientStream }

func (l lostStream) RecvMsg(m any) error {
	for l.ClientStream.RecvMsg(m) == nil {
	}
	return errEnded
}

// TestTransact_CrashAbreast: a process ends at any round trip of a transaction, and any of
// its calls in progress may arrive. All changes happen or none, whatever other processes do
// next.
func TestTransact_CrashAbreast(t *testing.T) {
	t.Parallel()
	const steps = 13 // the answer does not wait for the last few
	seeds := 1
	if long.Enabled() {
		seeds = 6
	}
	for _, next := range []string{"start", "read", "write", "timer", "snapshot"} {
		for step := range steps {
			for seed := range seeds {
				t.Run(fmt.Sprintf("%s/%d/%d", next, step, seed), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						conn := peer.Start(t, engine.Options{}, emu.Options{}).Conn()
						cut := &cutConn{ClientConnInterface: conn, coin: rand.New(rand.NewPCG(uint64(step), uint64(seed)))}
						crashTransaction(t, conn, cut, next, "crash", step, step == steps-1)
					})
				})
			}
		}
	}
}

// TestWriteItems_CrashAbreast: a process ends at any round trip of a batch of writes that move
// index entries, and any of its calls in progress may arrive. Once another process has started,
// each item is the old or the new one, and its entries match.
func TestWriteItems_CrashAbreast(t *testing.T) {
	t.Parallel()
	const steps = 5
	seeds := 4
	if long.Enabled() {
		seeds = 12
	}
	for step := range steps {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%d/%d", step, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					conn := peer.Start(t, engine.Options{}, emu.Options{}).Conn()
					cut := &cutConn{ClientConnInterface: conn, coin: rand.New(rand.NewPCG(uint64(step), uint64(seed)))}
					crashWrites(t, conn, cut, step, step == steps-1)
				})
			})
		}
	}
}

// The same holds if the process makes its calls together, and ends between two of them.
func TestWriteItems_CrashTogether(t *testing.T) {
	t.Parallel()
	const calls, never = 100, 1000 // it makes more than 100 calls, and fewer than 1,000
	steps := []int{never}
	for step := range calls {
		if long.Enabled() || step%3 == 0 {
			steps = append(steps, step)
		}
	}
	for i, step := range steps {
		last := []fate{fateNever, fateDone}[i%2]
		t.Run(fmt.Sprintf("%d/%s", step, last), func(t *testing.T) {
			t.Parallel()
			conn := peer.Start(t, engine.Options{}, emu.Options{}).Conn()
			lost := &lostConn{ClientConnInterface: conn, left: -1, fate: last}
			crashWrites(t, conn, nearLostConn{lost, conn.(*inproc.Channel)}, step, step == never)
		})
	}
}

// crashWrites ends a process at a step of the writes of several items. Each write happens or not, and
// the indexes have what the items have.
func crashWrites(t *testing.T, conn grpc.ClientConnInterface, ending interface {
	grpc.ClientConnInterface
	end(step int)
	change(o Options) (of Options)
}, step int, whole bool,
) {
	t.Helper()
	const n = 10
	o := ending.change(testOptions(ending))
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // its process has ended
	def := newTable(t, s, indexedTable("crash"))
	item := func(i, amount int) attr.Item { return account(fmt.Sprint(i), int64(amount)) }
	for i := range n - 1 { // the last is new
		if err := put(t.Context(), s, def, item(i, i)); err != nil {
			t.Fatal(err)
		}
	}
	var all []Replacement
	for i := range n {
		r := Replacement{Key: keyAttrs(def, item(i, 0)), Item: item(i, 100+i), Blind: true}
		if i == 0 {
			r.Item = nil
		}
		all = append(all, r)
	}
	ending.end(step)
	err = s.WriteItems(t.Context(), def, all)
	if (err == nil) != whole {
		t.Fatalf("the writes were cut off at step %d: %v", step, err)
	}
	o.Conn = conn
	other := openStore(t, o)
	is := model{}
	for i := range n {
		got, err := other.GetItem(t.Context(), def, all[i].Key)
		if err != nil {
			t.Fatal(err)
		}
		was, wanted := item(i, i), all[i].Item
		if i == n-1 {
			was = nil
		}
		if !attr.EqualItems(got, was) && !attr.EqualItems(got, wanted) {
			t.Errorf("item %d is %v", i, got)
		}
		if whole && !attr.EqualItems(got, wanted) {
			t.Errorf("item %d is %v though it was written", i, got)
		}
		if got != nil {
			is[keyText(all[i].Key)] = got
		}
	}
	if err := checkIndexes(t.Context(), other, def, is); err != nil {
		t.Error(err)
	}
}

// TestTransact_Fair: the clients of two processes each write two of five items in a transaction,
// and retry after a conflict. All succeed, and none much later than the others.
func TestTransact_Fair(t *testing.T) {
	t.Parallel()
	clients := 32
	if long.Enabled() {
		clients = 64
	}
	synctest.Test(t, func(t *testing.T) {
		conn := peer.Start(t, engine.Options{}, emu.Options{}).Conn()
		far := &cutConn{ClientConnInterface: conn}
		o := far.change(testOptions(far))
		o.Now = clock.NewFrozen(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)).Now
		a := openStore(t, o)
		def := newTable(t, a, indexedTable("bank"))
		b := openStore(t, o)
		for i := range 5 {
			if err := put(t.Context(), a, def, account(fmt.Sprint(i), 1000)); err != nil {
				t.Fatal(err)
			}
		}
		const rounds = 3
		tries := make([]int, clients)
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range clients {
			s, rng := a, rand.New(rand.NewPCG(3, uint64(i)))
			if i%2 == 1 {
				s = b
			}
			wg.Go(func() {
				for range rounds {
					from := rng.IntN(5)
					to := (from + 1 + rng.IntN(4)) % 5
					for ok := false; !ok; tries[i]++ {
						var err error
						if ok, _, err = s.Transact(t.Context(), RequestToken{}, transfer(def, fmt.Sprint(from), fmt.Sprint(to), 1)); err != nil {
							t.Error(err)
							return
						}
						if !ok {
							time.Sleep(time.Duration(rng.Int64N(int64(50 * roundTrip)))) // as SDKs wait
						}
					}
				}
			})
		}
		wg.Wait()
		total, most := 0, 0
		for _, n := range tries {
			total, most = total+n, max(most, n)
		}
		if most > 4*total/clients {
			t.Errorf("one client tried %d times, all together %d times", most, total)
		}
		t.Logf("%d transactions after %d tries, at most %d of a client, in %v", clients*rounds, total, most, time.Since(begin))
		var sum int64
		for i := range 5 {
			item, err := a.GetItem(t.Context(), def, keyAttrs(def, account(fmt.Sprint(i), 0)))
			if err != nil {
				t.Fatal(err)
			}
			sum += sumOf(item)
		}
		if sum != 5000 {
			t.Errorf("the accounts add up to %d", sum)
		}
		b.Wait()
		checkNoIntents(t, a, def.BigtableTable)
	})
}
