package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/tabletop-emu/tabletop/facade/internal/store/lanes"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// instance holds the Bigtable instance of a store, and the state that all its parts share.
type instance struct {
	o     Options
	bt    *btclient.Client
	lanes *lanes.Lanes // for independent calls

	randMu sync.Mutex
	rand   *rand.ChaCha8 // seeded from Options.Rand and epoch; under randMu
	epoch  int64         // number of stores opened on the catalog, including this one
	tokens atomic.Uint64 // number in the last token

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
	if o.Deadline > 0 { // it is on a network
		retry.Writes, retry.First, retry.Jitter, retry.Sleep = maxWriteRetries, firstRetryWait, in.jitter, sleep
	}
	in.bt = btclient.New(o.Conn, o.Project, o.Instance, btclient.Options{AppProfile: o.AppProfile, Retry: retry, Deadline: o.Deadline})
	in.life, in.end = context.WithCancel(context.WithoutCancel(ctx))
	return in
}

// lanesOfProcess is the number of operations that may run all their calls concurrently.
const lanesOfProcess = 16

// BigtableTables returns the ids of all tables in the Bigtable instance.
func (in *instance) BigtableTables(ctx context.Context) ([]string, error) { return in.bt.Tables(ctx) }

// beginEpoch counts this start in the catalog, and seeds the random numbers. Tokens and ids of
// this start thus differ from those of every other start, even with the same Options.Rand.
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
	// The first store uses the seed as given; later ones derive theirs from it.
	earlier := uint64(in.epoch - 1)
	binary.BigEndian.PutUint64(seed[24:], binary.BigEndian.Uint64(seed[24:])^earlier)
	in.rand = rand.NewChaCha8(seed)
	// Tokens start at a random number: if the catalog was deleted, epochs repeat while rows of
	// a mapped table may still hold old tokens.
	in.tokens.Store(in.rand.Uint64())
	return nil
}

// nowMicros returns the time of Options.Now in microseconds, rounded down to the milliseconds
// of cell timestamps.
func (in *instance) nowMicros() int64 { return in.o.Now().UnixMilli() * microsPerMilli }

// If Options.Deadline is set, the Bigtable is on a network. Calls are then retried, if that is
// safe and may help, after delays that start at firstRetryWait and double, with jitter.
// Otherwise only reads are resumed, at once.
const (
	// maxReadResumes limits the consecutive interruptions of one read between which no row
	// arrives.
	maxReadResumes  = 3
	maxWriteRetries = 3
	firstRetryWait  = 50 * time.Millisecond
)

// jitter implements btclient.Retry.Jitter.
func (in *instance) jitter() float64 {
	if in.rand == nil {
		return 0 // the epoch is not known yet
	}
	var b [8]byte
	in.random(b[:])
	return float64(binary.BigEndian.Uint64(b[:])>>11) / (1 << 53)
}

// sleep waits for d, or until ctx ends.
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

// closeTime is the time that Close gives to work of later.
const closeTime = 2 * time.Second

// later does work that no request waits for, in the background if calls run concurrently. cancel
// cancels it. Close does so after closeTime, and the next Open does the rest.
func (in *instance) later(cancel context.CancelFunc, work func()) {
	if !in.lanes.Wide() {
		defer cancel()
		work()
		return
	}
	in.background.Go(func() {
		ended, end := context.WithCancel(context.Background())
		stop := context.AfterFunc(in.life, func() {
			if sleep(ended, closeTime) == nil {
				cancel()
			}
		})
		defer func() {
			if p := recover(); p != nil { // in a request, it would fail only the request
				in.o.Logger.Error("panic in the cleanup of a transaction", "panic", p, "stack", string(debug.Stack()))
			}
			stop()
			end()
			cancel()
		}()
		work()
	})
}

// microsPerMilli is the step of cell timestamps: Bigtable stores milliseconds.
const microsPerMilli = 1000

// random fills b with random bytes.
func (in *instance) random(b []byte) {
	in.randMu.Lock()
	defer in.randMu.Unlock()
	in.rand.Read(b) //nolint:errcheck // ChaCha8 never fails
}

// newToken returns 16 bytes that no other call returns, in any store on the catalog. They
// begin with the 8 bytes of the epoch.
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

// reporter returns a Reporter for work on a table. The caller must call End.
func (in *instance) reporter(table, phase string) *Reporter {
	return NewReporter(table, phase, in.o.Progress)
}

// Abreast calls do with each number below n, concurrently if Options.Concurrency is more
// than 1. After an error it starts no further calls. It returns the error of the lowest
// number.
func (in *instance) Abreast(n int, do func(i int) error) error { return in.lanes.Each(n, do) }
