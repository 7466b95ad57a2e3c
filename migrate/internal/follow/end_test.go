package follow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/migrate/stream"
)

// status returns the status of the table.
func (l *live) status(t *testing.T) migrate.FollowStatus {
	t.Helper()
	all, err := migrate.Status(t.Context(), l.target, l.common())
	if err != nil || len(all) != 1 {
		t.Fatalf("the status is %+v, error %v", all, err)
	}
	return all[0]
}

// toTip follows until the tip, and keeps changes that cannot be applied.
func (l *live) toTip(t *testing.T, owner string) {
	t.Helper()
	o := l.options(owner)
	o.UntilTip, o.DeadLetter = true, io.Discard
	if err := migrate.Follow(t.Context(), l.target, o); err != nil {
		t.Fatal(err)
	}
}

// A run until the tip drains the table, if it applied all changes. Its status has the proof as the next command, and
// then the end. A later run follows again.
func TestFollow_Drained(t *testing.T) {
	t.Parallel()
	l := create(t, strings.Replace(followedTable, "sidecar", "error", 1))
	l.env.Advance(5 * time.Minute)
	l.put(t, "p", "s", 1, nil)
	l.load(t)
	phase := func(when, want, next string) {
		t.Helper()
		if s := l.status(t); s.Phase != want || s.Running != "" || !strings.HasPrefix(s.Next, next) {
			t.Errorf("%s: phase %s, run by %q, next %q; want %s, next %q", when, s.Phase, s.Running, s.Next, want, next)
		}
	}
	l.toTip(t, "one")
	phase("at the tip", "DRAINED", "if the source is frozen: tabletop migrate verify --live --consistent --table Things --source c")
	if _, live := l.verifyLive(t, l.liveOptions(pause)); live.Compared != 1 {
		t.Errorf("the verification compares %d keys", live.Compared)
	}
	const again = "if the source is frozen, this applies 0 changes: tabletop migrate follow Things --flag 'a b' --source c --until tip"
	phase("after the complete proof", "DRAINED", again)
	l.env.Advance(time.Minute)
	l.toTip(t, "again")
	phase("without a change since the proof", "DRAINED", "tabletop migrate finish Things")

	_, stop := l.follow(t, "two")
	l.put(t, "p", "s", 2, nil)
	stop()
	phase("after another run", "FOLLOWING", "tabletop migrate follow Things")
	l.put(t, "p", "s", 3, map[string]string{"unknown": "x"})
	l.toTip(t, "three")
	phase("with a dead letter", "FOLLOWING", "tabletop migrate follow Things")
	l.put(t, "p", "s", 4, nil)
	l.toTip(t, "four")
	phase("without one", "DRAINED", "if the source is frozen: tabletop migrate verify --live --dirty --table Things --source c")
	o := l.liveOptions(pause)
	o.Dirty = true
	if _, live := l.verifyLive(t, o); live.Compared != 1 {
		t.Errorf("the verification compares %d keys", live.Compared)
	}
	phase("after the proof of the changed keys", "DRAINED", again)
	l.put(t, "p", "s", 5, nil) // the source was not frozen
	l.env.Advance(time.Minute)
	l.toTip(t, "finds it")
	phase("with a change since the proof", "DRAINED", "if the source is frozen: tabletop migrate verify --live --dirty --table Things --source c")
	if r, _ := l.verifyLive(t, o); !strings.Contains(r.Text(), "warning: table Things: no process followed it, so this proves only its writes before ") {
		t.Errorf("the proof does not name its limit:\n%s", r.Text())
	}
	l.env.Advance(time.Minute)
	l.toTip(t, "again")
	phase("without a change since the second proof", "DRAINED", "tabletop migrate finish Things")
	until := l.options("five")
	until.Until = l.now()
	if err := migrate.Follow(t.Context(), l.target, until); err != nil {
		t.Fatal(err)
	}
	phase("until a time", "FOLLOWING", "tabletop migrate follow Things")
}

