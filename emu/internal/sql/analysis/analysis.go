// Package analysis turns the tree of a query into a plan: it finds tables and columns, chooses
// functions by the types of their arguments, and rejects invalid queries with the error texts and
// positions of GoogleSQL.
package analysis

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/emu/internal/rowkey"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/plan"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/syntax"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// Catalog finds tables.
type Catalog interface {
	// Table returns a table or materialized view by its id, which is case-sensitive.
	Table(id string) (*Table, bool)
	// View returns the query of a logical view by its id.
	View(id string) (query string, ok bool)
	// Type returns a message or enum in a schema bundle of a table, by its full name. The version
	// changes with the bundle.
	Type(table, bundle, name string) (of value.Type, version string, ok bool)
}

// Table is a table of an instance.
type Table struct {
	Families []Family       // in the order of their names
	Key      *rowkey.Schema // nil without a row key schema
	// View holds the columns of a materialized view, which queries see instead of the key and the
	// families. It is nil for a table.
	View []ViewColumn
	Rows uint32 // identifies the rows of the view
}

// ViewColumn is a column of a materialized view: a field of its row key, a cell, or a family.
type ViewColumn struct {
	Name      string
	Type      value.Type
	Key       int    // index of the key field; negative for other columns
	Family    string // of the cell, or the family
	Qualifier string
	// Decode converts the content of the cell; nil for a column that is not a cell.
	Decode func(cell []byte) (value.Value, error)
}

// Family is a column family.
type Family struct {
	Name  string
	Value value.Type // of its cells: BYTES, or INT64 of an aggregate
	// Sketch is set if the cells are HLL++ sketches, whose values are their estimates.
	Sketch bool
}

// Options are the options of Analyze.
type Options struct {
	Catalog Catalog
	Params  map[string]value.Type // the declared parameters, by name in lower case
	// Materialized is set for the query of a materialized view, whose rows cannot follow a changed schema bundle.
	Materialized bool
}

// Analyze parses a query and makes its plan, which [Optimize] improves. Errors are of type *[value.Error].
func Analyze(text string, o Options) (*plan.Query, error) {
	a := &analyzer{text: text, o: o, shared: &shared{}}
	stmt, err := a.parse()
	if err == nil {
		err = a.hints(stmt.Hints)
	}
	if err != nil {
		return nil, err
	}
	r, err := a.query(stmt.Query, nil)
	if err != nil {
		return nil, err
	}
	a.out.Root = r.op
	a.uses()
	for _, c := range r.columns {
		a.out.Columns = append(a.out.Columns, plan.Column{Name: c.name, Type: typeOrInt(c.expr.Type())})
	}
	return &a.out, nil
}

func (a *analyzer) parse() (*syntax.Statement, error) {
	stmt, err := syntax.Parse(a.text)
	if err != nil {
		return nil, &value.Error{Code: codes.InvalidArgument, Text: err.Error()}
	}
	return stmt, nil
}

// incompleteViews is the name of the hint that plan.Query.IncompleteViews describes.
const incompleteViews = "allow_incomplete_view"

// hints reads the hints of the query. Unknown ones have no effect.
func (a *analyzer) hints(hints []syntax.Hint) error {
	for _, h := range hints {
		if !strings.EqualFold(h.Name, incompleteViews) {
			continue
		}
		v, ok := h.Value.(*syntax.Literal)
		if !ok || v.Kind != syntax.Bool {
			return a.fail(h.At, "The hint %s must be TRUE or FALSE", incompleteViews)
		}
		a.out.IncompleteViews = v.Text == "TRUE"
	}
	return nil
}

// view analyzes the query of a view, which sees no parameters, and records in the plan that it
// uses the view. at is the place of the view in the text.
func (a *analyzer) view(at int, id, query string) (relation, error) {
	a.out.Views = append(a.out.Views, plan.ViewUse{View: id, Query: query})
	inner := &analyzer{text: query, o: Options{Catalog: a.o.Catalog}, shared: a.shared}
	stmt, err := inner.parse()
	var r relation
	if err == nil {
		r, err = inner.query(stmt.Query, nil)
	}
	if e, ok := errors.AsType[*value.Error](err); ok && e.At != "" { // clients mark the place that ends the text
		text := fmt.Sprintf("%s %s of the view %s]", e.Text, strings.TrimSuffix(e.At, "]"), id)
		err = &value.Error{Code: e.Code, Text: text, At: syntax.At(a.text, at)}
	}
	return r, err
}

// typeOrInt returns t or, if t is the unknown type of an untyped NULL, INT64, as GoogleSQL does.
func typeOrInt(t value.Type) value.Type {
	if t.IsUnknown() {
		return value.Int64Type
	}
	return t
}

// analyzer analyzes one statement: the query, or the query of a view that it reads.
type analyzer struct {
	text string
	o    Options
	*shared
}

// shared has the state of all analyzers of a query and its views.
type shared struct {
	out   plan.Query
	depth int
	scans []*plan.Scan
}

// maxQueryDepth bounds the nesting of queries, including those in WITH.
const maxQueryDepth = 50

// fail returns an InvalidArgument error with the position of an offset in the text.
func (a *analyzer) fail(offset int, format string, args ...any) error {
	return a.failed(offset, value.InvalidArgument(format, args...))
}

// refuse returns the error for an unsupported construct. what begins its text, and ends with a
// verb: "GROUP BY ALL is".
func (a *analyzer) refuse(offset int, what string) error {
	return a.failed(offset, value.Unimplemented("%s not supported", what))
}

// failed adds the position of an offset in the text to a *value.Error without a position. It
// returns other errors unchanged.
func (a *analyzer) failed(offset int, err error) error {
	var e *value.Error
	if errors.As(err, &e) && e.At == "" {
		return &value.Error{Code: e.Code, Text: e.Text, At: syntax.At(a.text, offset)}
	}
	return err
}

// relation is an analyzed query or table expression.
type relation struct {
	op      plan.Operator
	columns []column // of the output, in order
}

// column is a column of a relation or scope.
type column struct {
	name string
	expr plan.Expr // over the slots of the relation
	// scan is set if expr is a column of a scan, else nil.
	scan *plan.ScanColumn
	// written is the column of timestamps if expr is a family of a scan without history, else
	// nil.
	written *column
	// hidden columns are not in *.
	hidden bool
}
