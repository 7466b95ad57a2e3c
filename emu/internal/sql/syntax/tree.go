package syntax

// Node is a piece of a statement.
type Node interface {
	// Pos returns the byte offset at which the piece begins. Errors of GoogleSQL about a piece
	// name this position.
	Pos() int
}

// Name is an identifier in the letter case of the statement, without its backticks.
type Name struct {
	At   int
	Text string
}

// Statement is a query with the hints before it.
type Statement struct {
	Hints []Hint
	Query *Query
}

// Hint is a part of @{scope.name = value, ...}.
type Hint struct {
	At    int
	Name  string // with its scope: "scope.name"
	Value Expr
}

// Query is a query expression, with the pipe operators after it.
type Query struct {
	At      int
	With    []*CommonTable
	Body    Body
	OrderBy []*OrderItem
	Limit   *Limit // nil without one
	Pipes   []Pipe
}

// CommonTable is an entry of a WITH clause.
type CommonTable struct {
	Name  Name
	Query *Query
}

// Body is the beginning of a query: a *Select, a *Nested query, or a *From clause.
type Body interface {
	Node
	body()
}

// Nested is a query in parentheses.
type Nested struct {
	At    int
	Query *Query
}

// From is a FROM clause that begins a query in pipe syntax.
type From struct {
	At    int
	Table Table
}

// Select is a SELECT without its ORDER BY and LIMIT. Clauses that the statement does not have are
// nil.
type Select struct {
	At       int
	Hints    []Hint
	Distinct bool
	Items    []*Item
	From     Table
	Where    Expr
	GroupBy  *GroupBy
	Having   Expr
	Qualify  Expr
	Windows  []*NamedWindow
}

// Item is an expression with an alias: of a SELECT list, a GROUP BY, a STRUCT, or a pipe operator.
type Item struct {
	Expr  Expr       // a *Star only in the list of a SELECT
	Alias *Name      // nil without one
	Order *Direction // only in AGGREGATE and its GROUP BY: the order of the output, or nil
}

// GroupBy is a GROUP BY clause.
type GroupBy struct {
	At      int
	Hints   []Hint
	All     bool // GROUP BY ALL, without Items
	Ordered bool // GROUP AND ORDER BY, only in pipe syntax
	Items   []*Item
}

// Direction is the order of a column.
type Direction struct {
	At    int
	Desc  bool
	Nulls Nulls
}

// Nulls is the place of NULL in an order.
type Nulls uint8

// Places of NULL.
const (
	NullsDefault Nulls = iota // first ascending, last descending
	NullsFirst
	NullsLast
)

// OrderItem is an expression of an ORDER BY clause.
type OrderItem struct {
	Expr Expr
	Direction
}

// Limit is a LIMIT clause. Its expressions should be constant, which the analysis decides.
type Limit struct {
	At     int
	Count  Expr
	Offset Expr // nil without OFFSET
}

// NamedWindow is an entry of a WINDOW clause.
type NamedWindow struct {
	Name   Name
	Window *Window
}

// Table is an operand of a FROM clause: a *TableName, *TableQuery, *Unpack, *Unnest or *Join.
type Table interface {
	Node
	table()
}

// TableName is a table, a view, an entry of WITH, or an array in the row of a table to the left:
// name resolution decides. Names with dashes are one Name.
type TableName struct {
	Path   []Name
	Args   []*Argument // of t(with_history => TRUE)
	Call   bool        // there are parentheses, maybe without arguments
	Hints  []Hint
	Alias  *Name
	Offset *Offset // of an array; nil without WITH OFFSET
}

// Argument is an argument of a table, or one with a name of a call. The Text of the Name is empty
// if the argument of a table has a position alone.
type Argument struct {
	Name  Name
	Value Expr
}

// TableQuery is a query in parentheses as a table.
type TableQuery struct {
	At    int
	Query *Query
	Alias *Name
}

// Unpack is UNPACK((query)), or UNPACK(query).
type Unpack struct {
	At    int
	Query *Query
	Alias *Name
}

// Unnest is UNNEST(array).
type Unnest struct {
	At     int
	Expr   Expr
	Hints  []Hint
	Alias  *Name
	Offset *Offset // nil without WITH OFFSET
}

// Offset is WITH OFFSET.
type Offset struct {
	At    int
	Alias *Name
}

