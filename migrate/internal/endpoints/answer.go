package endpoints

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// mismatch is the difference of an answer from the expected one.
type mismatch struct {
	item      attr.Item // the differing item, or nil
	column    string    // the differing attribute, or ""
	want, got string
	detail    string
}

// judge returns the mismatch of an endpoint's answer; a refusal is an answer.
func (r *patternRun) judge(items []attr.Item, err error) (*mismatch, error) {
	if m := refusedAnswer(err); m != nil {
		if r.known {
			m.want = phrase.Counted(int64(len(r.want)), "item")
		}
		return m, nil
	}
	if err != nil {
		return nil, err
	}
	return r.compare(items), nil
}

// compare compares an answer with the listed items, or with the first answer if the pattern
// lists none; nil means equal. It keeps the first answer itself, and compares only its length
// with the expected count.
func (r *patternRun) compare(got []attr.Item) *mismatch {
	got = slices.DeleteFunc(got, r.J.Failed)
	if r.known {
		return r.differs(r.p, r.want, got)
	}
	// It is unknown whether failed items, and the items they met, would be in the answer.
	if n := r.p.Expect.Count; n != nil && (len(got) > *n || int64(*n-len(got)) > 2*r.J.Report.LeftOut) {
		return otherCount(*n, len(got))
	}
	r.want, r.known, r.done.Items = got, true, len(got)
	return nil
}

// refusedAnswer returns the mismatch for a permanent error, with which the endpoint refuses a
// request. It returns nil for other errors.
func refusedAnswer(err error) *mismatch {
	var refused *Refusal
	if errors.As(err, &refused) {
		return &mismatch{want: "an answer", got: refused.Error(), detail: "the request was refused"}
	}
	switch status.Code(err) { //nolint:exhaustive // the others say nothing of the request
	case codes.NotFound, codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented:
		return &mismatch{want: "an answer", got: phrase.Clip(status.Convert(err).Message()), detail: "the request was refused"}
	}
	return nil
}

// expected returns the items that the pattern expects.
func (d *Pair) expected(ctx context.Context, p fixtures.Pattern) ([]attr.Item, error) {
	invalid := func(err error, format string, args ...any) error {
		return source.Damaged(source.FixtureInvalid, source.Position{File: p.File}, err, format, args...)
	}
	var want []attr.Item
	for i, raw := range p.Expect.Items {
		text, err := json.Marshal(raw)
		if err != nil {
			return nil, invalid(err, "expect.items[%d] is not JSON", i)
		}
		item, err := attr.UnmarshalItem(text)
		if err != nil {
			return nil, invalid(err, "expect.items[%d] is not an item", i)
		}
		want = append(want, item)
	}
	if len(p.Expect.Keys) > 0 {
		at := map[string]int{}
		for i, key := range p.Expect.Keys {
			at[strings.Join(key, "\x00")] = i
		}
		want = make([]attr.Item, len(p.Expect.Keys))
		schema := d.J.Mapping.Key()
		for e, err := range d.J.Source.Entries() {
			if err != nil {
				return nil, err
			}
			var key []string
			for _, k := range schema.Attrs() {
				key = append(key, e.Item[k.Name].Str)
			}
			if i, ok := at[strings.Join(key, "\x00")]; ok {
				if d.J.Failed(e.Item) {
					want[i] = e.Item
					continue
				}
				placed, err := d.J.Mapping.Place(e.Item, d.J.Micros)
				if err != nil {
					return nil, invalid(err, "expect.keys[%d] %q: the mapping refuses this item", i, p.Expect.Keys[i])
				}
				want[i], _ = d.J.Mapping.Returned(e.Item, placed)
			}
		}
		if i := slices.IndexFunc(want, func(item attr.Item) bool { return item == nil }); i >= 0 {
			return nil, invalid(nil, "expect.keys[%d] %q: the source has no such item", i, p.Expect.Keys[i])
		}
	}
	if c := p.Expect.Count; c != nil && p.Expect.Lists() && *c != len(want) && !p.Missing {
		return nil, invalid(nil, "count is %d, but %d items are listed", *c, len(want))
	}
	return slices.DeleteFunc(want, d.J.Failed), ctx.Err()
}

// The interval of retries while an eventual answer is pending.
const eventualStep = 20 * time.Millisecond

