package differential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/endpoints"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Table is the name of the table that differential runs fill and delete, in DynamoDB and
// in Bigtable. It is also the prefix of the names of their index tables.
const Table = "_differential"

// Run checks each mapping with migrate.VerifyOptions.Differential items drawn from the
// mapping itself, and also with the source's items if own is set. The mapping alone, the
// DynamoDB endpoint and the loader must each return the original items, and must reject
// items that the mapping cannot hold. Failing cases are shrunk before they are reported.
func Run(ctx context.Context, r *table.Run, own bool, saved []fixtures.Exchange) error {
	for _, j := range r.Jobs {
		before := r.Report.Differences
		o := j.Options
		if o.Differential > 0 {
			if err := differentialOf(ctx, r, j, fmt.Sprintf("of seed %d", o.Seed), func(m *layout.Mapping) ([]attr.Item, error) {
				return m.Generate(rand.New(rand.NewPCG(o.Seed, 0)), o.Differential), nil
			}); err != nil {
				return err
			}
		}
		// If a mapping does not hold its items, requests show nothing new.
		if (o.Differential > 0 || saved != nil) && r.Report.Differences == before {
			if err := Requests(ctx, r, j, saved); err != nil {
				return err
			}
		}
		if own {
			err := differentialOf(ctx, r, j, "of the source", func(*layout.Mapping) (items []attr.Item, err error) {
				return items, j.Each(ctx, "reading", func(p table.Placed) error {
					items = append(items, p.Entry.Item)
					return nil
				})
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func differentialOf(ctx context.Context, r *table.Run, j *table.Job, from string, draw func(*layout.Mapping) ([]attr.Item, error)) error {
	const name = "differential"
	if why := unfit(j.Mapping.Spec()); why != "" {
		r.Report.Skip(name, j.Report.Target, "%s", why)
		return nil
	}
	d, err := newTrial(r.Conn, r.B, j)
	if err != nil {
		return err
	}
	return r.Report.Check(name, j.Report.Target, func() (string, error) {
		items, err := draw(d.mapping)
		if err != nil {
			return "", err
		}
		found, err := d.run(ctx, items)
		if err != nil {
			return "", err
		}
		detail := fmt.Sprintf("%s %s, %d refused", phrase.Counted(int64(len(items)), "item"), from, d.refused)
		if found.Equal() {
			return detail, nil
		}
		least, err := d.shrink(ctx, items, found.Failures[0].Kind)
		if err != nil {
			return "", err
		}
		if found, err = d.run(ctx, least); err != nil {
			return "", err
		}
		detail += "; shrunk to " + phrase.Counted(int64(len(least)), "item")
		if o := j.Options; o.Regress != "" {
			dir, err := saveRegression(o.Regress, fmt.Sprintf("%d-%d", o.Seed, len(items)), d.source, d.withCopies(least), nil)
			if err != nil {
				return "", err
			}
			detail += ", saved as " + dir
		}
		for _, f := range found.Failures {
			f.Table, f.Detail = j.Report.Target, strings.TrimPrefix(f.Detail+"; "+detail, "; ")
			r.Report.Fail(f)
		}
		return detail, nil
	})
}

// Requests sends the saved requests of a fixture, and then random ones, to the endpoint of the
// mapping, and reports each response that differs from that of a simple DynamoDB. If the mapping
// cannot be tested in this way, it reports the check as skipped.
func Requests(ctx context.Context, r *table.Run, j *table.Job, saved []fixtures.Exchange) error {
	const name = "differential requests"
	why := unfit(j.Mapping.Spec())
	if why == "" {
		why = unfitForRequests(j.Mapping)
	}
	if why == "" && j.Options.RunGC == nil && slices.ContainsFunc(saved, isTick) {
		why = "time passes in " + fixtures.RequestsFile + ", and no way to run garbage collection was given"
	}
	if why != "" {
		r.Report.Skip(name, j.Report.Target, "%s", why)
		return nil
	}
	d, err := newTrial(r.Conn, r.B, j)
	if err != nil {
		return err
	}
	if saved != nil {
		err := r.Report.Check(name, j.Report.Target, func() (string, error) {
			var items []attr.Item
			err := j.Each(ctx, "reading", func(p table.Placed) error {
				items = append(items, p.Entry.Item)
				return nil
			})
			if err != nil {
				return "", err
			}
			return phrase.Counted(int64(len(saved)), "request") + " of " + fixtures.RequestsFile, d.replay(ctx, r.Report, items, saved)
		})
		if err != nil {
			return err
		}
	}
	if j.Options.Differential == 0 {
		return nil
	}
	return r.Report.Check(name, j.Report.Target, func() (string, error) { return d.requests(ctx, r.Report, j.Options) })
}

// unfit returns why items in other tables cannot test a mapping; "" if they can.
func unfit(spec *mapfile.Spec) string {
	switch {
	case spec == nil:
		return "the mapping has no file to adapt to other tables"
	case keepsCopies(spec) && losesValues(spec):
		return "the mapping keeps copies of items and accepts losses: the copy of an item that loses something is not a copy of it"
	}
	return ""
}

// losesValues reports whether the mapping accepts losses that change the items that reads return.
func losesValues(spec *mapfile.Spec) bool {
	return slices.ContainsFunc(spec.AcceptLoss, func(l mapfile.AcceptedLoss) bool {
		return l.What != mapfile.LossRetention && l.What != mapfile.LossAbsent
	})
}

// keepsCopies reports whether some items are copies of others: the mapping has a rule with latest.
func keepsCopies(spec *mapfile.Spec) bool {
	return slices.ContainsFunc(spec.Rules, func(r mapfile.Rule) bool { return r.Latest != "" })
}

// trial runs sets of items through a mapping, in separate tables.
type trial struct {
	conn    grpc.ClientConnInterface
	b       *table.Bigtable
	source  *mapfile.Spec
	mapping *layout.Mapping // of source, with the trial's own tables
	options table.Options
	micros  int64
	key     func(attr.Item) string
	refused int // items refused in the last run
	time    trialTime
	// unserved is the reason why the DynamoDB endpoint cannot serve the table; only the loader
	// then writes its rows.
	unserved string
}

func newTrial(conn grpc.ClientConnInterface, b *table.Bigtable, j *table.Job) (*trial, error) {
	m, err := j.Mapping.Changed(func(s *mapfile.Spec) { s.Source.Table, s.Target.Table = Table, Table })
	if err != nil {
		return nil, fmt.Errorf("renaming the tables in the mapping of table %s for the trial: %w", j.Report.Name, err)
	}
	o := table.Options{
		Project: j.Options.Project, Instance: j.Options.Instance, Mappings: []*mapping.Mapping{(*mapping.Mapping)(m)},
		TempDir: j.Options.TempDir, DeadLetter: io.Discard, AllowEmpty: true, Sleep: j.Options.Sleep, Now: j.Options.Now,
		Knobs: table.Knobs{Inverse: j.Options.Inverse},
	}
	return &trial{
		conn: conn, b: b, source: j.Mapping.Spec(), mapping: m, options: o.Normalized(), micros: j.Micros, key: j.KeyJSON, unserved: endpoints.Unserved(m),
		time: newTrialTime(m, j.Options),
	}, nil
}

// run reports the differences between the given and the returned items: those that the
// mapping alone returns and, if these are equal, those that the endpoint and the loader
// return.
func (d *trial) run(ctx context.Context, items []attr.Item) (r *report.Report, err error) {
	r = report.New(d.options.MaxDifferences)
	d.refused = 0
	items = slices.DeleteFunc(slices.Clone(items), d.derived)
	returned := map[string]attr.Item{} // by key, items that the mapping accepts
	for _, item := range items {
		p, err := d.mapping.Place(item, d.micros)
		if err != nil {
			d.refused++
			continue
		}
		back, _ := d.mapping.Returned(item, p)
		returned[d.key(item)] = back
		d.compareItems(r, []attr.Item{back}, []layout.Row{golden.Canonical(layout.Row{Key: p.Row, Cells: p.Cells})})
	}
	if !r.Equal() {
		return r, nil
	}
	source := d.withCopies(items)
	if d.unserved != "" {
		source = d.apart(items)
	}
	j, err := d.job(ctx, source)
	if err != nil {
		return nil, err
	}
	if d.unserved != "" {
		return r, d.loadUnserved(ctx, r, j)
	}
	if err := d.put(ctx, r, j, items, returned); err != nil || !r.Equal() {
		return r, err
	}
	return r, d.load(ctx, r, j)
}

// job returns the job that loads items into the trial's table.
func (d *trial) job(ctx context.Context, items []attr.Item) (*table.Job, error) {
	drawn := source.Of(Table, d.mapping.Key(), time.UnixMicro(d.micros), items)
	src := &source.Source{Format: "differential", Path: "differential", Tables: []*source.Table{drawn}}
	r, err := table.Prepare(ctx, src, d.options)
	if err != nil {
		return nil, err
	}
	return r.Jobs[0], nil
}

// apart drops items whose row an earlier item has: a layout of another tool may merge them into
// one item.
func (d *trial) apart(items []attr.Item) []attr.Item {
	rows := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(items), func(item attr.Item) bool {
		at, err := d.mapping.Locate(item)
		if err != nil {
			return true // refused, and counted
		}
		taken := rows[string(at.Row)]
		rows[string(at.Row)] = true
		return taken
	})
}

// withCopies adds the copies of other items, which a source must have and a writer must not
// write.
func (d *trial) withCopies(items []attr.Item) []attr.Item {
	rows := map[string]layout.Row{}
	for _, item := range items {
		if p, err := d.mapping.Place(item, d.micros); err == nil {
			rows[string(p.Row)] = layout.Row{Key: p.Row, Cells: append(rows[string(p.Row)].Cells, p.Cells...)}
		}
	}
	source := slices.DeleteFunc(slices.Clone(items), d.derived)
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		all, err := d.mapping.Items(golden.Canonical(rows[key]))
		if err != nil {
			continue // items that cannot share a row: the loader reports them
		}
		source = append(source, slices.DeleteFunc(all, func(item attr.Item) bool { return !d.derived(item) })...)
	}
	return source
}

// items returns the items of a row.
func (d *trial) items(row layout.Row) ([]attr.Item, error) {
	if d.options.Inverse != nil {
		return d.options.Inverse(d.mapping, row)
	}
	return d.mapping.Items(row)
}

// compareItems checks that rows hold exactly the items.
func (d *trial) compareItems(r *report.Report, items []attr.Item, rows []layout.Row) {
	type found struct {
		item attr.Item
		at   report.Failure
	}
	back := map[string]found{}
	for _, row := range rows {
		at := report.Failure{RowKey: strconv.QuoteToGraphic(string(row.Key)), RowHex: fmt.Sprintf("%x", row.Key)}
		got, err := d.items(row)
		if err != nil {
			at.Kind, at.Detail = report.RowUnreadable, err.Error()
			r.Fail(at)
		}
		for _, item := range got {
			if !d.derived(item) {
				at.ItemKey = d.key(item)
				back[at.ItemKey] = found{item, at}
			}
		}
	}
	for _, item := range items {
		key := d.key(item)
		f, ok := back[key]
		delete(back, key)
		if !ok {
			r.Fail(d.located(report.Failure{Kind: report.MissingItem, ItemKey: key, Want: compare.ValueText(attr.MapOf(item))}, item))
			continue
		}
		compare.DiffItems(item, f.item, func(x report.Failure) {
			x.ItemKey, x.RowKey, x.RowHex = key, f.at.RowKey, f.at.RowHex
			r.Fail(d.located(x, item))
		})
	}
	for _, key := range slices.Sorted(maps.Keys(back)) {
		f := back[key]
		f.at.Kind, f.at.Got = report.ExtraItem, compare.ValueText(attr.MapOf(f.item))
		r.Fail(f.at)
	}
}

// located adds the rule and the row of an item to a failure.
func (d *trial) located(f report.Failure, item attr.Item) report.Failure {
	at, err := d.mapping.Locate(item)
	if err != nil {
		return f
	}
	f.Rule, f.Mapping = at.Rule, d.mapping.RulePosition(at.Rule)
	f.RowKey, f.RowHex = strconv.QuoteToGraphic(string(at.Row)), fmt.Sprintf("%x", at.Row)
	return f
}

// derived reports whether an item is a copy of another.
func (d *trial) derived(item attr.Item) bool {
	at, err := d.mapping.Locate(item)
	return err == nil && at.Derived
}

// withEndpoints runs do with the DynamoDB endpoint on the trial's table, and deletes the table. now
// is the endpoint's clock.
func (d *trial) withEndpoints(ctx context.Context, r *report.Report, j *table.Job, now func() time.Time, do func(*endpoints.Pair, *facade.Server) error) (err error) {
	o := d.options
	o.Now = now
	server, err := endpoints.NewServer(ctx, d.conn, o, j)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }() // its state is in the tables
	pair := endpoints.Open(d.b, server, j, r)
	defer func() {
		_, deleted := pair.Call(context.WithoutCancel(ctx), "DeleteTable", fmt.Appendf(nil, `{"TableName":%q}`, Table))
		err = errors.Join(err, deleted)
	}()
	return do(pair, server)
}

// put puts all items through the endpoint, and reads the rows. returned are the items that the
// mapping accepts, by key, as they come back.
func (d *trial) put(ctx context.Context, r *report.Report, j *table.Job, items []attr.Item, returned map[string]attr.Item) error {
	return d.withEndpoints(ctx, r, j, d.options.Now, func(pair *endpoints.Pair, _ *facade.Server) error {
		var put []attr.Item
		for _, item := range items {
			_, err := pair.Call(ctx, "PutItem", fmt.Appendf(nil, `{"TableName":%q,"Item":%s}`, Table, attr.AppendItemJSON(nil, item)))
			var refused *endpoints.Refusal
			key := d.key(item)
			back, taken := returned[key]
			f := report.Failure{Kind: report.PatternDiffers, Pattern: "PutItem", ItemKey: key}
			switch {
			case errors.As(err, &refused) && refused.Status == http.StatusBadRequest:
				if taken && !d.mayRefuse(item, refused) {
					f.Want, f.Got = "the item accepted, since the mapping can hold it", refused.Error()
					r.Fail(d.located(f, item))
				}
				continue
			case errors.As(err, &refused):
				f.Want, f.Got = "the item accepted or refused", refused.Error()
				r.Fail(d.located(f, item))
				continue
			case err != nil:
				return err
			case !taken:
				f.Want, f.Got = "a refusal, since the mapping cannot hold the item", "the item accepted"
				r.Fail(f)
				back = item
			}
			put = append(put, back)
		}
		put, err := d.putCopies(ctx, r, pair, put)
		if err != nil {
			return err
		}
		var rows []layout.Row
		for row, err := range d.b.TableRows(ctx, Table) {
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		d.compareItems(r, put, rows)
		return nil
	})
}

// maxIndexKeyBytes are the size limits of the partition and sort key of an index.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
var maxIndexKeyBytes = [2]int{2048, 1024}

// mayRefuse reports whether the endpoint may refuse an item that the mapping accepts: another
// item has its place, or it cannot be an index entry.
func (d *trial) mayRefuse(item attr.Item, refused *endpoints.Refusal) bool {
	for _, g := range d.mapping.Spec().Source.GSIs {
		for i, k := range g.Key.Attrs() {
			kind := cmp.Or(k.Type, d.mapping.Spec().Types()[k.Name].Type)
			if v, ok := item[k.Name]; ok && (v.Type != kind || v.Str == "" || len(v.Str) > maxIndexKeyBytes[i]) {
				return true
			}
		}
	}
	return strings.Contains(refused.Body, string(maperr.CodeCollision)+":")
}

// loadUnserved loads the items and compares the rows with them.
func (d *trial) loadUnserved(ctx context.Context, r *report.Report, j *table.Job) (err error) {
	if err := load.Afresh(ctx, d.b, j); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, d.b.DropTable(context.WithoutCancel(ctx), Table))
	}()
	_, err = compare.Base(ctx, d.b, r, j)
	return err
}

// load loads the items, compares the rows with them, and reads them through the endpoint.
func (d *trial) load(ctx context.Context, r *report.Report, j *table.Job) error {
	if err := load.Afresh(ctx, d.b, j); err != nil {
		return err
	}
	return d.withEndpoints(ctx, r, j, d.options.Now, func(pair *endpoints.Pair, _ *facade.Server) error {
		if _, err := compare.Base(ctx, d.b, r, j); err != nil {
			return err
		}
		for i := range j.Indexes {
			if _, err := compare.Index(ctx, d.b, r, j, i); err != nil {
				return err
			}
		}
		partitions := map[string][]attr.Item{}
		hash := j.Mapping.Key().Hash.Name
		err := j.Each(ctx, "reading", func(p table.Placed) error {
			partition := attr.Item{":h": p.Back[hash]}.String()
			partitions[partition] = append(partitions[partition], p.Back)
			return d.ask(ctx, r, pair, []attr.Item{p.Back}, "GetItem", map[string]any{"Key": raw(d.key(p.Back))})
		})
		if err != nil {
			return err
		}
		for _, partition := range slices.Sorted(maps.Keys(partitions)) {
			err := d.ask(ctx, r, pair, partitions[partition], "Query", map[string]any{
				"KeyConditionExpression": "#h = :h", "ExpressionAttributeNames": map[string]string{"#h": hash}, "ExpressionAttributeValues": raw(partition),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// raw is JSON text that is marshaled as it is.
type raw string

// MarshalJSON returns the text.
func (t raw) MarshalJSON() ([]byte, error) { return []byte(t), nil }

// ask sends a read, whose answer must have the items in order of sort key.
func (d *trial) ask(ctx context.Context, r *report.Report, pair *endpoints.Pair, want []attr.Item, op string, request map[string]any) error {
	request["ConsistentRead"] = true
	got, err := pair.DynamoDB(ctx, &fixtures.Request{Op: op, Request: request}, false)
	fail := func(f report.Failure, item attr.Item) {
		f.Pattern, f.ItemKey = op, d.key(item)
		r.Fail(d.located(f, item))
	}
	var refused *endpoints.Refusal
	if errors.As(err, &refused) {
		fail(report.Failure{Kind: report.PatternDiffers, Want: phrase.Counted(int64(len(want)), "item"), Got: refused.Error()}, want[0])
		return nil
	}
	if err != nil {
		return err
	}
	by := d.mapping.Key().Range.Name
	if !slices.IsSortedFunc(got, func(a, b attr.Item) int { c, _ := attr.Compare(a[by], b[by]); return c }) {
		fail(report.Failure{Kind: report.OrderDiffers, Want: "ascending " + by}, want[0])
	}
	back := map[string]attr.Item{}
	for _, item := range got {
		back[d.key(item)] = item
	}
	for _, item := range want {
		found, ok := back[d.key(item)]
		delete(back, d.key(item))
		if !ok {
			fail(report.Failure{Kind: report.MissingItem, Want: compare.ValueText(attr.MapOf(item))}, item)
			continue
		}
		compare.DiffItems(item, found, func(f report.Failure) { fail(f, item) })
	}
	for _, key := range slices.Sorted(maps.Keys(back)) {
		fail(report.Failure{Kind: report.ExtraItem, Got: compare.ValueText(attr.MapOf(back[key]))}, back[key])
	}
	return nil
}