// The end of a migration is refused while changes are dead letters and while the follower catches up, unless these
// are abandoned. Afterwards the same items are not followed again; those of a later load are, from the beginning.
func TestEndFollow(t *testing.T) {
	t.Parallel()
	l := create(t, strings.Replace(followedTable, "sidecar", "error", 1))
	l.env.Advance(5 * time.Minute)
	l.put(t, "p", "s", 1, nil)
	l.load(t)
	end := func(abandon bool) error {
		return migrate.EndFollow(t.Context(), l.target, "Things", "operator", abandon, l.common())
	}
	refused := func(abandon bool, want ...string) {
		t.Helper()
		err := end(abandon)
		for _, text := range want {
			if source.DamageOf(err) == "" || !strings.Contains(err.Error(), text) {
				t.Errorf("the end is refused with %v, want %q", err, text)
			}
		}
	}
	refused(true, "no migration", "expected FOLLOWING or DRAINED or ENDED or CATCHING_UP")
	l.put(t, "p", "s", 2, map[string]string{"unknown": "x"})
	l.toTip(t, "one")
	refused(false, `a change of item {"PK":{"S":"p"},"SK":{"S":"s"}} was not applied (E-UNKNOWN-ATTRIBUTE`, "correct the item in the source", "--abandon", "tabletop migrate status --letters")
	if s := l.status(t); s.Phase != "FOLLOWING" || s.Running != "" {
		t.Errorf("after a refused end: %+v", s)
	}
	l.toTip(t, "two") // the refused end has released its lease
	if err := end(true); err != nil {
		t.Fatal(err)
	}
	if s := l.status(t); s.Phase != "ENDED" || s.LetterCount != 0 || s.Next != "" || s.History[0].By != "operator" {
		t.Errorf("after the end: %+v", s)
	}
	if err := end(false); err != nil {
		t.Errorf("the second end: %v", err)
	}
	again := l.options("three")
	again.Tables = []string{"Things"}
	if err := migrate.Follow(t.Context(), l.target, again); err == nil || !strings.Contains(err.Error(), "its migration has ended, and nothing was loaded since: export the source again") {
		t.Errorf("a follower after the end: %v", err)
	}
	if since, ok := l.followed(t); ok {
		t.Errorf("after a refused follower the table is followed since %v", since)
	}
}

// A migration that begins again has no proof from the one before.
func TestFollow_VerifiedAgain(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 0)
	l.put(t, "p", "s", 1, nil)
	l.toTip(t, "one")
	if r, _ := l.verifyLive(t, l.liveOptions(pause)); len(r.Failures) > 0 {
		t.Fatal(r.Text())
	}
	if err := migrate.EndFollow(t.Context(), l.target, "Things", "operator", false, l.common()); err != nil {
		t.Fatal(err)
	}
	l.env.Advance(15 * time.Minute)
	load := migrate.LoadOptions{Common: l.common(), Mix: true, KeepWrites: true}
	if _, err := migrate.Load(t.Context(), l.target, l.source(t, l.now()), load); source.DamageOf(err) != source.TargetFollowed || !strings.Contains(err.Error(), "which a migration followed until ") || !strings.Contains(err.Error(), "delete this one and the tables of its indexes first") {
		t.Errorf("a load over the items of the migration: %v", err)
	}
	for _, id := range []string{"t", "t__G"} {
		must(t, l.store().B.DropTable(t.Context(), id))
	}
	l.load(t)
	o := l.liveOptions(pause)
	o.Dirty = true
	if _, err := migrate.VerifyLive(t.Context(), l.target, o); err == nil || !strings.Contains(err.Error(), "phase ENDED") {
		t.Errorf("after the end: %v", err)
	}
	again := l.options("two")
	again.Tables, again.UntilTip = []string{"Things"}, true
	if err := migrate.Follow(t.Context(), l.target, again); err != nil {
		t.Fatal(err)
	}
	if s := l.status(t); s.Phase != "DRAINED" {
		t.Errorf("the second migration is in phase %s", s.Phase)
	}
	if _, err := migrate.VerifyLive(t.Context(), l.target, o); err == nil || !strings.Contains(err.Error(), "run verify --live --consistent first") {
		t.Errorf("in the second migration: %v", err)
	}
}

