package stream

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	firstWait   = 250 * time.Millisecond // before a repeated call, and before an idle shard is asked again
	longestWait = 10 * time.Second       // before a repeated call
	callTimeout = time.Minute            // of one call

	listEvery   = 10 * time.Second
	listMissing = time.Second // while the children of a shard that has ended are unknown
)

// The error codes that decide about a shard.
const (
	codeNotFound = "ResourceNotFoundException"
	codeExpired  = "ExpiredIteratorException"
	codeTrimmed  = "TrimmedDataAccessException"
	codeInvalid  = "ValidationException"
)

// throttles are the error codes of throttled calls.
var throttles = map[string]bool{
	"LimitExceededException": true, "ProvisionedThroughputExceededException": true, "ThrottlingException": true, "Throttling": true,
	"RequestLimitExceeded": true, "TooManyRequestsException": true, "ThrottledException": true,
}

func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

func isCode(err error, code string) bool { return err != nil && codeOf(err) == code }

// isTransient reports whether a repeated call may succeed. Errors without a code are those of
// the network, unless they are about an answer.
func isTransient(err error) bool {
	if _, described := errors.AsType[*Error](err); described {
		return false
	}
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.Response != nil {
		if status := answer.HTTPStatusCode(); status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			return true
		}
	}
	code := codeOf(err)
	return code == "" || throttles[code] || code == "InternalServerError" || code == "ServiceUnavailable" || code == "InternalFailure"
}

// callError describes the error of a call that is not repeated.
func (s *Stream) callError(shard string, err error) error {
	if isTransient(err) {
		return s.fail(Unanswered, shard, err, "the source does not answer; check the endpoint, and start again")
	}
	return s.fail(Refused, shard, err, "the source refuses a call; check the credentials and their permissions "+
		"(DescribeTable, DescribeStream, GetShardIterator, GetRecords; Scan and BatchGetItem for a verification)")
}

// repeat makes a call until it succeeds or fails permanently. throttled may be nil.
func (s *Stream) repeat(ctx context.Context, shard string, throttled func(), call func() error) error {
	var since time.Time
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := call()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !isTransient(err):
			return err
		}
		if throttles[codeOf(err)] && throttled != nil {
			throttled()
		}
		now := s.opts.Now()
		if since.IsZero() {
			since = now
		} else if now.Sub(since) >= s.opts.GiveUp {
			return s.callError(shard, err)
		}
		d := wait
		if s.opts.Jitter != nil {
			d -= time.Duration(s.opts.Jitter() * float64(wait) / 2)
		}
		if err := s.opts.Sleep(ctx, d); err != nil {
			return err
		}
	}
}

// list describes the stream. It returns the shards to read now, and whether the stream is
// disabled and read to its end.
func (s *Stream) list(ctx context.Context) (start []*shard, complete bool, err error) {
	var shards []types.Shard
	var status types.StreamStatus
	for in := (dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(s.arn)}); ; {
		var page *types.StreamDescription
		err := s.repeat(ctx, "", nil, func() error {
			limited, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			begin := s.opts.Now()
			out, err := s.clients.Stream.DescribeStream(limited, &in)
			if err != nil {
				return err
			}
			s.clock.observe(headerOf(out.ResultMetadata, "Date"), begin, s.opts.Now())
			page = out.StreamDescription
			return nil
		})
		switch {
		case isCode(err, codeNotFound):
			return nil, false, s.gap("", s.Status().Watermark, nil, "the source no longer has its stream %s", s.arn)
		case err != nil:
			return nil, false, s.final("", err)
		case page == nil:
			page = &types.StreamDescription{}
		}
		if in.ExclusiveStartShardId == nil {
			status = page.StreamStatus
		}
		shards = append(shards, page.Shards...)
		if in.ExclusiveStartShardId = page.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	start, lost := s.lineage.list(shards, status == types.StreamStatusDisabled)
	if lost != nil {
		return nil, false, s.gap(lost.id, lost.watermark, nil, "the source no longer lists the shard, and its records after the checkpoint are lost")
	}
	return start, s.lineage.ended, nil
}

// final describes the error of a call that was repeated, or that fails permanently.
func (s *Stream) final(shard string, err error) error {
	if _, described := errors.AsType[*Error](err); described || codeOf(err) == "" {
		return err
	}
	return s.callError(shard, err)
}

// awaitListing waits until the shards should be listed again.
func (s *Stream) awaitListing(ctx context.Context) error {
	s.mu.Lock()
	wait := listEvery
	for sh := range s.lineage.open {
		if sh.state == done {
			wait = listMissing
		}
	}
	s.mu.Unlock()
	pause, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.wake:
			cancel()
		case <-pause.Done():
		}
	}()
	_ = s.opts.Sleep(pause, wait) // a shard that ends cuts the wait short
	return ctx.Err()
}
