package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// Options configures a Runner. Only Lease is optional.
type Options struct {
	Client      *btclient.Client
	Table       string // name of the catalog table
	Family      string // family of jobs; it keeps only the newest cell
	TokenFamily string // family of tokens; its cells are deleted after a day or more
	// Owner returns a string that is unique to this process.
	Owner    func() string
	Now      func() time.Time
	Wall     *clock.Clock  // clock of leases
	NewToken func() []byte // returns a short unique value
	Logger   *slog.Logger
	// Lease is the time for which a job stays with a process that does not increment the
	// job's counter. Default: 10 s.
	Lease time.Duration
}

const defaultLease = 10 * time.Second

// The default limits of a kind, and the limits of attempts.
const (
	// DefaultAtOnce is the maximum number of jobs of a kind that a process works on at
	// once.
	DefaultAtOnce = 4
	// DefaultMost is the maximum number of jobs of a kind.
	DefaultMost = 10_000

	// maxAttempts limits the attempts of a job.
	maxAttempts = 5
	// attemptPause is the pause before the second attempt; the pause before the third is
	// twice as long.
	attemptPause = time.Second
)

// Kind is a kind of job.
type Kind struct {
	Name string // name without "/"
	// Run does the work of a job. See the package comment.
	Run func(ctx context.Context, c *Claim) error
	// AtOnce is the maximum number of jobs that a process works on at once. Default:
	// DefaultAtOnce.
	AtOnce int
	// Most is the maximum number of jobs, including ended ones. Default: DefaultMost.
	Most int
	// Keep is the time for which an ended job is kept, by the clock Now. If KeepOf is
	// set, it returns that time for a job, given its id and state. Default: a job is kept
	// until it is deleted.
	Keep   time.Duration
	KeepOf func(id string, ended State) time.Duration
	// Forget, if set, is called before an expired job is deleted.
	Forget func(ctx context.Context, j Job) error
}

func (k *Kind) keep(id string, ended State) time.Duration {
	if k.KeepOf != nil {
		return k.KeepOf(id, ended)
	}
	return k.Keep
}

// Runner creates jobs and works on them. It is safe for concurrent use. Call Handle before
// Start, and Start before the other methods.
type Runner struct {
	o     Options
	kinds map[string]*Kind

	life       context.Context
	end        context.CancelFunc
	background sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{}       // closed and replaced when busy shrinks
	busy    map[string]int      // jobs of a kind that are queued here, or being worked on
	waiting map[string][]string // queued ids, by kind
	working map[string]int      // by kind
	known   map[[2]string]bool  // queued, being worked on, or watched
	claims  map[[2]string]*Claim
	watched map[[2]string]seen // jobs of other processes
	watcher bool               // a goroutine watches them
}

// New returns a Runner that is not started.
func New(ctx context.Context, o Options) *Runner {
	o.Lease = cmp.Or(o.Lease, defaultLease)
	r := &Runner{
		o: o, kinds: map[string]*Kind{}, changed: make(chan struct{}), busy: map[string]int{}, waiting: map[string][]string{},
		working: map[string]int{}, known: map[[2]string]bool{}, claims: map[[2]string]*Claim{}, watched: map[[2]string]seen{},
	}
	r.life, r.end = context.WithCancel(context.WithoutCancel(ctx))
	return r
}

// Handle registers a kind of job.
func (r *Runner) Handle(k Kind) {
	k.AtOnce, k.Most = cmp.Or(k.AtOnce, DefaultAtOnce), cmp.Or(k.Most, DefaultMost)
	r.kinds[k.Name] = &k
}

// Start resumes the jobs of earlier processes.
func (r *Runner) Start(ctx context.Context) error { return r.Tidy(ctx) }

