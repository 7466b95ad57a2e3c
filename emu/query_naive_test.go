package emu_test

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/emu/internal/bundle"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/rowkey"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/analysis"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// naiveTable is a table in memory.
type naiveTable struct {
	families []analysis.Family // in the order of their names
	key      *rowkey.Schema
	rows     []naiveRow // in the order of their keys; each has cells
	bundle   *bundle.Schema
	bundleID string
}

type naiveRow struct {
	key   string
	cells []naiveCell // in the order of families, qualifiers, and times, the latest first
}

type naiveCell struct {
	family, qualifier string
	at                int64
	value             []byte
}

// set adds a cell, or replaces it.
func (t *naiveTable) set(row string, c naiveCell) {
	n, ok := slices.BinarySearchFunc(t.rows, row, func(r naiveRow, key string) int { return cmp.Compare(r.key, key) })
	if !ok {
		t.rows = slices.Insert(t.rows, n, naiveRow{key: row})
	}
	r := &t.rows[n]
	n, ok = slices.BinarySearchFunc(r.cells, c, func(a, b naiveCell) int {
		return cmp.Or(cmp.Compare(a.family, b.family), cmp.Compare(a.qualifier, b.qualifier), cmp.Compare(b.at, a.at))
	})
	if ok {
		r.cells[n] = c
	} else {
		r.cells = slices.Insert(r.cells, n, c)
	}
}

// has reports whether a table has a cell.
func (t *naiveTable) has(row string, c naiveCell) bool {
	for _, r := range t.rows {
		if r.key == row {
			return slices.ContainsFunc(r.cells, func(o naiveCell) bool { return o.family == c.family && o.qualifier == c.qualifier && o.at == c.at })
		}
	}
	return false
}

// naiveTables are the tables and views of an instance.
type naiveTables struct {
	tables map[string]*naiveTable
	views  map[string]string
}

func (n naiveTables) Table(id string) (*analysis.Table, bool) {
	t, ok := n.tables[id]
	if !ok {
		return nil, false
	}
	return &analysis.Table{Families: t.families, Key: t.key}, true
}

func (n naiveTables) View(id string) (query string, ok bool) {
	query, ok = n.views[id]
	return query, ok
}

func (n naiveTables) Type(table, id, name string) (of value.Type, version string, ok bool) {
	t := n.tables[table]
	if t == nil || t.bundle == nil || id != t.bundleID {
		return of, "", false
	}
	if m := t.bundle.Message(name); m != nil {
		return value.ProtoOf(id, m), "", true
	}
	if e := t.bundle.Enum(name); e != nil {
		return value.EnumOf(id, e), "", true
	}
	return of, "", false
}

// naive evaluates plans before their optimization: an operator at a time, over all rows and all columns of a
// table. It shares the table of functions with the executor, and the analysis; nothing else.
//
// A row whose evaluation fails is left out, and its error noted: the executor may fail with any of these
// errors, or does not read the row.
type naive struct {
	tables naiveTables
	params map[string]value.Value
	ctx    *function.Context
	// lambdas are the arguments of the lambdas around the expression, the innermost last.
	lambdas []value.Value
	errs    []error
	// fatal is set if the query fails whatever rows it reads.
	fatal bool
	// steps counts evaluated expressions: beyond maxSteps, the evaluation ends.
	steps int
	// partial is set if the query need not read all rows: it has a condition or a limit.
	partial bool
}

// errSteps ends an evaluation. It is not one that IFERROR catches.
var errSteps = value.Exhausted("too many steps")

// maxSteps is far more than a useful query needs: an array may have a million elements.
const maxSteps = 200_000

// runNaive evaluates a query. Its error is one of the analysis.
func runNaive(tables naiveTables, text string, params map[string]*btpb.Value, ctx *function.Context) (*naive, []*btpb.Value, error) {
	n := &naive{tables: tables, params: map[string]value.Value{}, ctx: ctx}
	types := map[string]value.Type{}
	for name, v := range params {
		t, err := value.TypeFromProto(v.GetType())
		if err != nil {
			return nil, nil, err
		}
		types[name] = t
		if n.params[name], err = value.FromProto(v, t); err != nil {
			return nil, nil, err
		}
	}
	q, err := analysis.Analyze(text, analysis.Options{Catalog: tables, Params: types})
	if err != nil {
		return nil, nil, err
	}
	var out []*btpb.Value
	for _, row := range n.rows(q.Root) {
		converted := make([]*btpb.Value, len(row))
		failed := false
		for i, v := range row {
			if converted[i], err = value.ToProto(v, q.Columns[i].Type); n.note(err) {
				failed, n.fatal = true, true
				break
			}
		}
		if !failed {
			out = append(out, converted...)
		}
	}
	return n, out, nil
}

