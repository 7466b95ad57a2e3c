package testkit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/migrate/stream"
	"github.com/tabletop-emu/tabletop/testkit"
)

// streamSource is a table with a stream on Tabletop's endpoint, and the changes that were applied.
type streamSource struct {
	env    *testkit.Env
	client *dynamodb.Client

	mu      sync.Mutex
	wrote   map[string][]time.Time // by item: when each write was answered
	applied map[string]int
	shards  map[string]bool
}

func newStreamSource(t *testing.T, o facade.Options, more ...testkit.Option) *streamSource {
	t.Helper()
	env := testkit.Start(t, append(more, testkit.WithDynamoDBOptions(o))...)
	s := &streamSource{env: env, client: env.DynamoDB(t), wrote: map[string][]time.Time{}, applied: map[string]int{}, shards: map[string]bool{}}
	s.create(t, types.StreamViewTypeNewAndOldImages)
	return s
}

func (s *streamSource) create(t *testing.T, view types.StreamViewType) {
	t.Helper()
	_, err := s.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("Orders"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// put writes the next change of an item.
func (s *streamSource) put(t *testing.T, id string) {
	t.Helper()
	s.mu.Lock()
	n := len(s.wrote[id]) + 1
	s.mu.Unlock()
	_, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("Orders"), Item: map[string]types.AttributeValue{
		"id": &types.AttributeValueMemberS{Value: id}, "n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote[id] = append(s.wrote[id], s.env.Now())
}

func (s *streamSource) options() stream.Options {
	return stream.Options{Table: "Orders", Now: s.env.Now, Sleep: func(ctx context.Context, d time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}}
}

func (s *streamSource) open(t *testing.T, o stream.Options) *stream.Stream {
	t.Helper()
	st, err := stream.Open(t.Context(), stream.Clients{Table: s.client, Stream: s.env.DynamoDBStreams(t)}, o)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// apply notes the changes. Those of an item follow each other.
func (s *streamSource) apply(t *testing.T, records []stream.Record) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		n := 0
		_, _ = fmt.Sscan(r.New["n"].Str, &n)
		id := r.Keys["id"].Str
		if n > s.applied[id]+1 {
			t.Errorf("the change %d of %s follows %d", n, id, s.applied[id])
		}
		if r.Old == nil != (n == 1) || r.Time.Nanosecond() == 0 || r.Expired {
			t.Errorf("%+v", r)
		}
		s.applied[id], s.shards[r.Shard] = max(n, s.applied[id]), true
	}
}

// judge checks that all writes that were answered before a time are applied.
func (s *streamSource) judge(t *testing.T, what string, before time.Time) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, answered := range s.wrote {
		for i, at := range answered {
			if at.Before(before) && s.applied[id] < i+1 {
				t.Errorf("%s %s: the write %d of %s was answered at %s, and %d are applied", what, before, i+1, id, at, s.applied[id])
			}
		}
	}
}

// Followers of Tabletop's own endpoint apply every write once or more, in order, while shards
// rotate and split; the watermark is honest, and close.
func TestStream_Endpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStreamSource(t, facade.Options{StreamShards: []int{1, 2, 4}, StreamShardRotation: 10 * time.Second})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := range 400 {
				time.Sleep(251 * time.Millisecond) // not on whole seconds
				s.put(t, fmt.Sprint("item", n%7))
			}
		}()
		o := s.options()
		var checkpoint stream.Checkpoint
		for range 10 {
			st := s.open(t, o)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- st.Run(ctx, func(_ context.Context, records []stream.Record) error {
					s.apply(t, records)
					return nil
				})
			}()
			for range 40 {
				time.Sleep(300 * time.Millisecond)
				s.judge(t, "watermark", st.Status().Watermark)
			}
			status := st.Status()
			if lag := status.Now.Sub(status.Watermark); lag < 0 || lag > 2*time.Second || status.Rule != stream.RuleHeader {
				t.Errorf("the lag is %s by the rule %s", lag, status.Rule)
			}
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			checkpoint = st.Checkpoint()
			o.Checkpoint = &checkpoint
		}
		<-done
		s.judge(t, "end", s.env.Now())
		if len(s.shards) < 20 {
			t.Errorf("only %d shards had records", len(s.shards))
		}
	})
}