// Tidy resumes the jobs of ended processes, and deletes expired jobs. It does nothing if
// no kind is registered.
func (r *Runner) Tidy(ctx context.Context) error {
	if len(r.kinds) == 0 {
		return nil
	}
	var old [][2]string
	for s, err := range r.states(ctx) {
		if err != nil {
			return fmt.Errorf("looking for unfinished jobs: %w", err)
		}
		k := r.kinds[s.kind]
		switch {
		case k == nil:
		case s.state == Running:
			r.enqueue(s.kind, s.id)
		default:
			if keep := k.keep(s.id, s.state); keep > 0 && !r.o.Now().Before(s.since.Add(keep)) {
				old = append(old, [2]string{s.kind, s.id})
			}
		}
	}
	for _, key := range old {
		if forget := r.kinds[key[0]].Forget; forget != nil {
			j, err := r.Get(ctx, key[0], key[1])
			if err == nil {
				err = forget(ctx, j)
			}
			if err != nil && !errors.Is(err, ErrNotFound) {
				return fmt.Errorf("deleting expired jobs: %w", err)
			}
		}
		if err := r.Delete(ctx, key[0], key[1], func(Job) error { return nil }); err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("deleting expired jobs: %w", err)
		}
	}
	return nil
}

// Spec describes a new job.
type Spec struct {
	Kind, ID string
	Request  json.RawMessage
	Token    Token
	Done     bool // the job has nothing to do, and is only stored
	// Prepare, if set, does work that must be done before Create returns. It is called
	// after the job is stored, and returns the request for Run. If it fails, the job is
	// deleted. If the process ends before Prepare returns, the job keeps Request, and Run
	// must do the work of Prepare.
	Prepare func(ctx context.Context) (json.RawMessage, error)
}

// Create creates a job, and starts its work if a slot is free. If the token was used
// before, Create returns the job of that token. It returns ErrExists, ErrTooMany,
// ErrTokenMismatch, or an error from Prepare.
func (r *Runner) Create(ctx context.Context, s Spec) (Job, error) {
	k := r.kinds[s.Kind]
	if k == nil {
		return Job{}, fmt.Errorf("unknown kind of job: %s", s.Kind)
	}
	if s.Token.Text != "" {
		if j, found, err := r.Find(ctx, s.Kind, s.Token); found || err != nil {
			return j, err
		}
	}
	n, err := r.count(ctx, k.Name, k.Most)
	if err != nil {
		return Job{}, err
	}
	if n >= k.Most {
		return Job{}, fmt.Errorf("%w: %d of kind %s", ErrTooMany, n, k.Name)
	}
	if s.Token.Text != "" {
		known, err := r.remember(ctx, &s)
		if err != nil {
			return Job{}, err
		}
		s.ID, s.Request = known.ID, known.Request
	}
	j := Job{Kind: s.Kind, ID: s.ID, Request: s.Request, State: Running, Created: r.o.Now()}
	if s.Done {
		j.State, j.Ended = Done, j.Created
	}
	if s.Prepare != nil {
		j.Owner = r.o.Owner()
		r.know(s.Kind, s.ID)
	}
	_, ok, err := r.writeJob(ctx, &j, nil)
	if s.Prepare != nil {
		if ok {
			j, err = r.prepare(ctx, j, s.Prepare)
		}
		r.forget(s.Kind, s.ID)
	}
	switch {
	case err != nil:
		return j, err
	case !ok && s.Token.Text != "": // another request with the token came first
		return r.Get(ctx, s.Kind, s.ID)
	case !ok:
		return j, fmt.Errorf("%w: %s of kind %s", ErrExists, s.ID, s.Kind)
	}
	if j.State == Running {
		r.enqueue(s.Kind, s.ID)
	}
	return j, nil
}

// prepare completes a stored job, or deletes it.
func (r *Runner) prepare(ctx context.Context, j Job, prepare func(context.Context) (json.RawMessage, error)) (Job, error) {
	request, err := prepare(ctx)
	if err != nil {
		gone := r.Delete(context.WithoutCancel(ctx), j.Kind, j.ID, func(Job) error { return nil })
		if errors.Is(gone, ErrNotFound) {
			gone = nil
		}
		return j, errors.Join(err, gone)
	}
	j, _, err = r.change(ctx, j.Kind, j.ID, func(j *Job) error {
		if j.Owner == r.o.Owner() { // otherwise another process has done the same
			j.Request, j.Owner = request, ""
		}
		return nil
	})
	return j, err
}