// note notes an error, and reports whether there is one.
func (n *naive) note(err error) bool {
	if err != nil {
		n.errs = append(n.errs, err)
	}
	return err != nil
}

// fails notes an error that no choice of rows avoids.
func (n *naive) fails(err error) bool {
	n.fatal = n.fatal || err != nil
	return n.note(err)
}

// rows returns the rows of an operator.
func (n *naive) rows(op plan.Operator) [][]value.Value {
	var out [][]value.Value
	switch op := op.(type) {
	case plan.One:
		return [][]value.Value{nil}
	case *plan.Scan:
		return n.scan(op)
	case *plan.Filter:
		n.partial = true
		for _, row := range n.rows(op.Input) {
			if v, err := n.eval(op.Cond, row); !n.note(err) && !v.IsNull() && v.Bool() {
				out = append(out, row)
			}
		}
	case *plan.Project:
		for _, row := range n.rows(op.Input) {
			if projected, err := n.evalAll(op.Exprs, row); !n.note(err) {
				out = append(out, projected)
			}
		}
	case *plan.Unnest:
		for _, row := range n.rows(op.Input) {
			array, err := n.eval(op.Array, row)
			n.note(err)
			for i, elem := range array.Elems() {
				if n.steps++; n.steps > maxSteps {
					return nil
				}
				more := append(slices.Clone(row), elem)
				if op.WithOffset {
					more = append(more, value.Int64(int64(i)))
				}
				out = append(out, more)
			}
		}
	case *plan.Unpack:
		for _, row := range n.rows(op.Input) {
			out = append(out, unpackNaively(op, row)...)
		}
	case *plan.Aggregate:
		return n.aggregate(op)
	case *plan.Window:
		return n.window(op)
	case *plan.Sort:
		n.partial = true // a sort by the row key goes no further
		return n.sort(op.Keys, n.rows(op.Input))
	case *plan.Limit:
		return n.limit(op)
	default:
		panic(fmt.Sprintf("an operator %T", op))
	}
	return out
}

func (n *naive) limit(op *plan.Limit) [][]value.Value {
	count, offset := int64(math.MaxInt64), int64(0)
	for _, x := range []struct {
		expr plan.Expr
		into *int64
	}{{op.Count, &count}, {op.Offset, &offset}} {
		if x.expr == nil {
			continue
		}
		v, err := n.eval(x.expr, nil)
		if err == nil {
			_, err = function.LimitOf(v, "count and offset")
		}
		if n.fails(err) {
			return nil
		}
		*x.into = v.Int64()
	}
	failed := n.fatal
	rows := n.rows(op.Input)
	n.partial = true
	if count == 0 {
		n.fatal = failed // nothing is read
	}
	rows = rows[min(offset, int64(len(rows))):]
	return rows[:min(count, int64(len(rows)))]
}

func (n *naive) sort(keys []plan.SortKey, rows [][]value.Value) [][]value.Value {
	type keyed struct{ row, keys []value.Value }
	all := make([]keyed, len(rows))
	for i, row := range rows {
		all[i].row = row
		for _, k := range keys {
			v, err := n.eval(k.Expr, row)
			n.note(err)
			all[i].keys = append(all[i].keys, v)
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		for k, key := range keys {
			if c := naiveOrder(key.Order, all[i].keys[k], all[j].keys[k]); c != 0 {
				return c < 0
			}
		}
		return false
	})
	out := make([][]value.Value, len(all))
	for i, x := range all {
		out[i] = x.row
	}
	return out
}

// naiveOrder orders two values: NULL comes first in ascending order, and last in descending order.
func naiveOrder(o function.Order, a, b value.Value) int {
	if a.IsNull() || b.IsNull() {
		first := !o.Descending
		if o.NullsFirst || o.NullsLast {
			first = o.NullsFirst
		}
		switch {
		case a.IsNull() && b.IsNull():
			return 0
		case a.IsNull() == first:
			return -1
		default:
			return 1
		}
	}
	if o.Descending {
		a, b = b, a
	}
	return value.Compare(a, b)
}

