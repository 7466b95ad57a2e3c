// Package filter evaluates Bigtable's row filters.
//
// A filter is compiled once per request and then run over the cells of each row,
// in storage order: families by creation, qualifiers bytewise, timestamps
// descending. Every filter maps one cell to any number of cells at once, so a
// compiled filter is a network of stages through which one cell is pushed at a
// time, and the output is in order without sorting. Nothing is buffered: a
// condition whose predicate needs the whole row is decided in a separate pass,
// and the row is then read again.
//
// A stage answers each cell with a hint: the position before which it wants no
// more cells. The runner turns hints into seeks, so that a filter for one
// column of a wide row costs that column. What the filter says about row keys
// is returned by [Program.Rows].
//
// The package knows nothing of storage: cells come from a [Source].
package filter

import (
	"context"
	"fmt"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
)

// Bounds that hold even without limits: deeper or larger filters could exhaust
// the stack of the goroutine that evaluates them.
const (
	hardMaxDepth   = 1_000
	hardMaxFilters = 100_000
	hardMaxRegexp  = 1 << 20 // bytes

	// hardMaxCopies bounds what interleaves make of one cell: nested in a
	// chain they multiply, so that a filter of a few hundred bytes could ask
	// for more copies than there is time.
	hardMaxCopies = 1 << 16

	// hardMaxInstructions bounds what the regular expressions of a filter
	// compile to: repetitions multiply, so that 20 KB could ask for millions.
	// RE2 refuses an expression of more than some 87,000.
	hardMaxInstructions = 100_000

	// hardMaxSteps bounds the work of regular expressions on one row, to less
	// than a minute. A step is an instruction for a byte, at worst some twenty
	// nanoseconds; eight instructions may go over each byte of the largest row.
	hardMaxSteps = 8 * 256 << 20

	// stepsAtOnce is the work between two looks at the context.
	stepsAtOnce = 1 << 20
)

// What ends the run of a filter that asks too much. It is the request's fault.
var (
	// ErrTooManyCopies is for interleaves that multiply a cell beyond measure.
	ErrTooManyCopies = fmt.Errorf("the filter's interleaves make more than %d copies of one cell", hardMaxCopies)
	// ErrTooManySteps is for regular expressions that are large for a row that
	// is large.
	ErrTooManySteps = fmt.Errorf("the filter's regular expressions take more than %d steps on one row, an instruction for a byte each", int64(hardMaxSteps))
)

// Cell is one version of one column, as a filter sees it.
type Cell struct {
	Family          string
	Ordinal         uint16 // the family's place in the order of families
	Qualifier       []byte
	TimestampMicros int64
	Value           []byte
	Label           string // "" if unset
}

// Source yields the cells of one row in storage order. The first call of
// NextCell, and the first after Rewind, goes to the row's first cell.
type Source interface {
	NextCell() bool
	// Cell returns the current cell. It and its slices are valid until the
	// source moves. The filter does not change them.
	Cell() *Cell
	// SkipColumn makes NextCell go to the first cell after the current column,
	// SkipFamily to the first after the current family, SeekColumn to the
	// first at or after a column that lies ahead.
	SkipColumn()
	SkipFamily()
	SeekColumn(family string, qualifier []byte)
	// Rewind makes NextCell go to the row's first cell again.
	Rewind()
}

// Options configure Compile. The zero value has no limits, knows no families,
// and samples every row.
type Options struct {
	// MaxBytes bounds the filter's serialized size. Default 0: no bound.
	MaxBytes int
	// MaxDepth bounds the nesting of chains, interleaves and conditions
	// around a filter. Default 0: only a bound that protects the process.
	MaxDepth int
	// Ordinal gives a family's place in the order of the table's; false if that
	// is not known. It only makes reads cheaper. Default: none is known.
	Ordinal func(family string) (ordinal uint16, ok bool)
	// Random returns numbers in [0, 1) for row samples. Default: always 0.
	Random func() float64
}

// Program is a compiled filter. It holds the state of a run and is for one
// goroutine at a time.
type Program struct {
	first  stage
	rows   RowSet
	family string
	passes int // passes over a row before the one that yields cells
	// maxSteps is hardMaxSteps, but in tests.
	maxSteps int64

	perPass []interface{ resetPass() }
	perRow  []interface{ resetRow() }
	run     run
}

// node is a validated filter.
type node interface {
	// link returns the stage that does the node's work and feeds next.
	link(l *linker, next stage) stage
	// levels is told in how many passes the conditions before the node are
	// decided, and returns the same for what comes after it.
	levels(decided int) int
	// rows returns the rows whose cells the node can yield.
	rows() RowSet
	// onlyFamily returns the name of the one family that the node names and asks every cell to
	// be of, or "".
	onlyFamily() string
	// hasSink and hasLabel report whether the node holds such a filter.
	hasSink() bool
	hasLabel() bool
}

// leaf gives a node the behavior of most filters.
type leaf struct{}

func (leaf) levels(decided int) int { return decided }
func (leaf) rows() RowSet           { return AllRows() }
func (leaf) onlyFamily() string     { return "" }
func (leaf) hasSink() bool          { return false }
func (leaf) hasLabel() bool         { return false }

