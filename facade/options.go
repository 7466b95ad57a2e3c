package facade

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/internal/backups"
	"github.com/tabletop-emu/tabletop/facade/internal/kinesis"
	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Immediate returns the options without lags, delays and throttling, for a server that prepares
// tables before clients connect.
func (o Options) Immediate() Options {
	o.IndexLag, o.StatusDelays, o.Throttle, o.Observe = 0, StatusDelays{}, ThrottleNothing, nil
	return o
}

// BigtableTable is a table of a Bigtable that a server uses, with the column families
// that it needs.
type BigtableTable struct {
	ID       string
	Families []mapping.Family
}

// BigtableTables yields the tables that a server would use in a Bigtable: its catalog, the
// tables behind DynamoDB tables that were created without a mapping, and the tables of change
// logs. It omits tables that a mapping names. BigtableTables does not write. It yields an
// error last. It uses only Conn, Project, Instance, AppProfile and Deadline of opts.
func BigtableTables(ctx context.Context, opts Options) iter.Seq2[BigtableTable, error] {
	return func(yield func(BigtableTable, error) bool) {
		for t, err := range store.PlacedTables(ctx, store.Options{Conn: opts.Conn, Project: opts.Project, Instance: opts.Instance, AppProfile: opts.AppProfile, Deadline: opts.Deadline}) {
			out := BigtableTable{ID: t.ID}
			for _, f := range t.Families {
				out.Families = append(out.Families, mapping.Family{Name: f.Name, Versions: f.GC.Versions, MaxAge: f.GC.MaxAge})
			}
			if !yield(out, err) {
				return
			}
		}
	}
}