// scan returns the rows of a table, with all columns.
func (n *naive) scan(op *plan.Scan) [][]value.Value {
	from, before, latest := int64(math.MinInt64), int64(math.MaxInt64), int64(1)
	if op.Time.WithHistory {
		latest = math.MaxInt64
	}
	for i, arg := range []plan.Expr{op.Time.AsOf, op.Time.BeforeOrEqual, op.Time.Before, op.Time.AfterOrEqual, op.Time.After, op.Time.LatestN} {
		if arg == nil {
			continue
		}
		v, err := n.eval(arg, nil)
		if err == nil && v.IsNull() {
			err = value.InvalidArgument("a temporal argument of a table must not be NULL")
		}
		if n.fails(err) {
			return nil
		}
		switch at := v.Int64(); i {
		case 0, 1:
			before = min(before, at+1)
		case 2:
			before = min(before, at)
		case 3:
			from = max(from, at)
		case 4:
			from = max(from, at+1)
		case 5:
			if latest = at; at < 1 && n.fails(value.InvalidArgument("latest_n must be at least 1, but is %d", at)) {
				return nil
			}
		}
	}
	t := n.tables.tables[op.Table]
	var out [][]value.Value
	for _, r := range t.rows {
		row := []value.Value{value.BytesOf(r.key)}
		if t.key != nil {
			fields := make([]value.Value, len(t.key.Fields))
			if n.note(t.key.Decode([]byte(r.key), fields)) {
				continue
			}
			row = append(row, fields...)
		}
		var written []value.Value
		for _, f := range t.families {
			var pairs, stamps []value.Value
			for i := 0; i < len(r.cells); {
				c := r.cells[i]
				var versions []value.Value
				for ; i < len(r.cells) && r.cells[i].family == c.family && r.cells[i].qualifier == c.qualifier; i++ {
					if at := r.cells[i].at; c.family == f.Name && at >= from && at < before && int64(len(versions)) < latest {
						versions = append(versions, value.Struct(value.Timestamp(at), cellNaively(f, r.cells[i].value)))
					}
				}
				switch {
				case len(versions) == 0:
				case op.Time.WithHistory:
					pairs = append(pairs, value.BytesOf(c.qualifier), value.Array(versions))
				default:
					pairs = append(pairs, value.BytesOf(c.qualifier), versions[0].Elems()[1])
					stamps = append(stamps, value.BytesOf(c.qualifier), versions[0].Elems()[0])
				}
			}
			row = append(row, value.Map(pairs))
			written = append(written, value.Map(stamps))
		}
		if !op.Time.WithHistory {
			row = append(row, written...)
		}
		out = append(out, row)
	}
	return out
}

func cellNaively(f analysis.Family, cell []byte) value.Value {
	if f.Value.Kind() == value.KindInt64 {
		return value.Int64(int64(binary.BigEndian.Uint64(cell)))
	}
	return value.BytesOf(string(cell))
}

// unpackNaively returns a row for each time in the histories of a row.
func unpackNaively(op *plan.Unpack, row []value.Value) [][]value.Value {
	times := map[int64]bool{}
	addTimes := func(history value.Value) {
		for _, version := range history.Elems() {
			times[version.Elems()[0].Int64()] = true
		}
	}
	at := func(history value.Value, t int64) value.Value {
		for _, version := range history.Elems() {
			if version.Elems()[0].Int64() == t {
				return version.Elems()[1]
			}
		}
		return value.Null
	}
	for n, v := range row {
		if slices.Contains(op.Arrays, n) {
			addTimes(v)
		}
		if slices.Contains(op.Maps, n) {
			for i := 1; i < len(v.Elems()); i += 2 {
				addTimes(v.Elems()[i])
			}
		}
	}
	var out [][]value.Value
	for t := range times {
		unpacked := make([]value.Value, len(row), len(row)+1)
		for n, v := range row {
			switch {
			case slices.Contains(op.Arrays, n):
				v = at(v, t)
			case slices.Contains(op.Maps, n):
				var pairs []value.Value
				for i := 0; i < len(v.Elems()); i += 2 {
					if found := at(v.Elems()[i+1], t); !found.IsNull() {
						pairs = append(pairs, v.Elems()[i], found)
					}
				}
				v = value.Map(pairs)
			}
			unpacked[n] = v
		}
		out = append(out, append(unpacked, value.Timestamp(t)))
	}
	slices.SortFunc(out, func(a, b []value.Value) int { return cmp.Compare(a[len(row)].Int64(), b[len(row)].Int64()) })
	return out
}

