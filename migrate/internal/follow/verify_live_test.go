package follow_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
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

// remove deletes an item.
func (l *live) remove(t *testing.T, pk, sk string) {
	t.Helper()
	key := map[string]types.AttributeValue{"PK": &types.AttributeValueMemberS{Value: pk}, "SK": &types.AttributeValueMemberS{Value: sk}}
	if _, err := l.ddb.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("Things"), Key: key}); err != nil {
		t.Fatal(err)
	}
}

// Complete verifications beside writes report no difference, whatever the lag is.
func TestVerifyLive_NoFalseAlarm(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 60)
	sleep, _ := l.follow(t, "one")
	runs, writes := 2, 80
	if long.Enabled() {
		runs, writes = 100, 100
	}
	suspects := int64(0)
	for run := range runs {
		var writers sync.WaitGroup
		for i := range 2 { // beside each run
			writers.Go(func() {
				r := rand.New(rand.NewPCG(uint64(run), uint64(i)))
				for range writes {
					l.write(t, r)
				}
			})
		}
		r, live := l.verifyLive(t, l.liveOptions(sleep))
		writers.Wait()
		suspects += live.Suspects
		if len(r.Failures) > 0 {
			t.Fatalf("differences:\n%s", r.Text())
		}
		if live.Compared == 0 || live.Rule != stream.RuleHeader || live.To.Before(live.From) {
			t.Errorf("the result is %+v", live)
		}
	}
	if long.Enabled() && suspects == 0 {
		t.Error("no item differed at the first look, so no rule was needed")
	}
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

// fault is a fault in the target, of one item.
type fault struct {
	name   string
	kind   report.Kind
	column string
	// self: the row contradicts itself, which is reported without a second look.
	self  bool
	plant func(t *testing.T, l *live, sk string)
}

// fixedMicros is the time of all cells in the test of faults.
const fixedMicros = 1577836800000000

// faults are those of items of followedTable.
var faults = []fault{
	{"newer cell", report.ValueDiffers, "x", true, func(t *testing.T, l *live, sk string) {
		t.Helper()
		l.mutate(t, "t", "p#"+sk, btclient.SetCell("a", []byte("x"), 9e15, []byte("other")), btclient.SetCell("_t", []byte("a/x"), 9e15, []byte("S")))
	}},
	{"value", report.ValueDiffers, "x", false, func(t *testing.T, l *live, sk string) {
		t.Helper()
		l.replace(t, sk, "x", func(c *layout.Cell) { c.Value = []byte("other") })
	}},
	{"type", report.TypeDiffers, "x", false, func(t *testing.T, l *live, sk string) {
		t.Helper()
		l.replace(t, sk, "x", func(c *layout.Cell) { c.Value = []byte("7") })
		l.mutate(t, "t", "p#"+sk, btclient.SetCell("_t", []byte("a/x"), fixedMicros, []byte("N")))
	}},
	{"number text", report.ValueDiffers, "a:rev", true, func(t *testing.T, l *live, sk string) {
		t.Helper()
		l.replace(t, sk, "rev", func(c *layout.Cell) { c.Value = append(c.Value, ".0"...) })
	}},
	{"missing attribute", report.ValueDiffers, "x", false, func(t *testing.T, l *live, sk string) {
		t.Helper()
		l.mutate(t, "t", "p#"+sk, btclient.DeleteColumn("a", []byte("x"), 0, 0), btclient.DeleteColumn("_t", []byte("a/x"), 0, 0))
	}},
	{"missing row", report.MissingRow, "", false, func(t *testing.T, l *live, sk string) {
		t.Helper()
		l.mutate(t, "t", "p#"+sk, btclient.DeleteFamily("a"), btclient.DeleteFamily("_t"))
	}},
	{"extra attribute", report.ValueDiffers, "unknown", false, func(t *testing.T, l *live, sk string) {
		t.Helper()
		l.mutate(t, "t", "p#"+sk, btclient.SetCell("a", []byte("unknown"), fixedMicros, []byte("extra")), btclient.SetCell("_t", []byte("a/unknown"), fixedMicros, []byte("S")))
	}},
	{"extra version", report.ExtraCell, "a:x", true, func(t *testing.T, l *live, sk string) {
		t.Helper()
		l.mutate(t, "t", "p#"+sk, btclient.SetCell("a", []byte("x"), 1000, []byte("older")))
	}},
	{"timestamp", report.TimestampDiffers, "a:x", true, func(t *testing.T, l *live, sk string) {
		t.Helper()
		l.replace(t, sk, "x", func(c *layout.Cell) { c.Timestamp += 1000 })
	}},
	{"missing index row", report.IndexStale, "", false, func(t *testing.T, l *live, sk string) {
		t.Helper()
		l.mutate(t, "t__G", l.entry(t, sk, "g"+sk), btclient.DeleteRow())
	}},
	{"extra index row", report.IndexStale, "", false, func(t *testing.T, l *live, sk string) {
		t.Helper()
		l.mutate(t, "t__G", l.entry(t, sk, "former"), btclient.SetCell("a", []byte("rev"), 1000, []byte("1")))
	}},
}