// While the target does not answer, a follower waits: for changes, for its lease and for its checkpoint. It gives up
// after a while.
func TestFollow_TargetAway(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 10)
	l.step = 2 * time.Second // nothing else renews a lease
	l.put(t, "p", "s", 2, nil)
	away := &awayTarget{ClientConnInterface: l.target, now: l.now, from: l.now().Add(5 * time.Second), lasts: time.Minute}
	o := l.options("one")
	o.Until, o.Sleep = l.now().Add(time.Minute), l.sleep(nil)
	if err := migrate.Follow(t.Context(), away, o); err != nil {
		t.Fatal(err)
	}
	if away.refused == 0 || l.now().Before(away.to) {
		t.Errorf("the target refused %d calls until %v, want some until %v", away.refused, l.now(), away.to)
	}
	l.verify(t)
	away = &awayTarget{ClientConnInterface: l.target, now: l.now, from: l.now().Add(5 * time.Second), lasts: 1000 * time.Hour}
	o.Until = time.Time{}
	if err := migrate.Follow(t.Context(), away, o); err == nil || errors.Is(err, context.Canceled) || l.now().Before(away.from.Add(14*time.Minute)) {
		t.Errorf("after %v the follower ends with %v", l.now().Sub(away.from), err)
	}
}

// Before the source has answered the first run, the lag is unknown: the run begins to read minutes before the load. Of a
// later run it is known at once. The run that catches up says so.
func TestFollow_FirstLag(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 10)
	for run, known := range []bool{false, true} {
		var lags []time.Duration
		o := l.options("one")
		o.UntilTip, o.Report = true, func(s migrate.FollowStatus) { lags = append(lags, s.Lag) }
		said := ""
		o.Warn = func(text string) { said += text }
		must(t, migrate.Follow(t.Context(), l.target, o))
		if (lags[0] >= 0) != known || lags[len(lags)-1] < 0 {
			t.Errorf("run %d has the lags %v", run, lags)
		}
		if want := "table Things: phase FOLLOWING: all changes up to the end of the load are applied"; said != want && !known || said != "" && known {
			t.Errorf("run %d says %q", run, said)
		}
	}
	if s := l.status(t); s.Lags.Millis[0] > time.Minute.Milliseconds() {
		t.Errorf("the history begins with %d ms", s.Lags.Millis[0])
	}
}

// A quiet table needs no change to be followed, waited for and ended: an empty answer of the stream moves the
// watermark, even for a source that does not state it.
func TestFollow_Quiet(t *testing.T) {
	t.Parallel()
	for rule, most := range map[string]time.Duration{stream.RuleHeader: 2 * time.Second, stream.RuleAnswers: 4 * time.Second} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			l := startEarly(t, 10)
			l.clients.Stream = unstated{l.clients.Stream, rule == stream.RuleAnswers}
			toTip := func(owner string) {
				t.Helper()
				o := l.options(owner)
				o.UntilTip, o.Sleep = true, l.sleep(nil) // answers without a watermark prove a state a second later
				must(t, migrate.Follow(t.Context(), l.target, o))
			}
			toTip("first") // has the changes before the end of the load
			l.env.Advance(time.Hour)
			sleep, stop := l.follow(t, "one")
			for waited := 0; ; waited++ {
				must(t, sleep(t.Context(), time.Second)) // the checkpoint is one of this follower
				s := l.status(t)
				if s.Changes > 0 {
					t.Fatalf("%d changes of a quiet table", s.Changes)
				}
				if s.Rule == rule && s.Lag >= 0 && s.Lag <= most && s.Watermark.After(l.now().Add(-time.Minute)) {
					break
				}
				if waited == 1000 {
					t.Fatalf("the lag of a quiet table is %v by rule %q", s.Lag, s.Rule)
				}
			}
			stop()
			l.env.Advance(time.Hour)
			toTip("last")
			if s := l.status(t); s.Phase != "DRAINED" || s.Watermark.Before(l.now().Add(-time.Minute)) {
				t.Errorf("the status is %+v", s)
			}
			must(t, migrate.EndFollow(t.Context(), l.target, "Things", "operator", false, l.common()))
		})
	}
}

