package stream

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// ItemClient is the part of a client of DynamoDB that reads items.
type ItemClient interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
}

// Items reads the current items of a table, and repeats calls as a [Stream] does.
type Items struct {
	client ItemClient
	s      Stream // its options and its clock
}

// NewItems returns the reader of a table. Of the options, Table, Now and Sleep are required, and
// Jitter and GiveUp are optional.
func NewItems(client ItemClient, o Options) *Items {
	r := &Items{client: client, s: Stream{opts: o.withDefaults()}}
	r.s.clock.base = o.Now()
	return r
}

// Scan reads a segment of all segments, page by page.
func (r *Items) Scan(ctx context.Context, segment, segments int, consistent bool) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		in := dynamodb.ScanInput{
			TableName: aws.String(r.s.opts.Table), ConsistentRead: aws.Bool(consistent),
			Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(segments)), //nolint:gosec // few
		}
		for {
			var page Page
			err := r.call(ctx, func(ctx context.Context) (middleware.Metadata, error) {
				out, err := r.client.Scan(ctx, &in)
				if err != nil {
					return middleware.Metadata{}, err
				}
				page.Items = page.Items[:0]
				for _, of := range out.Items {
					item, err := ItemOf(of)
					if err != nil {
						return out.ResultMetadata, r.s.fail(BadRecord, "", err, "an item of the scan cannot be read")
					}
					page.Items = append(page.Items, item)
				}
				in.ExclusiveStartKey = out.LastEvaluatedKey
				return out.ResultMetadata, nil
			}, &page.At)
			if !yield(page, err) || err != nil || len(in.ExclusiveStartKey) == 0 {
				return
			}
		}
	}
}

// Page is a page of a scan.
type Page struct {
	Items []attr.Item
	// At is a time of the source at which the answer was complete. It is not earlier, and up to
	// about a second later.
	At time.Time
}

// maxKeys is the maximum number of keys in a BatchGetItem.
const maxKeys = 100

// Get reads the items of keys, each consistently; nil for those that do not exist. at is the time of the last
// answer, as [Page] has it. A key is read after the call of Get, and items may be of different moments.
func (r *Items) Get(ctx context.Context, keys ...attr.Item) (items []attr.Item, at time.Time, err error) {
	items = make([]attr.Item, len(keys))
	places := make(map[string][]int, len(keys)) // by key: a batch must not have one twice
	var asked []map[string]types.AttributeValue
	for i, key := range keys {
		name := string(attr.AppendItemJSON(nil, key))
		if places[name] == nil {
			of := make(map[string]types.AttributeValue, len(key))
			for name, v := range key {
				of[name] = keyValue(v)
			}
			asked = append(asked, of)
		}
		places[name] = append(places[name], i)
	}
	for len(asked) > 0 {
		n := min(len(asked), maxKeys)
		left, last, err := r.batch(ctx, asked[:n], func(item attr.Item) bool {
			key := make(attr.Item, len(keys[0]))
			for name := range keys[0] {
				key[name] = item[name]
			}
			at := places[string(attr.AppendItemJSON(nil, key))]
			for _, i := range at {
				items[i] = item
			}
			return len(at) > 0
		})
		if err != nil {
			return nil, at, err
		}
		if asked = append(left, asked[n:]...); last.After(at) {
			at = last
		}
	}
	return items, at, nil
}

// batch reads items. It returns the keys that the source left for another call.
func (r *Items) batch(ctx context.Context, keys []map[string]types.AttributeValue, yield func(attr.Item) bool) (left []map[string]types.AttributeValue, at time.Time, err error) {
	table := r.s.opts.Table
	in := dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: aws.Bool(true)}}}
	err = r.call(ctx, func(ctx context.Context) (middleware.Metadata, error) {
		out, err := r.client.BatchGetItem(ctx, &in)
		if err != nil {
			return middleware.Metadata{}, err
		}
		if left = out.UnprocessedKeys[table].Keys; len(left) == len(keys) { // it is throttled
			return middleware.Metadata{}, &types.ProvisionedThroughputExceededException{Message: aws.String("no key was processed")}
		}
		for _, of := range out.Responses[table] {
			item, err := ItemOf(of)
			if err != nil {
				return out.ResultMetadata, r.s.fail(BadRecord, "", err, "an item cannot be read")
			}
			if !yield(item) {
				return out.ResultMetadata, r.s.fail(BadRecord, "", nil, "the source returned an item whose key was not requested")
			}
		}
		return out.ResultMetadata, nil
	}, &at)
	return slices.Clone(left), at, err
}

