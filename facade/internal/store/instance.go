package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/tabletop-emu/tabletop/facade/internal/store/lanes"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// instance is the Bigtable instance behind a store, with what else all owners work
// with.
type instance struct {
	o     Options
	bt    *btclient.Client
	lanes *lanes.Lanes // of calls that do not depend on each other

	randMu sync.Mutex
	rand   *rand.ChaCha8 // seeded from Options.Rand and epoch; under randMu
	epoch  int64         // counts the stores opened on the catalog
	tokens atomic.Uint64

	life       context.Context // ends with Close
	end        context.CancelFunc
	background sync.WaitGroup
}

func newInstance(ctx context.Context, o Options) *instance {
	in := &instance{
		o:     o,
		lanes: lanes.New(o.Concurrency, lanesOfProcess*o.Concurrency),
	}
	retry := btclient.Retry{Reads: maxReadResumes}
	if o.Deadline > 0 { // it is far
		retry.Writes, retry.First, retry.Jitter, retry.Sleep = maxWriteRetries, firstRetryWait, in.jitter, sleep
	}
	in.bt = btclient.New(o.Conn, o.Project, o.Instance, btclient.Options{AppProfile: o.AppProfile, Retry: retry, Deadline: o.Deadline})
	in.life, in.end = context.WithCancel(context.WithoutCancel(ctx))
	return in
}

// lanesOfProcess is how many operations may have all their calls under way at once.
const lanesOfProcess = 16

// BigtableTables returns the ids of all tables of the Bigtable instance.
func (in *instance) BigtableTables(ctx context.Context) ([]string, error) { return in.bt.Tables(ctx) }

// beginEpoch counts this start, so that what it makes differs from what any
// other start makes, even with the same Options.Rand.
func (in *instance) beginEpoch(ctx context.Context) error {
	row, err := in.bt.ReadModifyWrite(ctx, in.o.Catalog, []byte(epochRow), btclient.Increment(catalogFamily, versionQualifier, 1))
	if err != nil {
		return fmt.Errorf("counting the starts: %w", err)
	}
	if len(row.Cells) != 1 || len(row.Cells[0].Value) != 8 {
		return fmt.Errorf("counting the starts: the counter is %v, expected one cell of 8 bytes", row.Cells)
	}
	in.epoch = int64(binary.BigEndian.Uint64(row.Cells[0].Value))
	var seed [32]byte
	if _, err := io.ReadFull(in.o.Rand, seed[:]); err != nil {
		return fmt.Errorf("reading Options.Rand: %w", err)
	}
	// The first store has the seed as given, later ones have others.
	earlier := uint64(in.epoch - 1)
	binary.BigEndian.PutUint64(seed[24:], binary.BigEndian.Uint64(seed[24:])^earlier)
	in.rand = rand.NewChaCha8(seed)
	// Tokens count from anywhere: a catalog that was deleted counts its
	// starts anew, while rows of a mapped table may still hold old tokens.
	in.tokens.Store(in.rand.Uint64())
	return nil
}

// nowMicros is the clock's time in the granularity of cell timestamps.
func (in *instance) nowMicros() int64 { return in.o.Now().UnixMilli() * microsPerMilli }

// A call of a Bigtable that is far is sent again, if that may help and it may be, after
// waits of firstRetryWait that double, with jitter. Within the process there are none:
// reads alone are taken up again, at once.
const (
	// maxReadResumes bounds how often one read is taken up again after the
	// connection broke without a row in between.
	maxReadResumes  = 3
	maxWriteRetries = 3
	firstRetryWait  = 50 * time.Millisecond
)

// jitter is btclient.Retry's.
func (in *instance) jitter() float64 {
	if in.rand == nil {
		return 0 // the starts are still being counted
	}
	var b [8]byte
	in.random(b[:])
	return float64(binary.BigEndian.Uint64(b[:])>>11) / (1 << 53)
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// microsPerMilli is the step of cell timestamps: Bigtable keeps milliseconds.
const microsPerMilli = 1000

// random fills b.
func (in *instance) random(b []byte) {
	in.randMu.Lock()
	defer in.randMu.Unlock()
	in.rand.Read(b) //nolint:errcheck // ChaCha8 never fails
}

// newToken returns 16 bytes that no other write has, of any store on the same
// catalog.
func (in *instance) newToken() []byte {
	token := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(in.epoch))
	return binary.BigEndian.AppendUint64(token, in.tokens.Add(1))
}

// newUUID returns a random (version 4) UUID in text form.
func (in *instance) newUUID() string {
	var b [16]byte
	in.random(b[:])
	return uuid.Must(uuid.NewRandomFromReader(bytes.NewReader(b[:]))).String()
}

// telling begins to tell of work; End is to follow.
func (in *instance) telling(table, phase string) *Teller {
	return TellProgress(table, phase, in.o.Progress)
}

// Abreast calls do with the numbers below n: side by side where calls to Bigtable go so, else one after the other.
// After an error no further call begins; of the errors that there are it returns that of the lowest number.
func (in *instance) Abreast(n int, do func(i int) error) error { return in.lanes.Each(n, do) }
