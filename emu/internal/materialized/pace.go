package materialized

import (
	"context"
	"time"

	"github.com/tabletop-emu/tabletop/engine"
)

const (
	// slice is the time after which a fill pauses while tables are written. A write that waits for a
	// core or for a commit of the fill waits about as long.
	slice = 100 * time.Microsecond
	// share is the part of a core that a fill uses then: it pauses for share-1 times its slice.
	share = 5
	// maxPause bounds a pause, since a slice is longer on a machine with other work.
	maxPause = 20 * slice
	// quiet is the time without writes after which a fill no longer pauses.
	quiet = 100 * time.Millisecond
)

// pace slows a fill down while recorded tables are written. A nil pace does not.
type pace struct {
	db      *engine.DB
	number  uint64    // of the journal, at the end of the last slice
	written time.Time // when the number had last changed
	began   time.Time // of the slice
}

// newPace returns the pace of a fill that begins now.
func newPace(db *engine.DB) *pace {
	p := &pace{db: db, began: realTime()}
	p.number, _ = db.JournalLast()
	return p
}

// realTime returns the time of the machine, on which writers and the fill share its cores.
func realTime() time.Time { return time.Now() } //nolint:forbidigo // the injected clock may stand still

// step pauses at the end of a slice if a table was written recently.
func (p *pace) step(ctx context.Context) error {
	if p == nil {
		return nil
	}
	now := realTime()
	worked := now.Sub(p.began)
	if worked < slice {
		return nil
	}
	p.began = now
	if number, _ := p.db.JournalLast(); number != p.number {
		p.number, p.written = number, now
	}
	if now.Sub(p.written) > quiet {
		return nil
	}
	timer := time.NewTimer(min((share-1)*worked, maxPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		p.began = realTime()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
