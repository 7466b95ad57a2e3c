package follow_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// countedReads counts the reads of the target, and the rows of followed tables that they return.
type countedReads struct {
	grpc.ClientConnInterface
	reads, rows atomic.Int64
}

func (c *countedReads) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, o ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, d, method, o...)
	if strings.HasSuffix(method, "/ReadRows") {
		c.reads.Add(1)
		s = &countedRows{ClientStream: s, c: c}
	}
	return s, err
}

type countedRows struct {
	grpc.ClientStream
	c      *countedReads
	counts bool
}

func (s *countedRows) SendMsg(m any) error {
	s.counts = !strings.Contains(m.(*btpb.ReadRowsRequest).GetTableName(), "/_")
	return s.ClientStream.SendMsg(m)
}

func (s *countedRows) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil && s.counts {
		for _, chunk := range m.(*btpb.ReadRowsResponse).GetChunks() {
			if chunk.GetCommitRow() {
				s.c.rows.Add(1)
			}
		}
	}
	return err
}

// countedItems counts the calls that read the source, and the items that they return.
type countedItems struct {
	stream.ItemClient
	page                         int32  // the most items of a page; 0: no limit
	after                        func() // a page; nil: nothing
	scans, batches, scanned, got atomic.Int64
}

func (c *countedItems) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	c.scans.Add(1)
	if c.page > 0 {
		limited := *in
		limited.Limit, in = &c.page, &limited
	}
	out, err := c.ItemClient.Scan(ctx, in, o...)
	if err == nil {
		c.scanned.Add(int64(len(out.Items)))
		if c.after != nil {
			c.after()
		}
	}
	return out, err
}

func (c *countedItems) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	c.batches.Add(1)
	for _, of := range in.RequestItems {
		c.got.Add(int64(len(of.Keys)))
	}
	return c.ItemClient.BatchGetItem(ctx, in, o...)
}

// sharedTable has a row for each partition.
var sharedTable = strings.Replace(followedTable[:strings.Index(followedTable, "on: {unknown")]+`on: {unknown-attribute: error}
rules: [{name: entity, row: ["{PK}"], put: [{attr: "*", cell: "a:{SK}", codec: ddbjson}]}]
`, "\n  gsis: [{name: G, hash: G, projection: ALL, as: table}]", "", 1)

// Items that share a row are read in one call.
func TestVerifyLive_SharedRowsCalls(t *testing.T) {
	t.Parallel()
	l := create(t, sharedTable)
	l.env.Advance(5 * time.Minute)
	const rows, each = 10, 30
	for i := range rows * each {
		l.put(t, fmt.Sprint("p", i/each), fmt.Sprint("s", i%each), i, nil)
	}
	l.load(t)
	sleep, _ := l.follow(t, "one")
	counted := &countedReads{ClientConnInterface: l.target}
	r, err := migrate.VerifyLive(t.Context(), counted, l.liveOptions(sleep))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) > 0 || r.Tables[0].Live.Compared != rows*each {
		t.Errorf("the report is\n%s", r.Text())
	}
	if n := counted.reads.Load(); n > 5*rows {
		t.Errorf("%d reads for %d rows of %d items", n, rows, each)
	}
}

// A quiet verification reads each item of the source once, and five rows of the target for it: its row in three
// passes, and its entry in two. One beside writes reads only the suspects again.
func TestVerifyLive_RowsBesideWrites(t *testing.T) {
	t.Parallel()
	l := create(t, followedTable)
	l.env.Advance(5 * time.Minute)
	const n = 250
	put := func(i, rev int) { l.put(t, "p", fmt.Sprint("s", i), rev, map[string]string{"G": fmt.Sprint("g", i%7)}) }
	for i := range n {
		put(i, 0)
	}
	l.load(t)
	sleep, _ := l.follow(t, "one")
	verify := func(after func()) (items, rows int64, live *report.Live) {
		conn, source := &countedReads{ClientConnInterface: l.target}, &countedItems{ItemClient: l.ddb, page: 25, after: after}
		o := l.liveOptions(sleep)
		o.Source = source
		r, err := migrate.VerifyLive(t.Context(), conn, o)
		if err != nil {
			t.Fatal(err)
		}
		if live = r.Tables[0].Live; len(r.Failures) > 0 || live.Unsettled > 0 {
			t.Errorf("the report is\n%s", r.Text())
		}
		return source.scanned.Load() + source.got.Load(), conn.rows.Load(), live
	}
	items, rows, live := verify(nil)
	if items != n || rows != 5*n || live.Suspects > 0 {
		t.Errorf("a quiet verification reads %d items, %d rows, and has %d suspects", items, rows, live.Suspects)
	}
	var mu sync.Mutex
	written := 0
	items, rows, live = verify(func() {
		mu.Lock()
		defer mu.Unlock()
		for range 10 {
			written++
			put(written*7%n, written)
		}
	})
	if items > n+3*live.Suspects || rows > 5*n+8*live.Suspects || live.Suspects > int64(2*written) {
		t.Errorf("beside %d writes, a verification reads %d items, %d rows, and has %d suspects", written, items, rows, live.Suspects)
	}
}

