package migrate_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// follow runs a follower until stop is called. Each sleep of a verification ends with the next
// checkpoint of the follower, so that the number of sleeps does not depend on the machine. It moves the
// clock.
func (l *live) follow(t *testing.T, owner string) (sleep func(context.Context, time.Duration) error, stop func()) {
	t.Helper()
	return l.followBy(t, l.options(owner))
}

func (l *live) followBy(t *testing.T, o migrate.FollowOptions) (sleep func(context.Context, time.Duration) error, stop func()) {
	t.Helper()
	saved := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	o.Report = func(migrate.FollowStatus) {
		select {
		case saved <- struct{}{}:
		default:
		}
	}
	done := make(chan error, 1)
	go func() { done <- migrate.Follow(ctx, l.target, o) }()
	sleep = func(ctx context.Context, d time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-saved:
			l.env.Advance(d)
			return nil
		}
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) && status.Code(err) != codes.Canceled {
			t.Errorf("the follower ends with %v", err)
		}
	})
	t.Cleanup(stop)
	for {
		all, err := migrate.Status(t.Context(), l.target, l.common())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 && all[0].Phase == "FOLLOWING" {
			return sleep, stop
		}
		select {
		case err := <-done:
			done <- err
			t.Fatalf("the follower ends with %v", err)
		case <-saved:
		}
	}
}

// liveOptions are those of a verification.
func (l *live) liveOptions(sleep func(context.Context, time.Duration) error) migrate.LiveOptions {
	o := migrate.LiveOptions{Common: l.common(), Source: l.ddb, Consistent: true}
	o.Sleep = sleep
	return o
}

func (l *live) verifyLive(t *testing.T, o migrate.LiveOptions) (*report.Report, *report.Live) {
	t.Helper()
	r, err := migrate.VerifyLive(t.Context(), l.target, o)
	if err != nil {
		t.Fatal(err)
	}
	return r, r.Tables[0].Live
}

// startEarly starts with a stream that was enabled long before the load, so that the follower catches up
// at once.
func startEarly(t *testing.T, n int) *live {
	t.Helper()
	l := create(t, followedTable)
	l.env.Advance(5 * time.Minute)
	r := rand.New(rand.NewPCG(1, 1))
	for range n {
		l.write(t, r)
	}
	l.load(t)
	return l
}

// put writes an item.
func (l *live) put(t *testing.T, pk, sk string, rev int, more map[string]string) {
	t.Helper()
	item := map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: sk}, "rev": &types.AttributeValueMemberN{Value: fmt.Sprint(rev)},
	}
	for name, v := range more {
		item[name] = &types.AttributeValueMemberS{Value: v}
	}
	if _, err := l.ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("Things"), Item: item}); err != nil {
		t.Fatal(err)
	}
}

// delete deletes an item.
func (l *live) delete(t *testing.T, pk, sk string) {
	t.Helper()
	_, err := l.ddb.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("Things"), Key: map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: sk},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// Complete verifications beside writes report no difference, whatever the lag is.
func TestVerifyLive_NoFalseAlarm(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 60)
	sleep, _ := l.follow(t, "one")
	runs, writes := 3, 300
	if long.Enabled() {
		runs, writes = 50, 5000
	}
	var writers sync.WaitGroup
	for i := range 2 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(5, uint64(i)))
			for range writes {
				l.write(t, r)
			}
		})
	}
	for range runs {
		r, live := l.verifyLive(t, l.liveOptions(sleep))
		if len(r.Failures) > 0 {
			t.Fatalf("differences:\n%s", r.Text())
		}
		if live.Compared == 0 || live.Rule != stream.RuleHeader || live.To.Before(live.From) {
			t.Errorf("the result is %+v", live)
		}
	}
	writers.Wait()
	if r, live := l.verifyLive(t, l.liveOptions(sleep)); len(r.Failures) > 0 || live.Unsettled > 0 {
		t.Errorf("after the writes:\n%s", r.Text())
	}
}

