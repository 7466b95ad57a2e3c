package stream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// fakeRecord is the n-th change of an item.
type fakeRecord struct {
	sequence string
	key      string
	n        int
	at       time.Time     // of the write
	seen     time.Duration // from the write until readers see it
	time     time.Time     // its ApproximateCreationDateTime
}

func (r *fakeRecord) record() types.Record {
	value := func(n int) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: r.key},
			"n":  &types.AttributeValueMemberN{Value: fmt.Sprint(n)},
		}
	}
	out := types.Record{
		EventName: types.OperationTypeModify,
		Dynamodb: &types.StreamRecord{
			ApproximateCreationDateTime: aws.Time(r.time), SequenceNumber: aws.String(r.sequence),
			Keys:     map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: r.key}},
			NewImage: value(r.n), OldImage: value(r.n - 1),
		},
	}
	if r.n == 1 {
		out.EventName, out.Dynamodb.OldImage = types.OperationTypeInsert, nil
	}
	return out
}

// fakeShard is a shard that accepts records from begin to end.
type fakeShard struct {
	id, parent string
	begin, end time.Time // end is the zero time if the shard is open
	listed     time.Time // it is listed from then on
	records    []*fakeRecord
}

// fake is a source in virtual time. Its fields are set before the test, or with mu.
type fake struct {
	mu        sync.Mutex
	now       func() time.Time
	view      types.StreamViewType
	created   time.Time
	arn, id   string
	disabled  bool
	noStream  bool
	shards    []*fakeShard
	retention time.Duration
	page      int  // shards a page
	most      int  // records an answer
	header    bool // answers have the header of Tabletop's endpoint
	rand      *rand.Rand
	fail      func(call, shard string) error // nil: no faults
	skew      time.Duration                  // of its clock
	ahead     time.Duration                  // of its numbers, before its clock
	calls     map[string]int
	emptied   map[string]bool // the last answer of the shard was empty in spite of records
}

func newFake(now func() time.Time) *fake {
	return &fake{
		view: types.StreamViewTypeNewAndOldImages, now: now, created: now(), retention: 24 * time.Hour, page: 100, most: 1000,
		arn: "arn:aws:dynamodb:us-east-1:000000000000:table/T/stream/2026", id: "table-1", calls: map[string]int{}, emptied: map[string]bool{},
	}
}

func (f *fake) clients() Clients { return Clients{f, f} }

// options are those of a follower in virtual time.
func (f *fake) options() Options {
	return Options{Table: "T", Now: f.now, Sleep: sleep}
}

// shard adds an open shard.
func (f *fake) shard(id, parent string) *fakeShard {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	sh := &fakeShard{id: id, parent: parent, begin: now, listed: now}
	f.shards = append(f.shards, sh)
	return sh
}

// put adds a record with a number.
func (f *fake) put(sh *fakeShard, key string, n int, number int64) *fakeRecord {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	r := &fakeRecord{fmt.Sprintf("1%020d%05d", number, 1), key, n, now, 0, now.Truncate(time.Second)}
	sh.records = append(sh.records, r)
	return r
}

// list delays the listing of a shard.
func (f *fake) list(sh *fakeShard, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sh.listed = at
}

func (f *fake) close(sh *fakeShard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sh.end = f.now()
}

// disable disables the stream, whose shards are all closed.
func (f *fake) disable() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disabled = true
	for _, sh := range f.shards {
		if now := f.now(); sh.listed.After(now) {
			sh.listed = now
		}
	}
}

// count returns the number of calls whose names begin with a text.
func (f *fake) count(prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for call, times := range f.calls {
		if strings.HasPrefix(call, prefix) {
			n += times
		}
	}
	return n
}

// begin counts a call and returns its fault. The caller holds f.mu.
func (f *fake) begin(call, shard string) error {
	f.calls[call+" "+shard]++
	if f.fail != nil {
		return f.fail(call, shard)
	}
	return nil
}

// metadata has the headers of an answer.
func (f *fake) metadata(below string) middleware.Metadata {
	h := http.Header{}
	h.Set("Date", f.now().Add(f.skew).UTC().Format(http.TimeFormat))
	if below != "" {
		h.Set(watermarkHeader, below)
	}
	_, m, _ := awsmiddleware.AddRawResponse{}.HandleDeserialize(context.Background(), middleware.DeserializeInput{}, middleware.DeserializeHandlerFunc(
		func(context.Context, middleware.DeserializeInput) (out middleware.DeserializeOutput, m middleware.Metadata, err error) {
			out.RawResponse = &smithyhttp.Response{Response: &http.Response{Header: h}}
			return out, m, nil
		}))
	return m
}

func (f *fake) DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin("DescribeTable", ""); err != nil {
		return nil, err
	}
	t := &dynamodbtypes.TableDescription{TableId: aws.String(f.id)}
	if !f.noStream {
		t.LatestStreamArn = aws.String(f.arn)
	}
	if !f.noStream && !f.disabled {
		t.StreamSpecification = &dynamodbtypes.StreamSpecification{StreamEnabled: aws.Bool(true)}
	}
	return &dynamodb.DescribeTableOutput{Table: t}, nil
}

