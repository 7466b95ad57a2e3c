package follow_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// A process ends, or is paused, at a point: before a write takes effect, after it, or when half of its rows
// are written.
const (
	before = iota
	half
	after
	points
)

// place is where a process is killed or paused: at the write number at, from 1, or at the write number nth of a kind.
type place struct {
	at    int
	kind  string
	nth   int
	point int // before, half or after
}

// process is the connection of a process to its target. At one of its writes, the process is killed, or
// paused until resume.
type process struct {
	grpc.ClientConnInterface
	now func() time.Time
	place
	pauses bool
	end    context.CancelFunc // of the process
	// late: writes of rows that were running at the pause are sent on resume, whatever their deadlines are.
	late bool

	mu      sync.Mutex
	changed *sync.Cond
	writes  []string // the kinds of the writes
	sent    int      // requests that are running
	dead    bool
	paused  bool
	resumed bool
	after   []string // the kinds of the writes that were sent after resume
}

func newProcess(conn grpc.ClientConnInterface, now func() time.Time) *process {
	p := &process{ClientConnInterface: conn, now: now}
	p.changed = sync.NewCond(&p.mu)
	return p
}

var errKilled = status.Error(codes.Internal, "killed")

// kindOf is the kind of a write, and "" for a read.
func kindOf(request any) string {
	var table, row string
	switch r := request.(type) {
	case *btpb.MutateRowRequest:
		table, row = r.GetTableName(), string(r.GetRowKey())
	case *btpb.CheckAndMutateRowRequest:
		table, row = r.GetTableName(), string(r.GetRowKey())
	case *btpb.MutateRowsRequest:
		table, row = r.GetTableName(), string(r.GetEntries()[0].GetRowKey())
	case *btapb.CreateTableRequest:
		return "table"
	case *btapb.ModifyColumnFamiliesRequest:
		return "families"
	default:
		return ""
	}
	switch table = table[strings.LastIndexByte(table, '/')+1:]; {
	case table == layout.SchemaTable:
		return "mark"
	case table == ms.Table && strings.HasPrefix(row, "t#"):
		return map[byte]string{'s': "state", 'c': "checkpoint", 'd': "letter", 'k': "dirty", 'h': "history"}[row[2]]
	case table == "t":
		return "item"
	}
	return "index"
}

// begin waits while the process is paused, and numbers a write. hit means that the process ends, or is
// paused, at this one.
func (p *process) begin(request any) (hit bool, err error) {
	kind := kindOf(request)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.wait(kind); err != nil {
		return false, err
	}
	if p.dead {
		return false, errKilled
	}
	p.sent++
	if kind == "" {
		return false, nil
	}
	p.writes = append(p.writes, kind)
	if p.at == 0 && kind == p.kind {
		if p.nth--; p.nth == 0 {
			p.at = len(p.writes)
		}
	}
	if p.resumed {
		p.after = append(p.after, kind)
	}
	_, rows := request.(*btpb.MutateRowsRequest)
	return len(p.writes) == p.at && (rows || p.point != half), nil
}

func (p *process) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent--
	p.changed.Broadcast()
}

// stop ends or pauses the process. After a pause, its request has the error of a deadline that has passed.
func (p *process) stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.pauses {
		p.dead = true
		p.end()
		return errKilled
	}
	p.paused = true
	p.sent--
	p.changed.Broadcast()
	err := p.wait(p.writes[p.at-1])
	p.sent++
	return err
}

// wait waits while the process is paused. A write that needs the lease is not sent then: its deadline is
// before the end of the lease.
func (p *process) wait(kind string) error {
	since := p.now()
	for p.paused {
		p.changed.Wait()
	}
	late := p.late && (kind == "item" || kind == "index")
	if needsLease(kind) && !late && p.now().Sub(since) >= ms.LeaseTime {
		return status.Error(codes.DeadlineExceeded, "the deadline passed in the pause")
	}
	return nil
}