func (n *naive) aggregate(op *plan.Aggregate) [][]value.Value {
	type group struct {
		keys []value.Value
		rows [][]value.Value
	}
	var groups []*group
	if len(op.Keys) == 0 {
		groups = append(groups, &group{})
	}
	for _, row := range n.rows(op.Input) {
		keys, err := n.evalAll(op.Keys, row)
		if n.fails(err) {
			continue
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return slices.EqualFunc(g.keys, keys, value.Identical) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{keys: keys})
		}
		groups[i].rows = append(groups[i].rows, row)
	}
	out := make([][]value.Value, len(groups))
	for i, g := range groups {
		out[i] = slices.Clone(g.keys)
		for _, call := range op.Aggregates {
			v, err := n.total(call, g.rows)
			n.fails(err)
			out[i] = append(out[i], v)
		}
	}
	return out
}

// total evaluates an aggregate function: the modifiers apply to all rows of the group, one after the other.
func (n *naive) total(call plan.AggregateCall, rows [][]value.Value) (value.Value, error) {
	var limit value.Value
	if call.Limit != nil {
		var err error
		if limit, err = n.eval(call.Limit, nil); err != nil {
			return limit, err
		}
		if _, err := function.LimitOf(limit, "count"); err != nil {
			return limit, err
		}
	}
	exprs := slices.Clone(call.Args)
	if call.Having != nil {
		exprs = append(exprs, call.Having)
	}
	for _, k := range call.OrderBy {
		exprs = append(exprs, k.Expr)
	}
	var all [][]value.Value
	for _, row := range rows {
		values, err := n.evalAll(exprs, row)
		if err != nil {
			return value.Null, err
		}
		if !call.SkipNulls || len(call.Args) == 0 || !values[0].IsNull() {
			all = append(all, values)
		}
	}
	if by := len(call.Args); call.Having != nil {
		best := value.Null
		for _, values := range all {
			if v := values[by]; !v.IsNull() && (best.IsNull() || (value.Compare(v, best) < 0) == call.HavingMin && value.Compare(v, best) != 0) {
				best = v
			}
		}
		if slices.ContainsFunc(all, func(values []value.Value) bool { return value.IsNaN(values[by]) }) {
			all = nil // no row has the maximum or minimum NaN
		}
		all = slices.DeleteFunc(all, func(values []value.Value) bool { return values[by].IsNull() || value.Compare(values[by], best) != 0 })
	}
	if call.Distinct {
		var kept [][]value.Value
		for _, values := range all {
			args := values[:len(call.Args)]
			if !slices.ContainsFunc(kept, func(k []value.Value) bool { return slices.EqualFunc(k[:len(args)], args, value.Identical) }) {
				kept = append(kept, values)
			}
		}
		all = kept
	}
	if keys := call.OrderBy; len(keys) > 0 {
		sort.SliceStable(all, func(i, j int) bool {
			for k, key := range keys {
				at := len(exprs) - len(keys) + k
				if c := naiveOrder(key.Order, all[i][at], all[j][at]); c != 0 {
					return c < 0
				}
			}
			return false
		})
	}
	if !limit.IsNull() {
		all = all[:min(limit.Int64(), int64(len(all)))]
	}
	acc := call.Modified(function.Modifiers{})
	for _, values := range all {
		if err := acc.Add(n.ctx, values[:len(call.Args)]); err != nil {
			return value.Null, err
		}
	}
	return acc.Result(n.ctx)
}

