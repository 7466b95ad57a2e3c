package facade

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/capacity"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// plainOptions are the options with which the JSON package writes an answer as the server does.
var plainOptions = json.JoinOptions(json.Deterministic(true), jsontext.EscapeForHTML(false))

// TestEncodeResponse_Items compares the JSON that answers write themselves with the output of
// the JSON package.
func TestEncodeResponse_Items(t *testing.T) {
	t.Parallel()
	item := &wire.Item{Item: attr.Item{"b": attr.String("é\"\\\n\x7f"), "a\x01": attr.Int(1), "l": attr.ListOf(attr.Null(), attr.MapOf(nil))}}
	empty := &wire.Item{Item: attr.Item{}}
	consumed := &capacity.Consumed{TableName: "T", CapacityUnits: 1.5}
	for i, out := range []any{
		&getItemOutput{}, &getItemOutput{Item: item}, &getItemOutput{Item: empty, ConsumedCapacity: consumed},
		&writeItemOutput{}, &writeItemOutput{Attributes: item, ConsumedCapacity: consumed},
		&writeItemOutput{ItemCollectionMetrics: &capacity.ItemCollectionMetrics{ItemCollectionKey: *item}},
	} {
		t.Run(fmt.Sprintf("%d_%T", i, out), func(t *testing.T) {
			t.Parallel()
			want, err := json.Marshal(out, plainOptions)
			if err != nil {
				t.Fatal(err)
			}
			got, err := wire.Encode(out)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("-package json +own:\n%s", diff)
			}
		})
	}
}

// TestEncodeResponse_Page makes the same comparison for a page, whose items are written one by
// one.
func TestEncodeResponse_Page(t *testing.T) {
	t.Parallel()
	type page struct {
		Items               []wire.Item `json:",omitzero"`
		Count, ScannedCount int
		LastEvaluatedKey    *wire.Item         `json:",omitzero"`
		ConsumedCapacity    *capacity.Consumed `json:",omitzero"`
	}
	key := &wire.Item{Item: attr.Item{"p": attr.Int(1)}}
	consumed := &capacity.Consumed{TableName: "T", CapacityUnits: 1.5}
	for i, p := range []page{
		{},
		{ScannedCount: 7, ConsumedCapacity: consumed},
		{Items: []wire.Item{}, ConsumedCapacity: consumed},
		{Items: []wire.Item{*key}, Count: 1, ScannedCount: 1},
		{Items: []wire.Item{*key, {Item: attr.Item{}}, *key}, Count: 3, ScannedCount: 12345, LastEvaluatedKey: key},
	} {
		out := &readOutput{Count: p.Count, ScannedCount: p.ScannedCount, LastEvaluatedKey: p.LastEvaluatedKey, ConsumedCapacity: p.ConsumedCapacity}
		if p.Items != nil {
			out.begun.BeginList("Items")
			for _, item := range p.Items {
				if sizes, err := out.begun.Element(layout.Decoded(item.Item).AppendJSON); err != nil || sizes != item.Item.Sizes() {
					t.Errorf("%d: %v has the sizes %v, %v", i, item.Item, sizes, err)
				}
			}
			out.begun.EndList()
		}
		want, err := json.Marshal(p, plainOptions)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.Encode(out)
		if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
			t.Errorf("%d: %v; -package json +own:\n%s", i, err, diff)
		}
	}
}