// needsLease reports whether a process makes such a write only before the end of its lease.
func needsLease(kind string) bool {
	return slices.Contains([]string{"item", "index", "dirty", "letter"}, kind)
}

// stopped waits until the process is paused and none of its requests is running.
func (p *process) stopped(ended <-chan error) (ok bool, err error) {
	reached := make(chan struct{})
	go func() {
		defer close(reached)
		p.mu.Lock()
		defer p.mu.Unlock()
		for !p.dead && (!p.paused || p.sent > 0) {
			p.changed.Wait()
		}
	}()
	select {
	case <-reached:
		return true, nil
	case err := <-ended: // before the point
		p.mu.Lock()
		p.dead = true
		p.changed.Broadcast()
		p.mu.Unlock()
		<-reached
		return false, err
	}
}

func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused, p.resumed = false, true
	p.changed.Broadcast()
}

// sleep is the Sleep of the process: it moves the clock, in steps that let another process renew its lease
// between them.
func (l *live) sleep(p *process) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		if p != nil {
			p.mu.Lock()
			for p.paused {
				p.changed.Wait()
			}
			p.mu.Unlock()
		}
		until := l.env.Now().Add(d)
		for left := d; left > 0 && ctx.Err() == nil; left = until.Sub(l.env.Now()) {
			l.env.Advance(min(left, cmp.Or(l.step, 500*time.Millisecond)))
			wait := time.Millisecond
			if l.env.Now().UnixNano()-l.run.Load() > int64(time.Hour) {
				wait *= 10 // The machine is busy: the work must end before the stream's records do, in 24 hours.
			}
			if err := pauseFor(ctx, wait); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
}

// Invoke makes a call with one answer.
func (p *process) Invoke(ctx context.Context, method string, in, out any, o ...grpc.CallOption) error {
	hit, err := p.begin(in)
	if err != nil {
		return err
	}
	defer p.done()
	if hit && p.point == before {
		if err := p.stop(); err != nil {
			return err
		}
	}
	err = p.ClientConnInterface.Invoke(ctx, method, in, out, o...)
	if hit && p.point == after && err == nil {
		return p.stop()
	}
	return err
}

// NewStream begins a call with many answers.
func (p *process) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, o ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := p.ClientConnInterface.NewStream(ctx, desc, method, o...)
	return &processStream{s, p}, err
}

type processStream struct {
	grpc.ClientStream
	p *process
}

// SendMsg sends the request.
func (s *processStream) SendMsg(m any) error {
	hit, err := s.p.begin(m)
	if err != nil {
		return err
	}
	defer s.p.done()
	if !hit {
		return s.ClientStream.SendMsg(m)
	}
	r := m.(*btpb.MutateRowsRequest)
	if s.p.point == before {
		if err := s.p.stop(); err != nil {
			return err
		}
		return s.ClientStream.SendMsg(m)
	}
	if s.p.point == half {
		r = &btpb.MutateRowsRequest{TableName: r.GetTableName(), AppProfileId: r.GetAppProfileId(), Entries: r.GetEntries()[:(len(r.GetEntries())+1)/2]}
	}
	if err := errors.Join(s.ClientStream.SendMsg(r), s.CloseSend()); err != nil {
		return err
	}
	for {
		if err := s.RecvMsg(&btpb.MutateRowsResponse{}); err != nil { // the rows are written
			break
		}
	}
	if err := s.p.stop(); err != nil {
		return err
	}
	return status.Error(codes.Unavailable, "the answer was lost")
}

// scene is a table that processes follow: whether a follower has run before, and how changes are applied.
type scene struct {
	*live
	first  bool
	mode   string
	loaded *btkit.Snapshot // of the target
}

