package differential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/ddbmodel"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate/internal/endpoints"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The shape of a differential run of requests.
const (
	requestsOfRun = 40 // before another table is filled
	itemsOfRun    = 12
	drawnOfRun    = 100 // the mapping accepts some of them
)

// isReading reports whether the answer of a request comes in pages.
func isReading(x fixtures.Exchange) bool { return x.Op == "Query" || x.Op == "Scan" }

// step is a request before DynamoDB's answer is known: an operation, a reading, or the passing
// of time.
type step struct {
	op              ddbmodel.Operation
	reading         ddbmodel.Reading
	limit, segments int
	passes          time.Duration
}

// unfitForRequests returns why a mapping cannot be compared with the naive DynamoDB; "" if it
// can.
func unfitForRequests(m *layout.Mapping) string {
	if why := endpoints.Unserved(m); why != "" {
		return why
	}
	if keepsCopies(m.Spec()) {
		return "the mapping keeps copies of items, which DynamoDB does not"
	}
	if m.Expiry().Collected {
		return "the mapping hides expired items, which DynamoDB may or may not return"
	}
	return ""
}

// requests runs random requests for drawn items through the DynamoDB endpoint and a naive
// DynamoDB. Answers and errors must be the same, and in the end the rows must hold the items.
func (d *trial) requests(ctx context.Context, r *report.Report, o table.Options) (detail string, err error) {
	rnd := rand.New(rand.NewPCG(o.Seed, 1))
	done, ticks := 0, 0
	for done < o.Differential {
		items := d.fitting(d.mapping.Generate(rnd, drawnOfRun), itemsOfRun)
		if len(items) == 0 {
			break // the mapping accepts hardly any item
		}
		items = d.timely(rnd, items)
		w := newRequestDrawer(rnd, d.model(items))
		w.passes = d.time.passes()
		start := items[:(len(items)+1)/2]
		steps := make([]step, min(requestsOfRun, o.Differential-done))
		for i := range steps {
			if steps[i] = w.step(); steps[i].passes > 0 {
				ticks++
			}
		}
		found, err := d.runSteps(ctx, start, steps)
		if err != nil {
			return "", err
		}
		if !found.Equal() {
			return d.leastRequests(ctx, r, start, steps, found.Failures[0].Kind, o)
		}
		done += len(steps)
	}
	detail = fmt.Sprintf("%s of seed %d", phrase.Counted(int64(done), "request"), o.Seed)
	if ticks > 0 {
		detail += ", including " + phrase.Counted(int64(ticks), "tick")
	}
	return detail, nil
}

// leastRequests shrinks a failing run, saves it and reports it.
func (d *trial) leastRequests(ctx context.Context, r *report.Report, start []attr.Item, steps []step, kind report.Kind, o table.Options) (string, error) {
	runs := 0
	fails := func(start []attr.Item, steps []step) (bool, error) {
		if runs++; runs > maxShrinkRuns || len(d.fitting(start, len(start))) < len(start) {
			return false, nil
		}
		found, err := d.runSteps(ctx, start, steps)
		return err == nil && slices.ContainsFunc(found.Failures, func(f report.Failure) bool { return f.Kind == kind }), err
	}
	steps, err := fewer(steps, 0, func(steps []step) (bool, error) { return fails(start, steps) })
	if err != nil {
		return "", err
	}
	// A fixture without items proves nothing: keep one.
	start, err = fewer(start, 1, func(start []attr.Item) (bool, error) { return fails(start, steps) })
	if err != nil {
		return "", err
	}
	for i := range start {
		for again := true; again; {
			again = false
			for smaller := range d.smaller(start[i]) {
				set := slices.Clone(start)
				set[i] = smaller
				ok, err := fails(set, steps)
				if err != nil {
					return "", err
				}
				if ok {
					start, again = set, true
					break
				}
			}
		}
	}
	exchanges := d.exchanges(start, steps)
	found := report.New(d.options.MaxDifferences)
	if err := d.replay(ctx, found, start, exchanges); err != nil {
		return "", err
	}
	detail := fmt.Sprintf("shrunk to %s and %s", phrase.Counted(int64(len(start)), "item"), phrase.Counted(int64(len(steps)), "request"))
	if o.Regress != "" {
		dir, err := saveRegression(o.Regress, fmt.Sprintf("%d-requests", o.Seed), d.source, start, exchanges)
		if err != nil {
			return "", err
		}
		detail += ", saved as " + dir
	}
	for _, f := range found.Failures {
		f.Detail = strings.TrimPrefix(f.Detail+"; "+detail, "; ")
		r.Fail(f)
	}
	return detail, nil
}

