package differential

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/internal/endpoints"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// changedAttribute is the attribute that makes a copy or a version differ.
const changedAttribute = "differs"

// putCopies writes copies of the items in the table: unchanged copies, which must be no-ops;
// changed copies, which must be refused; and transactions with a changed version. It returns
// the items in the table afterwards.
func (d *trial) putCopies(ctx context.Context, r *report.Report, pair *endpoints.Pair, items []attr.Item) ([]attr.Item, error) {
	for _, c := range d.withCopies(items) {
		if !d.derived(c) {
			continue
		}
		if err := d.write(ctx, r, pair, true, c); err != nil {
			return nil, err
		}
		if err := d.write(ctx, r, pair, false, changed(c)); err != nil {
			return nil, err
		}
		at, err := d.mapping.Locate(c)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(items, func(item attr.Item) bool { return d.inRow(item, at) })
		if i < 0 {
			continue
		}
		after := slices.Clone(items)
		after[i] = changed(items[i])
		if _, err := d.mapping.Place(after[i], d.micros); err != nil {
			continue
		}
		all := d.withCopies(after)
		j := slices.IndexFunc(all, func(item attr.Item) bool { return d.key(item) == d.key(c) })
		if j < 0 {
			continue
		}
		other := c
		if attr.EqualItems(all[j], c) { // the version is not the highest
			other = changed(c)
		}
		if err := d.write(ctx, r, pair, false, after[i], other); err != nil {
			return nil, err
		}
		if err := d.write(ctx, r, pair, true, all[j], after[i]); err != nil {
			return nil, err
		}
		items = after
	}
	return items, nil
}

// changed returns an item with one attribute changed.
func changed(item attr.Item) attr.Item {
	other := maps.Clone(item)
	other[changedAttribute] = attr.String("x" + item[changedAttribute].Str)
	return other
}

// inRow reports whether an item with its own cells is in the row of a location.
func (d *trial) inRow(item attr.Item, at lens.Location) bool {
	own, err := d.mapping.Locate(item)
	return err == nil && !own.Derived && own.Rule == at.Rule && string(own.Row) == string(at.Row)
}

// write puts items in one request. It adds a failure to r if the endpoint refuses them and
// taken is true, or accepts them and taken is false.
func (d *trial) write(ctx context.Context, r *report.Report, pair *endpoints.Pair, taken bool, items ...attr.Item) error {
	op, request := "PutItem", fmt.Appendf(nil, `{"TableName":%q,"Item":%s}`, Table, attr.AppendItemJSON(nil, items[0]))
	if len(items) > 1 {
		op, request = "TransactWriteItems", []byte(`{"TransactItems":[`)
		for i, item := range items {
			if i > 0 {
				request = append(request, ',')
			}
			request = fmt.Appendf(request, `{"Put":{"TableName":%q,"Item":%s}}`, Table, attr.AppendItemJSON(nil, item))
		}
		request = append(request, "]}"...)
	}
	_, err := pair.Call(ctx, op, request)
	var refused *endpoints.Refusal
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	if taken == (err == nil) && (err == nil || refused.Status == http.StatusBadRequest) {
		return nil
	}
	f := report.Failure{Kind: report.PatternDiffers, Pattern: op, ItemKey: d.key(items[0]), Want: "a refusal, since the copy differs from the highest version", Got: "the copy accepted"}
	if taken {
		f.Want = "the copy accepted, since it equals the highest version"
	}
	if refused != nil {
		f.Got = refused.Error()
	}
	r.Fail(d.located(f, items[0]))
	return nil
}