// set loads a table, and then writes the changes that the processes of the scene apply.
func set(t *testing.T, first bool, mode string) *scene {
	t.Helper()
	s := &scene{live: create(t, strings.Replace(followedTable, "sidecar", "error", 1)), first: first, mode: mode}
	s.step = 2 * time.Second // only one process runs at a time
	s.env.Advance(5 * time.Minute)
	for i := range 6 {
		s.put(t, "p", fmt.Sprint("s", i), i, map[string]string{"G": fmt.Sprint("g", i%2)})
	}
	s.load(t)
	if !first {
		s.put(t, "bad", "mended", 1, map[string]string{"unknown": "x"})
		if err := migrate.Follow(t.Context(), s.target, s.followOptions("setup", nil)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.store().Change(t.Context(), func(was ms.State) (ms.State, *ms.Event, error) {
			was.Dirty, was.Verified = 1, 1 // as after a complete verification
			return was, nil, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	s.loadedNow()
	s.put(t, "p", "s0", 10, map[string]string{"G": "g9"})
	s.remove(t, "p", "s1")
	s.put(t, "p", "s2", 11, nil)
	s.put(t, "p", "new", 12, map[string]string{"G": "g1"})
	s.put(t, "bad", "mended", 13, nil)
	s.put(t, "bad", "kept", 14, map[string]string{"unknown": "x"})
	s.put(t, "p", "s0", 15, map[string]string{"G": "g8"})
	return s
}

func (s *scene) loadedNow() { s.loaded = s.bt.Snapshot() }

func (l *live) store() statetable.Store {
	return statetable.Store{B: table.NewBigtable(l.target, table.Options{}), Table: "t", Now: l.now}
}

func (s *scene) followOptions(owner string, p *process) migrate.FollowOptions {
	o := s.options(owner)
	o.Sleep, o.Mode, o.UntilTip, o.DeadLetter = s.sleep(p), s.mode, true, io.Discard
	return o
}

// ends checks what the last process left: the items of the source, and the dead letters of those whose last
// change was refused, with its revision.
func (s *scene) ends(t *testing.T, refused map[string]string) {
	t.Helper()
	items := slices.DeleteFunc(s.items(t), func(item attr.Item) bool { return refused[item["SK"].Str] != "" })
	r, err := migrate.Verify(t.Context(), s.target, migrate.OfSource(sourceOf(s.now(), items)), migrate.VerifyOptions{Common: s.common(), Stored: true, Timestamps: "ignore"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		if !strings.Contains(f.ItemKey, `"mended"`) || refused["mended"] == "" { // it has a former state, or none
			t.Errorf("the target differs:\n%s", r.Text())
			break
		}
	}
	letters := map[string]string{}
	for l, err := range s.store().Letters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		item, err := attr.UnmarshalItem([]byte(l.Record))
		if err != nil {
			t.Fatal(err)
		}
		letters[item["SK"].Str] = item["rev"].Str
	}
	if !maps.Equal(letters, refused) {
		t.Errorf("the dead letters are %v, want %v", letters, refused)
	}
	if !s.first {
		keys := map[string]bool{}
		for d, err := range s.store().DirtyIn(t.Context(), 1, 1) {
			if err != nil {
				t.Fatal(err)
			}
			keys[d.Key] = true
		}
		for _, sk := range []string{"s0", "s1", "s2", "new"} {
			if !keys[`{"PK":{"S":"p"},"SK":{"S":"`+sk+`"}}`] {
				t.Errorf("the key of %s is not among the changed ones: %v", sk, keys)
			}
		}
	}
}

// The kinds of writes: of the first follower alone, of later ones alone, and of all.
var (
	firstKinds = []string{"table", "families", "mark"}
	laterKinds = []string{"dirty"}
	allKinds   = []string{"history", "state", "checkpoint", "letter", "item", "index"}
)

// scenes runs a test in each scene: at a share of all writes of a process and of all points, until the process ends
// before the write. If share is 0, it runs it before a write of each kind in one scene, and after one, or at half of
// its rows, in a scene of the other mode; if late is set, only in guarded mode, whose requests may arrive late.
func scenes(t *testing.T, share float64, late bool, run func(t *testing.T, s *scene, at place) (reached bool)) {
	t.Helper()
	for i := range 4 {
		first, mode := i < 2, []string{"guarded", "ordered"}[i%2]
		t.Run(fmt.Sprintf("first=%t,%s", first, mode), func(t *testing.T) {
			t.Parallel()
			s := set(t, first, mode)
			try := func(at place) (reached bool) {
				if s.now().Sub(s.made) > 6*time.Hour { // as after many runs: the stream keeps records for 24
					s = set(t, first, mode)
				}
				t.Run(fmt.Sprintf("%d%s%d.%d", at.at, at.kind, at.nth, at.point), func(t *testing.T) { reached = run(t, s, at) })
				return reached
			}
			if share == 0 {
				for k, kind := range slices.Concat(firstKinds, laterKinds, allKinds) {
					if slices.Contains(firstKinds, kind) && !first || slices.Contains(laterKinds, kind) && first {
						continue
					}
					if (k+i+i/2)%2 > 0 || late && slices.Contains(allKinds, kind) && mode == "ordered" {
						continue // another scene has it
					}
					at := place{kind: kind, nth: 1, point: []int{before, after}[(k+i/2)%2]}
					switch {
					case kind == "state" || kind == "checkpoint":
						at.nth += i / 2 // the first one takes the lease
					case kind == "dirty" || mode == "ordered" && (kind == "item" || kind == "index"): // several rows in a request
						at.point = []int{before, half}[i/2]
					}
					try(at)
				}
				return
			}
			draw := rand.New(rand.NewPCG(7, uint64(len(mode))))
			for at, reached := 1, true; reached && !t.Failed(); at++ {
				reached = false
				for point := range points {
					if draw.Float64() > share {
						reached = reached || at < 20
						continue
					}
					reached = try(place{at: at, point: point}) || reached
				}
			}
		})
	}
}

// kill starts a process that ends at a place.
func (s *scene) kill(t *testing.T, at place) (p *process, err error) {
	t.Helper()
	p = newProcess(s.target, s.now)
	p.place = at
	ctx, end := context.WithCancel(t.Context())
	defer end()
	p.end = end
	return p, migrate.Follow(ctx, p, s.followOptions(fmt.Sprint("killed ", at), p))
}

// TestFollow_KilledAnywhere: a follower that is killed at any of its writes, and another process that takes over
// when its lease has ended, lose nothing and invent nothing.
func TestFollow_KilledAnywhere(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	kinds := map[string]bool{}
	t.Cleanup(func() {
		for _, kind := range slices.Concat(firstKinds, laterKinds, allKinds) {
			if !kinds[kind] {
				t.Errorf("no process was killed at a write of kind %s", kind)
			}
		}
	})
	share := 0.0
	if long.Enabled() {
		share = 0.7
	}
	scenes(t, share, false, func(t *testing.T, s *scene, at place) bool {
		t.Helper()
		s.begin()
		s.bt.Restore(s.loaded)
		p, err := s.kill(t, at)
		if !p.dead {
			if err != nil {
				t.Errorf("the process ends with %v", err)
			}
			return false
		}
		mu.Lock()
		kind := p.writes[p.at-1]
		kinds[kind] = true
		mu.Unlock()
		if err == nil {
			t.Errorf("the killed process ends without an error at a write of kind %s", kind)
		}
		if err := migrate.Follow(t.Context(), s.target, s.followOptions("next", nil)); err != nil {
			t.Fatalf("after a kill at a write of kind %s: %v", kind, err)
		}
		s.ends(t, map[string]string{"kept": "14"})
		return true
	})
}

// TestFollow_PausedAnywhere: a follower that is paused at any of its writes, and continues after another process
// has taken over, changes nothing: neither rows nor the progress of the other. If a request was running, its
// row is tested in guarded mode, however late it arrives; in ordered mode its deadline ends it, and no other
// one is sent.
func TestFollow_PausedAnywhere(t *testing.T) {
	t.Parallel()
	share := 0.0
	if long.Enabled() {
		share = 0.3
	}
	scenes(t, share, false, func(t *testing.T, s *scene, at place) bool {
		t.Helper()
		s = set(t, s.first, s.mode)
		p, done := s.pause(t, at)
		if p == nil {
			return false
		}
		kind := p.writes[p.at-1]
		s.put(t, "p", "s0", 20, map[string]string{"G": "g7"})
		s.put(t, "p", "s2", 21, map[string]string{"G": "g6"})
		s.remove(t, "p", "new")
		s.put(t, "bad", "kept", 22, map[string]string{"unknown": "y"})
		s.put(t, "bad", "mended", 23, map[string]string{"unknown": "y"})
		refused := map[string]string{"kept": "22", "mended": "23"}
		if err := migrate.Follow(t.Context(), s.target, s.followOptions("next", nil)); err != nil {
			t.Fatalf("after a pause at a write of kind %s: %v", kind, err)
		}
		saved := s.saved(t)
		p.resume()
		err := <-done
		if !p.leased() {
			if err != nil { // it takes the lease that the other has released
				t.Errorf("the process that was paused before it had the lease ends with %v", err)
			}
			s.ends(t, refused)
			return true
		}
		ended := err == nil && len(p.after) == 0                                // it had saved its last checkpoint
		cut := kind == "families" || status.Code(err) == codes.DeadlineExceeded // both added it; a last call
		if !ended && (err == nil || !cut && !strings.Contains(err.Error(), "has taken the lease")) {
			t.Errorf("the process that was paused at a write of kind %s ends with %v", kind, err)
		}
		if got := s.saved(t); got != saved {
			t.Errorf("the process that was paused at a write of kind %s changes\n%s\nto\n%s", kind, saved, got)
		}
		if s.mode == "ordered" && slices.ContainsFunc(p.after, needsLease) {
			t.Errorf("the process that was paused at a write of kind %s then makes those of kinds %q", kind, p.after)
		}
		s.ends(t, refused)
		return true
	})
}

// pause starts a process that is paused at a place; p is nil if it ends before.
func (s *scene) pause(t *testing.T, at place) (p *process, done chan error) {
	t.Helper()
	p = newProcess(s.target, s.now)
	p.place, p.pauses, p.late = at, true, s.mode == "guarded"
	done = make(chan error, 1)
	go func() { done <- migrate.Follow(t.Context(), p, s.followOptions("paused", p)) }()
	reached, err := p.stopped(done)
	if err != nil {
		t.Errorf("the process ends with %v", err)
	}
	if !reached {
		return nil, nil
	}
	return p, done
}

// leased reports whether the process had the lease when it was paused.
func (p *process) leased() bool {
	first := slices.Index(p.writes, "state") + 1
	return first > 0 && (p.at > first || p.at == first && p.point == after)
}

// TestFollow_PausedBeyondEnd: a follower that is paused at any of its writes, and continues when the migration
// has ended, changes no row, and lets endpoints write.
func TestFollow_PausedBeyondEnd(t *testing.T) {
	t.Parallel()
	share := 0.0
	if long.Enabled() {
		share = 0.3
	}
	scenes(t, share, true, func(t *testing.T, s *scene, at place) bool {
		t.Helper()
		s = set(t, s.first, s.mode)
		p, done := s.pause(t, at)
		if p == nil {
			return false
		}
		o := s.common()
		o.Sleep = s.sleep(nil)
		if err := migrate.EndFollow(t.Context(), s.target, "Things", "operator", true, o); err != nil {
			if p.leased() || !s.first {
				t.Errorf("the migration does not end: %v", err)
			}
			p.resume()
			<-done
			return true
		}
		s.ended(t)
		rows := s.bt.Dump("t") + s.bt.Dump("t__G")
		p.resume()
		if err := <-done; err == nil && len(p.after) > 0 {
			t.Errorf("the process that was paused at a write of kind %s ends without an error, after writes of kinds %q", p.writes[p.at-1], p.after)
		}
		if p.writes[p.at-1] != "letter" { // a letter on its way may still arrive; it has no effect
			s.ended(t)
		}
		if got := s.bt.Dump("t") + s.bt.Dump("t__G"); got != rows {
			t.Errorf("the process that was paused at a write of kind %s changes\n%s\nto\n%s", p.writes[p.at-1], rows, got)
		}
		return true
	})
}

// ended checks the notes about a migration that has ended.
func (s *scene) ended(t *testing.T) {
	t.Helper()
	state, err := s.store().State(t.Context())
	if err != nil || state.Phase != ms.Ended || state.Owner != "" {
		t.Errorf("the state is %+v, error %v", state, err)
	}
	if c, ok, err := s.store().Checkpoint(t.Context(), statetable.StreamSource); ok || err != nil {
		t.Errorf("the checkpoint is %+v, error %v", c, err)
	}
	for l, err := range s.store().Letters(t.Context()) {
		t.Errorf("a dead letter is left: %+v, error %v", l, err)
	}
	if since, ok := s.followed(t); ok {
		t.Errorf("the table is followed since %v", since)
	}
}

// TestEndFollow_KilledAnywhere: an end of a migration that is killed at any of its writes is finished by another one.
func TestEndFollow_KilledAnywhere(t *testing.T) {
	t.Parallel()
	s := set(t, false, "guarded")
	if err := migrate.Follow(t.Context(), s.target, s.followOptions("one", nil)); err != nil {
		t.Fatal(err)
	}
	s.loadedNow()
	o := s.common()
	o.Sleep = s.sleep(nil)
	for at, reached := 1, true; reached; at++ {
		reached = false
		for point := range points {
			if !long.Enabled() && (point == after) != (at%2 == 0) {
				continue // before and at half of every other write, and after the others
			}
			s.bt.Restore(s.loaded)
			p := newProcess(s.target, s.now)
			p.at, p.point = at, point
			ctx, end := context.WithCancel(t.Context())
			p.end = end
			err := migrate.EndFollow(ctx, p, "Things", "killed", true, o)
			end()
			if p.dead == (err == nil) {
				t.Fatalf("killed: %t, error %v", p.dead, err)
			}
			reached = reached || p.dead
			s.checkFollowed(t)
			if err := migrate.EndFollow(t.Context(), s.target, "Things", "next", true, o); err != nil {
				t.Fatalf("after a kill at write %d.%d of %q: %v", at, point, p.writes, err)
			}
			s.ended(t)
			for _, id := range []string{"t", "t__G"} {
				if families, err := s.store().B.Families(t.Context(), id); err != nil || families[lens.FamilyPosition] != nil {
					t.Errorf("after a kill at write %d.%d of %q: families %v, error %v", at, point, p.writes, families, err)
				}
			}
		}
	}
}

// followed returns since when the table is followed, if it is.
func (l *live) followed(t *testing.T) (since time.Time, ok bool) {
	t.Helper()
	notes, err := l.store().B.SchemaOf(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	return loadnote.Followed(notes, "t")
}

// checkFollowed fails the test if endpoints may write to the table although a late write of a follower can succeed.
func (s *scene) checkFollowed(t *testing.T) {
	t.Helper()
	families, err := s.store().B.Families(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.followed(t); !ok && families[lens.FamilyPosition] != nil {
		t.Error("endpoints may write to the table, which has the family of a follower")
	}
}

// saved returns the state of the table and its checkpoint.
func (s *scene) saved(t *testing.T) string {
	t.Helper()
	state, err := s.store().State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := s.store().Checkpoint(t.Context(), statetable.StreamSource)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%+v\n%+v", state, c)
}