// With a clock that stands still, a follower has passed the tip only after all earlier writes.
func TestStream_FrozenClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStreamSource(t, facade.Options{}, testkit.WithFrozenClock(time.Unix(1_800_000_000, 700_000_000)))
		for n := range 1200 { // more than an answer
			s.put(t, fmt.Sprint("item", n%7))
		}
		st := s.open(t, s.options())
		ctx, stop := context.WithCancel(t.Context())
		tip := st.Tip()
		ended := make(chan error, 1)
		go func() {
			ended <- st.Run(ctx, func(ctx context.Context, records []stream.Record) error {
				if err := s.options().Sleep(ctx, time.Second); err != nil {
					return err
				}
				s.apply(t, records)
				return nil
			})
		}()
		later := s.env.Now().Add(time.Nanosecond)
		for n := 0; !st.Passed(tip); n++ {
			if n == 100 {
				t.Fatalf("the tip is not passed: %+v", st.Status())
			}
			time.Sleep(100 * time.Millisecond)
		}
		s.judge(t, "tip", later)
		s.put(t, "item1")
		if st.Passed(st.Tip()) {
			t.Error("a tip is passed at once")
		}
		stop()
		<-ended
	})
}

// A checkpoint without shards, from a run that found no record, does not stand for the reads of the
// next run.
func TestStream_TipWithoutShards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStreamSource(t, facade.Options{}, testkit.WithFrozenClock(time.Unix(1_800_000_000, 700_000_000)))
		o := s.options()
		o.Since = s.env.Advance(2 * time.Minute)
		st := s.open(t, o)
		ctx, stop := context.WithCancel(t.Context())
		tip, ended := st.Tip(), make(chan error, 1)
		go func() { ended <- st.Run(ctx, func(context.Context, []stream.Record) error { return nil }) }()
		for !st.Passed(tip) {
			time.Sleep(time.Second)
		}
		stop()
		<-ended
		s.put(t, "item1")
		checkpoint := st.Checkpoint()
		if o.Checkpoint = &checkpoint; len(checkpoint.Shards) > 0 {
			t.Fatalf("the checkpoint has shards: %+v", checkpoint)
		}
		if again := s.open(t, o); again.Passed(again.Tip()) {
			t.Error("the tip is passed before the first read")
		}
	})
}

// A table that was created again under its name, and a stream that was enabled again, are
// refused.
func TestStream_Reopened(t *testing.T) {
	t.Parallel()
	s := newStreamSource(t, facade.Options{})
	o := s.options()
	checkpoint := s.open(t, o).Checkpoint()
	o.Checkpoint = &checkpoint
	s.open(t, o)
	kind := func() stream.Kind {
		_, err := stream.Open(t.Context(), stream.Clients{Table: s.client, Stream: s.env.DynamoDBStreams(t)}, o)
		if e, ok := errors.AsType[*stream.Error](err); ok {
			return e.Kind
		}
		return ""
	}
	for _, enabled := range []bool{false, true} {
		spec := &types.StreamSpecification{StreamEnabled: aws.Bool(enabled)}
		if enabled {
			spec.StreamViewType = types.StreamViewTypeNewAndOldImages
		}
		if _, err := s.client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String("Orders"), StreamSpecification: spec}); err != nil {
			t.Fatal(err)
		}
		want := map[bool]stream.Kind{false: "", true: stream.Gap}[enabled] // a disabled stream is read to its end
		if got := kind(); got != want {
			t.Errorf("enabled %v: the error is %q, want %q", enabled, got, want)
		}
	}
	if _, err := s.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("Orders")}); err != nil {
		t.Fatal(err)
	}
	if got := kind(); got != stream.NoTable {
		t.Errorf("a deleted table: %q", got)
	}
	s.create(t, types.StreamViewTypeKeysOnly)
	if got := kind(); got != stream.OtherTable {
		t.Errorf("a table that was created again: %q", got)
	}
	if o.Checkpoint = nil; kind() != stream.View {
		t.Errorf("a stream of keys: %q", kind())
	}
}