// stage takes part in a run.
type stage interface {
	// push hands a cell to the stage, which may change neither it nor its
	// slices, and returns what the stage does not need to see.
	push(r *run, c *Cell) hint
}

// linker collects the stages that keep state.
type linker struct{ p *Program }

// run is the state of one row's evaluation.
type run struct {
	ctx     context.Context // of the call of Run
	row     []byte
	ordinal func(family string) (uint16, bool)
	random  func() float64
	pass    int
	final   bool // the pass that yields cells
	emit    func(*Cell) error
	copies  int   // that interleaves made of the current cell
	steps   int64 // that regular expressions may still take on the row
	unasked int64 // steps since ctx was asked whether it has ended
	err     error // of emit or ctx, ErrTooManyCopies or ErrTooManySteps; ends the run
}

// spend accounts for steps of regular expressions. It returns false if the run
// is over.
func (r *run) spend(steps int64) bool {
	if r.steps -= steps; r.steps < 0 && r.err == nil {
		r.err = ErrTooManySteps
	}
	if r.unasked += steps; r.unasked >= stepsAtOnce && r.err == nil {
		r.unasked = 0
		r.err = r.ctx.Err()
	}
	return r.err == nil
}

// Compile validates f and compiles it. A nil f, and one with no member set,
// passes every cell. The error names the filter by its path and says what was
// expected; it is the request's fault.
func Compile(f *btpb.RowFilter, o Options) (*Program, error) {
	if n := proto.Size(f); o.MaxBytes > 0 && n > o.MaxBytes {
		return nil, fmt.Errorf("the filter has %d bytes; the limit is %d", n, o.MaxBytes)
	}
	d := decoder{maxDepth: hardMaxDepth}
	if o.MaxDepth > 0 {
		d.maxDepth = o.MaxDepth
	}
	const usualDepth = 8
	root, err := d.decode(f, place{steps: make([]step, 0, usualDepth)})
	if err != nil {
		return nil, err
	}
	p := &Program{rows: root.rows(), family: root.onlyFamily(), passes: root.levels(0), maxSteps: hardMaxSteps}
	p.run.ordinal, p.run.random = o.Ordinal, o.Random
	if o.Ordinal == nil {
		p.run.ordinal = func(string) (uint16, bool) { return 0, false }
	}
	if o.Random == nil {
		p.run.random = func() float64 { return 0 }
	}
	p.first = root.link(&linker{p: p}, output{})
	return p, nil
}

// Rows returns the rows whose cells the filter can yield.
func (p *Program) Rows() RowSet { return p.rows }

// Family returns the one family, by its literal name, whose cells alone the filter can
// yield; "" if it names none so. Only filters in chains are asked: the branches of an
// interleave or a condition are not.
func (p *Program) Family() string { return p.family }

// Run evaluates the filter over one row and calls emit with each cell of the
// output, in order. The cell and its slices are valid during the call. It
// returns the number of cells read in the last pass, and what ended the run
// early: the first error of emit, that of the context, which is asked while
// regular expressions are at work, ErrTooManyCopies or ErrTooManySteps.
func (p *Program) Run(ctx context.Context, row []byte, src Source, emit func(*Cell) error) (cellsSeen int64, err error) {
	r := &p.run
	r.ctx, r.row, r.emit, r.steps, r.err = ctx, row, emit, p.maxSteps, nil
	defer func() { r.ctx, r.row, r.emit = nil, nil, nil }()
	for _, s := range p.perRow {
		s.resetRow()
	}
	for r.pass = 0; r.pass <= p.passes; r.pass++ {
		r.final = r.pass == p.passes
		if r.pass > 0 {
			src.Rewind()
		}
		for _, s := range p.perPass {
			s.resetPass()
		}
		cellsSeen = 0
	cells:
		for src.NextCell() {
			cellsSeen++
			r.copies = 0
			h := p.first.push(r, src.Cell())
			if r.err != nil {
				return cellsSeen, r.err
			}
			switch h.to {
			case stay:
			case nextColumn:
				src.SkipColumn()
			case nextFamily:
				src.SkipFamily()
			case seekHere, seekLater:
				src.SeekColumn(h.family, h.qualifier)
			case nextRow:
				break cells
			}
		}
	}
	return cellsSeen, nil
}

// output is the last stage: the filter's result.
type output struct{}

func (output) push(r *run, c *Cell) hint {
	if !r.final {
		return hint{to: nextRow}
	}
	r.yield(c)
	return hint{}
}

func (r *run) yield(c *Cell) {
	if r.err == nil {
		r.err = r.emit(c)
	}
}

// place is where in a filter a member stands. Its path is put together for an
// error alone: most filters have none.
type place struct {
	// steps lead to the member. Places share them: a place is good until its
	// parent leads to the next member.
	steps     []step
	depth     int
	condition bool // inside a condition
}

// step leads from a filter to a member of it, or of a list in it.
type step struct {
	member string
	listed bool
	n      int // of the element, if listed
}

func (at place) in(member string) place { return at.step(step{member: member}) }