// TestVerifyLive_Speed logs what a verification of a table costs, quiet and beside 1,000 writes a second, and
// the ratio of the durations. The reads of the target for each item are bounded.
func TestVerifyLive_Speed(t *testing.T) {
	long.Test(t)
	for _, c := range []struct {
		name, text string
		items      int
	}{{"a row for each item", followedTable, 100_000}, {"ten items in a row", sharedTable, 30_000}} {
		t.Run(c.name, func(t *testing.T) {
			l := create(t, c.text)
			l.env.Advance(5 * time.Minute)
			put := func(ctx context.Context, i, rev int) error {
				_, err := l.ddb.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("Things"), Item: map[string]types.AttributeValue{
					"PK": &types.AttributeValueMemberS{Value: fmt.Sprint("p", i/10)}, "SK": &types.AttributeValueMemberS{Value: fmt.Sprint("s", i%10)},
					"rev": &types.AttributeValueMemberN{Value: fmt.Sprint(rev)},
				}})
				return err
			}
			for i := range c.items {
				if err := put(t.Context(), i, 0); err != nil {
					t.Fatal(err)
				}
			}
			l.load(t)
			ctx, cancel := context.WithCancel(t.Context())
			var working sync.WaitGroup
			defer working.Wait()
			defer cancel()
			following := make(chan struct{})
			f := l.options("one")
			f.Sleep, f.IdleMax = rest, 100*time.Millisecond
			f.Report = func(migrate.FollowStatus) {
				select {
				case following <- struct{}{}:
				default:
				}
			}
			working.Go(func() {
				if err := migrate.Follow(ctx, l.target, f); ctx.Err() == nil {
					t.Error(err)
				}
			})
			for phase := ""; phase != "FOLLOWING"; {
				<-following
				all, err := migrate.Status(ctx, l.target, l.common())
				if err != nil {
					t.Fatal(err)
				}
				if len(all) > 0 {
					phase = all[0].Phase
				}
			}
			verify := func(when string) (seconds float64) {
				counted := &countedReads{ClientConnInterface: l.target}
				o := l.liveOptions(rest)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				r, err := migrate.VerifyLive(ctx, counted, o)
				seconds = time.Since(start).Seconds()
				runtime.ReadMemStats(&after)
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Failures) > 0 {
					t.Errorf("%s:\n%s", when, r.Text())
				}
				live := r.Tables[0].Live
				t.Logf("%s: %.1f s, %d keys, %d of them twice, %d unsettled; for each key %.3f reads, %d allocations of all processes", when, seconds, live.Compared, live.Suspects, live.Unsettled,
					float64(counted.reads.Load())/float64(live.Compared), int64(after.Mallocs-before.Mallocs)/live.Compared)
				if n := counted.reads.Load(); n > int64(c.items)/4 {
					t.Errorf("%s: %d reads of %d items", when, n, c.items)
				}
				return seconds
			}
			quiet := verify("quiet")
			written := atomic.Int64{}
			begun := time.Now()
			for w := range 4 {
				working.Go(func() {
					r := rand.New(rand.NewPCG(7, uint64(w)))
					tick := time.NewTicker(4 * time.Millisecond)
					defer tick.Stop()
					for {
						select {
						case <-ctx.Done():
							return
						case <-tick.C:
							if err := put(ctx, r.IntN(c.items), 1+r.IntN(1e6)); err == nil {
								written.Add(1)
							}
						}
					}
				})
			}
			busy := verify("beside writes")
			t.Logf("%.0f writes a second; the ratio is %.2f", float64(written.Load())/time.Since(begun).Seconds(), busy/quiet)
		})
	}
}

// rest waits.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
