package stream

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// TableClient is the part of a client of DynamoDB that Open calls.
type TableClient interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
}

// Client is the part of a client of DynamoDB Streams that a Stream calls.
type Client interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// Clients call the source.
type Clients struct {
	Table  TableClient
	Stream Client
}

// Options are the options of Open. Table, Now and Sleep are required.
type Options struct {
	Table string // the name of the table

	// ARN is the expected stream of the table. Default: its latest stream.
	ARN string

	// Checkpoint is the state of an earlier Stream of the table. Default: the stream is read from
	// its oldest record on.
	Checkpoint *Checkpoint

	// Since is the time of the state to which the records are applied: the ExportTime of the
	// loaded export, or the end of the last incremental export. Open requires that the stream
	// has all records since then. Default: whatever the stream still has. A checkpoint replaces it.
	Since time.Time

	// Overlap is how long before Since the records begin, since their times are approximate.
	// Default: 5 minutes.
	Overlap time.Duration

	// Epoch is the epoch of the positions, until numbers do not grow from a shard to its child.
	// A position of a greater epoch is newer. Default: 0. A checkpoint replaces it.
	Epoch uint16

	// Retention is how long the source retains records. A checkpoint that is older than that,
	// less its 24th part, is refused. Default: 24 hours.
	Retention time.Duration

	// MaxBytes limits the memory of the records that were read and not yet applied,
	// approximately. Default: 64 MiB.
	MaxBytes int64

	// IdleMax is the longest wait before a shard without new records is asked again. Default: 1 s.
	IdleMax time.Duration

	// GiveUp is how long a call is repeated that the source does not answer, or rejects with a
	// transient error such as throttling. Default: 15 minutes.
	GiveUp time.Duration

	// Now is the clock of this machine. The Date of the source's answers corrects it.
	Now func() time.Time

	// Sleep waits, until the context ends.
	Sleep func(context.Context, time.Duration) error

	// Jitter returns a number from 0 up to 1: a wait before a repeated call is shortened by half
	// of that share. Default: 0.
	Jitter func() float64
}

// Checkpoint is the progress of a Stream: exactly the records up to it were applied.
type Checkpoint struct {
	StreamARN, TableID string
	From               time.Time // Options.Since less Options.Overlap
	Epoch              uint16    // Options.Epoch
	Watermark          time.Time // of the table
	Shards             []ShardCheckpoint
}

// ShardCheckpoint is the progress in a shard. Shards without one are not yet begun, or all
// their records were dropped as older than From.
type ShardCheckpoint struct {
	ID, Parent string // Parent may be ""
	Sequence   string // of the last applied record; "" if none was
	Before     string // the last sequence number of the parent's lineage; "" if it had no records
	Epoch      uint16 // of the last applied record
	Done       bool   // the shard was applied to its end
	Watermark  time.Time
}

// The rules of the watermark: see the comment of the package.
const (
	RuleHeader  = "header"
	RuleAnswers = "answers"
)

// Status is the state of a running Stream.
type Status struct {
	// Now is the current time of the source. A difference from Options.Now of more than a second
	// means that a clock is wrong.
	Now       time.Time
	Watermark time.Time // of the table; the zero time if unknown
	Rule      string    // RuleHeader or RuleAnswers; "" before the first answer
	// Shards are the shards whose records are still to come, in the order of their ids.
	Shards []ShardStatus
}

// ShardStatus is the state of a shard.
type ShardStatus struct {
	ID        string
	Watermark time.Time
	Throttles int // how many calls the source has throttled
}

// Tip is a moment, for [Stream.Passed].
type Tip struct {
	at   time.Time
	call uint64
}

// Stream reads the stream of a table. Its methods may be called while Run is running.
type Stream struct {
	// OldImages reports whether records have the items before the changes; it is false for the
	// view NEW_IMAGE.
	OldImages bool

	// Indexes are the names of the secondary indexes of the table when the stream was opened.
	Indexes []string

	clients  Clients
	opts     Options
	arn      string
	tableID  string
	clock    sourceClock
	inFlight *semaphore.Weighted
	wake     chan struct{} // receives when a shard has ended

	mu      sync.Mutex
	lineage lineage
	rule    string
	calls   uint64 // the number of the latest call of GetRecords
}

