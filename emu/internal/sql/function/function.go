package function

import (
	"strings"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// Function is a function or an operator.
type Function struct {
	Name string // as in error texts
	// Aggregate functions have accumulators instead of Eval.
	Aggregate bool
	// IsOperator functions are found by Operator and have other error texts.
	IsOperator bool
	// Volatile functions return other results later, such as CURRENT_TIMESTAMP.
	Volatile bool
	// Random functions are volatile, and return other results in each row.
	Random bool
	// Unstable aggregates depend on the order of rows, such as ARRAY_AGG.
	Unstable bool
	// Window functions need OVER.
	Window bool
	// Over has the rules of OVER; nil if the function does not support OVER.
	Over *Over

	signatures []signature
	// refusesNull: a literal NULL as one of two arguments is an error.
	refusesNull bool
	// requires is a condition on T1, as the beginning of its error text.
	requires string
	// missing functions are documented, and not implemented here.
	missing bool
}

// Context has the state of a statement that functions read.
type Context struct {
	NowMicros      int64          // of CURRENT_TIMESTAMP, the same in all rows
	Zone           *time.Location // the default time zone; nil is UTC
	ViewParameters map[string]string
	Cluster        string // id of the cluster that runs the statement
	// Random returns numbers from 0 to 1 for RAND and GENERATE_UUID.
	Random func() float64
	// Hold counts memory of the statement, and fails beyond its limit; nil without one.
	Hold func(bytes int) error
	// Err returns an error once the statement has ended; nil if it never does.
	Err func() error
}

func (c *Context) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// Origin describes an argument beyond its type, which decides its coercions.
type Origin uint8

// These are the origins.
const (
	Expression  Origin = iota // a column, or computed
	Literal                   // a literal, or an array of literals
	Parameter                 // a query parameter
	NullLiteral               // NULL without a type; its Type is the zero Type
	EmptyArray                // [] without a type; its Type is the zero Type
)

// Arg is an argument of a call.
type Arg struct {
	Type   value.Type
	Origin Origin
	// Value is the value of a Literal, if the caller knows it: of Type, or NULL.
	Value value.Value
	// Part is a word such as MONTH or WEEK(MONDAY), in any letter case, of an argument without a
	// type. An INTERVAL n MONTH is two arguments: n and the part.
	Part string
	// Lambda resolves the body of a lambda, an argument without a type.
	Lambda *Lambda
	// Fields are the fields of a STRUCT that the statement constructs. They coerce one by one.
	Fields []Arg
}

// field returns a field of a STRUCT as an argument.
func (a *Arg) field(i int) Arg {
	if a.Fields != nil {
		return a.Fields[i]
	}
	return Arg{Type: a.Type.Fields()[i].Type, Origin: a.Origin}
}

// Lambda is the lambda of an argument.
type Lambda struct {
	Params int
	// Resolve returns the type of the body for the types of the parameters.
	Resolve func(params []value.Type) (value.Type, error)
}

// Eval evaluates a call. It does not keep args, but the result may share their memory.
type Eval func(ctx *Context, args []value.Value) (value.Value, error)

// Call is a call with known types.
type Call struct {
	Function *Function
	// Params are the types that the arguments must have: the caller casts others. A part or a
	// lambda has the zero Type.
	Params []value.Type
	Result value.Type
	// Eval evaluates the call for arguments of the types of Params, with NULL for a part and a
	// Callable for a lambda. It is nil for aggregate and window functions. Calls at the same time are safe.
	Eval Eval
	// Lazy is not nil if some arguments may not be evaluated, as in IF. It has the same result as
	// Eval; argument evaluates the argument of an index.
	Lazy func(ctx *Context, argument func(i int) (value.Value, error)) (value.Value, error)

	accumulator func() Accumulator
	window      WindowFunc
	args        []Arg
}

// Safe returns the call with the prefix SAFE: an error of evaluation becomes NULL. The prefix has
// no effect on functions that are not aggregates but need OVER.
func (c Call) Safe() Call {
	if eval := c.Eval; eval != nil {
		c.Eval = func(ctx *Context, args []value.Value) (value.Value, error) { return safe(eval(ctx, args)) }
	}
	if lazy := c.Lazy; lazy != nil {
		c.Lazy = func(ctx *Context, argument func(i int) (value.Value, error)) (value.Value, error) {
			return safe(lazy(ctx, argument))
		}
	}
	if start := c.accumulator; start != nil {
		c.accumulator = func() Accumulator { return &safeAccumulator{inner: start()} }
	}
	return c
}

// part returns the word given as argument i, in upper case and without spaces, or "" if the call
// does not have the argument.
func (c *Call) part(i int) string {
	if i >= len(c.args) {
		return ""
	}
	return strings.ToUpper(strings.ReplaceAll(c.args[i].Part, " ", ""))
}

// tables are the functions by subject.
var tables = sync.OnceValue(func() (all struct{ functions, operators map[string]*Function }) {
	all.functions, all.operators = map[string]*Function{}, map[string]*Function{}
	for _, table := range [][]*Function{
		operatorTable(), subscriptTable(), conditionTable(), mathTable(), trigonometryTable(), stringTable(), textTable(), codecTable(),
		regexpTable(), dateTable(), timestampTable(), arrayTable(), mapTable(), jsonTable(), hashTable(),
		aggregateTable(), statisticsTable(), sketchTable(), windowTable(),
	} {
		for _, f := range table {
			if f.IsOperator {
				all.operators[f.Name] = f
			} else {
				all.functions[f.Name] = f
			}
		}
	}
	for alias, name := range aliases {
		all.functions[alias] = all.functions[name]
	}
	return all
})

// aliases are further names of functions.
var aliases = map[string]string{
	"SUBSTRING": "SUBSTR", "CHARACTER_LENGTH": "CHAR_LENGTH", "OCTET_LENGTH": "BYTE_LENGTH", "CEILING": "CEIL",
	"POWER": "POW", "REGEXP_SUBSTR": "REGEXP_EXTRACT", "STDDEV": "STDDEV_SAMP", "VARIANCE": "VAR_SAMP",
	"TIMESTAMP_FROM_UNIX_SECONDS": "TIMESTAMP_SECONDS", "TIMESTAMP_FROM_UNIX_MILLIS": "TIMESTAMP_MILLIS",
	"TIMESTAMP_FROM_UNIX_MICROS": "TIMESTAMP_MICROS",
}

// Lookup returns a function by its name in any letter case.
func Lookup(name string) (f *Function, ok bool) {
	name = strings.ToUpper(name)
	if strings.HasPrefix(name, "ST_") || name == "S2_CELLIDFROMPOINT" {
		return &Function{Name: name, missing: true}, true // of geography
	}
	f, ok = tables().functions[name]
	return f, ok
}

// Operator returns an operator: + - * / || & | ^ ~ << >> = != < <= > >= LIKE, IN, "IN UNNEST",
// BETWEEN, AND, OR, NOT, "IS NULL", "IS TRUE", "IS FALSE", "IS DISTINCT FROM", CASE of conditions
// and values with the ELSE last, "CASE VALUE" with its operand first. Subscripts have their brackets
// in the name: those of a[i] alone, and with OFFSET, ORDINAL, SAFE_OFFSET, SAFE_ORDINAL or SAFE_KEY
// in them. The others are NOT of these.
func Operator(name string) (f *Function, ok bool) {
	f, ok = tables().operators[name]
	return f, ok
}

// All calls yield for each function and operator until it returns false.
func All(yield func(*Function) bool) {
	all := tables()
	for _, set := range []map[string]*Function{all.operators, all.functions} {
		for _, f := range set {
			if !yield(f) {
				return
			}
		}
	}
}

// Accumulator computes an aggregate function over the rows of a group. It is not safe for
// concurrent use, and keeps no memory of arguments except for values that it clones.
type Accumulator interface {
	// Add adds a row.
	Add(ctx *Context, args []value.Value) error
	// Result returns the result so far.
	Result(ctx *Context) (value.Value, error)
}

func safe(v value.Value, err error) (value.Value, error) {
	if isEvaluation(err) {
		return value.Null, nil
	}
	return v, err
}