// element is in for an element of a list.
func (at place) element(list string, n int) place {
	return at.step(step{member: list, listed: true, n: n})
}

func (at place) step(s step) place {
	at.steps = append(at.steps, s)
	return at
}

func (at place) nested(member string) place {
	at = at.in(member)
	at.depth++
	return at
}

func (at place) path() string {
	var path []byte
	for i, s := range at.steps {
		if i > 0 {
			path = append(path, '.')
		}
		if path = append(path, s.member...); s.listed {
			path = fmt.Appendf(path, "[%d]", s.n)
		}
	}
	return string(path)
}

func (at place) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", at.path(), fmt.Errorf(format, args...))
}

// decoder turns protos into nodes.
type decoder struct {
	maxDepth int
	filters  int
	// instructions that its regular expressions compile to.
	instructions int
}

// decode is the registry of filters: every member of the oneof RowFilter.filter
// is named here, once.
func (d *decoder) decode(f *btpb.RowFilter, at place) (node, error) {
	if d.filters++; d.filters > hardMaxFilters {
		return nil, fmt.Errorf("the filter has more than %d members", hardMaxFilters)
	}
	if at.depth > d.maxDepth {
		return nil, fmt.Errorf("the filter is nested more than %d deep", d.maxDepth)
	}
	switch m := f.GetFilter().(type) {
	case nil:
		return pass{}, nil
	case *btpb.RowFilter_Chain_:
		return d.chain(m.Chain, at.nested("chain"))
	case *btpb.RowFilter_Interleave_:
		return d.interleave(m.Interleave, at.nested("interleave"))
	case *btpb.RowFilter_Condition_:
		return d.condition(m.Condition, at.nested("condition"))
	case *btpb.RowFilter_Sink:
		return decodeSink(m.Sink, at.in("sink"))
	case *btpb.RowFilter_PassAllFilter:
		return onlyTrue(pass{}, m.PassAllFilter, at.in("pass_all_filter"))
	case *btpb.RowFilter_BlockAllFilter:
		return onlyTrue(block{}, m.BlockAllFilter, at.in("block_all_filter"))
	case *btpb.RowFilter_RowKeyRegexFilter:
		return d.rowKeyRegex(m.RowKeyRegexFilter, at.in("row_key_regex_filter"))
	case *btpb.RowFilter_RowSampleFilter:
		return decodeRowSample(m.RowSampleFilter, at.in("row_sample_filter"))
	case *btpb.RowFilter_FamilyNameRegexFilter:
		return d.familyRegex(m.FamilyNameRegexFilter, at.in("family_name_regex_filter"))
	case *btpb.RowFilter_ColumnQualifierRegexFilter:
		return d.qualifierRegex(m.ColumnQualifierRegexFilter, at.in("column_qualifier_regex_filter"))
	case *btpb.RowFilter_ColumnRangeFilter:
		return decodeColumnRange(m.ColumnRangeFilter, at.in("column_range_filter"))
	case *btpb.RowFilter_TimestampRangeFilter:
		return decodeTimestampRange(m.TimestampRangeFilter, at.in("timestamp_range_filter"))
	case *btpb.RowFilter_ValueRegexFilter:
		return d.valueRegex(m.ValueRegexFilter, at.in("value_regex_filter"))
	case *btpb.RowFilter_ValueRangeFilter:
		return decodeValueRange(m.ValueRangeFilter, at.in("value_range_filter"))
	case *btpb.RowFilter_ValueBitmaskFilter:
		return valueBitmask{mask: m.ValueBitmaskFilter.GetMask()}, nil
	case *btpb.RowFilter_CellsPerRowOffsetFilter:
		return decodeRowOffset(m.CellsPerRowOffsetFilter, at.in("cells_per_row_offset_filter"))
	case *btpb.RowFilter_CellsPerRowLimitFilter:
		return decodeRowLimit(m.CellsPerRowLimitFilter, at.in("cells_per_row_limit_filter"))
	case *btpb.RowFilter_CellsPerColumnLimitFilter:
		return decodeColumnLimit(m.CellsPerColumnLimitFilter, at.in("cells_per_column_limit_filter"))
	case *btpb.RowFilter_StripValueTransformer:
		return onlyTrue(strip{}, m.StripValueTransformer, at.in("strip_value_transformer"))
	case *btpb.RowFilter_ApplyLabelTransformer:
		return decodeLabel(m.ApplyLabelTransformer, at.in("apply_label_transformer"))
	default:
		return nil, at.errorf("unknown filter %T", m)
	}
}

// onlyTrue refuses false for a filter that has no meaning then.
func onlyTrue(n node, value bool, at place) (node, error) {
	if !value {
		return nil, at.errorf("must be true")
	}
	return n, nil
}

// pass is pass_all_filter, and a filter with no member.
type pass struct{ leaf }

func (pass) link(_ *linker, next stage) stage { return next }

// block is block_all_filter, and the branch that a condition lacks.
type block struct{ leaf }

func (block) rows() RowSet              { return RowSet{} }
func (block) link(*linker, stage) stage { return blocked{} }

type blocked struct{}

func (blocked) push(*run, *Cell) hint { return hint{to: nextRow} }