// unstated is a source that does not state its watermark, if it hides.
type unstated struct {
	stream.Client
	hides bool
}

func (c unstated) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput, o ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	out, err := c.Client.GetRecords(ctx, in, o...)
	if err == nil && c.hides {
		if r, ok := awsmiddleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response); ok {
			r.Header.Del("x-tabletop-watermark")
		}
	}
	return out, err
}

// A lease is judged by its observer: a second follower is refused when the first one renews it, and takes over when
// it does not, whatever the clocks of both say. So does the end.
func TestFollow_Clocks(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			l := startEarly(t, 10)
			sleep, stop := l.follow(t, "one")
			o := l.options("two")
			o.Now = func() time.Time { return l.now().Add(skew) }
			o.Sleep = sleep // until the first has saved
			var warned []string
			o.Warn = func(text string) { warned = append(warned, text) }
			if err := migrate.Follow(t.Context(), l.target, o); source.DamageOf(err) == "" || !strings.Contains(err.Error(), "one follows its source, and renews its lease: end that process first") {
				t.Errorf("beside another: %v", err)
			}
			if len(warned) != 1 || !strings.Contains(warned[0], "waiting up to 15s for the lease of one") {
				t.Errorf("the warnings are %q", warned)
			}
			c := l.common()
			c.Now, c.Sleep = o.Now, sleep
			if err := migrate.EndFollow(t.Context(), l.target, "Things", "operator", false, c); source.DamageOf(err) == "" || !strings.Contains(err.Error(), "renews its lease") {
				t.Errorf("the end beside a follower: %v", err)
			}
			c.Sleep = func(ctx context.Context, d time.Duration) error { return errors.Join(sleep(ctx, 0), sleep(ctx, d)) } // two seconds
			status, err := migrate.Status(t.Context(), l.target, c)
			if err != nil || status[0].Running != "one" {
				t.Errorf("the running process is %q, error %v", status[0].Running, err)
			}
			if behind := skew < 0; (status[0].ClockDiffers > 9*time.Minute) != behind {
				t.Errorf("the clocks differ by %v", status[0].ClockDiffers)
			}
			live := l.liveOptions(sleep)
			live.Now = o.Now
			if r, _ := l.verifyLive(t, live); len(r.Failures) > 0 || !strings.Contains(r.Text(), "watermark by header") {
				t.Errorf("the verification beside the follower has\n%s", r.Text())
			}
			stop()
			// A process that ended without releasing its lease.
			if _, err := l.store().Change(t.Context(), func(s ms.State) (ms.State, *ms.Event, error) {
				s, err := s.Leased("t", "dead", l.now(), &ms.Sighting{})
				return s, nil, err
			}); err != nil {
				t.Fatal(err)
			}
			began := l.now()
			o.UntilTip, o.Sleep = true, l.sleep(nil)
			if err := migrate.Follow(t.Context(), l.target, o); err != nil {
				t.Fatal(err)
			}
			if waited := l.now().Sub(began); waited < ms.LeaseTime {
				t.Errorf("the lease was taken over after %v", waited)
			}
			if len(warned) != 2 || !strings.Contains(warned[1], "for the lease of dead") {
				t.Errorf("the warnings are %q", warned)
			}
		})
	}
}

