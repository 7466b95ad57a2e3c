package plan

import (
	"github.com/tabletop-emu/tabletop/emu/internal/rowkey"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// Query is an analyzed statement.
type Query struct {
	Columns []Column // of the result: the slots of Root, in order
	Root    Operator
	// Tables has an entry for each scan of a table or materialized view, including those in views.
	Tables []TableUse
	// Views has an entry for each use of a logical view. The plan expires once the query of a
	// view changes.
	Views []ViewUse
	// Bundles has the schema bundles that the query names. The plan expires once one changes.
	Bundles []BundleUse
	// IncompleteViews is set if the query may read a materialized view that is being populated.
	IncompleteViews bool
}

// BundleUse is a schema bundle of a table with its version.
type BundleUse struct{ Table, Bundle, Version string }

// ViewUse is a view with its query.
type ViewUse struct{ View, Query string }

// Column is a column of a result. Several may have the same name.
type Column struct {
	Name string
	Type value.Type
}

// TableUse is a table with the families that a scan reads, sorted. The plan expires once the
// table or one of these families is dropped.
type TableUse struct {
	Table    string // its id
	Families []string
	// Materialized is the id of a materialized view's rows; 0 for a table.
	Materialized uint32
}

// Operator produces rows.
type Operator interface {
	operator()
}

// The operators.
type (
	// One produces one row without slots: the input of a SELECT without FROM.
	One struct{}

	// Given produces the rows of the option Given of package execution.
	Given struct{}

	// Scan produces the rows of a table that have at least one cell in any family, in the order of their
	// keys. Slots: one for each column.
	Scan struct {
		Table string // its id
		// Key is the row key schema of the table, or nil. Its fields are columns in this order.
		Key     *rowkey.Schema
		Columns []*ScanColumn
		Time    TimeArgs
		// Bounds are conditions that the rows of the query satisfy, in terms of the scan's slots.
		// A Filter above the scan checks them, so the scan may use them to read fewer rows, but
		// does not have to.
		Bounds []Expr
		// Reverse visits the keys in descending order.
		Reverse bool
	}

	// Filter produces the rows of Input whose Cond is TRUE. Slots: those of Input.
	Filter struct {
		Input Operator
		Cond  Expr
	}

	// Project computes a row for each row of Input. Slots: one for each expression.
	Project struct {
		Input Operator
		Exprs []Expr
	}

	// Unnest produces a row for each element of an array; none for an empty array and NULL. Slots: those of
	// Input, the element, and its index if WithOffset is set.
	Unnest struct {
		Input      Operator
		Array      Expr // over the slots of Input
		WithOffset bool
	}

	// Unpack produces a row for each different timestamp in the histories of a row of Input, in ascending
	// order. Slots: those of Input, where the slots in Arrays have the value at the timestamp or NULL, and
	// the slots in Maps have the map of the values at the timestamp; then the timestamp.
	Unpack struct {
		Input  Operator
		Arrays []int // slots of type ARRAY<STRUCT<timestamp TIMESTAMP, value T>>
		Maps   []int // slots of type MAP<BYTES, ARRAY<STRUCT<timestamp TIMESTAMP, value T>>>
	}

	// Aggregate groups the rows of Input by equal keys. Without Keys there is exactly one group, which may
	// have no rows. Slots: the keys, then the aggregates. Groups come in the order of their first rows.
	Aggregate struct {
		Input      Operator
		Keys       []Expr
		Aggregates []AggregateCall
	}

	// Sort sorts the rows of Input; equal rows stay in their order. Slots: those of Input.
	Sort struct {
		Input Operator
		Keys  []SortKey
	}

	// Limit skips and then limits the rows of Input. Slots: those of Input.
	Limit struct {
		Input         Operator
		Count, Offset Expr // over no slots; nil without a limit or an offset
	}

	// Window computes window functions over all rows of Input, which stay in their order. Slots: those of
	// Input, then one for each call.
	Window struct {
		Input Operator
		Specs []WindowSpec // each with calls
		Calls []WindowCall
	}
)

// ScanKind is the kind of a column of a scan.
type ScanKind uint8

// Kinds of columns.
const (
	RowKey   ScanKind = iota // the row key, of type BYTES
	KeyField                 // a field of the row key schema
	Family                   // a family
	Written                  // the timestamps of the newest cells of a family, as MAP<BYTES, TIMESTAMP>
)

// ScanColumn is a column of a table. The slot of one that the query does not use is NULL.
type ScanColumn struct {
	Kind ScanKind
	Name string // of the field or family
	Type value.Type
	// Used is set if the query uses the whole column. Otherwise it uses Qualifiers of the map, which are
	// the same for all rows.
	Used       bool
	Qualifiers []Expr
	// Sketch is set for a family of HLL++ sketches, whose values are their estimates.
	Sketch bool
}

// TimeArgs are the temporal arguments of a table, over no slots; nil for those that are absent.
type TimeArgs struct {
	AsOf                                       Expr
	After, AfterOrEqual, Before, BeforeOrEqual Expr
	LatestN                                    Expr
	History                                    Expr
	WithHistory                                bool // the families have histories
}

// AggregateCall is a call of an aggregate function over the rows of a group.
type AggregateCall struct {
	function.Call
	Args     []Expr
	Distinct bool
	// SkipNulls leaves out rows whose first argument is NULL.
	SkipNulls bool
	OrderBy   []SortKey
	Limit     Expr // of the rows of the group, over no slots; nil without one
	// Having leaves only the rows with the greatest value of an expression, or the least; nil without it.
	Having    Expr
	HavingMin bool
}

// WindowSpec divides rows into partitions, and orders each of them.
type WindowSpec struct {
	PartitionBy []Expr
	OrderBy     []SortKey
}

// WindowCall is a call of a function over a window of rows.
type WindowCall struct {
	function.Call
	Args     []Expr
	Distinct bool
	Nulls    function.Nulls
	Spec     int    // index of its spec
	Frame    *Frame // nil for a function without frames
}

// Frame is a window frame.
type Frame struct {
	Range      bool // bounds are peers, or values of the only sort key, instead of rows
	Start, End Bound
}

// Bound is a bound of a frame: the first or last row of the partition if Unbounded is set; else the current
// row, or one at an Offset before or After it.
type Bound struct {
	Unbounded bool
	Offset    Expr // over no slots, of type INT64 or that of the sort key; nil for the current row
	After     bool
}

// SortKey is an expression to sort by.
type SortKey struct {
	Expr Expr
	function.Order
}

func (One) operator()        {}
func (Given) operator()      {}
func (*Scan) operator()      {}
func (*Filter) operator()    {}
func (*Project) operator()   {}
func (*Unnest) operator()    {}
func (*Unpack) operator()    {}
func (*Aggregate) operator() {}
func (*Sort) operator()      {}
func (*Limit) operator()     {}
func (*Window) operator()    {}