// trimmed returns the time before which everything is trimmed.
func (f *fake) trimmed() time.Time { return f.now().Add(-f.retention) }

// visible returns the shards that are listed. The caller holds f.mu.
func (f *fake) visible() (shards []*fakeShard) {
	for _, sh := range f.shards {
		if now := f.now(); !sh.listed.After(now) && (sh.end.IsZero() || sh.end.After(f.trimmed())) {
			shards = append(shards, sh)
		}
	}
	return shards
}

func (f *fake) DescribeStream(_ context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin("DescribeStream", ""); err != nil {
		return nil, err
	}
	d := &types.StreamDescription{StreamArn: aws.String(f.arn), StreamViewType: f.view, StreamStatus: types.StreamStatusEnabled, CreationRequestDateTime: aws.Time(f.created)}
	if f.disabled {
		d.StreamStatus = types.StreamStatusDisabled
	}
	shards := f.visible()
	slices.SortFunc(shards, func(a, b *fakeShard) int { return strings.Compare(a.id, b.id) })
	for _, sh := range shards {
		if in.ExclusiveStartShardId != nil && sh.id <= *in.ExclusiveStartShardId {
			continue
		}
		if len(d.Shards) == f.page {
			d.LastEvaluatedShardId = d.Shards[len(d.Shards)-1].ShardId
			break
		}
		s := types.Shard{ShardId: aws.String(sh.id)}
		if sh.parent != "" {
			s.ParentShardId = aws.String(sh.parent)
		}
		d.Shards = append(d.Shards, s)
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d, ResultMetadata: f.metadata("")}, nil
}

func coded(code string) error {
	return &smithy.GenericAPIError{Code: code, Message: "from the fake"}
}

// find returns a listed shard. The caller holds f.mu.
func (f *fake) find(id string) (*fakeShard, error) {
	for _, sh := range f.visible() {
		if sh.id == id {
			return sh, nil
		}
	}
	return nil, coded(codeNotFound)
}

func (f *fake) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.begin("GetShardIterator", *in.ShardId); err != nil {
		return nil, err
	}
	sh, err := f.find(*in.ShardId)
	if err != nil {
		return nil, err
	}
	first := slices.IndexFunc(sh.records, func(r *fakeRecord) bool { return !r.at.Before(f.trimmed()) })
	if first < 0 {
		first = len(sh.records)
	}
	at := first
	if in.ShardIteratorType == types.ShardIteratorTypeAfterSequenceNumber {
		at = 1 + slices.IndexFunc(sh.records, func(r *fakeRecord) bool { return r.sequence == *in.SequenceNumber })
		if at == 0 {
			return nil, coded(codeInvalid)
		}
		if at < first {
			return nil, coded(codeTrimmed)
		}
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: f.iteratorAt(sh.id, at)}, nil
}

func (f *fake) iteratorAt(id string, at int) *string {
	return aws.String(fmt.Sprintf("%s %d %d", id, at, f.now().UnixNano()))
}

func (f *fake) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var id string
	var at int
	var issued int64
	if _, err := fmt.Sscanf(*in.ShardIterator, "%s %d %d", &id, &at, &issued); err != nil {
		return nil, coded(codeInvalid)
	}
	if err := f.begin("GetRecords", id); err != nil {
		return nil, err
	}
	now := f.now()
	if now.Sub(time.Unix(0, issued)) >= 15*time.Minute {
		return nil, coded(codeExpired)
	}
	sh, err := f.find(id)
	if err != nil {
		return nil, err
	}
	if at < len(sh.records) && sh.records[at].at.Before(f.trimmed()) {
		return nil, coded(codeTrimmed)
	}
	out := &dynamodbstreams.GetRecordsOutput{Records: []types.Record{}}
	// Everything before below is in this answer or in earlier ones.
	below := now
	if !sh.end.IsZero() && sh.end.Before(below) {
		below = sh.end
	}
	f.emptied[id] = !f.emptied[id] && f.rand != nil && f.rand.IntN(4) == 0
	for f.emptied[id] = f.emptied[id] && at < len(sh.records); at < len(sh.records); at++ {
		r := sh.records[at]
		if len(out.Records) == f.most || f.emptied[id] || r.at.Add(r.seen).After(now) {
			below = r.at
			break
		}
		out.Records = append(out.Records, r.record())
	}
	if sh.end.IsZero() || sh.end.After(now) || at < len(sh.records) {
		out.NextShardIterator = f.iteratorAt(id, at)
	}
	if f.header {
		out.ResultMetadata = f.metadata(fmt.Sprintf("1%020d%05d", below.Add(f.ahead).UnixNano(), 0))
	} else {
		out.ResultMetadata = f.metadata("")
	}
	return out, nil
}

func openFake(t *testing.T, f *fake, o Options) *Stream {
	t.Helper()
	s, err := Open(t.Context(), f.clients(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