// Open checks the table and its stream. Its calls are not repeated, so that a wrong address or
// missing permissions are reported at once. Errors are of type *[Error].
func Open(ctx context.Context, clients Clients, o Options) (*Stream, error) {
	s := &Stream{clients: clients, opts: o.withDefaults(), wake: make(chan struct{}, 1)}
	s.clock.base = s.opts.Now()
	s.inFlight = semaphore.NewWeighted(s.opts.MaxBytes)
	s.lineage = lineage{shards: map[string]*shard{}, epoch: o.Epoch}
	if !o.Since.IsZero() {
		s.lineage.from = o.Since.Add(-s.opts.Overlap)
		s.lineage.floor = s.lineage.from
	}
	if err := s.checkTable(ctx); err != nil {
		return nil, err
	}
	if err := s.checkStream(ctx); err != nil {
		return nil, err
	}
	if c := o.Checkpoint; c != nil {
		s.lineage.from, s.lineage.epoch, s.lineage.floor = c.From, c.Epoch, c.Watermark
		s.lineage.restore(c.Shards)
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Overlap == 0 {
		o.Overlap = 5 * time.Minute
	}
	if o.Retention == 0 {
		o.Retention = 24 * time.Hour
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.IdleMax == 0 {
		o.IdleMax = time.Second
	}
	if o.GiveUp == 0 {
		o.GiveUp = 15 * time.Minute
	}
	return o
}

// minAhead is how long before Since the stream must have been enabled: the records of the first
// moments could be missing.
const minAhead = time.Minute

// checkTable sets the ids of the table and of its stream, and the names of its indexes. It returns
// an error if the stream is not enabled, or if an id differs from the checkpoint or the options.
func (s *Stream) checkTable(ctx context.Context) error {
	out, err := s.clients.Table.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(s.opts.Table)})
	switch {
	case isCode(err, codeNotFound):
		return s.fail(NoTable, "", nil, "the source does not have the table; check its name, the endpoint and the region")
	case err != nil:
		return s.callError("", err)
	}
	t := out.Table
	if t == nil {
		t = &dynamodbtypes.TableDescription{}
	}
	s.arn, s.tableID = aws.ToString(t.LatestStreamArn), aws.ToString(t.TableId)
	for _, x := range t.GlobalSecondaryIndexes {
		s.Indexes = append(s.Indexes, aws.ToString(x.IndexName))
	}
	for _, x := range t.LocalSecondaryIndexes {
		s.Indexes = append(s.Indexes, aws.ToString(x.IndexName))
	}
	c := s.opts.Checkpoint
	enabled := t.StreamSpecification != nil && aws.ToBool(t.StreamSpecification.StreamEnabled)
	switch {
	case c != nil && c.TableID != s.tableID:
		return s.fail(OtherTable, "", nil, "it has the id %s, but the checkpoint is of a table with the id %s: the table was created again or restored; "+
			startAgain, s.tableID, c.TableID)
	case c != nil && c.StreamARN != s.arn && s.arn != "":
		return s.gap("", c.Watermark, nil, "its stream is %s, but the checkpoint is of %s: the stream was disabled and enabled again", s.arn, c.StreamARN)
	case s.opts.ARN != "" && s.opts.ARN != s.arn:
		return s.fail(OtherStream, "", nil, "its latest stream is %q, expected %s; follow the latest one, or the table to which the expected one belongs", s.arn, s.opts.ARN)
	case s.arn == "" || !enabled && c == nil:
		return s.fail(NotEnabled, "", nil, "it has no enabled stream; enable one with the view NEW_AND_OLD_IMAGES, wait a minute, then export the table and load it")
	}
	return nil
}