func (n *naive) evalAll(exprs []plan.Expr, row []value.Value) ([]value.Value, error) {
	out := make([]value.Value, len(exprs))
	for i, e := range exprs {
		var err error
		if out[i], err = n.eval(e, row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// eval evaluates an expression.
func (n *naive) eval(e plan.Expr, row []value.Value) (value.Value, error) {
	if n.steps++; n.steps > maxSteps {
		return value.Null, errSteps
	}
	switch e := e.(type) {
	case *plan.Const:
		return e.Value, nil
	case *plan.Param:
		return n.params[e.Name], nil
	case *plan.Slot:
		return row[e.N], nil
	case *plan.Field:
		v, err := n.eval(e.Expr, row)
		if err != nil || v.IsNull() {
			return value.Null, err
		}
		return v.Elems()[e.N], nil
	case *plan.MessageField:
		v, err := n.eval(e.Expr, row)
		if err != nil {
			return value.Null, err
		}
		return e.Field.Read(v)
	case *plan.MakeArray:
		items, err := n.evalAll(e.Items, row)
		return value.Array(items), err
	case *plan.MakeStruct:
		items, err := n.evalAll(e.Items, row)
		return value.Struct(items...), err
	case *plan.Lambda:
		outer := n.lambdas
		return value.Callable(func(args []value.Value) (value.Value, error) {
			defer func(before []value.Value) { n.lambdas = before }(n.lambdas)
			n.lambdas = slices.Concat(outer, args)
			return n.eval(e.Body, row)
		}), nil
	case *plan.Argument:
		return n.lambdas[e.N], nil
	case *plan.Call:
		return n.call(e, row)
	default:
		panic(fmt.Sprintf("an expression %T", e))
	}
}

// call calls a function. One that may leave arguments out gets all of them, unless one of them fails.
func (n *naive) call(e *plan.Call, row []value.Value) (value.Value, error) {
	args := make([]value.Value, len(e.Args))
	errs := make([]error, len(e.Args))
	for i, arg := range e.Args {
		args[i], errs[i] = n.eval(arg, row)
	}
	failed := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	switch {
	case failed < 0:
		return e.Call.Eval(n.ctx, args)
	case e.Lazy != nil:
		return e.Lazy(n.ctx, func(i int) (value.Value, error) { return args[i], errs[i] })
	default:
		return value.Null, errs[failed]
	}
}

// disagreement describes how the answer of the executor differs from a naive evaluation, "" if it does not.
func (n *naive) disagreement(want, got []*btpb.Value, err error) string {
	if err != nil {
		for _, allowed := range n.errs {
			if e, ok := errors.AsType[*value.Error](allowed); ok && sameStatus(err, e) {
				return ""
			}
		}
		return fmt.Sprintf("the executor fails with %v, the naive evaluator with %v", err, n.errs)
	}
	if n.fatal || len(n.errs) > 0 && !n.partial {
		return fmt.Sprintf("the executor returns rows, the naive evaluator fails with %v", n.errs)
	}
	if !slices.EqualFunc(want, got, func(a, b *btpb.Value) bool { return proto.Equal(a, b) }) {
		return fmt.Sprintf("the executor returns %v, the naive evaluator %v", got, want)
	}
	return ""
}

// sameStatus reports whether a status is that of an error.
func sameStatus(err error, e *value.Error) bool {
	want := status.Convert(refusal.OfQuery(e))
	return want.Code() == status.Code(err) && want.Message() == status.Convert(err).Message()
}

// compare runs a query in both ways. It reports whether the query is valid, and how many values it returns.
func (s *sqlServer) compare(t *testing.T, text string, params map[string]*btpb.Value) (valid bool, values int) {
	t.Helper()
	n, want, err := runNaive(s.naiveTables, text, params, &function.Context{Err: t.Context().Err})
	if err == nil && n.steps > maxSteps {
		return true, 0
	}
	_, got, failed := runQuery(t.Context(), s.conn, text, params)
	checkStatement(t, text, failed)
	switch {
	case err != nil:
		if e, ok := errors.AsType[*value.Error](err); !ok || !sameStatus(failed, e) {
			t.Errorf("%s: the executor fails with %v, the analysis with %v", text, failed, err)
		}
		return false, 0
	case status.Code(failed) == codes.ResourceExhausted: // only the executor counts memory
		return true, 0
	}
	if d := n.disagreement(want, got, failed); d != "" {
		given := ""
		for _, name := range slices.Sorted(maps.Keys(params)) {
			given += " @" + name + " = " + literal(params[name], params[name].GetType())
		}
		t.Errorf("%s\n%s\n%s", text, given, d)
	}
	return true, len(got)
}