// Update changes a job by calling fn, possibly several times. It notifies the work on the
// job in this process. It returns the error of fn, or ErrNotFound.
func (r *Runner) Update(ctx context.Context, kind, id string, fn func(*Job) error) (Job, error) {
	j, _, err := r.change(ctx, kind, id, fn)
	if err != nil {
		return j, err
	}
	if c := r.claimOf(kind, id); c != nil {
		c.refresh()
	}
	return j, nil
}

// Delete deletes a job and ends the work on it. It first calls may, possibly several
// times. If may returns an error, Delete returns that error and does nothing. It returns
// ErrNotFound if the job does not exist.
func (r *Runner) Delete(ctx context.Context, kind, id string, may func(Job) error) error {
	for range maxChanges {
		j, version, err := r.readJob(ctx, kind, id)
		if err == nil {
			err = may(j)
		}
		if err != nil {
			return err
		}
		if _, ok, err := r.write(ctx, r.o.Family, jobRow(kind, id), version, nil, ""); err != nil {
			return err
		} else if ok {
			if c := r.claimOf(kind, id); c != nil {
				c.cancel(ErrLost)
			}
			return nil
		}
	}
	return fmt.Errorf("%w: %s of kind %s", errContended, id, kind)
}

func (r *Runner) claimOf(kind, id string) *Claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.claims[[2]string{kind, id}]
}

// know prevents work on a job in this process until forget is called.
func (r *Runner) know(kind, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[[2]string{kind, id}] = true
}

func (r *Runner) forget(kind, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, [2]string{kind, id})
}

// enqueue starts work on a job in this process, unless it has started.
func (r *Runner) enqueue(kind, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.life.Err() != nil || r.known[[2]string{kind, id}] {
		return
	}
	r.known[[2]string{kind, id}] = true
	r.queue(kind, id)
}

// queue adds a job to the queue of its kind. The caller holds r.mu.
func (r *Runner) queue(kind, id string) {
	r.busy[kind]++
	r.waiting[kind] = append(r.waiting[kind], id)
	if r.working[kind] < r.kinds[kind].AtOnce {
		r.working[kind]++
		r.background.Go(func() { r.workOn(r.kinds[kind]) })
	}
}

// workOn works on the queued jobs of a kind, in sequence.
func (r *Runner) workOn(k *Kind) {
	for {
		r.mu.Lock()
		if len(r.waiting[k.Name]) == 0 || r.life.Err() != nil {
			r.working[k.Name]--
			r.mu.Unlock()
			return
		}
		id := r.waiting[k.Name][0]
		r.waiting[k.Name] = r.waiting[k.Name][1:]
		r.mu.Unlock()
		held, err := r.attempt(k, id)
		if err != nil && r.life.Err() == nil {
			r.o.Logger.Error("a job is postponed", "kind", k.Name, "job", id, "error", err)
		}
		r.mu.Lock()
		key := [2]string{k.Name, id}
		delete(r.watched, key)
		if held != nil || err != nil {
			s := seen{at: r.o.Wall.Now()}
			if held != nil {
				s.owner, s.beat = held.Owner, held.Beat
			}
			r.watched[key] = s
			if !r.watcher {
				r.watcher = true
				r.background.Go(r.watch)
			}
		} else {
			delete(r.known, key)
		}
		r.busy[k.Name]--
		close(r.changed)
		r.changed = make(chan struct{})
		r.mu.Unlock()
	}
}

// Wait waits until this process has no unfinished jobs of a kind.
func (r *Runner) Wait(ctx context.Context, kind string) error {
	for {
		r.mu.Lock()
		n, changed := r.busy[kind], r.changed
		r.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-r.life.Done():
			return r.life.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close stops all work. Another process, or the next one, resumes it.
func (r *Runner) Close() {
	r.mu.Lock()
	r.end()
	r.mu.Unlock()
	r.background.Wait()
}
