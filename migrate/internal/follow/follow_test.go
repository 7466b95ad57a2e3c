package follow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
	"github.com/tabletop-emu/tabletop/testkit"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// followedTable maps the table of the tests: a row for each item, and an index.
const followedTable = `apiVersion: migration/v1
source:
  table: Things
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {G: S, n: N, rev: N}
  gsis: [{name: G, hash: G, projection: ALL, as: table}]
target: {table: t, families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
on: {unknown-attribute: sidecar}
rules: [{name: entity, row: ["{PK}", "{SK}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

// live is a source with a stream, and a target into which its items were loaded.
type live struct {
	env     *testkit.Env
	ddb     *dynamodb.Client
	clients stream.Clients
	bt      *btkit.Env // the target
	target  grpc.ClientConnInterface
	m       *mapping.Mapping
	now     func() time.Time
	loaded  time.Duration // from now until the time of the loaded items
	made    time.Time     // by the clock of env
	run     atomic.Int64  // the time at which a run of the test began, of the clock, in nanoseconds
	history atomic.Int64  // writes
	step    time.Duration // of sleep; 0: half a second
}

// start creates a table with a stream, writes n items, and loads them.
func start(t *testing.T, text string, n int) *live {
	t.Helper()
	l := create(t, text)
	l.now, l.loaded = time.Now, 2*time.Minute
	r := rand.New(rand.NewPCG(1, 1))
	for range n {
		l.write(t, r)
	}
	l.load(t)
	return l
}

// create creates a table with a stream, and a target.
func create(t *testing.T, text string, more ...testkit.Option) *live {
	t.Helper()
	return createOver(t, text, btkit.Start(t), more...)
}

// createOver is create with a target in bt.
func createOver(t *testing.T, text string, bt *btkit.Env, more ...testkit.Option) *live {
	t.Helper()
	env := testkit.Start(t, append([]testkit.Option{testkit.WithDynamoDBOptions(facade.Options{})}, more...)...)
	m, err := mapping.Load("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := &live{env: env, ddb: env.DynamoDB(t), m: m, now: env.Now, bt: bt, target: bt.Conn()}
	l.clients = stream.Clients{Table: l.ddb, Stream: env.DynamoDBStreams(t)}
	l.made = env.Now()
	l.begin()
	l.createTable(t)
	return l
}

// begin begins a run of the test.
func (l *live) begin() { l.run.Store(l.env.Now().UnixNano()) }

func (l *live) createTable(t *testing.T) {
	t.Helper()
	_, err := l.ddb.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("Things"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"), AttributeType: "S"}, {AttributeName: aws.String("SK"), AttributeType: "S"}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("PK"), KeyType: "HASH"}, {AttributeName: aws.String("SK"), KeyType: "RANGE"}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// items reads all items of the source.
func (l *live) items(t *testing.T) (items []attr.Item) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(l.ddb, &dynamodb.ScanInput{TableName: aws.String("Things"), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range page.Items {
			item := attr.Item{}
			for name, v := range in {
				switch v := v.(type) {
				case *types.AttributeValueMemberS:
					item[name] = attr.String(v.Value)
				case *types.AttributeValueMemberN:
					item[name] = attr.Value{Type: attr.N, Str: v.Value}
				default:
					t.Fatalf("attribute %s is a %T", name, v)
				}
			}
			items = append(items, item)
		}
	}
	return items
}

// source returns the items of the table as a source of that moment.
func (l *live) source(t *testing.T, at time.Time) *source.Source {
	t.Helper()
	return sourceOf(at, l.items(t))
}

func sourceOf(at time.Time, items []attr.Item) *source.Source {
	key := attr.KeySchema{Hash: attr.KeyAttr{Name: "PK", Type: attr.S}, Range: attr.KeyAttr{Name: "SK", Type: attr.S}}
	return &source.Source{Format: "test", Path: "test", Tables: []*source.Table{source.Of("Things", key, at, items)}}
}

func (l *live) load(t *testing.T) {
	t.Helper()
	o := migrate.LoadOptions{Common: l.common()}
	if _, err := migrate.Load(t.Context(), l.target, l.source(t, l.now().Add(l.loaded)), o); err != nil {
		t.Fatal(err)
	}
}

func (l *live) common() migrate.Common {
	return migrate.Common{Mappings: []*mapping.Mapping{l.m}, Now: l.now, Sleep: pause}
}

// pause lets other goroutines run; nothing in the tests waits for time.
func pause(ctx context.Context, d time.Duration) error {
	return pauseFor(ctx, min(d, max(d/250, time.Millisecond), 4*time.Millisecond))
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// write makes one random write: of ten hot keys or a hundred others, including deletions, updates of one
// attribute and transactions.
func (l *live) write(t *testing.T, r *rand.Rand) {
	t.Helper()
	n := r.IntN(100)
	if r.IntN(2) == 0 {
		n = r.IntN(10)
	}
	key := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: fmt.Sprint("p", n/3)}, "SK": &types.AttributeValueMemberS{Value: fmt.Sprint("s", n%3)}}
	item := map[string]types.AttributeValue{"PK": key["PK"], "SK": key["SK"], "rev": &types.AttributeValueMemberN{Value: fmt.Sprint(l.history.Add(1))}}
	if r.IntN(2) == 0 {
		item["G"] = &types.AttributeValueMemberS{Value: fmt.Sprint("g", r.IntN(3))}
	}
	if r.IntN(2) == 0 {
		item["n"] = &types.AttributeValueMemberN{Value: fmt.Sprint(r.IntN(1000), ".5")}
	}
	var err error
	switch r.IntN(5) {
	case 0:
		_, err = l.ddb.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("Things"), Key: key})
	case 1:
		_, err = l.ddb.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("Things"), Key: key, UpdateExpression: aws.String("SET rev = :r REMOVE G"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":r": item["rev"]},
		})
	case 2:
		_, err = l.ddb.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: aws.String("Things"), Item: item}}}})
	default:
		_, err = l.ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("Things"), Item: item})
	}
	var canceled *types.TransactionCanceledException
	var conflict *types.TransactionConflictException
	if err != nil && !errors.As(err, &canceled) && !errors.As(err, &conflict) { // writers may meet in a transaction
		t.Error(err)
	}
}

// options are those of a follower.
func (l *live) options(owner string) migrate.FollowOptions {
	return migrate.FollowOptions{Common: l.common(), Source: l.clients, Owner: owner, Flags: "--flag 'a b'", SourceFlags: "--source c"}
}

// verify compares the target with the items of the source.
func (l *live) verify(t *testing.T) {
	t.Helper()
	o := migrate.VerifyOptions{Common: l.common(), Stored: true, Timestamps: "ignore"}
	r, err := migrate.Verify(t.Context(), l.target, migrate.OfSource(l.source(t, l.now())), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) > 0 {
		t.Errorf("after the run the target differs:\n%s", r.Text())
	}
}

// A follower that is stopped and started again, in each mode and beside writes, leaves the target equal
// to the source, index included.
func TestFollow(t *testing.T) {
	t.Parallel()
	writes := 100
	if long.Enabled() {
		writes = 5000
	}
	for _, mode := range []string{"auto", "guarded", "ordered"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			l := start(t, followedTable, 50)
			r := rand.New(rand.NewPCG(2, uint64(len(mode))))
			for i := range writes {
				l.write(t, r)
				if i%(writes/4) != 0 {
					continue
				}
				ctx, stop := context.WithCancel(t.Context())
				o := l.options(fmt.Sprint("run ", i))
				o.Mode = mode
				records := int64(0)
				o.Report = func(s migrate.FollowStatus) {
					if records = s.Changes; records > 0 {
						stop()
					}
				}
				if err := migrate.Follow(ctx, l.target, o); !errors.Is(err, context.Canceled) {
					t.Fatalf("the run ends with %v", err)
				}
				if records == 0 {
					t.Error("nothing was applied")
				}
			}
			o := l.options("last")
			o.Mode, o.UntilTip = mode, true
			if err := migrate.Follow(t.Context(), l.target, o); err != nil {
				t.Fatal(err)
			}
			l.verify(t)
			all, err := migrate.Status(t.Context(), l.target, l.common())
			if err != nil {
				t.Fatal(err)
			}
			if len(all) != 1 || all[0].Table != "Things" || all[0].Running != "" || all[0].Rule != stream.RuleHeader || len(all[0].Letters) > 0 {
				t.Errorf("the status is %+v", all)
			}
		})
	}
}

// Cells whose times derive from items have the times of the last change, in each mode; a live verification finds
// another time.
func TestFollow_Times(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"guarded", "ordered"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			l := create(t, strings.NewReplacer("put: [", `put: [{attr: x, cell: "a:x", ts: {attr: rev, as: epoch(ms)}}, `, "{G: S,", "{G: S, x: S,").Replace(followedTable))
			l.env.Advance(5 * time.Minute)
			r := rand.New(rand.NewPCG(9, uint64(len(mode))))
			write := func() {
				sk, more := fmt.Sprint("s", r.IntN(8)), map[string]string{"x": "v"}
				if r.IntN(2) == 0 {
					more["G"] = "g"
				}
				if r.IntN(4) == 0 {
					l.remove(t, "p", sk)
				} else {
					l.put(t, "p", sk, 1_700_000_000_000+int(l.history.Add(1)), more)
				}
			}
			for range 20 {
				write()
			}
			l.put(t, "p", "s", 1_700_000_000_000, map[string]string{"x": "v"})
			l.load(t)
			for run := range 3 {
				for range 40 {
					write()
				}
				o := l.options(fmt.Sprint("run ", run))
				o.Mode, o.UntilTip = mode, true
				if err := migrate.Follow(t.Context(), l.target, o); err != nil {
					t.Fatal(err)
				}
				if r, _ := l.verifyLive(t, l.liveOptions(pause)); len(r.Failures) > 0 {
					t.Fatalf("after run %d:\n%s", run, r.Text())
				}
			}
			l.mutate(t, "t", "p#s", btclient.DeleteColumn("a", []byte("x"), 0, 0), btclient.SetCell("a", []byte("x"), 1_700_000_000_008_000, []byte("v"))) // of another revision
			sleep, _ := l.follow(t, "last")                                                                                                                // which judges the difference
			if r, _ := l.verifyLive(t, l.liveOptions(sleep)); r.Differences != 1 {
				t.Errorf("with another time:\n%s\n%s", r.Text(), l.bt.Dump("t"))
			}
		})
	}
}

// A change that the mapping cannot lay out ends the run, or becomes a dead letter if they are kept. A later
// change of the item removes its letter, and leaves nothing of the older states.
func TestFollow_DeadLetter(t *testing.T) {
	t.Parallel()
	l := start(t, strings.Replace(followedTable, "sidecar", "error", 1), 20)
	put := func(item map[string]types.AttributeValue) {
		t.Helper()
		item["PK"], item["SK"] = &types.AttributeValueMemberS{Value: "bad"}, &types.AttributeValueMemberS{Value: "s"}
		if _, err := l.ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("Things"), Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	run := func(o migrate.FollowOptions) error {
		t.Helper()
		o.UntilTip = true
		return migrate.Follow(t.Context(), l.target, o)
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	put(map[string]types.AttributeValue{"G": text("g1")})
	put(map[string]types.AttributeValue{"G": text("g2"), "unknown": text("x")})
	if err := run(l.options("one")); err == nil || !strings.Contains(err.Error(), "E-UNKNOWN-ATTRIBUTE") {
		t.Errorf("the error is %v", err)
	}
	var letters strings.Builder
	o := l.options("two")
	o.DeadLetter = &letters
	if err := run(o); err != nil {
		t.Fatal(err)
	}
	all, err := migrate.Status(t.Context(), l.target, l.common())
	if err != nil || len(all) != 1 || len(all[0].Letters) != 1 || all[0].Letters[0].Code != "E-UNKNOWN-ATTRIBUTE" {
		t.Errorf("the status is %+v, error %v", all, err)
	}
	if !strings.Contains(letters.String(), `"key":{"PK":{"S":"bad"},"SK":{"S":"s"}}`) {
		t.Errorf("the letters are %s", letters.String())
	}
	put(map[string]types.AttributeValue{"G": text("g3")})
	o = l.options("three")
	o.DeadLetter = io.Discard
	if err := run(o); err != nil {
		t.Fatal(err)
	}
	if all, err := migrate.Status(t.Context(), l.target, l.common()); err != nil || len(all[0].Letters) != 0 {
		t.Errorf("the status is %+v, error %v", all, err)
	}
	l.verify(t)
}
