package facade

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// The store is the seam between operations, which think in items, and the
// Bigtable behind them, which holds rows. Operations never see a row; the
// store never sees an expression or a request.
//
// It keeps four promises on any Bigtable, with single-row atomicity alone:
//   - an item write is one CheckAndMutateRow: it happens wholly, on the item
//     it was evaluated against, or not at all;
//   - a transaction happens wholly, at one moment, or not at all;
//   - an acknowledged write is in every index of its table, or gets there once
//     Options.IndexLag has gone by;
//   - an item that was deleted leaves no row behind;
//   - what a loader or another client wrote natively is readable and
//     writable like any other item.

// Errors of the store that operations turn into AWS errors. They come wrapped:
// test with errors.Is. Any other error is a failure of the Bigtable behind.
var (
	errTableExists   = errors.New("table exists")
	errTooManyTables = errors.New("too many tables")
	errTableNotFound = errors.New("table not found")
	// errSchemaConflict: a CreateTable whose key schema differs from that of
	// the mapping given for the table.
	errSchemaConflict = errors.New("key schema differs from the table's mapping")
	// errOutsideMapping: the item cannot be expressed in the table's layout;
	// the text names the rule and the attribute. Or the mapping that the
	// table was created with was not given.
	errOutsideMapping = errors.New("outside the table's mapping")
	// errContended: the item changed under every attempt to write it.
	errContended = errors.New("too many concurrent writes of one item")
	// errIndexesBehind: the item is written; its indexes follow as soon as
	// anyone looks at them.
	errIndexesBehind = errors.New("the item is written, its indexes are not yet")
	// errIntent: the item belongs to a transaction in flight.
	errIntent = errors.New("item is held by a transaction")
)

// presence is what a write requires of the item it replaces.
type presence uint8

const (
	anyPresence presence = iota // whatever is there
	mustExist
	mustNotExist
)

// writeHint lets writeItem go without reading the item. The zero value reads.
type writeHint struct {
	// blind says that the write's outcome does not depend on the old item
	// beyond require, and that the caller does not need the old item: the
	// item becomes replacement (nil: it is deleted) if require holds. When
	// require does not hold, or the store needs the old item for itself, it
	// falls back to reading and calling fn, which must give the same outcome.
	blind       bool
	replacement attr.Item
	require     presence
}

// storeOptions are what a store works with. Those without a default are required.
type storeOptions struct {
	Conn              grpc.ClientConnInterface
	Project, Instance string
	Catalog           string // id of the table that holds the definitions
	Mappings          []*layout.Mapping
	Now               func() time.Time
	Rand              io.Reader // safe for concurrent use
	Logger            *slog.Logger
	IndexLag          time.Duration
	StatusDelays      statusDelays
	MaxTables         int
}

// statusDelays are how long tables and their parts look like they are being
// changed; 0: not at all.
type statusDelays struct {
	Create, Update, Delete, IndexCreate, IndexFill, IndexDelete, TimeToLive time.Duration
}

// store holds items in Bigtable. It is safe for concurrent use.
type store struct {
	o        storeOptions
	bt       *btclient.Client
	mappings map[string]*layout.Mapping // by DynamoDB table
	cat      catalog
	latches  itemLatches
	pending  pendingWork
	tx       transactions
	segments segmentCuts

	randMu sync.Mutex
	rand   *rand.ChaCha8 // seeded from Options.Rand and epoch; under randMu
	epoch  int64         // counts the stores opened on the catalog
	tokens atomic.Uint64

	life       context.Context // ends with close
	end        context.CancelFunc
	background sync.WaitGroup
}

// newStore opens the catalog, creating it in an empty instance; defines the
// tables of the mappings that the catalog does not know yet; and finishes
// what an earlier process left undone.
func newStore(ctx context.Context, o storeOptions) (*store, error) {
	s := &store{
		o:        o,
		bt:       btclient.New(o.Conn, o.Project, o.Instance, btclient.Options{Retry: btclient.Retry{Reads: maxReadResumes}}),
		mappings: map[string]*layout.Mapping{},
		cat:      catalog{tables: map[string]*cachedTable{}, latches: map[string]*sync.RWMutex{}, filling: map[string]bool{}},
		pending:  pendingWork{marks: map[string]*pendingMark{}},
		tx:       transactions{unfinished: map[string]bool{}},
		segments: segmentCuts{known: map[string]knownCuts{}, using: make(chan struct{}, 1)},
	}
	s.latches.init()
	targets := map[string]string{}
	for _, m := range o.Mappings {
		source, target := m.SourceTable(), m.TargetTable()
		if source == "" {
			return nil, fmt.Errorf("facade: the mapping to table %s names no source table", target)
		}
		if spec := m.Spec(); spec != nil && spec.Compat != "" {
			return nil, fmt.Errorf("facade: the layout %s of table %s does not give items back as they were: it cannot be served", spec.Compat, source)
		}
		if s.mappings[source] != nil {
			return nil, fmt.Errorf("facade: two mappings for table %s", source)
		}
		if other, ok := targets[target]; ok {
			return nil, fmt.Errorf("facade: the mappings of %s and %s have the same target table %s", other, source, target)
		}
		s.mappings[source], targets[target] = m, source
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	err := s.openCatalog(ctx)
	if err == nil {
		err = s.recoverPending(ctx)
	}
	if err == nil {
		err = s.recoverTransactions(ctx, true)
	}
	if err != nil {
		s.end()
		s.background.Wait()
		return nil, fmt.Errorf("opening the catalog: %w", err)
	}
	return s, nil
}

// close stops background work (index backfill), which resumes at the next
// newStore.
func (s *store) close() error {
	s.end()
	s.background.Wait()
	return s.flushMarks(context.WithoutCancel(s.life), 0)
}

// nowMicros is the clock's time in the granularity of cell timestamps.
func (s *store) nowMicros() int64 { return s.o.Now().UnixMilli() * microsPerMilli }

// maxReadResumes bounds how often one read is taken up again after the
// connection broke without a row in between.
const maxReadResumes = 3

// microsPerMilli is the step of cell timestamps: Bigtable keeps milliseconds.
const microsPerMilli = 1000

// random fills b.
func (s *store) random(b []byte) {
	s.randMu.Lock()
	defer s.randMu.Unlock()
	s.rand.Read(b) //nolint:errcheck // ChaCha8 never fails
}

// newToken returns 16 bytes that no other write has, of any store on the same
// catalog.
func (s *store) newToken() []byte {
	token := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(s.epoch))
	return binary.BigEndian.AppendUint64(token, s.tokens.Add(1))
}

// newUUID returns a random (version 4) UUID in text form.
func (s *store) newUUID() string {
	var b [16]byte
	s.random(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
