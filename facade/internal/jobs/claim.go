package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Claim is the ownership of a job by this process. It is safe for concurrent use.
type Claim struct {
	r       *Runner
	key     [2]string
	cancel  context.CancelCauseFunc // ends the work
	changed chan struct{}

	mu      sync.Mutex // held during writes of the row
	job     Job
	version []byte
	renewed time.Time // Wall: start of the last successful write
}

// Job returns the job as this process last read or wrote it.
func (c *Claim) Job() Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.job
}

// LastAttempt reports whether an error in this attempt would make the job fail
// permanently.
func (c *Claim) LastAttempt() bool { return c.Job().Attempts >= maxAttempts-1 }

// Changed receives a value after others have changed the job. Job then returns the
// changed job. One value may stand for several changes.
func (c *Claim) Changed() <-chan struct{} { return c.changed }

// Pause waits for a duration on the clock of leases, or until ctx ends.
func (c *Claim) Pause(ctx context.Context, d time.Duration) error { return c.r.o.Wall.Wait(ctx, d) }

// Save stores the progress of the work, as JSON. It returns ErrLost if this process no
// longer owns the job.
func (c *Claim) Save(ctx context.Context, progress any) error {
	text, err := json.Marshal(progress)
	if err != nil {
		return err
	}
	return c.Update(ctx, func(j *Job) error { j.Progress = text; return nil })
}

// Update changes the job by calling fn, possibly several times. It returns the error of
// fn, or ErrLost if this process no longer owns the job.
func (c *Claim) Update(ctx context.Context, fn func(*Job) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write(ctx, fn)
}

// write acts like Update for a caller that holds c.mu.
func (c *Claim) write(ctx context.Context, fn func(*Job) error) error {
	for range maxChanges {
		begun := c.r.o.Wall.Now()
		next := c.job
		next.Beat++
		if err := fn(&next); err != nil {
			return err
		}
		version, ok, err := c.r.writeJob(ctx, &next, c.version)
		if ok {
			c.job, c.version, c.renewed = next, version, begun
			return nil
		}
		if err == nil {
			err = c.reread(ctx)
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s of kind %s", errContended, c.key[1], c.key[0])
}

// reread reads the changes of others, and ends the work if this process no longer owns the
// job. The caller holds c.mu.
func (c *Claim) reread(ctx context.Context) error {
	j, version, err := c.r.readJob(ctx, c.key[0], c.key[1])
	if errors.Is(err, ErrNotFound) || err == nil && (j.Owner != c.r.o.Owner() || j.State != Running) {
		err = fmt.Errorf("%w: %s of kind %s", ErrLost, c.key[1], c.key[0])
		c.cancel(err)
	}
	if err != nil {
		return err
	}
	c.job, c.version = j, version
	select {
	case c.changed <- struct{}{}:
	default: // a value is pending
	}
	return nil
}

// refresh reads the job after another goroutine changed it.
func (c *Claim) refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.reread(c.r.life); err != nil && !errors.Is(err, ErrLost) && c.r.life.Err() == nil {
		c.r.o.Logger.Warn("a changed job could not be read", "kind", c.key[0], "job", c.key[1], "error", err)
	}
}

// renew increments the counter of the job until ctx ends. If that fails, it gives the job up
// before other processes may take it over.
func (c *Claim) renew(ctx context.Context) {
	every := c.r.o.Lease / 4
	for c.Pause(ctx, every) == nil {
		call, end := context.WithCancel(ctx)
		// A call that hangs must not hold the job past its lease.
		reached, stop := c.r.o.Wall.At(c.since().Add(3 * every))
		c.r.background.Go(func() {
			select {
			case <-reached:
				end()
			case <-call.Done():
			}
		})
		err := c.Update(call, func(*Job) error { return nil })
		end()
		stop()
		if err != nil && ctx.Err() == nil && c.r.o.Wall.Now().Sub(c.since()) >= 3*every {
			c.cancel(fmt.Errorf("%w: it cannot be renewed: %w", ErrLost, err))
			return
		}
	}
}

func (c *Claim) since() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewed
}

// attempt claims a job and works on it until the job has ended. It returns the job if another
// process owns it, or may own it.
func (r *Runner) attempt(k *Kind, id string) (held *Job, err error) {
	c := &Claim{r: r, key: [2]string{k.Name, id}, changed: make(chan struct{}, 1), renewed: r.o.Wall.Now()}
	errHeld := errors.New("another process holds the job")
	// Closing the Runner must not cut this off: a claim with a lost answer would hold the job
	// for a lease.
	c.job, c.version, err = r.change(context.WithoutCancel(r.life), k.Name, id, func(j *Job) error {
		switch {
		case j.State != Running:
			return ErrLost
		case j.Owner != "" && j.Owner != r.o.Owner() && !r.standsStill(j):
			return errHeld
		}
		j.Owner = r.o.Owner()
		j.Beat++
		return nil
	})
	switch {
	case errors.Is(err, errHeld):
		return &c.job, nil
	case errors.Is(err, ErrLost), errors.Is(err, ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(r.life)
	c.cancel = cancel
	defer cancel(nil)
	r.mu.Lock()
	r.claims[c.key] = c
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.claims, c.key)
		r.mu.Unlock()
	}()
	if err := c.work(ctx, k); !errors.Is(err, ErrLost) {
		return nil, err
	}
	return &c.job, nil
}