// Items that the follower has not yet reached are suspects, and no differences once it has; those that it will
// never reach are differences.
func TestVerifyLive_Suspects(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 0)
	for i := range 8 {
		l.put(t, "p", fmt.Sprint("s", i), i, nil)
	}
	var held atomic.Bool
	o := l.options("one")
	o.Throttle = func() (int, bool) { return 0, held.Load() }
	sleep, _ := l.followBy(t, o)
	held.Store(true)
	must(t, errors.Join(sleep(t.Context(), 0), sleep(t.Context(), 0))) // it has looked
	for i := range 5 {
		l.put(t, "p", fmt.Sprint("s", i), 10+i, nil)
	}
	l.mutate(t, "t", "p#s7", btclient.SetCell("a", []byte("rev"), 9e15, []byte("70")))
	live := l.liveOptions(sleep)
	sleeps := 0
	live.Sleep = func(ctx context.Context, d time.Duration) error {
		if sleeps++; sleeps == 5 { // by then the scan is over, since it does not wait
			held.Store(false)
		}
		return sleep(ctx, d)
	}
	r, result := l.verifyLive(t, live)
	if result.Suspects != 6 || r.Differences != 1 || !strings.Contains(r.Failures[0].ItemKey, `"s7"`) || result.Unsettled > 0 {
		t.Errorf("%+v\n%s", result, r.Text())
	}
}

// mutate changes a row of the target.
func (l *live) mutate(t *testing.T, table, row string, muts ...*btpb.Mutation) {
	t.Helper()
	c := btclient.New(l.target, "tabletop", "tabletop", btclient.Options{})
	if err := c.MutateRow(t.Context(), table, []byte(row), muts); err != nil {
		t.Fatal(err)
	}
}

// Each difference in an item that rests is reported with its item, row and column.
func TestVerifyLive_Differences(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 0)
	for i := range 8 {
		l.put(t, "p", fmt.Sprint("s", i), i, map[string]string{"G": fmt.Sprint("g", i), "x": "text"})
	}
	sleep, _ := l.follow(t, "one")
	o := l.liveOptions(sleep)
	if r, _ := l.verifyLive(t, o); len(r.Failures) > 0 {
		t.Fatalf("before the changes:\n%s", r.Text())
	}
	row := func(i int) string { return fmt.Sprint("p#s", i) }
	index := (*layout.Mapping)(l.m).Indexes()[0]
	entry := func(i int, g string) string {
		placed, ok, err := index.Place(attr.Item{"PK": attr.String("p"), "SK": attr.String(fmt.Sprint("s", i)), "G": attr.String(g)}, 0)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		return string(placed.Row)
	}
	l.mutate(t, "t", row(0), btclient.SetCell("a", []byte("x"), 9e15, []byte("other")))
	l.mutate(t, "t", row(1), btclient.DeleteFamily("a"), btclient.DeleteFamily("_t"))
	l.mutate(t, "t", "p#s99", btclient.SetCell("a", []byte("x"), 1000, []byte("nobody's")), btclient.SetCell("_t", []byte("a/x"), 1000, []byte("S")))
	l.mutate(t, "t", row(2), btclient.SetCell("a", []byte("unknown"), 1000, []byte("extra")), btclient.SetCell("_t", []byte("a/unknown"), 1000, []byte("S")))
	l.mutate(t, "t", row(3), btclient.SetCell("_t", []byte("a/x"), 9e15, []byte("N")), btclient.SetCell("a", []byte("x"), 9e15, []byte("7")))
	l.mutate(t, index.TargetTable(), entry(5, "g5"), btclient.DeleteRow())
	l.mutate(t, "t", row(6), btclient.DeleteColumn("a", []byte("x"), 0, 0), btclient.DeleteColumn("_t", []byte("a/x"), 0, 0))
	l.mutate(t, index.TargetTable(), entry(7, "old"), btclient.SetCell("a", []byte("rev"), 1000, []byte("1")))
	r, _ := l.verifyLive(t, o)
	for _, want := range []struct{ kind, item, row, column string }{
		{"ValueDiffers", "s0", row(0), "x"},
		{"MissingRow", "s1", row(1), ""},
		{"ExtraRow", "s99", "p#s99", ""},
		{"ValueDiffers", "s2", row(2), "unknown"},
		{"TypeDiffers", "s3", row(3), "x"},
		{"IndexStale", "s5", entry(5, "g5"), ""},
		{"IndexStale", "s7", entry(7, "old"), ""},
		{"ValueDiffers", "s6", row(6), "x"},
	} {
		found := false
		for _, f := range r.Failures {
			found = found || string(f.Kind) == want.kind && strings.Contains(f.ItemKey, `"`+want.item+`"`) && f.RowHex == hex.EncodeToString([]byte(want.row)) && f.Column == want.column
		}
		if !found {
			t.Errorf("%+v is not reported", want)
		}
	}
	if r.Differences != 8 || t.Failed() {
		t.Errorf("the report has\n%s", r.Text())
	}
}