// eventually repeats a request until the answer is right, or the pattern's lag is over. wrong
// is the mismatch of the last answer, or nil.
func (d *Pair) eventually(ctx context.Context, p fixtures.Pattern, ask func() (wrong *mismatch, err error)) (wrong *mismatch, err error) {
	for waited := time.Duration(0); ; waited += eventualStep {
		if wrong, err = ask(); wrong == nil || err != nil || waited >= p.Lag || d.J.Options.Sleep == nil {
			return wrong, err
		}
		if err := d.J.Options.Sleep(ctx, min(eventualStep, p.Lag-waited)); err != nil {
			return nil, err
		}
	}
}

// otherCount returns the mismatch for an answer that has got items instead of want.
func otherCount(want, got int) *mismatch {
	return &mismatch{want: phrase.Counted(int64(want), "item"), got: phrase.Counted(int64(got), "item"), detail: "another number of items"}
}

// differs returns the mismatch of an answer, or nil.
func (d *Pair) differs(p fixtures.Pattern, want, got []attr.Item) *mismatch {
	if p.Equal.As == "count" {
		if len(want) != len(got) {
			return otherCount(len(want), len(got))
		}
		return nil
	}
	// compared returns the compared part of the items, in order.
	compared := func(items []attr.Item) []attr.Item {
		out := make([]attr.Item, len(items))
		for i, item := range items {
			out[i] = maps.Clone(item)
			maps.DeleteFunc(out[i], func(name string, _ attr.Value) bool {
				return slices.Contains(p.Equal.Ignore, name) || p.Equal.As == "keys" && !d.isKey(name)
			})
		}
		if p.Expect.Order == "any" {
			slices.SortStableFunc(out, func(a, b attr.Item) int { return strings.Compare(itemText(a), itemText(b)) })
		}
		return out
	}
	w, g := compared(want), compared(got)
	for i := range max(len(w), len(g)) {
		switch {
		case i >= len(w):
			return &mismatch{item: g[i], got: phrase.Clip(itemText(g[i])), detail: fmt.Sprintf("%s, want %d; item %d should not be there", phrase.Counted(int64(len(g)), "item"), len(w), i+1)}
		case i >= len(g):
			return &mismatch{item: w[i], want: phrase.Clip(itemText(w[i])), detail: fmt.Sprintf("%s, want %d; item %d is missing", phrase.Counted(int64(len(g)), "item"), len(w), i+1)}
		case itemText(w[i]) != itemText(g[i]):
			place := fmt.Sprintf("item %d of %d", i+1, len(g))
			if len(w) != len(g) {
				place = fmt.Sprintf("%s, want %d; item %d", phrase.Counted(int64(len(g)), "item"), len(w), i+1)
			}
			return d.otherItem(w[i], g[i], place)
		}
	}
	return nil
}

// otherItem returns the mismatch for the item got in place of want. It names the attribute if the
// two have the same key and differ in one attribute.
func (d *Pair) otherItem(want, got attr.Item, place string) *mismatch {
	if d.J.KeyJSON(want) == d.J.KeyJSON(got) {
		var found []*mismatch
		compare.DiffItems(want, got, func(f report.Failure) {
			found = append(found, &mismatch{item: want, column: f.Column, want: f.Want, got: f.Got, detail: place + " has another " + f.Column})
		})
		if len(found) == 1 {
			return found[0]
		}
	}
	return &mismatch{item: want, want: phrase.Clip(itemText(want)), got: phrase.Clip(itemText(got)), detail: place + " is another"}
}

// isKey reports whether an attribute is part of the table's key.
func (d *Pair) isKey(name string) bool {
	key := d.J.Mapping.Key()
	return name == key.Hash.Name || name == key.Range.Name && name != ""
}

func itemText(item attr.Item) string { return string(attr.AppendItemJSON(nil, item)) }

// merge sorts the items of several requests or ranges as one query would: by the sort key of
// the index that is read, or of the table. Items with the same sort key are in order of their
// other keys.
func (d *Pair) merge(items []attr.Item, asked func(x Index) bool, descending bool) {
	table := d.J.Mapping.Key()
	keys := []attr.KeyAttr{table.Range, table.Hash}
	indexes := Indexes(d.J.Mapping)
	if i := slices.IndexFunc(indexes, asked); i >= 0 {
		keys = []attr.KeyAttr{indexes[i].Def.Key.Range, indexes[i].Def.Key.Hash, table.Hash, table.Range}
	}
	slices.SortStableFunc(items, func(a, b attr.Item) int {
		for _, k := range keys {
			order, _ := attr.Compare(a[k.Name], b[k.Name]) // keys of one type
			if descending {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
}