// work works on a claimed job until it has ended, is lost, or the Runner is closed. Errors:
// ErrLost, and errors of writing the result.
func (c *Claim) work(ctx context.Context, k *Kind) error {
	r := c.r
	var renewing sync.WaitGroup
	renewing.Go(func() { c.renew(ctx) })
	var end error
	for n := 1; ; n++ {
		err := c.run(ctx, k)
		if ctx.Err() != nil {
			break
		}
		if ended, saveErr := c.ended(ctx, err); ended || saveErr != nil {
			end = saveErr
			break
		}
		r.o.Logger.Warn("retrying a job", "kind", k.Name, "job", c.key[1], "error", err)
		if c.Pause(ctx, attemptPause<<(n-1)) != nil {
			break
		}
	}
	c.cancel(nil)
	renewing.Wait()
	if lost := cmp.Or(end, context.Cause(ctx)); errors.Is(lost, ErrLost) {
		return lost
	}
	c.release()
	return end
}

// run calls the kind's function, and converts its panic to an error.
func (c *Claim) run(ctx context.Context, k *Kind) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.r.o.Logger.Error("panic in a job", "kind", k.Name, "job", c.key[1], "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return k.Run(ctx, c)
}

// ended writes the result of an attempt, and reports whether it was the last.
func (c *Claim) ended(ctx context.Context, attempt error) (ended bool, err error) {
	err = c.Update(ctx, func(j *Job) error {
		var failure *Failure
		switch {
		case attempt == nil:
			j.State = Done
		case errors.As(attempt, &failure):
			j.State, j.Failure = Failed, failure
		default:
			if j.Attempts++; j.Attempts >= maxAttempts {
				j.State, j.Failure = Failed, &Failure{Code: CodeInternal, Message: attempt.Error()}
			}
		}
		if ended = j.State != Running; ended {
			j.Ended, j.Owner = c.r.o.Now(), ""
		}
		return nil
	})
	return ended, err
}

// release gives up an unfinished job, so that any process can claim it.
func (c *Claim) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.job.State != Running {
		return
	}
	ctx := context.WithoutCancel(c.r.life)
	err := c.write(ctx, func(j *Job) error { j.Owner = ""; return nil })
	if err != nil && !errors.Is(err, ErrLost) {
		c.r.o.Logger.Warn("a released job stays with its process until the lease ends", "kind", c.key[0], "job", c.key[1], "error", err)
	}
}

// seen is a job of another process as last read, and the time since which it is unchanged.
type seen struct {
	owner string
	beat  uint64
	at    time.Time // Wall
	// queued: the job is queued to be claimed.
	queued bool
}

// standsStill reports whether the counter of a job has not changed for a lease.
func (r *Runner) standsStill(j *Job) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, ok := r.watched[[2]string{j.Kind, j.ID}]
	return ok && was.owner == j.Owner && was.beat == j.Beat && r.o.Wall.Now().Sub(was.at) >= r.o.Lease
}

// watch reads the jobs of other processes, and takes over those that stand still.
func (r *Runner) watch() {
	for {
		if r.o.Wall.Wait(r.life, r.o.Lease/2) != nil {
			return
		}
		r.mu.Lock()
		var keys [][2]string
		for key := range r.watched {
			keys = append(keys, key)
		}
		if r.watcher = len(keys) > 0; !r.watcher {
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		for _, key := range keys {
			r.look(key)
		}
	}
}

// look reads a job of another process, and queues it unless that process holds it and
// still increments its counter.
func (r *Runner) look(key [2]string) {
	j, _, err := r.readJob(r.life, key[0], key[1])
	if err != nil && !errors.Is(err, ErrNotFound) {
		if r.life.Err() == nil {
			r.o.Logger.Warn("a job of another process could not be read", "kind", key[0], "job", key[1], "error", err)
		}
		return
	}
	free := j.Owner == "" || j.Owner == r.o.Owner() || r.standsStill(&j)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch was, ok := r.watched[key]; {
	case !ok || was.queued || r.life.Err() != nil:
	case err != nil || j.State != Running:
		delete(r.watched, key)
		delete(r.known, key)
	case free:
		was.queued = true
		r.watched[key] = was // until it is claimed
		r.queue(key[0], key[1])
	case was.owner != j.Owner || was.beat != j.Beat:
		r.watched[key] = seen{owner: j.Owner, beat: j.Beat, at: r.o.Wall.Now()}
	}
}