// runSteps computes the answers of the naive DynamoDB, and compares the endpoint's answers
// with them.
func (d *trial) runSteps(ctx context.Context, start []attr.Item, steps []step) (*report.Report, error) {
	r := report.New(d.options.MaxDifferences)
	return r, d.replay(ctx, r, start, d.exchanges(start, steps))
}

// fitting returns the first items, at most most, that fit in one table together.
func (d *trial) fitting(items []attr.Item, most int) []attr.Item {
	db := d.model(nil)
	return slices.DeleteFunc(slices.Clone(items), func(item attr.Item) bool {
		if len(db.table.Items()) == most {
			return true
		}
		for _, x := range endpoints.Indexes(d.mapping) {
			for i, k := range x.Def.Key.Attrs() {
				if len(item[k.Name].Str) > maxIndexKeyBytes[i] {
					return true
				}
			}
		}
		_, err := db.Run(ddbmodel.Write{Kind: "Put", Table: Table, Item: modelItem(item)})
		return err != nil
	})
}

// naive is a naive DynamoDB with one table and its readable indexes.
type naive struct {
	ddbmodel.DB
	table   *ddbmodel.Table
	indexes []ddbmodel.Index
	passed  time.Duration // since the start
}

// model returns a naive DynamoDB with the trial's table. It refuses items that the mapping
// cannot hold, and loses values as the mapping accepts.
func (d *trial) model(items []attr.Item) *naive {
	key := func(k attr.KeySchema) (all []ddbmodel.KeyAttribute) {
		for _, a := range k.Attrs() {
			all = append(all, ddbmodel.KeyAttribute{Name: a.Name, Type: a.Type.String()})
		}
		return all
	}
	place := func(item ddbmodel.Item) (attr.Item, lens.Placed, bool) {
		it, err := attr.UnmarshalItem([]byte(ddbmodel.Text(item)))
		if err != nil {
			return nil, lens.Placed{}, false
		}
		placed, err := d.mapping.Place(it, d.micros)
		return it, placed, err == nil
	}
	defined := &ddbmodel.Table{Name: Table, Key: key(d.mapping.Key())}
	defined.Refuses = func(others []ddbmodel.Item, item ddbmodel.Item) bool {
		_, own, ok := place(item)
		return !ok || slices.ContainsFunc(others, func(other ddbmodel.Item) bool {
			_, there, _ := place(other)
			return bytes.Equal(there.Row, own.Row) && slices.ContainsFunc(there.Cells, func(c layout.Cell) bool {
				return slices.ContainsFunc(own.Own, func(e lens.Extent) bool { return e.Covers(c) })
			})
		})
	}
	defined.Keeps = func(item ddbmodel.Item) ddbmodel.Item {
		it, placed, ok := place(item)
		if !ok {
			return item
		}
		back, losses := d.mapping.Returned(it, placed)
		if len(losses) == 0 {
			return item
		}
		return modelItem(back)
	}
	var readable []ddbmodel.Index
	for _, x := range endpoints.Indexes(d.mapping) {
		index := ddbmodel.Index{Name: x.Name, Global: true, Key: key(x.Def.Key), Projection: mapfile.ProjectAll}
		switch def := x.Def; {
		case def.KeysOnly:
			index.Projection = mapfile.ProjectKeysOnly
		case len(def.Include) > 0:
			index.Projection, index.NonKey = "INCLUDE", def.Include
		}
		defined.Indexes = append(defined.Indexes, index)
		// In other indexes, two items may share a row, which is the mapping author's
		// decision. Entries of a garbage-collected row remain.
		if x.Distinct && !d.time.takesVersions(d.mapping) {
			readable = append(readable, index)
		}
	}
	db := &naive{table: defined, indexes: readable}
	switch {
	case d.time.passes():
		db.Now = func() time.Time { return d.time.start.Add(db.passed) }
		defined.TTL = d.time.attribute
	case d.options.Now != nil:
		db.Now = d.options.Now
	default:
		db.Now = func() time.Time { return table.FallbackTime }
	}
	db.CreateTable(defined)
	for _, item := range items {
		it := modelItem(item)
		defined.Put(defined.KeyOf(it), it)
	}
	return db
}

