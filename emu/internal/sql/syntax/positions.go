package syntax

// Pos returns the beginning of the name.
func (n Name) Pos() int { return n.At }

// Pos returns the beginning of the hint's name.
func (n Hint) Pos() int { return n.At }

// Pos returns the beginning of the query.
func (q *Query) Pos() int { return q.At }

// Pos returns the beginning of the parentheses.
func (n *Nested) Pos() int { return n.At }

// Pos returns the position of FROM.
func (n *From) Pos() int { return n.At }

// Pos returns the position of SELECT.
func (n *Select) Pos() int { return n.At }

// Pos returns the beginning of the expression.
func (n *Item) Pos() int { return n.Expr.Pos() }

// Pos returns the beginning of the expression.
func (n *OrderItem) Pos() int { return n.Expr.Pos() }

// Pos returns the position of GROUP.
func (n *GroupBy) Pos() int { return n.At }

// Pos returns the position of LIMIT.
func (n *Limit) Pos() int { return n.At }

// Pos returns the beginning of the definition.
func (n *Window) Pos() int { return n.At }

// Pos returns the beginning of the type.
func (n *Type) Pos() int { return n.At }

// Pos returns the beginning of the name.
func (n *Argument) Pos() int { return n.Name.At }

// Pos returns the beginning of the path.
func (n *TableName) Pos() int { return n.Path[0].At }

// Pos returns the beginning of the parentheses.
func (n *TableQuery) Pos() int { return n.At }

// Pos returns the position of UNPACK.
func (n *Unpack) Pos() int { return n.At }

// Pos returns the position of UNNEST.
func (n *Unnest) Pos() int { return n.At }

// Pos returns the beginning of the left operand.
func (n *Join) Pos() int { return n.Left.Pos() }

// Pos returns the beginning of the literal.
func (n *Literal) Pos() int { return n.At }

// Pos returns the position of @.
func (n *Param) Pos() int { return n.At }

// Pos returns the beginning of the first name.
func (n *Path) Pos() int { return n.Names[0].At }

// Pos returns the beginning of the operand.
func (n *Field) Pos() int { return n.Expr.Pos() }

// Pos returns the beginning of the operand.
func (n *Index) Pos() int { return n.Expr.Pos() }

// Pos returns the beginning of the qualifier or, if * has no qualifier, of *.
func (n *Star) Pos() int { return n.At }

// Pos returns the position of the operator.
func (n *Unary) Pos() int { return n.At }

// Pos returns the beginning of the left operand.
func (n *Binary) Pos() int { return n.Left.Pos() }

// Pos returns the beginning of the first operand.
func (n *Logical) Pos() int { return n.Args[0].Pos() }

// Pos returns the beginning of the left operand.
func (n *In) Pos() int { return n.Expr.Pos() }

// Pos returns the beginning of the left operand.
func (n *Between) Pos() int { return n.Expr.Pos() }

// Pos returns the beginning of the operand.
func (n *Is) Pos() int { return n.Expr.Pos() }

// Pos returns the position of CASE.
func (n *Case) Pos() int { return n.At }

// Pos returns the beginning of the cast.
func (n *Cast) Pos() int { return n.At }

// Pos returns the position of EXTRACT.
func (n *Extract) Pos() int { return n.At }

// Pos returns the position of INTERVAL.
func (n *Interval) Pos() int { return n.At }

// Pos returns the beginning of the function's name, or of SAFE before it.
func (c *Call) Pos() int {
	if c.Safe {
		return c.SafeAt
	}
	return c.Path[0].At
}

// Pos returns the beginning of the parameters.
func (n *Lambda) Pos() int { return n.At }

// Pos returns the beginning of the array.
func (n *Array) Pos() int { return n.At }

// Pos returns the beginning of the struct.
func (n *Struct) Pos() int { return n.At }

// Pos returns the position of SELECT.
func (n *PipeSelect) Pos() int { return n.At }

// Pos returns the position of EXTEND.
func (n *PipeExtend) Pos() int { return n.At }

// Pos returns the position of SET.
func (n *PipeSet) Pos() int { return n.At }

// Pos returns the position of DROP.
func (n *PipeDrop) Pos() int { return n.At }

// Pos returns the position of RENAME.
func (n *PipeRename) Pos() int { return n.At }

// Pos returns the position of AS.
func (n *PipeAs) Pos() int { return n.At }

// Pos returns the position of WHERE.
func (n *PipeWhere) Pos() int { return n.At }

// Pos returns the position of AGGREGATE.
func (n *PipeAggregate) Pos() int { return n.At }

// Pos returns the position of ORDER.
func (n *PipeOrderBy) Pos() int { return n.At }

// Pos returns the position of DISTINCT.
func (n *PipeDistinct) Pos() int { return n.At }

// Pos returns the position of CROSS.
func (n *PipeJoin) Pos() int { return n.At }

func (*Nested) body() {}
func (*From) body()   {}
func (*Select) body() {}

func (*TableName) table()  {}
func (*TableQuery) table() {}
func (*Unpack) table()     {}
func (*Unnest) table()     {}
func (*Join) table()       {}

func (*Literal) expr()  {}
func (*Param) expr()    {}
func (*Path) expr()     {}
func (*Field) expr()    {}
func (*Index) expr()    {}
func (*Star) expr()     {}
func (*Unary) expr()    {}
func (*Binary) expr()   {}
func (*Logical) expr()  {}
func (*In) expr()       {}
func (*Between) expr()  {}
func (*Is) expr()       {}
func (*Case) expr()     {}
func (*Cast) expr()     {}
func (*Extract) expr()  {}
func (*Interval) expr() {}
func (*Call) expr()     {}
func (*NamedArg) expr() {}
func (*Lambda) expr()   {}
func (*Array) expr()    {}
func (*Struct) expr()   {}

func (*PipeSelect) pipe()    {}
func (*PipeExtend) pipe()    {}
func (*PipeSet) pipe()       {}
func (*PipeDrop) pipe()      {}
func (*PipeRename) pipe()    {}
func (*PipeAs) pipe()        {}
func (*PipeWhere) pipe()     {}
func (*PipeLimit) pipe()     {}
func (*PipeAggregate) pipe() {}
func (*PipeOrderBy) pipe()   {}
func (*PipeDistinct) pipe()  {}
func (*PipeJoin) pipe()      {}
