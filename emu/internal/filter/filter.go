package filter

import (
	"context"
	"fmt"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/proto"
)

// These bounds apply without limits too: deeper or larger filters could exhaust
// the stack of the evaluating goroutine.
const (
	hardMaxDepth   = 1_000
	hardMaxFilters = 100_000
	hardMaxRegexp  = 1 << 20 // bytes

	// hardMaxCopies bounds the copies of one cell by interleaves. Nested in a
	// chain they multiply, so that a filter of a few hundred bytes could run
	// forever.
	hardMaxCopies = 1 << 16

	// hardMaxInstructions bounds the compiled size of a filter's regular
	// expressions. Repetitions multiply, so that 20 KB could compile to
	// millions. RE2 rejects an expression of more than some 87,000.
	hardMaxInstructions = 100_000

	// hardMaxSteps bounds the work of regular expressions on one row to less
	// than a minute. A step is one instruction on one byte, at worst some
	// twenty nanoseconds. It allows eight instructions for each byte of the
	// largest row.
	hardMaxSteps = 8 * 256 << 20

	// stepsAtOnce is the number of steps between two checks of the context.
	stepsAtOnce = 1 << 20
)

// These are the errors of filters that need too much work. The request is at fault.
var (
	// ErrTooManyCopies is returned if interleaves copy a cell too many times.
	ErrTooManyCopies = fmt.Errorf("the filter's interleaves make more than %d copies of one cell", hardMaxCopies)
	// ErrTooManySteps is returned if regular expressions are too large for a
	// large row.
	ErrTooManySteps = fmt.Errorf("the filter's regular expressions need more than %d steps for one row; each step runs one instruction on one byte", int64(hardMaxSteps))
)

// Cell is one version of a column, as a filter sees it.
type Cell struct {
	Family          string
	Ordinal         uint16 // the family's index in the order of families
	Qualifier       []byte
	TimestampMicros int64
	Value           []byte
	Label           string // "" if unset
}

// Source iterates over the cells of one row in storage order. The first call of NextCell, and the
// first after Rewind, moves to the row's first cell.
type Source interface {
	NextCell() bool
	// Cell returns the current cell. The cell and its slices are valid until the source moves. The
	// filter does not change them.
	Cell() *Cell
	// These methods choose the cell to which the next NextCell moves. SkipColumn chooses the first
	// cell after the current column, SkipFamily the first after the current family, and SeekColumn
	// the first at or after a column that lies ahead.
	SkipColumn()
	SkipFamily()
	SeekColumn(family string, qualifier []byte)
	// Rewind makes the next NextCell move to the row's first cell.
	Rewind()
}

// Options configures Compile. The zero value sets no limits, knows no families, and lets the row
// sample filter pass every row.
type Options struct {
	// MaxBytes is the maximum serialized size of the filter. Default 0:
	// unlimited.
	MaxBytes int
	// MaxDepth is the maximum nesting of chains, interleaves and conditions around a filter.
	// Default 0: only the bound that protects the process applies.
	MaxDepth int
	// Ordinal returns a family's index in the table's order, or false if it is unknown. It only
	// speeds up reads. Default: all families are unknown.
	Ordinal func(family string) (ordinal uint16, ok bool)
	// Random returns numbers in [0, 1) for row samples. Default: always 0.
	Random func() float64
}

// Program is a compiled filter. It holds the state of a run, so only one goroutine may use it at a
// time.
type Program struct {
	first  stage
	rows   RowSet
	family string
	passes int // passes over a row before the one that emits cells
	// maxSteps is hardMaxSteps, except in tests.
	maxSteps int64

	perPass []interface{ resetPass() }
	memory  struct { // of the usual filter, allocated with the rest
		perPass [2]interface{ resetPass() }
		steps   [8]step
	}
	perRow []interface{ resetRow() }
	run    run
}

// node is a validated filter.
type node interface {
	// link returns the stage of the node, which feeds next.
	link(l *linker, next stage) stage
	// levels gets the number of passes that decide the conditions before the
	// node, and returns that number after the node.
	levels(decided int) int
	// rows returns the rows whose cells the node can emit.
	rows() RowSet
	// onlyFamily returns the literal name of the family that all cells must
	// have, or "".
	onlyFamily() string
	// hasSink and hasLabel report whether the node holds such a filter.
	hasSink() bool
	hasLabel() bool
}

// leaf provides the behavior of most filters.
type leaf struct{}

func (leaf) levels(decided int) int { return decided }
func (leaf) rows() RowSet           { return AllRows() }
func (leaf) onlyFamily() string     { return "" }
func (leaf) hasSink() bool          { return false }
func (leaf) hasLabel() bool         { return false }