// After a complete verification, only the keys that changed are judged; and without it, none.
func TestVerifyLive_Dirty(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 40)
	sleep, stop := l.follow(t, "one")
	o := l.liveOptions(sleep)
	o.Dirty = true
	if _, err := migrate.VerifyLive(t.Context(), l.target, o); err == nil || !strings.Contains(err.Error(), "run verify --live --consistent first") {
		t.Errorf("without a complete verification: %v", err)
	}
	if r, _ := l.verifyLive(t, l.liveOptions(sleep)); len(r.Failures) > 0 {
		t.Fatal(r.Text())
	}
	for i := range 7 {
		l.put(t, "changed", fmt.Sprint(i%5), i, nil)
	}
	stop()
	last := l.options("two") // the source is frozen
	last.UntilTip = true
	if err := migrate.Follow(t.Context(), l.target, last); err != nil {
		t.Fatal(err)
	}
	o.Sleep = pause
	if r, live := l.verifyLive(t, o); len(r.Failures) > 0 || live.Compared != 5 || live.Unsettled > 0 || !strings.Contains(r.Text(), "only a frozen source is proved") {
		t.Errorf("5 keys changed:\n%s", r.Text())
	}
	if r, live := l.verifyLive(t, o); len(r.Failures) > 0 || live.Compared != 0 {
		t.Errorf("nothing changed since:\n%s", r.Text())
	}
	l.put(t, "changed", "0", 9, nil) // after the last follower
	if _, live := l.verifyLive(t, o); live.Compared != 0 {
		t.Errorf("%d keys compared", live.Compared)
	}
	l.follow(t, "three")
}

// Without a follower, a difference cannot be judged: the error names the command.
func TestVerifyLive_NoFollower(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 20)
	o := l.liveOptions(pause)
	if _, err := migrate.VerifyLive(t.Context(), l.target, o); err == nil || !strings.Contains(err.Error(), "tabletop migrate follow Things") {
		t.Errorf("before the first follower: %v", err)
	}
	_, stop := l.follow(t, "one")
	stop()
	l.put(t, "new", "item", 1, nil)
	if _, err := migrate.VerifyLive(t.Context(), l.target, o); err == nil || !strings.Contains(err.Error(), "no process follows the source") || !strings.Contains(err.Error(), "tabletop migrate follow Things") {
		t.Errorf("with a difference: %v", err)
	}
}

// A sample says what it proves.
func TestVerifyLive_Sample(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 100)
	sleep, _ := l.follow(t, "one")
	o := l.liveOptions(sleep)
	o.Sample = 0.5
	r, live := l.verifyLive(t, o)
	items := int64(len(l.items(t)))
	if len(r.Failures) > 0 || live.Compared == 0 || live.Compared >= items || !strings.Contains(r.Text(), fmt.Sprintf("fewer than %.2g %% of all differ", 300/float64(live.Compared))) {
		t.Errorf("of %d items:\n%s", items, r.Text())
	}
}

// refusing is a connection that refuses writes of one kind, once a write of another kind was made.
type refusing struct {
	grpc.ClientConnInterface
	kind, after string // after: "" for all of them
	made        *atomic.Bool
}

func (c refusing) refuses(request any) bool {
	kind := kindOf(request)
	if kind == c.after {
		c.made.Store(true)
	}
	return kind == c.kind && (c.after == "" || c.made.Load())
}

var errRefusing = status.Error(codes.PermissionDenied, "refused")

func (c refusing) Invoke(ctx context.Context, method string, in, out any, o ...grpc.CallOption) error {
	if c.refuses(in) {
		return errRefusing
	}
	return c.ClientConnInterface.Invoke(ctx, method, in, out, o...)
}

func (c refusing) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, o ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, desc, method, o...)
	return refusingStream{s, c}, err
}

type refusingStream struct {
	grpc.ClientStream
	c refusing
}

func (s refusingStream) SendMsg(m any) error {
	if s.c.refuses(m) {
		return errRefusing
	}
	return s.ClientStream.SendMsg(m)
}