// checkStream checks the view of the stream, and that it has all records.
func (s *Stream) checkStream(ctx context.Context) error {
	begin := s.opts.Now()
	out, err := s.clients.Stream.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(s.arn)})
	if isCode(err, codeNotFound) {
		return s.gap("", time.Time{}, nil, "the source no longer has its stream %s", s.arn)
	} else if err != nil {
		return s.callError("", err)
	}
	s.clock.observe(headerOf(out.ResultMetadata, "Date"), begin, s.opts.Now())
	d := out.StreamDescription
	if d == nil {
		d = &types.StreamDescription{}
	}
	s.OldImages = d.StreamViewType == types.StreamViewTypeNewAndOldImages
	if !s.OldImages && d.StreamViewType != types.StreamViewTypeNewImage {
		return s.fail(View, "", nil, "its stream has the view %s, whose records lack the new items; disable the stream, enable one with the view "+
			"NEW_AND_OLD_IMAGES, wait a minute, then export the table and load it", d.StreamViewType)
	}
	now := s.clock.at(s.opts.Now())
	if c := s.opts.Checkpoint; c != nil {
		return s.checkAge("", c.Watermark, now)
	}
	if s.opts.Since.IsZero() {
		return nil
	}
	if created := d.CreationRequestDateTime; created != nil && s.opts.Since.Before(created.Add(minAhead)) {
		return s.gap("", s.opts.Since, nil, "its stream was enabled at %s, expected at least %s before %s",
			created.UTC().Format(time.RFC3339), minAhead, s.opts.Since.UTC().Format(time.RFC3339))
	}
	return s.checkAge("", s.opts.Since, now)
}

// checkAge returns an error if records since a time may have been trimmed.
func (s *Stream) checkAge(shard string, since, now time.Time) error {
	if since.IsZero() || now.Sub(since) <= s.opts.Retention-s.opts.Retention/24 {
		return nil
	}
	return s.gap(shard, since, nil, "the source retains records for %s, and that much time has nearly passed", s.opts.Retention)
}

// Run reads all shards and calls apply with their records until ctx ends, apply fails, or an
// *[Error] occurs. It returns nil after the last record of a disabled stream. It is called once.
//
// A call of apply has up to 1000 records of one shard, in order, and its records count as
// applied when it returns nil. The next call for the same shard follows then; calls for other
// shards run at the same time. While a shard is 5 seconds or more behind, reading is ahead of
// each call by two answers, at most by MaxBytes in all. Otherwise an answer is read after the
// one before was applied, so that its records are new.
func (s *Stream) Run(ctx context.Context, apply func(context.Context, []Record) error) error {
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error {
		for {
			start, complete, err := s.list(inner)
			if err != nil {
				return err
			}
			for _, sh := range start {
				group.Go(func() error { return s.follow(inner, sh, apply) })
			}
			if complete {
				return nil
			}
			if err := s.awaitListing(inner); err != nil {
				return err
			}
		}
	})
	err := group.Wait()
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Checkpoint returns the current progress.
func (s *Stream) Checkpoint() Checkpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Checkpoint{
		StreamARN: s.arn, TableID: s.tableID, From: s.lineage.from, Epoch: s.lineage.epoch,
		Watermark: s.lineage.watermark(), Shards: s.lineage.checkpoint(),
	}
}

// Status returns the current state.
func (s *Stream) Status() Status {
	now := s.clock.at(s.opts.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{Now: now, Watermark: s.lineage.watermark(), Rule: s.rule}
	for _, sh := range s.lineage.sorted() {
		if sh.state != done {
			status.Shards = append(status.Shards, ShardStatus{sh.id, sh.watermark, sh.throttles})
		}
	}
	return status
}

// Tip returns the current moment of the source.
func (s *Stream) Tip() Tip {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Tip{s.clock.at(s.opts.Now()), s.calls + 1}
}

// Passed reports whether all writes that the source acknowledged before a Tip were applied. In a
// stream that is written without pause it is true when the watermark is a second later.
func (s *Stream) Passed(t Tip) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lineage.listed { // the watermark is that of the checkpoint, and shards may be unknown
		return false
	}
	w := s.lineage.watermark()
	if w.After(t.at.Add(time.Second)) {
		return true
	}
	for sh := range s.lineage.open {
		if sh.idle < t.call {
			return false
		}
	}
	return !w.Before(t.at)
}