// Indexes of the source that the mapping lacks are named once: their queries have no table.
func TestFollow_Indexes(t *testing.T) {
	t.Parallel()
	l := create(t, strings.Replace(followedTable, "name: G,", "name: byG,", 1))
	l.env.Advance(5 * time.Minute)
	l.put(t, "p", "s", 1, nil)
	l.load(t)
	o := l.options("one")
	var warned []string
	o.UntilTip, o.Warn = true, func(text string) { warned = append(warned, text) }
	if err := migrate.Follow(t.Context(), l.target, o); err != nil || strings.Contains(strings.Join(warned, " "), "indexes") {
		t.Fatalf("without indexes in the source: warnings %q, error %v", warned, err)
	}
	warned = nil
	for _, name := range []string{"byG", "Other"} {
		_, err := l.ddb.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
			TableName:            aws.String("Things"),
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("G"), AttributeType: "S"}},
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
				IndexName: aws.String(name), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
				KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("G"), KeyType: "HASH"}},
			}}},
		})
		must(t, err)
		for active := false; !active; {
			l.env.Advance(time.Minute)
			must(t, pause(t.Context(), time.Millisecond))
			out, err := l.ddb.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("Things")})
			must(t, err)
			active = out.Table.TableStatus == types.TableStatusActive
		}
	}
	if err := migrate.Follow(t.Context(), l.target, o); err != nil || len(warned) != 1 || !strings.Contains(warned[0], "table Things has indexes that its mapping lacks (Other): their queries have no Bigtable table") {
		t.Errorf("the warnings are %q, error %v", warned, err)
	}
}

// A throttle holds changes back, including those at the start, while the lease and the checkpoint are kept; a rate slows
// them down, and without it the limit of the options holds.
func TestFollow_Throttle(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 3)
	for i := range 60 {
		l.put(t, "p", fmt.Sprint("s", i), i, nil)
	}
	o := l.options("one")
	o.UntilTip, o.Sleep, o.Mode = true, l.sleep(nil), "ordered"
	began, looks := l.now(), 0
	o.Stopwatch = func() time.Duration { return l.now().Sub(began) }
	var paused, last time.Time
	o.Throttle = func() (int, bool) {
		if looks++; looks > 30 {
			return 5, true
		}
		paused = l.now()
		return 0, true
	}
	o.Report = func(s migrate.FollowStatus) {
		if last = l.now(); s.Changes > 0 && looks <= 30 {
			t.Errorf("%d changes are applied in the pause", s.Changes)
		}
	}
	if err := migrate.Follow(t.Context(), l.target, o); err != nil {
		t.Fatal(err)
	}
	if held := paused.Sub(began); held < 29*time.Second {
		t.Errorf("changes were held back for %v", held)
	}
	if spent := last.Sub(paused); spent < 8*time.Second {
		t.Errorf("60 changes at 5 rows a second take %v", spent)
	}
	l.verify(t)
	for i := range 60 {
		l.put(t, "p", fmt.Sprint("s", i), 100+i, nil)
	}
	o.Throttle = func() (int, bool) { return 0, false }
	o.MaxRowsPerSecond = 10
	start := l.now()
	if err := migrate.Follow(t.Context(), l.target, o); err != nil {
		t.Fatal(err)
	}
	if spent := l.now().Sub(start); spent < 4*time.Second {
		t.Errorf("without the throttle, 60 changes at 10 rows a second take %v", spent)
	}
	l.verify(t)
}