// replace changes a cell of an item.
func (l *live) replace(t *testing.T, sk, attribute string, change func(*layout.Cell)) {
	t.Helper()
	c := btclient.New(l.target, "tabletop", "tabletop", btclient.Options{})
	row, err := c.ReadRow(t.Context(), "t", []byte("p#"+sk), btclient.OfColumn("a", []byte(attribute)))
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range row.Cells {
		change(&cell)
		l.mutate(t, "t", "p#"+sk, btclient.DeleteColumn("a", []byte(attribute), 0, 0), btclient.SetCell("a", []byte(attribute), cell.Timestamp, cell.Value))
	}
}

// entry returns the row of an index entry.
func (l *live) entry(t *testing.T, sk, g string) string {
	t.Helper()
	placed, ok, err := (*layout.Mapping)(l.m).Indexes()[0].Place(attr.Item{"PK": attr.String("p"), "SK": attr.String(sk), "G": attr.String(g)}, 0)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return string(placed.Row)
}

// Each fault in an item that rests is reported once, with its item, row and column. Faults in items
// that change at each look are not: they may be lag.
func TestVerifyLive_Faults(t *testing.T) {
	t.Parallel()
	// The constant time makes all timestamps follow from the items.
	text := strings.Replace(followedTable, "target: {", "timestamps: {default: '2020-01-01T00:00:00Z'}\ntarget: {", 1)
	text = strings.Replace(text, "a: {gc: {versions: 1}}", "a: {gc: {versions: 2}}", 1)
	l := create(t, text)
	l.env.Advance(5 * time.Minute)
	put := func(sk string, rev int) { l.put(t, "p", sk, rev, map[string]string{"G": "g" + sk, "x": "text"}) }
	var still, moving []string
	for i := range faults {
		still, moving = append(still, fmt.Sprint("s", i)), append(moving, fmt.Sprint("m", i))
		put(still[i], i)
		put(moving[i], i)
	}
	put("rest", 1)
	l.load(t)
	sleep, _ := l.follow(t, "one")
	o := l.liveOptions(sleep)
	check := func(when string, items ...string) {
		t.Helper()
		r, _ := l.verifyLive(t, o)
		for _, sk := range items {
			i, err := strconv.Atoi(sk[1:])
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, of := range r.Failures {
				if of.Kind == faults[i].kind && of.Column == faults[i].column && strings.Contains(of.ItemKey, `"`+sk+`"`) && of.RowHex != "" && of.Mapping != "" {
					found++
				}
			}
			if found != 1 {
				t.Errorf("%s: fault %q of item %s is reported %d times", when, faults[i].name, sk, found)
			}
		}
		if int(r.Differences) != len(items) || t.Failed() {
			t.Fatalf("%s: %d faults:\n%s", when, len(items), r.Text())
		}
	}
	check("before")
	plant := func(items []string, self bool) {
		for i, f := range faults {
			if self || !f.self {
				f.plant(t, l, items[i])
			}
		}
	}
	plant(still, true)
	rev, last := 100, time.Time{}
	o.Sleep = func(ctx context.Context, d time.Duration) error {
		if now := l.now(); now.Sub(last) < time.Second {
			return sleep(ctx, d)
		} else {
			last = now
		}
		plant(moving, false)
		for _, sk := range moving {
			rev++
			put(sk, rev)
		}
		return sleep(ctx, d)
	}
	check("while items move", still...)
	o.Sleep = sleep
	l.verifyLive(t, o) // waits until the last change is applied
	plant(moving, true)
	check("all at rest", append(still, moving...)...)
}

