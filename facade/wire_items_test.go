package facade

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// TestEncodeResponse_Items compares what answers write themselves with what
// the JSON package makes of them.
func TestEncodeResponse_Items(t *testing.T) {
	t.Parallel()
	item := &wireItem{Item: attr.Item{"b": attr.String("é\"\\\n\x7f"), "a\x01": attr.Int(1), "l": attr.ListOf(attr.Null(), attr.MapOf(nil))}}
	empty := &wireItem{Item: attr.Item{}}
	capacity := &consumedCapacity{TableName: "T", CapacityUnits: 1.5}
	for i, out := range []any{
		&getItemOutput{}, &getItemOutput{Item: item}, &getItemOutput{Item: empty, ConsumedCapacity: capacity},
		&writeItemOutput{}, &writeItemOutput{Attributes: item, ConsumedCapacity: capacity},
		&writeItemOutput{ItemCollectionMetrics: &itemCollectionMetrics{ItemCollectionKey: *item}},
		&readOutput{}, &readOutput{Items: []wireItem{}, ConsumedCapacity: capacity},
		&readOutput{Items: []wireItem{*item, *empty, {}}, Count: 3, ScannedCount: 12345, LastEvaluatedKey: item},
	} {
		t.Run(fmt.Sprintf("%d_%T", i, out), func(t *testing.T) {
			t.Parallel()
			want, err := json.Marshal(out, responseOptions)
			if err != nil {
				t.Fatal(err)
			}
			got, err := encodeResponse(out)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-package json +own:\n%s", diff)
			}
		})
	}
}