// Only the last term saves a checkpoint, even after the end of a migration; and a late process neither drops nor
// replaces the dead letter of a later change.
func TestFollow_LateWrites(t *testing.T) {
	t.Parallel()
	l := create(t, followedTable)
	s, ctx := l.store(), t.Context()
	must(t, s.Make(ctx))
	saves := func(term uint64, want bool) {
		t.Helper()
		if done, err := s.SaveCheckpoint(ctx, statetable.StreamSource, term, ms.Checkpoint{Version: fmt.Sprint(term)}); done != want || err != nil {
			t.Errorf("term %d saves: %t, error %v, want %t", term, done, err, want)
		}
	}
	claims := func(term uint64, want bool) {
		t.Helper()
		if done, err := s.ClaimCheckpoint(ctx, statetable.StreamSource, term); done != want || err != nil {
			t.Errorf("term %d claims: %t, error %v, want %t", term, done, err, want)
		}
	}
	saves(1, false)
	claims(1, true)
	saves(1, true)
	claims(3, true)
	claims(1, false)
	saves(1, false)
	saves(2, false)
	saves(3, true)
	if c, ok, err := s.Checkpoint(ctx, statetable.StreamSource); !ok || err != nil || c.Version != "3" {
		t.Errorf("the checkpoint is %+v, %t, error %v", c, ok, err)
	}
	must(t, s.Clear(ctx, 4))
	saves(3, false)
	if c, ok, err := s.Checkpoint(ctx, statetable.StreamSource); ok || err != nil {
		t.Errorf("after the end the checkpoint is %+v, error %v", c, err)
	}

	id := attr.ItemID{1}
	letter := func(want string) {
		t.Helper()
		var got string
		for l, err := range s.Letters(ctx) {
			must(t, err)
			got += l.Reason
		}
		if got != want {
			t.Errorf("the dead letter is %q, want %q", got, want)
		}
	}
	must(t, s.DropLetter(ctx, id, []byte{9}))
	must(t, s.SaveLetter(ctx, id, ms.Letter{Reason: "five", Position: []byte{5}}))
	must(t, s.SaveLetter(ctx, id, ms.Letter{Reason: "four", Position: []byte{4}}))
	must(t, s.DropLetter(ctx, id, []byte{4}))
	letter("five")
	must(t, s.SaveLetter(ctx, id, ms.Letter{Reason: "six", Position: []byte{6}}))
	letter("six")
	must(t, s.DropLetter(ctx, id, []byte{7}))
	letter("")
}

// awayTarget is a connection to a target that does not answer its first call after a time, and those in some time after
// that call. Sleepers move the clock, so on a busy machine any time can pass before a call.
type awayTarget struct {
	grpc.ClientConnInterface
	now     func() time.Time
	from    time.Time
	lasts   time.Duration
	to      time.Time // of the last refusal at the latest; zero before the first
	refused int
	mu      sync.Mutex
}

func (c *awayTarget) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if !now.Before(c.from) && c.to.IsZero() {
		c.to = now.Add(c.lasts)
	}
	if c.to.IsZero() || now.After(c.to) {
		return nil
	}
	c.refused++
	return status.Error(codes.Unavailable, "away")
}

func (c *awayTarget) Invoke(ctx context.Context, method string, in, out any, o ...grpc.CallOption) error {
	if err := c.check(); err != nil {
		return err
	}
	return c.ClientConnInterface.Invoke(ctx, method, in, out, o...)
}

func (c *awayTarget) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, o ...grpc.CallOption) (grpc.ClientStream, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.ClientConnInterface.NewStream(ctx, desc, method, o...)
}

// A follower that is interrupted while it takes its lease releases it, so that the next one does not wait.
func TestFollow_InterruptedAtLease(t *testing.T) {
	t.Parallel()
	l := startEarly(t, 10)
	ctx, cancel := context.WithCancel(t.Context())
	target := intercept.New(l.target, nil)
	target.After(func(ctx context.Context, answer any) error {
		if _, ok := answer.(*btpb.CheckAndMutateRowResponse); ok { // that of the lease is the first
			cancel()
		}
		return ctx.Err() // as if the answer had not arrived
	})
	err := migrate.Follow(ctx, target, l.options("one"))
	if !errors.Is(err, context.Canceled) && status.Code(err) != codes.Canceled {
		t.Errorf("the run ends with %v", err)
	}
	s, err := l.store().State(t.Context())
	if err != nil || s.Phase != ms.CatchingUp || s.Owner != "" {
		t.Errorf("the state is %v, owned by %q, error %v; want the lease to be released", s, s.Owner, err)
	}
}