// exchanges returns the requests with the answers of the naive DynamoDB; the last one reads
// everything.
func (d *trial) exchanges(start []attr.Item, steps []step) []fixtures.Exchange {
	db := d.model(start)
	for _, x := range db.indexes {
		steps = append(slices.Clip(steps), step{reading: ddbmodel.Reading{Table: Table, Index: x.Name}})
	}
	steps = append(slices.Clip(steps), step{reading: ddbmodel.Reading{Table: Table}})
	var all []fixtures.Exchange
	for _, s := range steps {
		switch {
		case s.passes > 0:
			all = append(all, d.pass(db, s.passes))
			continue
		case s.op == nil:
			x := fixtures.Exchange{Op: s.reading.Name(), Segments: s.segments}
			request := s.reading.Request(&db.DB)
			if s.limit > 0 {
				request["Limit"] = s.limit
			}
			if s.reading.Index == "" {
				request["ConsistentRead"] = true
			}
			x.Request = jsontext.Value(ddbmodel.Text(request))
			expect(&x, db, s.reading)
			all = append(all, x)
			continue
		}
		x := fixtures.Exchange{Op: s.op.Name(), Request: jsontext.Value(ddbmodel.Text(s.op.Request()))}
		answer, refused := db.Run(s.op)
		for e := refused; e != nil; e = e.Or {
			x.Errors = append(x.Errors, e.Code)
		}
		if refused == nil {
			x.Answer = jsontext.Value(ddbmodel.Text(answer))
		}
		all = append(all, x)
	}
	return all
}

// expect sets the expected answer of a reading.
func expect(x *fixtures.Exchange, db *naive, reading ddbmodel.Reading) {
	found := db.Read(reading, nil)
	x.Scanned = found.Scanned
	for _, items := range found.Groups {
		group := make([]string, len(items))
		for i, item := range items {
			group[i] = ddbmodel.Text(item)
		}
		slices.Sort(group)
		x.Groups = append(x.Groups, group)
	}
}

// replay sends requests to the endpoint with a table of the items, and compares its answers
// and, in the end, the rows. The last request is a Scan of all items.
func (d *trial) replay(ctx context.Context, r *report.Report, start []attr.Item, exchanges []fixtures.Exchange) error {
	j, err := d.job(ctx, start)
	if err != nil {
		return err
	}
	if err := load.Afresh(ctx, d.b, j); err != nil {
		return err
	}
	clock, err := clockOf(exchanges)
	if err != nil {
		return err
	}
	now := d.options.Now
	if clock != nil {
		now = clock.now
	}
	return d.withEndpoints(ctx, r, j, now, func(pair *endpoints.Pair, server *facade.Server) error {
		if clock != nil {
			if err := d.awaitDueTimes(ctx, pair); err != nil {
				return err
			}
		}
		for i, x := range exchanges {
			if isTick(x) {
				if err := d.tick(ctx, server, clock, x); err != nil {
					return err
				}
				if err := d.compareRows(ctx, r, x); err != nil || !r.Equal() {
					return err
				}
				x = scanAfter(x)
			}
			want, got, err := exchange(ctx, pair, x)
			if err != nil {
				return err
			}
			if want != got {
				r.Fail(report.Failure{
					Kind: report.PatternDiffers, Pattern: x.Op, Want: phrase.Clip(want), Got: phrase.Clip(got),
					Detail: fmt.Sprintf("request %d of %d: %s", i+1, len(exchanges), phrase.Clip(string(x.Request))),
				})
				return nil
			}
		}
		return d.compareRows(ctx, r, exchanges[len(exchanges)-1])
	})
}