// Options configures a Server. Only Conn is required. New copies the value and does not
// modify it.
type Options struct {
	// Conn is the connection to the Bigtable behind the server: an in-process emulator,
	// another emulator over gRPC, or Cloud Bigtable. The caller owns it, and must close
	// it after the Server.
	Conn grpc.ClientConnInterface

	// Project and Instance identify the instance that holds the tables:
	// projects/<Project>/instances/<Instance>. Default: "tabletop" for both.
	Project, Instance string

	// AppProfile is the app profile for data calls. It must route to a single cluster and
	// allow single-row transactions. Default: the default profile of the instance.
	AppProfile string

	// Mappings are the mappings of tables, at most one per table. A table without a
	// mapping gets the lossless default layout.
	Mappings []*mapping.Mapping

	// Now is the clock of the server, for times in responses, expiry, tokens, streams, delays
	// and throttling. Default: wall time.
	Now func() time.Time

	// Rand is the source of request ids, table ids and revision tokens. Reads from it are
	// serialized. Default: crypto/rand.Reader.
	Rand io.Reader

	// Logger receives internal failures: recovered panics, and errors of the Bigtable.
	// Default: nothing is logged.
	Logger *slog.Logger

	// Region is the region in ARNs and endpoint responses. It need not match the region
	// of a signature. Default: DefaultRegion.
	Region string

	// AccountID is the twelve-digit account number in ARNs. Default: DefaultAccountID.
	AccountID string

	// NoAuth accepts requests without a signature, for tools in a browser. It cannot be
	// combined with AccessKeys. Default: any well-formed signature is accepted, whatever
	// its key, and requests without a signature are rejected.
	NoAuth bool

	// AccessKeys maps access keys to their secrets. If it is set, signatures are
	// verified. A signature must be made with the secret of a known key, over the request
	// as it was sent. Its time must be within 15 minutes of either Now or the machine's
	// clock. Any region is accepted. Default: nil, and signatures are not verified.
	AccessKeys map[string]string

	// Namespaced gives each pair of access key and region separate tables, as accounts
	// and regions do on AWS. The limit is 1,000 pairs; further callers get a
	// LimitExceededException. New returns an error if Mappings is set too. Default: all
	// callers share the tables.
	Namespaced bool

	// IndexLag is the longest delay, on the clock Now, until a write reaches the global
	// indexes. Reads of these indexes are then eventually consistent, as on AWS. The mapping
	// of a table can set a different lag. A write reaches the indexes earlier if its item is
	// written again or shares its row, if a local index is read, or while thousands of rows
	// are pending. Default: 0, so a write is in all indexes when its call returns.
	IndexLag time.Duration

	// StatusDelays delays the completion of changes to tables, on the clock Now, as on
	// AWS. Default: no delays, so a table is ACTIVE when its call returns.
	StatusDelays StatusDelays

	// Messages is the region whose wording of validation errors, and whose rule for the size
	// of an update, the server uses. Default: MessagesCurrent.
	Messages MessageProfile

	// Deadline is the longest wait for a response of the Bigtable or, in a read of many
	// rows, for the next part of it. When it passes, the request or the start fails with an
	// error that names the Bigtable. Default: no deadline, since a Bigtable in the same
	// process always responds.
	Deadline time.Duration

	// Concurrency limits the number of concurrent calls that one operation makes on Conn.
	// All operations together make at most 16*Concurrency calls, plus one call each.
	// Increase it for a Bigtable on a network, so that an operation does not wait for a
	// round trip per item. Default: 1, so calls are sequential, which is faster within a
	// process.
	Concurrency int

	// Progress is called during work on all items of a table: when the work starts, after
	// every 1,000 items, and when it ends. New does such work to fill the indexes of rows
	// that a loader wrote, or to compare the rows with a changed mapping. Adding an index
	// also causes it. Several goroutines may call Progress. Default: nil.
	Progress func(Progress)

	// Observe is called when the response to each HTTP request is ready to be written, in the
	// goroutine of the request. Default: nil.
	Observe func(*Call)

	// StreamShards are the numbers of shards in a stream, by generation. The last number
	// applies to all later generations. Each number is a multiple of the one before, so
	// that shards split. Default: 1.
	StreamShards []int

	// StreamShardRotation is the time for which a shard accepts changes before its
	// children do, on the clock Now. It must be whole milliseconds. Default: 4 hours.
	StreamShardRotation time.Duration

	// KinesisEndpoint is the URL of a server with the API of Kinesis Data Streams, which
	// receives the changes for the Kinesis destinations of tables. KinesisDir is a folder
	// that receives them instead. It has one file per stream, with one record per line.
	// Default: neither, and undelivered changes stay in the logs of the tables for 24
	// hours.
	KinesisEndpoint, KinesisDir string

	// Throttle selects the requests that are throttled, based on the capacity that
	// ReturnConsumedCapacity reports. Default: no requests are throttled.
	Throttle Throttle

	// Buckets is a folder whose subfolders stand for S3 buckets. Exports write to them,
	// imports read from them, and the logs of imports go to ".tabletop" beside them. The
	// caller owns it, and must close it after the Server. Default: nil, and exports and
	// imports are rejected.
	Buckets *os.Root

	// StreamRetention is the time for which changes can be read from a new stream, and
	// for which the stream exists after its end, on the clock Now. Default: 24 hours.
	StreamRetention time.Duration

	// Slot identifies a resource that only one Server can hold at a time, such as an open
	// data folder. A new Server with the same Slot immediately finishes the work of a
	// killed one. Default: "", no slot; readers of streams wait until the registration of
	// the killed Server is 30 seconds old by the machine's clock.
	Slot string

	// Tests lower these limits; 0 means the default. batchBytes limits a batch of work on a
	// whole table, and a response of GetRecords.
	maxTables, maxNamespaces int
	countedItems             int64
	batchBytes               int

	wall *clock.Clock // for the leases of jobs, and of processes that share logs; nil: the wall clock
	sink kinesis.Sink // target of Kinesis destinations; nil: changes stay in the logs

	layers request.Layers // layers that Messages selects
}

// store returns the options of the store with the given catalog table. o must be normalized.
func (o Options) store(catalog string) store.Options {
	var progress func(store.Progress)
	if report := o.Progress; report != nil {
		progress = func(p store.Progress) { report(Progress(p)) }
	}
	return store.Options{
		Conn: o.conn(), Project: o.Project, Instance: o.Instance, AppProfile: o.AppProfile, Catalog: catalog, Mappings: o.layouts(),
		Now: o.Now, Wall: o.wall, Rand: o.Rand, Logger: o.Logger, IndexLag: o.IndexLag,
		StatusDelays: store.StatusDelays(o.StatusDelays), MaxTables: o.maxTables, CountedItems: o.countedItems, BatchBytes: o.batchBytes,
		Deadline: o.Deadline, Concurrency: o.Concurrency, Progress: progress,
		Shards:          tabledef.Shards{Slots: o.StreamShards, Rotation: o.StreamShardRotation},
		Slot:            o.Slot,
		StreamRetention: o.StreamRetention,
		Kinds:           o.jobKinds, KeepDeleted: backups.KeepDeleted,
	}
}

