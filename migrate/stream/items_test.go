package stream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// batches answers BatchGetItem with some items, and leaves keys unprocessed.
type batches struct {
	ItemClient
	t       *testing.T
	process []int // keys that a call processes; -1: all
	foreign bool  // answers with another item
	calls   int
}

func (b *batches) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	of := in.RequestItems["Things"]
	n := len(of.Keys)
	if b.calls < len(b.process) && b.process[b.calls] >= 0 {
		n = b.process[b.calls]
	}
	b.calls++
	asked := map[string]bool{}
	out := dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{}}
	for i := len(of.Keys) - 1; i >= 0; i-- { // answers have no order
		key := of.Keys[i]
		pk := key["PK"].(*types.AttributeValueMemberN).Value
		if asked[pk] || len(of.Keys) > 100 || !*of.ConsistentRead {
			b.t.Errorf("the source refuses a call with %d keys, key %s", len(of.Keys), pk)
		}
		asked[pk] = true
		if i >= n {
			left := out.UnprocessedKeys["Things"]
			left.Keys = append(left.Keys, key)
			out.UnprocessedKeys = map[string]types.KeysAndAttributes{"Things": left}
			continue
		}
		if b.foreign {
			pk += "0"
		}
		if pk == "7" {
			continue // it does not exist
		}
		out.Responses["Things"] = append(out.Responses["Things"], map[string]types.AttributeValue{
			"PK": &types.AttributeValueMemberN{Value: pk}, "v": &types.AttributeValueMemberS{Value: "of " + pk},
		})
	}
	return &out, nil
}

// Get reads keys by hundreds, asks again for those that the source leaves, and waits if it processes none.
func TestItems_Get(t *testing.T) {
	t.Parallel()
	var keys []attr.Item
	for i := range 250 {
		keys = append(keys, attr.Item{"PK": attr.Value{Type: attr.N, Str: fmt.Sprint(i)}})
	}
	keys = append(keys, keys[3])
	b, slept := &batches{t: t, process: []int{-1, 60, 0, 0, -1}}, 0
	now := time.Unix(1e9, 0)
	r := NewItems(b, Options{Table: "Things", Now: func() time.Time { return now }, Sleep: func(_ context.Context, d time.Duration) error {
		slept++
		now = now.Add(d)
		return nil
	}})
	items, at, err := r.Get(t.Context(), keys...)
	if err != nil || !at.After(now) || slept != 2 || b.calls != 5 {
		t.Errorf("after %d calls and %d waits, at %v: %v", b.calls, slept, at, err)
	}
	for i, item := range items {
		if want := "of " + keys[i]["PK"].Str; (i == 7) != (item == nil) || i != 7 && item["v"].Str != want {
			t.Errorf("the item of key %d is %v", i, item)
		}
	}
	_, _, err = NewItems(&batches{t: t, foreign: true}, Options{Table: "Things", Now: func() time.Time { return now }}).Get(t.Context(), keys[1])
	if of, ok := errors.AsType[*Error](err); !ok || of.Kind != BadRecord {
		t.Errorf("an item that was not asked for: %v", err)
	}
}
