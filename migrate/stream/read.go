package stream

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"golang.org/x/sync/errgroup"
)

// answerBytes is the memory that an answer needs at most, approximately: 1000 records or 1 MB,
// decoded.
const answerBytes = 4 << 20

// allowance is how far the times of the service are not exact.
const allowance = time.Second

const (
	// farBehind is the age of an answer from which on the next ones are read ahead. Below it, each
	// answer is read after the one before was applied: it is as new as possible.
	farBehind = 5 * time.Second
	// readEvery is the time between two calls for a shard that is written all the time, so that an answer
	// has several records. After manyBytes, more of them may be waiting.
	readEvery = 100 * time.Millisecond
	manyBytes = answerBytes / 4
)

// answer is an answer of GetRecords.
type answer struct {
	records   []Record
	sequence  string // of the last kept record; "" if none was kept
	epoch     uint16
	watermark time.Time // of the shard once the records are applied; the zero time if unknown
	idle      uint64    // the number of the call that found nothing more; 0 if it may be cut
	end       bool      // the shard has no further records
	trimmed   bool      // it was trimmed before its first answer
	bytes     int64
	applied   chan struct{} // closed when the records are applied; nil if no one waits for that
}

// follow reads a shard to its end and applies its records.
func (s *Stream) follow(ctx context.Context, sh *shard, apply func(context.Context, []Record) error) error {
	group, ctx := errgroup.WithContext(ctx)
	answers := make(chan answer, 1)
	group.Go(func() error {
		defer close(answers)
		return s.read(ctx, sh, func(a answer) error {
			select {
			case answers <- a:
				return nil
			case <-ctx.Done():
				s.inFlight.Release(a.bytes)
				return ctx.Err()
			}
		})
	})
	group.Go(func() error {
		for a := range answers {
			if err := s.apply(ctx, sh, &a, apply); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// apply applies an answer and notes the progress.
func (s *Stream) apply(ctx context.Context, sh *shard, a *answer, apply func(context.Context, []Record) error) error {
	defer s.inFlight.Release(a.bytes)
	if len(a.records) > 0 {
		if err := apply(ctx, a.records); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.lineage.apply(sh, a)
	s.mu.Unlock()
	if a.applied != nil {
		close(a.applied)
	}
	if a.end {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// read passes the answers of a shard to send, from its checkpoint to its end.
func (s *Stream) read(ctx context.Context, sh *shard, send func(answer) error) error {
	s.mu.Lock()
	c := cursor{shard: sh.id, sequence: sh.sequence, before: sh.before, epoch: sh.epoch, kept: sh.kept, from: s.lineage.from}
	first := !sh.begun // a shard that was trimmed before its first answer lacks nothing
	s.mu.Unlock()
	if c.sequence != "" {
		var ok bool
		if c.last, ok = parseOrder(c.sequence); !ok {
			return s.fail(BadRecord, sh.id, nil, "the sequence number %.50q of the checkpoint does not have 1 to %d digits", c.sequence, maxDigits)
		}
	}
	var iterator *string
	var empty emptyAnswer
	for wait := firstWait; ; {
		var got reply
		var err error
		if iterator == nil {
			empty = emptyAnswer{}
			iterator, err = s.iterator(ctx, sh, &c)
		}
		if err == nil {
			got, err = s.getRecords(ctx, sh, iterator)
		}
		switch code := codeOf(err); {
		case err == nil:
		case code == codeExpired, code == codeTrimmed && first:
			// The last record read is the place to continue.
			iterator = nil
			if err := s.opts.Sleep(ctx, firstWait); err != nil {
				return err
			}
			continue
		case code == codeNotFound && first:
			if err := s.checkAge(sh.id, s.watermarkOf(sh), s.clock.at(s.opts.Now())); err != nil {
				return err
			}
			return send(answer{end: true, trimmed: true})
		case code == codeTrimmed || code == codeNotFound:
			return s.gap(sh.id, s.watermarkOf(sh), err, "the source no longer has the records after the last one that was read")
		default:
			return s.final(sh.id, err)
		}
		first = false
		a, err := s.convert(&c, &got)
		if err != nil {
			return s.fail(BadRecord, sh.id, err, "a record contradicts the documentation of DynamoDB Streams")
		}
		s.judge(&a, &got, &empty)
		a.bytes = s.retain(a.records)
		if len(a.records) > 0 && got.at.Sub(a.watermark) < farBehind {
			a.applied = make(chan struct{})
		}
		if err := send(a); err != nil || a.end {
			return err
		}
		if iterator = got.next; len(got.records) > 0 {
			wait = firstWait
			if err := s.settle(ctx, &a, got.began); err != nil {
				return err
			}
			continue
		}
		if err := s.opts.Sleep(ctx, min(wait, s.opts.IdleMax)); err != nil {
			return err
		}
		wait = min(2*wait, s.opts.IdleMax)
	}
}

// settle waits until the next answer is worth a call, after an answer with records.
func (s *Stream) settle(ctx context.Context, a *answer, began time.Time) error {
	if a.applied == nil {
		return nil
	}
	select {
	case <-a.applied:
	case <-ctx.Done():
		return ctx.Err()
	}
	if left := readEvery - s.opts.Now().Sub(began); left > 0 && a.bytes < manyBytes {
		return s.opts.Sleep(ctx, min(left, readEvery))
	}
	return nil
}

// iterator returns an iterator of the records after the cursor.
func (s *Stream) iterator(ctx context.Context, sh *shard, c *cursor) (iterator *string, err error) {
	in := dynamodbstreams.GetShardIteratorInput{StreamArn: aws.String(s.arn), ShardId: aws.String(sh.id), ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
	if c.sequence != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, aws.String(c.sequence)
	} else if err := s.checkAge(sh.id, s.watermarkOf(sh), s.clock.at(s.opts.Now())); err != nil {
		return nil, err // the oldest record may not be the next one
	}
	err = s.repeat(ctx, sh.id, s.throttled(sh), func() error {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		out, err := s.clients.Stream.GetShardIterator(limited, &in)
		if err == nil {
			iterator = out.ShardIterator
		}
		return err
	})
	if c.sequence != "" && isCode(err, codeInvalid) {
		return nil, s.gap(sh.id, s.watermarkOf(sh), err, "the source does not know the sequence number %s, up to which the shard was applied", c.sequence)
	}
	return iterator, err
}

// reply is an answer of GetRecords before its records are converted.
type reply struct {
	records []types.Record
	given   string  // the iterator of the call
	next    *string // nil at the end of the shard
	call    uint64  // its number
	began   time.Time
	at      time.Time // began, by the clock of the source
	below   string    // the watermark of Tabletop's endpoint, or ""
}

// getRecords reads the next records of a shard. It acquires answerBytes of s.inFlight, which the
// caller releases; it releases them itself if the call fails.
func (s *Stream) getRecords(ctx context.Context, sh *shard, iterator *string) (r reply, err error) {
	err = s.repeat(ctx, sh.id, s.throttled(sh), func() error {
		if err := s.inFlight.Acquire(ctx, min(answerBytes, s.opts.MaxBytes)); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		s.mu.Lock()
		s.calls++
		call := s.calls
		s.mu.Unlock()
		begin := s.opts.Now()
		out, err := s.clients.Stream.GetRecords(limited, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator})
		if err != nil {
			s.inFlight.Release(min(answerBytes, s.opts.MaxBytes))
			return err
		}
		s.clock.observe(headerOf(out.ResultMetadata, "Date"), begin, s.opts.Now())
		r = reply{out.Records, aws.ToString(iterator), out.NextShardIterator, call, begin, s.clock.at(begin), headerOf(out.ResultMetadata, watermarkHeader)}
		return nil
	})
	return r, err
}

// throttled returns a function that counts a throttled call of a shard.
func (s *Stream) throttled(sh *shard) func() {
	return func() {
		s.mu.Lock()
		sh.throttles++
		s.mu.Unlock()
	}
}

func (s *Stream) watermarkOf(sh *shard) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sh.watermark
}

// convert converts the records of a reply and drops those before the first one to keep.
func (s *Stream) convert(c *cursor, r *reply) (a answer, err error) {
	_, exact := numberTime(r.below)
	for i := range r.records {
		rec, keep, err := c.take(&r.records[i], s.OldImages, exact)
		if err != nil {
			return a, err
		}
		if a.watermark = rec.Time.Add(-allowance); keep {
			a.records = append(a.records, rec)
		}
	}
	if len(a.records) > 0 {
		a.sequence, a.epoch = c.sequence, c.epoch
	}
	a.end = r.next == nil
	return a, nil
}

// emptyAnswer is the latest answer, if it was empty.
type emptyAnswer struct {
	call uint64 // 0 if it was not
	at   time.Time
}

// judge sets the watermark of an answer, and whether it found everything.
func (s *Stream) judge(a *answer, r *reply, empty *emptyAnswer) {
	rule := RuleAnswers
	if below, ok := numberTime(r.below); ok {
		// Numbers can be ahead of the clock of the source, after a restart or a burst.
		if rule, a.watermark = RuleHeader, below; below.After(r.at) {
			a.watermark = r.at
		}
		if len(r.records) == 0 {
			a.idle = r.call
		}
	} else if len(r.records) > 0 {
		if *empty = (emptyAnswer{}); a.watermark.After(r.at) {
			a.watermark = r.at
		}
	} else if moved := r.next != nil && *r.next != r.given; moved {
		if empty.call > 0 {
			a.idle, a.watermark = empty.call, empty.at.Add(-allowance)
		}
		*empty = emptyAnswer{r.call, r.at}
	}
	s.mu.Lock()
	s.rule = rule
	s.mu.Unlock()
}

// retain reduces the memory in flight of an answer to that of its records, and returns it.
func (s *Stream) retain(records []Record) (bytes int64) {
	for i := range records {
		bytes += records[i].cost()
	}
	reserved := min(answerBytes, s.opts.MaxBytes)
	bytes = min(bytes, reserved)
	s.inFlight.Release(reserved - bytes)
	return bytes
}