// stage is a step of a run.
type stage interface {
	// push passes a cell to the stage, which must not change it or its slices.
	// It returns the cells that the stage does not need.
	push(r *run, c *Cell) hint
}

// linker collects the stages with state.
type linker struct{ p *Program }

// run is the state of one row's evaluation.
type run struct {
	ctx     context.Context // of the call of Run
	row     []byte
	ordinal func(family string) (uint16, bool)
	random  func() float64
	pass    int
	final   bool // the pass that emits cells
	emit    func(*Cell) error
	copies  int   // by interleaves, of the current cell
	steps   int64 // left for regular expressions on the row
	unasked int64 // steps since the last check of ctx
	err     error // of emit or ctx, ErrTooManyCopies or ErrTooManySteps; ends the run
}

// spend charges steps of regular expressions. It returns false if the run has
// ended.
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

// Compile validates and compiles f. A nil f, like a filter with no member set, passes every cell.
// Errors contain the path of the invalid filter and the expected value; the request is at fault.
func Compile(f *btpb.RowFilter, o Options) (*Program, error) {
	if n, ok := sizeBound(f); o.MaxBytes > 0 && (!ok || n > o.MaxBytes) {
		if n = proto.Size(f); n > o.MaxBytes {
			return nil, fmt.Errorf("the filter has %d bytes; the limit is %d", n, o.MaxBytes)
		}
	}
	d := decoder{maxDepth: hardMaxDepth}
	if o.MaxDepth > 0 {
		d.maxDepth = o.MaxDepth
	}
	p := &Program{maxSteps: hardMaxSteps}
	root, err := d.decode(f, place{steps: p.memory.steps[:0]})
	if err != nil {
		return nil, err
	}
	p.perPass = p.memory.perPass[:0]
	p.rows, p.family, p.passes = root.rows(), root.onlyFamily(), root.levels(0)
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

// Rows returns the set of rows whose cells the filter can emit.
func (p *Program) Rows() RowSet { return p.rows }

// Family returns the name of the only family whose cells the filter can emit, or "" if it is
// unknown. It considers only filters in chains, not the branches of interleaves and conditions.
func (p *Program) Family() string { return p.family }

// First returns a column with no cell before it that can change the output of the filter, or an empty
// family if that is unknown.
func (p *Program) First() (family string, qualifier []byte) {
	switch s := p.first.(type) {
	case *columnRangeStage:
		return s.family, s.start
	case *familyRegexStage:
		if s.re.isLiteral {
			return s.literal, nil
		}
	}
	return "", nil
}

// Run evaluates the filter over one row and calls emit for each output cell, in order. The cell and
// its slices are valid during the call of emit. Run returns the number of cells read in the last
// pass. The error is that of emit, that of the context, which only regular expressions check,
// ErrTooManyCopies or ErrTooManySteps.
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

// output is the last stage, which emits the result.
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

// place is the position of a member in a filter. Its path is built only for
// errors, which most filters do not have.
type place struct {
	// steps is the path to the member. Places share it: a place is valid until
	// its parent moves to the next member.
	steps     []step
	depth     int
	condition bool // inside a condition
}

// step leads from a filter to a member of it, or to an element of a list in it.
type step struct {
	member string
	listed bool
	n      int // index of the element, if listed
}

func (at place) in(member string) place { return at.step(step{member: member}) }

// element returns the place of an element of a list.
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

// decoder converts protos to nodes.
type decoder struct {
	maxDepth int
	filters  int
	// Compiled size of its regular expressions.
	instructions int
}

// decode compiles a filter. Its switch names every member of the oneof
// RowFilter.filter, so a new kind of filter is added here.
func (d *decoder) decode(f *btpb.RowFilter, at place) (node, error) {
	if d.filters++; d.filters > hardMaxFilters {
		return nil, fmt.Errorf("the filter has more than %d members", hardMaxFilters)
	}
	if at.depth > d.maxDepth {
		return nil, fmt.Errorf("the filter is nested more than %d levels deep", d.maxDepth)
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

// onlyTrue rejects a filter that is set to false, which has no meaning.
func onlyTrue(n node, value bool, at place) (node, error) {
	if !value {
		return nil, at.errorf("must be true")
	}
	return n, nil
}

// pass implements pass_all_filter, and a filter without a member.
type pass struct{ leaf }

func (pass) link(_ *linker, next stage) stage { return next }

// block implements block_all_filter, and the missing branch of a condition.
type block struct{ leaf }

func (block) rows() RowSet              { return RowSet{} }
func (block) link(*linker, stage) stage { return blocked{} }

type blocked struct{}

func (blocked) push(*run, *Cell) hint { return hint{to: nextRow} }