// Progress is the progress of background work on all items of a table.
type Progress struct {
	Table string // name of the DynamoDB table
	Phase string // such as "filling index GSI1", "filling due times", "comparing with the mapping"
	Items int64  // number of items examined so far
	Done  bool   // whether the work has ended
	Err   error  // reason why the work ended early
}

// ErrOtherMapping is the error that New returns if the mapping of a table does not fit
// its rows: the mapping places items elsewhere than the one with which the table was
// loaded or last served.
var ErrOtherMapping = store.ErrOtherMapping

// StatusDelays holds the times for which tables and their parts appear to be changing.
// The change itself happens at once: a write during Update takes effect.
type StatusDelays struct {
	// Create is the time for which a new table and its indexes are CREATING, and reject
	// items.
	Create time.Duration
	// Update is the time for which a table is UPDATING after UpdateTable, and rejects
	// other changes. During that time, a changed resource policy reads as before. It
	// rejects further changes for at least 15 seconds.
	Update time.Duration
	// Delete is the time for which a deleted table is DELETING, and rejects items. A
	// later change to tables, a list of tables or ReapExpired removes its remains.
	Delete time.Duration
	// IndexCreate is the time for which an index that UpdateTable added is CREATING
	// without Backfilling. After that it is CREATING and Backfilling for IndexFill, or
	// longer if filling it takes longer. In both cases the table is UPDATING, and the
	// index cannot be read.
	IndexCreate, IndexFill time.Duration
	// IndexDelete is the time for which an index that UpdateTable deleted is DELETING,
	// and the table is UPDATING.
	IndexDelete time.Duration
	// Backup is the time for which a backup is CREATING. A new table rejects backups and
	// point-in-time restores for the same time.
	Backup time.Duration
	// TimeToLive is the time for which the time to live of a table is ENABLING, while
	// nothing expires, or DISABLING.
	TimeToLive time.Duration
}

// Throttle selects the requests that are throttled.
type Throttle uint8

// Values of Throttle.
const (
	// ThrottleNothing throttles no requests. Capacity is only counted.
	ThrottleNothing Throttle = iota
	// ThrottleTables throttles requests to tables and global indexes by their provisioned
	// or on-demand throughput. It also limits decreases of provisioned throughput, and
	// those operations on tables that the service limits.
	ThrottleTables
	// ThrottlePartitions is like ThrottleTables, but also limits the items with the same
	// partition key to 3,000 read and 1,000 write units per second.
	ThrottlePartitions
)

// MessageProfile is the name of an AWS region, such as "eu-west-2", or one of the
// constants below. It selects the layer of the service that checks each operation. Since
// 2026-06 the regions have been moving their operations to a newer layer, one by one.
//
// The newer layer names a member as "TableName" and does not show its value, and errors
// of writes begin with "1 validation error detected: ". The older layer names the member
// as "tableName", shows its value, and lists up to ten failures. The error type is the
// same. In the newer layer, an update is also too large if the data that it writes, plus
// a cost for each of its actions, is too large. Limit and the segments of reads may be
// numbers that do not fit an Integer.
//
// Source of the regions: facade/internal/request/regions.tsv.
type MessageProfile string

// Message profiles that are not regions. "" is the same as MessagesCurrent.
const (
	// MessagesCurrent is the layer that most regions use, for each operation.
	MessagesCurrent MessageProfile = request.Current
	// MessagesClassic is the older layer, for all operations.
	MessagesClassic MessageProfile = request.Classic
)

// Check returns an error that lists the known profiles if p is not one of them.
func (p MessageProfile) Check() error {
	_, err := request.LayersOf(string(p))
	return err
}

// Defaults of Options.
const (
	defaultProject  = "tabletop"
	defaultInstance = "tabletop"
	// DefaultRegion is the default region in ARNs.
	DefaultRegion = "us-east-1"
	// DefaultAccountID is the default account number in ARNs.
	DefaultAccountID = "000000000000"
)