// compareRows checks that the rows hold exactly the items that a Scan or a tick lists. After
// another exchange it expects no rows.
func (d *trial) compareRows(ctx context.Context, r *report.Report, all fixtures.Exchange) error {
	var items []attr.Item
	if all.Op == "Scan" || isTick(all) {
		for _, text := range slices.Concat(all.Groups...) {
			item, err := attr.UnmarshalItem([]byte(text))
			if err != nil {
				return source.Damaged(source.FixtureInvalid, source.Position{File: fixtures.RequestsFile}, err, "the response of %s has a member that is not an item", all.Op)
			}
			items = append(items, item)
		}
	}
	var rows []layout.Row
	for row, err := range d.b.TableRows(ctx, Table) {
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	d.compareItems(r, items, rows)
	return nil
}

// exchange sends a request, and returns the expected and the actual answer as texts, which are equal
// if the answer is one of the expected errors.
func exchange(ctx context.Context, d *endpoints.Pair, x fixtures.Exchange) (want, got string, err error) {
	want = string(x.Answer)
	if len(x.Errors) > 0 {
		want = strings.Join(x.Errors, " or ")
	}
	answered := func(answer []byte) (string, error) { return canonicalAnswer(x.Op, answer) }
	if isReading(x) {
		want = fmt.Sprintf("%d scanned: %s", x.Scanned, strings.Join(slices.Concat(x.Groups...), ", "))
		got, err = readExchange(ctx, d, x)
	} else {
		var answer []byte
		if answer, err = d.Call(ctx, x.Op, x.Request); err == nil {
			got, err = answered(answer)
		}
	}
	var refused *endpoints.Refusal
	if errors.As(err, &refused) {
		if code := refused.Code(); refused.Status == http.StatusBadRequest && slices.Contains(x.Errors, code) {
			return want, want, nil
		}
		return want, refused.Error(), nil
	}
	return want, got, err
}

// readExchange reads all pages of all segments, and sorts the items of a group by their texts.
func readExchange(ctx context.Context, d *endpoints.Pair, x fixtures.Exchange) (string, error) {
	var request map[string]any
	if err := json.Unmarshal(x.Request, &request); err != nil {
		return "", fmt.Errorf("%s holds a request that is not an object: %w", fixtures.RequestsFile, err)
	}
	scanned, items := 0, []string{}
	for segment := range max(x.Segments, 1) {
		if x.Segments > 1 {
			request["Segment"], request["TotalSegments"] = segment, x.Segments
		}
		delete(request, "ExclusiveStartKey")
		for more := true; more; {
			body, err := json.Marshal(request)
			if err != nil {
				return "", err
			}
			answer, err := d.Call(ctx, x.Op, body)
			if err != nil {
				return "", err
			}
			var page struct {
				Items            []jsontext.Value
				ScannedCount     int
				LastEvaluatedKey jsontext.Value
			}
			if err := json.Unmarshal(answer, &page); err != nil {
				return "", fmt.Errorf("the response of %s is not JSON: %w", x.Op, err)
			}
			scanned += page.ScannedCount
			for _, item := range page.Items {
				text, err := ddbmodel.Canonical(item)
				if err != nil {
					return "", err
				}
				items = append(items, text)
			}
			request["ExclusiveStartKey"] = page.LastEvaluatedKey
			more = page.LastEvaluatedKey != nil
		}
	}
	at := 0
	for _, group := range x.Groups {
		if end := at + len(group); end <= len(items) {
			slices.Sort(items[at:end])
			at = end
		}
	}
	return fmt.Sprintf("%d scanned: %s", scanned, strings.Join(items, ", ")), nil
}

// canonicalAnswer returns an answer whose unordered parts have the order of the naive DynamoDB.
func canonicalAnswer(op string, answer []byte) (string, error) {
	text, err := ddbmodel.Canonical(answer)
	if err != nil || op != "BatchGetItem" {
		return text, err
	}
	var content struct {
		Responses       map[string][]any
		UnprocessedKeys map[string]any
	}
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		return "", err
	}
	for _, items := range content.Responses {
		ddbmodel.Unordered(items)
	}
	return ddbmodel.Text(content), nil
}

// modelItem converts an item for the naive DynamoDB.
func modelItem(item attr.Item) ddbmodel.Item {
	out := ddbmodel.Item{}
	for name, v := range item {
		out[name] = modelValue(v)
	}
	return out
}

func modelValue(v attr.Value) ddbmodel.Value {
	switch v.Type {
	case attr.S:
		return ddbmodel.String(v.Str)
	case attr.N:
		return ddbmodel.Number(v.Str)
	case attr.B:
		return ddbmodel.Binary(v.Str)
	case attr.BOOL:
		return ddbmodel.Boolean(v.Bool)
	case attr.NULL:
		return ddbmodel.Null()
	case attr.SS, attr.BS:
		return ddbmodel.SetOf(v.Type.String(), v.Set...)
	case attr.NS:
		var members []string
		for _, text := range v.Set {
			members = append(members, ddbmodel.Number(text).Text)
		}
		return ddbmodel.SetOf(v.Type.String(), members...)
	case attr.L:
		list := ddbmodel.ListOf()
		for _, e := range v.List {
			list.List = append(list.List, modelValue(e))
		}
		return list
	case attr.M:
		return ddbmodel.MapOf(modelItem(v.Map))
	case attr.Absent:
	}
	return ddbmodel.Value{}
}