// Another rule of a family is a difference. The follower would end because of it, so it has ended before.
func TestVerifyLive_FamilyRule(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 10)
	_, stop := l.follow(t, "one")
	stop()
	c := btclient.New(l.target, "tabletop", "tabletop", btclient.Options{})
	if err := c.SetGC(t.Context(), "t", layout.Family{Name: "a", GC: layout.GC{Versions: 7}}); err != nil {
		t.Fatal(err)
	}
	r, _ := l.verifyLive(t, l.liveOptions(pause))
	if len(r.Failures) == 0 || r.Failures[0].Kind != report.FamilyDiffers || r.Failures[0].Column != "a" {
		t.Errorf("with another rule of a family:\n%s", r.Text())
	}
}

// Items that are versions of one another share columns: a missing one and an extra one are reported.
func TestVerifyLive_Versions(t *testing.T) {
	t.Parallel()
	l := create(t, `apiVersion: migration/v1
source:
  table: Things
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {x: S, rev: N}
target: {table: t, families: {a: {gc: {versions: 9}}}}
rules: [{name: version, when: {SK: "v{n:ver}"}, row: ["{PK}"], put: [{attr: x, cell: "a:x", ts: "{n}"}, {attr: rev, cell: "a:rev", ts: "{n}"}]}]
`)
	l.env.Advance(5 * time.Minute)
	for i := range 4 {
		l.put(t, "p", fmt.Sprint("v", i+1), i, map[string]string{"x": "text"})
	}
	l.load(t)
	sleep, _ := l.follow(t, "one")
	l.put(t, "p", "v2", 9, map[string]string{"x": "text"})
	o := l.liveOptions(sleep)
	if r, live := l.verifyLive(t, o); len(r.Failures) > 0 || live.Compared != 4 {
		t.Fatalf("before:\n%s", r.Text())
	}
	l.mutate(t, "t", "p", btclient.DeleteColumn("a", []byte("x"), 3000, 4000), btclient.DeleteColumn("a", []byte("rev"), 3000, 4000),
		btclient.SetCell("a", []byte("rev"), 7000, []byte("1")), btclient.SetCell("a", []byte("x"), 7000, []byte("text")))
	r, _ := l.verifyLive(t, o)
	var found []string
	for _, f := range r.Failures {
		found = append(found, string(f.Kind)+" "+f.ItemKey)
	}
	slices.Sort(found)
	want := []string{`ExtraItem {"PK":{"S":"p"},"SK":{"S":"v7"}}`, `MissingItem {"PK":{"S":"p"},"SK":{"S":"v3"}}`}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q:\n%s", found, want, r.Text())
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
	writes := 60
	if long.Enabled() {
		writes = 20_000
	}
	written, random := map[string]bool{}, rand.New(rand.NewPCG(9, 9))
	for i := range writes {
		sk := fmt.Sprint(random.IntN(writes))
		written[sk] = true
		l.put(t, "changed", sk, i, nil)
		if i%3 == 0 { // a deletion is a change, too
			l.remove(t, "changed", sk)
		}
	}
	stop()
	last := l.options("two") // the source is frozen
	last.UntilTip = true
	if err := migrate.Follow(t.Context(), l.target, last); err != nil {
		t.Fatal(err)
	}
	o.Sleep = pause
	counted, items := &countedReads{ClientConnInterface: l.target}, &countedItems{ItemClient: l.ddb}
	o.Source = items
	r, err := migrate.VerifyLive(t.Context(), counted, o)
	if err != nil {
		t.Fatal(err)
	}
	if live := r.Tables[0].Live; len(r.Failures) > 0 || live.Compared != int64(len(written)) || live.Unsettled > 0 || !strings.Contains(r.Text(), "only a frozen source is proved") {
		t.Errorf("%d keys changed:\n%s", len(written), r.Text())
	}
	stored := 0 // the others are deleted on both sides
	for _, item := range l.items(t) {
		if item["PK"].Str == "changed" {
			stored++
		}
	}
	if of := r.Tables[0]; of.Live.Suspects != 0 || of.Items != int64(stored) || of.Rows != int64(stored) || of.Cells < of.Rows || strings.Contains(r.Text(), "at the first look") {
		t.Errorf("%d of %d changed items are stored, and equal:\n%s", stored, len(written), r.Text())
	}
	if n := counted.reads.Load(); n > 20+int64(len(written))/10 {
		t.Errorf("%d reads of %d keys", n, len(written))
	}
	if n := int(items.batches.Load()); n > 1+len(written)/100 || items.scans.Load() > 0 {
		t.Errorf("%d batches and %d scans of the source for %d keys", n, items.scans.Load(), len(written))
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
	for _, err := range l.store().DirtyIn(t.Context(), generation, generation) {
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
	l := create(t, sharedTable)
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