// changedKeys counts the recorded keys of a generation.
func (l *live) changedKeys(t *testing.T, generation uint64) (n int) {
	t.Helper()
	for _, err := range l.store().Dirty(t.Context(), generation) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// A follower that stops when it cannot record changed keys saves no checkpoint beyond them; and one that stops
// between the keys and its checkpoint has recorded them.
func TestVerifyLive_DirtyAfterCrash(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 20)
	sleep, stop := l.follow(t, "one")
	if r, _ := l.verifyLive(t, l.liveOptions(sleep)); len(r.Failures) > 0 {
		t.Fatal(r.Text())
	}
	stop()
	for i := range 6 {
		l.put(t, "changed", fmt.Sprint(i), i, nil)
	}
	for _, crash := range []struct {
		kind, after string
		keys        int // that are recorded then
	}{{"dirty", "", 0}, {"item", "", 6}, {"checkpoint", "item", 6}} {
		o := l.options("crashed at " + crash.kind)
		o.UntilTip, o.Mode = true, "ordered"
		err := migrate.Follow(t.Context(), refusing{l.target, crash.kind, crash.after, &atomic.Bool{}}, o)
		if n := l.changedKeys(t, 1); status.Code(err) != codes.PermissionDenied || n != crash.keys {
			t.Fatalf("without writes of kind %s, the follower records %d keys, want %d, and ends with %v", crash.kind, n, crash.keys, err)
		}
	}
	last := l.options("last")
	last.UntilTip = true
	if err := migrate.Follow(t.Context(), l.target, last); err != nil {
		t.Fatal(err)
	}
	o := l.liveOptions(pause)
	o.Dirty = true
	if r, live := l.verifyLive(t, o); len(r.Failures) > 0 || live.Compared != 6 {
		t.Errorf("6 keys changed:\n%s", r.Text())
	}
}

// A table that catches up is refused, with what to wait for.
func TestVerifyLive_CatchingUp(t *testing.T) {
	t.Parallel()
	l := create(t, followedTable)
	l.put(t, "p", "s", 1, nil)
	l.env.Advance(5 * time.Minute)
	l.loaded = time.Hour
	l.load(t)
	o := l.options("one")
	o.UntilTip = true
	if err := migrate.Follow(t.Context(), l.target, o); err != nil {
		t.Fatal(err)
	}
	if _, err := migrate.VerifyLive(t.Context(), l.target, l.liveOptions(pause)); err == nil || !strings.Contains(err.Error(), "phase CATCHING_UP") || !strings.Contains(err.Error(), "--wait phase=FOLLOWING") {
		t.Errorf("the error is %v", err)
	}
}

// Items that share a row are read and judged one by one.
func TestVerifyLive_SharedRows(t *testing.T) {
	t.Parallel()
	text := followedTable[:strings.Index(followedTable, "on: {unknown")] + `on: {unknown-attribute: error}
rules: [{name: entity, row: ["{PK}"], put: [{attr: "*", cell: "a:{SK}", codec: ddbjson}]}]
`
	text = strings.Replace(text, "\n  gsis: [{name: G, hash: G, projection: ALL, as: table}]", "", 1)
	l := create(t, text)
	l.env.Advance(5 * time.Minute)
	r := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		l.write(t, r)
	}
	l.put(t, "p0", "s0", 1, nil)
	l.load(t)
	sleep, _ := l.follow(t, "one")
	for range 60 {
		l.write(t, r)
	}
	o := l.liveOptions(sleep)
	if r, live := l.verifyLive(t, o); len(r.Failures) > 0 || live.Unsettled > 0 || live.Compared == 0 {
		t.Fatalf("after the writes:\n%s", r.Text())
	}
	l.put(t, "p0", "s0", 2, nil)
	l.put(t, "p0", "s1", 2, nil)
	if r, _ := l.verifyLive(t, o); len(r.Failures) > 0 {
		t.Fatalf("after two more:\n%s", r.Text())
	}
	l.mutate(t, "t", "p0", btclient.DeleteColumn("a", []byte("s1"), 0, 0))
	if r, _ := l.verifyLive(t, o); r.Differences != 1 || r.Failures[0].Kind != report.MissingItem && r.Failures[0].Kind != report.MissingRow || !strings.Contains(r.Failures[0].ItemKey, `"s1"`) {
		t.Errorf("without an item:\n%s", r.Text())
	}
}