// Join combines each row of Left with each row of Right, written with a comma or CROSS JOIN. Any
// other join is Unsupported.
type Join struct {
	At    int // of the comma or CROSS
	Comma bool
	Left  Table
	Right Table
}

// Expr is an expression.
type Expr interface {
	Node
	expr()
}

// LiteralKind is the type of a literal.
type LiteralKind uint8

// Types of literals.
const (
	Null LiteralKind = iota
	Bool
	Int
	Float
	String
	Bytes
	Date
	Timestamp
)

// Literal is a literal. Text has the value: TRUE, FALSE or NULL in capitals, a number as written
// (0x1F, .5e3), and the contents of the others without quotes and escapes.
type Literal struct {
	At   int
	Kind LiteralKind
	Text string
}

// Param is a parameter @name.
type Param struct {
	At   int
	Name string
}

// Path is a name, or names joined by dots. How many of them name a column, and which are fields
// in it, depends on the scope.
type Path struct {
	Names []Name
}

// Field is a field of an expression other than a Path.
type Field struct {
	Expr Expr
	Name Name
}

// Index is a subscript: Expr[Arg], or Expr[OFFSET(Arg)].
type Index struct {
	Expr Expr
	At   int    // of the bracket
	Mode string // "", or in capitals OFFSET, SAFE_OFFSET, ORDINAL, SAFE_ORDINAL, KEY or SAFE_KEY
	Arg  Expr
}

// Star is *, or of.*, with its EXCEPT and REPLACE.
type Star struct {
	At      int
	Of      Expr // nil for * alone
	Except  []Name
	Replace []*Item
}

// Unary is an operator before its operand. Op is "-", "+", "~" or "NOT".
type Unary struct {
	At   int
	Op   string
	Expr Expr
}

// Binary is an operator between two operands. Op is "*", "/", "||", "+", "-", "<<", ">>", "&",
// "^", "|", "=", "!=", "<", "<=", ">", ">=", "LIKE", "NOT LIKE", "IS DISTINCT FROM" or
// "IS NOT DISTINCT FROM"; <> is "!=".
type Binary struct {
	Op    string
	At    int // of the operator
	Left  Expr
	Right Expr
}

// Logical is a conjunction or disjunction of two or more operands. Op is "AND" or "OR".
type Logical struct {
	Op   string
	Args []Expr
}

// In is Expr IN (List), or Expr IN UNNEST(Array). With Not, it is NOT IN.
type In struct {
	Expr  Expr
	At    int // of IN or NOT
	Not   bool
	List  []Expr
	Array Expr
}

// Between is Expr BETWEEN Low AND High. With Not, it is NOT BETWEEN.
type Between struct {
	Expr      Expr
	At        int // of BETWEEN or NOT
	Not       bool
	Low, High Expr
}

// Is is Expr IS What, or IS NOT with Not. What is "NULL", "TRUE", "FALSE" or "UNKNOWN".
type Is struct {
	Expr Expr
	At   int // of IS
	Not  bool
	What string
}

// Case is CASE.
type Case struct {
	At      int
	Operand Expr // nil if each WHEN has a condition
	Whens   []When
	Else    Expr // nil without ELSE
}

// When is WHEN Cond THEN Result.
type When struct {
	Cond, Result Expr
}

// Cast is CAST or SAFE_CAST.
type Cast struct {
	At       int
	Safe     bool
	Expr     Expr
	Type     *Type
	Format   Expr // nil without FORMAT
	FormatAt int  // of FORMAT
	Zone     Expr // nil without AT TIME ZONE after FORMAT
}

// Extract is EXTRACT(Part FROM Expr).
type Extract struct {
	At   int
	Part Expr // a *Path, or a *Call such as WEEK(MONDAY)
	Expr Expr
	Zone Expr // nil without AT TIME ZONE
}

// Interval is INTERVAL Value Part.
type Interval struct {
	At    int
	Value Expr
	Part  Name
	To    *Name // nil without TO
}

