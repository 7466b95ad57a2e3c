package testkit_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
	"github.com/tabletop-emu/tabletop/testkit"
)

// ordersLive is a live table with a stream, and an environment into which its items, none so far, were
// loaded.
type ordersLive struct {
	live, env *testkit.Env
	ddb       *dynamodb.Client
}

func startOrders(t *testing.T, options ...testkit.Option) *ordersLive {
	t.Helper()
	l := &ordersLive{live: testkit.Start(t, options...), env: testkit.Start(t, options...)}
	l.ddb = l.live.DynamoDB(t)
	_, err := l.ddb.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := mapping.Load("orders.yaml", []byte(ordersMapping))
	if err != nil {
		t.Fatal(err)
	}
	key := attr.KeySchema{Hash: attr.KeyAttr{Name: "id", Type: attr.S}}
	src := &source.Source{Tables: []*source.Table{source.Of("orders", key, l.live.Advance(2*time.Minute), nil)}}
	if _, err := migrate.Load(t.Context(), l.env.Conn(), src, migrate.LoadOptions{Common: migrate.Common{Mappings: []*mapping.Mapping{m}, Now: l.env.Now}}); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *ordersLive) options(t *testing.T) migrate.FollowOptions {
	t.Helper()
	return migrate.FollowOptions{Source: stream.Clients{Table: l.ddb, Stream: l.live.DynamoDBStreams(t)}}
}

func (l *ordersLive) put(t *testing.T, id string, more ...string) {
	t.Helper()
	item := map[string]types.AttributeValue{"id": text(id), "total": &types.AttributeValueMemberN{Value: "1"}}
	for _, name := range more {
		item[name] = text("x")
	}
	if _, err := l.ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: item}); err != nil {
		t.Fatal(err)
	}
}

// rows returns the row keys of the environment.
func (l *ordersLive) rows(t *testing.T) (keys []string) {
	t.Helper()
	err := l.env.Bigtable(t).Open("orders").ReadRows(t.Context(), bigtable.InfiniteRange(""), func(r bigtable.Row) bool {
		keys = append(keys, r.Key())
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (l *ordersLive) want(t *testing.T, when string, keys ...string) {
	t.Helper()
	if got := l.rows(t); !slices.Equal(got, keys) {
		t.Errorf("%s the rows are %q, want %q", when, got, keys)
	}
}

// The clock of the environment drives the follower, and nothing else does: CatchUp leaves it as it is, and
// a stopped follower applies nothing.
func TestFollow_Clock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := startOrders(t, testkit.WithFrozenClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)))
		l.put(t, "1")
		f := l.env.Follow(t, l.options(t))
		synctest.Wait() // the run in the background pauses after its first reads
		l.want(t, "at the start", "1")
		l.put(t, "2")
		time.Sleep(time.Minute) // of the machine's clock
		synctest.Wait()
		l.want(t, "after a minute of another clock", "1")
		l.env.Advance(2 * time.Second)
		synctest.Wait()
		l.want(t, "two seconds later", "1", "2")
		now := l.env.Now()
		l.put(t, "3")
		f.CatchUp(t)
		l.want(t, "caught up", "1", "2", "3")
		if got := l.env.Now(); !got.Equal(now) {
			t.Errorf("the clock moved from %s to %s", now, got)
		}
		f.Stop(t)
		f.Stop(t)
		l.put(t, "4")
		l.env.Advance(time.Minute)
		synctest.Wait()
		l.want(t, "stopped", "1", "2", "3")
		f.CatchUp(t)
		l.want(t, "started again", "1", "2", "3", "4")
	})
}

// CatchUp waits for each write that was acknowledged before it, beside other writers.
func TestFollow_CatchUp(t *testing.T) {
	t.Parallel()
	l := startOrders(t)
	f := l.env.Follow(t, l.options(t))
	const writers, rounds = 4, 5
	var want []string
	for round := range rounds {
		var others sync.WaitGroup
		for n := range writers {
			others.Go(func() { l.put(t, fmt.Sprintf("other %d %d", round, n)) })
		}
		id := fmt.Sprint("own ", round)
		l.put(t, id)
		f.CatchUp(t)
		if got := l.rows(t); !slices.Contains(got, id) {
			t.Errorf("caught up, but %q is not among the rows %q", id, got)
		}
		others.Wait()
		want = append(want, id)
		for n := range writers {
			want = append(want, fmt.Sprintf("other %d %d", round, n))
		}
	}
	f.CatchUp(t)
	slices.Sort(want)
	l.want(t, "at the end", want...)
}

// A table that cannot be followed fails the test with the remedy, and so does a change that ends the run in
// the background.
func TestFollow_Refused(t *testing.T) {
	t.Parallel()
	l := startOrders(t)
	o := l.options(t)
	fails := func(what, want string, do func(testing.TB)) {
		t.Helper()
		if got := faketb.Failure(t, do); !strings.Contains(got, want) {
			t.Errorf("%s: the test fails with %q, want %q", what, got, want)
		}
	}
	fails("a table that was not loaded", "table customers was not loaded; loaded are orders: load an export of it first", func(tb testing.TB) {
		tb.Helper()
		o := o
		o.Tables = []string{"customers"}
		l.env.Follow(tb, o)
	})
	f := l.env.Follow(t, o)
	l.put(t, "bad", "unknown")
	fails("a change that the mapping refuses", "unknown", func(tb testing.TB) { tb.Helper(); f.CatchUp(tb) })
}