var accountIDPattern = regexp.MustCompile(`^[0-9]{12}$`)

// OptionError is the error that New returns for an invalid option.
type OptionError struct {
	Option string // name of the field in Options
	Err    error  // fault of the option
}

// Error describes the option and its fault.
func (e *OptionError) Error() string { return "facade: Options." + e.Option + ": " + e.Err.Error() }

// Unwrap returns the fault of the option.
func (e *OptionError) Unwrap() error { return e.Err }

// normalized returns o with its defaults set. It returns an error for the first invalid option.
func (o Options) normalized() (Options, error) {
	if o.Conn == nil {
		return o, errors.New("facade: Options.Conn is nil: a connection to a Bigtable is required")
	}
	if o.Project == "" {
		o.Project = defaultProject
	}
	if o.Instance == "" {
		o.Instance = defaultInstance
	}
	if o.Now == nil {
		o.Now = clock.New().Now
	}
	if o.wall == nil {
		o.wall = clock.New()
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	o.Rand = &lockedReader{src: o.Rand}
	o.maxTables, o.maxNamespaces = cmp.Or(o.maxTables, maxTables), cmp.Or(o.maxNamespaces, maxNamespaces)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Region == "" {
		o.Region = DefaultRegion
	}
	if o.AccountID == "" {
		o.AccountID = DefaultAccountID
	}
	if !accountIDPattern.MatchString(o.AccountID) {
		return o, fmt.Errorf("facade: Options.AccountID is %q, want twelve digits", o.AccountID)
	}
	if o.NoAuth && o.AccessKeys != nil {
		return o, errors.New("facade: Options.NoAuth and Options.AccessKeys cannot be combined")
	}
	if o.Namespaced && len(o.Mappings) > 0 {
		return o, errors.New("facade: Options.Namespaced and Options.Mappings cannot be combined: a mapping names one Bigtable table, which callers would share")
	}
	if o.Deadline < 0 {
		return o, fmt.Errorf("facade: Options.Deadline is %v, want 0 or more", o.Deadline)
	}
	if err := o.checkStreams(); err != nil {
		return o, err
	}
	if o.IndexLag < 0 {
		return o, fmt.Errorf("facade: Options.IndexLag is %v, want 0 or more", o.IndexLag)
	}
	var err error
	if o.layers, err = request.LayersOf(string(o.Messages)); err != nil {
		return o, &OptionError{"Messages", err}
	}
	if o.Throttle > ThrottlePartitions {
		return o, fmt.Errorf("facade: Options.Throttle is %d, want ThrottleNothing, ThrottleTables or ThrottlePartitions", o.Throttle)
	}
	for i, m := range o.Mappings {
		if m == nil {
			return o, fmt.Errorf("facade: Options.Mappings[%d] is nil", i)
		}
	}
	return o, nil
}

// maxStreamShards limits the number of shards in a generation.
const maxStreamShards = 1024

func (o Options) checkStreams() error {
	if o.StreamRetention < 0 {
		return &OptionError{"StreamRetention", fmt.Errorf("%v, want 0 or more", o.StreamRetention)}
	}
	if d := o.StreamShardRotation; d != 0 && (d < time.Millisecond || d%time.Millisecond != 0) {
		return &OptionError{"StreamShardRotation", fmt.Errorf("%v, want whole milliseconds", d)}
	}
	before := 1
	for _, n := range o.StreamShards {
		if n < before || n%before != 0 || n > maxStreamShards {
			return &OptionError{"StreamShards", fmt.Errorf("%v, want numbers up to %d, each a multiple of the one before", o.StreamShards, maxStreamShards)}
		}
		before = n
	}
	return nil
}

// layouts returns Mappings as the type that the store uses.
func (o Options) layouts() []*layout.Mapping {
	var layouts []*layout.Mapping
	for _, m := range o.Mappings {
		layouts = append(layouts, (*layout.Mapping)(m))
	}
	return layouts
}

// lockedReader serializes the reads from src.
type lockedReader struct {
	mu  sync.Mutex
	src io.Reader
}

// Read implements io.Reader.
func (l *lockedReader) Read(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.src.Read(b)
}