// call makes a call until it succeeds, and sets the time of its answer.
func (r *Items) call(ctx context.Context, call func(context.Context) (middleware.Metadata, error), at *time.Time) error {
	err := r.s.repeat(ctx, "", nil, func() error {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		begin := r.s.opts.Now()
		answer, err := call(limited)
		if err != nil {
			return err
		}
		end, date := r.s.opts.Now(), headerOf(answer, "Date")
		r.s.clock.observe(date, begin, end)
		if *at, err = http.ParseTime(date); err != nil {
			*at = r.s.clock.at(end)
		}
		*at = at.Add(time.Second).UTC() // the Date has whole seconds
		return nil
	})
	if err != nil {
		return r.s.final("", err)
	}
	return nil
}

// keyValue converts a key attribute to a value of the SDK.
func keyValue(v attr.Value) types.AttributeValue {
	switch v.Type { //nolint:exhaustive // keys have three types
	case attr.N:
		return &types.AttributeValueMemberN{Value: v.Str}
	case attr.B:
		return &types.AttributeValueMemberB{Value: []byte(v.Str)}
	default:
		return &types.AttributeValueMemberS{Value: v.Str}
	}
}

// ItemOf converts an item of the SDK to the canonical one.
func ItemOf(in map[string]types.AttributeValue) (attr.Item, error) {
	of, err := membersOf(in)
	if err != nil {
		return nil, err
	}
	return itemOf(of)
}

// membersOf converts attributes to those of change records, which the SDK declares a second time.
func membersOf(in map[string]types.AttributeValue) (out map[string]streamtypes.AttributeValue, err error) {
	out = make(map[string]streamtypes.AttributeValue, len(in))
	for name, v := range in {
		if out[name], err = recordValue(v); err != nil {
			return nil, fmt.Errorf("attribute %.80q: %w", name, err)
		}
	}
	return out, nil
}

func recordValue(in types.AttributeValue) (streamtypes.AttributeValue, error) {
	switch in := in.(type) {
	case *types.AttributeValueMemberS:
		return &streamtypes.AttributeValueMemberS{Value: in.Value}, nil
	case *types.AttributeValueMemberN:
		return &streamtypes.AttributeValueMemberN{Value: in.Value}, nil
	case *types.AttributeValueMemberB:
		return &streamtypes.AttributeValueMemberB{Value: in.Value}, nil
	case *types.AttributeValueMemberBOOL:
		return &streamtypes.AttributeValueMemberBOOL{Value: in.Value}, nil
	case *types.AttributeValueMemberNULL:
		return &streamtypes.AttributeValueMemberNULL{Value: in.Value}, nil
	case *types.AttributeValueMemberSS:
		return &streamtypes.AttributeValueMemberSS{Value: in.Value}, nil
	case *types.AttributeValueMemberNS:
		return &streamtypes.AttributeValueMemberNS{Value: in.Value}, nil
	case *types.AttributeValueMemberBS:
		return &streamtypes.AttributeValueMemberBS{Value: in.Value}, nil
	case *types.AttributeValueMemberL:
		list := make([]streamtypes.AttributeValue, len(in.Value))
		for i, v := range in.Value {
			var err error
			if list[i], err = recordValue(v); err != nil {
				return nil, err
			}
		}
		return &streamtypes.AttributeValueMemberL{Value: list}, nil
	case *types.AttributeValueMemberM:
		members, err := membersOf(in.Value)
		return &streamtypes.AttributeValueMemberM{Value: members}, err
	}
	return nil, fmt.Errorf("a value of the unknown type %T", in)
}