// Call is a call of a function.
type Call struct {
	Path     []Name // of the function, without SAFE
	SafeAt   int    // of SAFE, if Safe is set
	Safe     bool   // SAFE.f(...): NULL instead of an error
	Args     []Expr
	Star     bool // f(*), without Args
	StarAt   int
	Distinct bool
	Ignore   NullTreatment
	Having   *HavingBound
	OrderBy  []*OrderItem
	OrderAt  int     // of ORDER
	Limit    Expr    // nil without LIMIT
	LimitAt  int     // of LIMIT
	Over     *Window // nil without OVER
}

// NullTreatment is a modifier of aggregate and navigation functions.
type NullTreatment uint8

// Treatments of NULL.
const (
	NullsUnspecified NullTreatment = iota
	IgnoreNulls
	RespectNulls
)

// HavingBound is HAVING MAX Expr, or HAVING MIN Expr.
type HavingBound struct {
	At   int
	Max  bool
	Expr Expr
}

// Window is the part after OVER, or the definition of a window.
type Window struct {
	At          int
	Name        *Name // the window that it extends, or nil
	PartitionBy []Expr
	OrderBy     []*OrderItem
	OrderAt     int // of ORDER
	Frame       *Frame
}

// Frame is a window frame.
type Frame struct {
	At    int
	Range bool // RANGE instead of ROWS
	Start Bound
	End   *Bound // nil without BETWEEN
}

// BoundKind is the kind of a bound of a frame.
type BoundKind uint8

// Kinds of bounds.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// Bound is a bound of a frame.
type Bound struct {
	At   int
	Kind BoundKind
	Expr Expr // of Preceding and Following
}

// NamedArg is an argument name => Value of a call.
type NamedArg struct {
	Argument
}

// Lambda is params -> Body.
type Lambda struct {
	At     int
	Params []Name
	Body   Expr
}

// Array is [a, b], ARRAY[a, b], or ARRAY<Elem>[a, b].
type Array struct {
	At    int
	Elem  *Type // nil without one
	Items []Expr
}

// Struct is STRUCT(a AS x), STRUCT<x INT64>(a), or (a, b).
type Struct struct {
	At    int
	Tuple bool  // (a, b)
	Type  *Type // nil without one
	Items []*Item
}

// TypeKind is the kind of a Type.
type TypeKind uint8

// Kinds of types.
const (
	SimpleType TypeKind = iota
	ArrayType
	StructType
	MapType
)

// Type is the name of a type.
type Type struct {
	At     int
	Kind   TypeKind
	Path   []Name      // of a simple type: INT64, or the path of a message
	Fields []TypeField // of a STRUCT; an ARRAY has one, and a MAP has the key and the value
}

// TypeField is a part of a Type.
type TypeField struct {
	Name *Name // nil without one
	Type *Type
}

// Pipe is an operator of pipe syntax.
type Pipe interface {
	Node
	pipe()
}

// The pipe operators. At is the position of the keyword.
type (
	// PipeSelect is SELECT.
	PipeSelect struct {
		At       int
		Distinct bool
		Items    []*Item
		Windows  []*NamedWindow
	}
	// PipeExtend is EXTEND, or WINDOW, whose items must have a call with OVER.
	PipeExtend struct {
		At      int
		Window  bool
		Items   []*Item
		Windows []*NamedWindow
	}
	// PipeSet is SET name = expression: each Argument has the name of a column.
	PipeSet struct {
		At    int
		Items []*Argument
	}
	// PipeDrop is DROP.
	PipeDrop struct {
		At    int
		Names []Name
	}
	// PipeRename is RENAME.
	PipeRename struct {
		At    int
		Items []Renaming
	}
	// PipeAs is AS.
	PipeAs struct {
		At   int
		Name Name
	}
	// PipeWhere is WHERE.
	PipeWhere struct {
		At   int
		Cond Expr
	}
	// PipeLimit is LIMIT.
	PipeLimit struct {
		Limit
	}
	// PipeAggregate is AGGREGATE.
	PipeAggregate struct {
		At      int
		Items   []*Item
		GroupBy *GroupBy // nil without one
	}
	// PipeOrderBy is ORDER BY.
	PipeOrderBy struct {
		At    int
		Items []*OrderItem
	}
	// PipeDistinct is DISTINCT.
	PipeDistinct struct {
		At int
	}
	// PipeJoin is CROSS JOIN.
	PipeJoin struct {
		At    int
		Table Table
	}
)

// Renaming is Old AS New.
type Renaming struct {
	Old, New Name
}
