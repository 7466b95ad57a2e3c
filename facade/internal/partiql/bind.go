package partiql

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/expr"
)

// Column is an attribute that a SELECT names: the name of the leaf and its path.
type Column struct {
	Name string
	Path expr.Path
}

// Bound is a statement whose parameters are replaced by values. It has passed all checks
// that need no table.
type Bound struct {
	Kind         Kind
	Table, Index string
	Columns      []Column  // columns of a SELECT; nil means all
	Item         attr.Item // item of an INSERT
	Update       *expr.Update
	Returning    string // such as "ALL OLD" or "MODIFIED NEW"; "" without a RETURNING clause
	// ExistsAlone means that the argument of EXISTS is not a SELECT.
	ExistsAlone bool

	where *expr.Condition
	root  *node
	order []orderTerm
}

// binder builds a Bound, with DynamoDB's checks in its order.
type binder struct {
	parameters []attr.Value
	operators  int
}

// Bind binds a statement to its parameters. Errors are of type *Error, or an attr.Error
// with the position appended.
func (st *Statement) Bind(parameters []attr.Value) (*Bound, error) {
	b := binder{parameters: parameters}
	out := &Bound{Kind: st.Kind, root: st.where, order: st.order, Returning: st.returning}
	if err := st.checkShape(); err != nil {
		return nil, err
	}
	if st.Kind == Exists && st.source == nil {
		out.ExistsAlone = true
		return out, nil
	}
	if err := out.sourceOf(st.source); err != nil {
		return nil, err
	}
	if st.where != nil {
		if err := b.values(st.where, true); err != nil {
			return nil, err
		}
	}
	for _, c := range st.changes {
		if c.value != nil {
			if err := b.values(c.value, false); err != nil {
				return nil, err
			}
		}
	}
	for _, column := range st.columns {
		c, err := columnOf(column)
		if err != nil {
			return nil, err
		}
		out.Columns = append(out.Columns, c)
	}
	if st.where != nil {
		test, err := b.test(st.where)
		if err != nil {
			return nil, err
		}
		if b.operators > expr.MaxOperators {
			return nil, refuse(msgOperators, b.operators)
		}
		if out.where, err = expr.ConditionOf(test); err != nil {
			return nil, err
		}
	}
	if err := b.update(st, out); err != nil {
		return nil, err
	}
	if st.Kind == Insert {
		v, err := b.literalAt(st.inserted, nil, 0) // the levels of attributes start at 0
		if err != nil {
			return nil, err
		}
		if v.Type != attr.M {
			return nil, refuse(msgInsertMap, v.Type)
		}
		out.Item = v.Map
	}
	if st.parameters > len(parameters) {
		return nil, refuse(msgParameters)
	}
	if st.Kind != Select && st.Kind != Exists {
		return out, nil
	}
	return out, nil
}

// checkShape rejects expressions without a statement, aliases, joins and unsupported clauses.
func (st *Statement) checkShape() error {
	switch {
	case st.Kind == expression:
		return refuse(msgExpression, st.root.kindName())
	case st.Kind == Exists && st.source == nil:
		return nil
	case st.alias:
		return refuse(msgAliasing)
	case st.joined:
		return refuse(msgJoin)
	case st.clause != "":
		return refuse(msgClause, st.clause, st.clausePos)
	case st.Kind == Delete && st.returning != "" && st.returning != "ALL OLD":
		return refuse(msgReturning, st.returning)
	}
	return nil
}

// kindName returns the messages' word for an expression.
func (n *node) kindName() string {
	switch n.form {
	case formName:
		return "Id"
	case formPath:
		return "Path"
	case formWord:
		if n.text == "missing" {
			return "Missing"
		}
	case formList:
		return "List"
	case formMap:
		return "Struct"
	case formBag:
		return "Bag"
	case formParam:
		return "Parameter"
	case formIs:
		return "IsType"
	case formCase:
		return n.text
	case formCall, formOperator:
		return "NAry" // assumed
	case formString, formNumber, formIon, formSelect, formOther:
	}
	return "Lit"
}

func (b *Bound) sourceOf(source *node) error {
	names := []*node{source}
	if source.form == formPath {
		names = source.args
	}
	for _, n := range names {
		switch {
		case n.form != formName || n.indexed:
			return refuse(msgComponent, n.pos)
		case n.text == "":
			return refuse(msgEmptyName)
		}
	}
	switch {
	case len(names) > 2:
		return refuse(msgLongSource)
	case len(names) == 2 && b.Kind == Insert:
		return refuse(msgInsertIndex, names[0].pos)
	case len(names) == 2:
		b.Index = names[1].text
	}
	b.Table = names[0].text
	return nil
}

// pathOf returns the document path of a node, or an error if the node is not a path.
func pathOf(n *node) (expr.Path, error) {
	steps := []*node{n}
	if n.form == formPath {
		steps = n.args
	}
	var path expr.Path
	for i, step := range steps {
		switch {
		case step.form == formName && !step.indexed && (i == 0 || step.text != "*" || step.quoted):
			if step.text == "" {
				return nil, refuse(msgEmptyName)
			}
			path = append(path, expr.Step{Name: step.text})
		case step.form == formNumber && step.indexed:
			index, err := strconv.Atoi(step.text)
			if err != nil || index < 0 {
				return nil, refuse(msgComponent, step.pos)
			}
			path = append(path, expr.Step{Index: index, IsIndex: true})
		default:
			return nil, refuse(msgComponent, step.pos)
		}
	}
	return path, nil
}

// columnOf returns a column of a SELECT. The leaf's name includes the index of a list step.
func columnOf(n *node) (Column, error) {
	if n.form != formName && n.form != formPath {
		return Column{}, refuse(msgComponent, n.pos)
	}
	path, err := pathOf(n)
	if err != nil {
		return Column{}, err
	}
	last := len(path) - 1
	for path[last].IsIndex {
		last--
	}
	name := path[last].Name
	for _, step := range path[last+1:] {
		name += "[" + strconv.Itoa(step.Index) + "]"
	}
	return Column{Name: name, Path: path}, nil
}

// Project returns the part of an item that the columns select.
func Project(columns []Column, item attr.Item) attr.Item {
	out := make(attr.Item, len(columns))
	for _, c := range columns {
		if v := c.Path.Lookup(item); !v.IsAbsent() {
			out[c.Name] = v
		}
	}
	return out
}

// functions are the functions of WHERE (false) and SET (true).
var functions = map[string]bool{
	"attribute_exists": false, "attribute_not_exists": false, "attribute_type": false, "begins_with": false, "contains": false, "size": false,
	"list_append": true, "set_add": true, "set_delete": true,
}

// values rejects terms that DynamoDB does not support, in textual order, and reads the
// literals.
func (b *binder) values(n *node, where bool) error {
	switch n.form {
	case formString, formNumber, formMap, formBag, formParam, formList:
		_, err := b.literal(n)
		return err
	case formWord:
		if n.text == "missing" {
			return refuse(msgMissing)
		}
		_, err := b.literal(n)
		return err
	case formSelect, formOther:
		return refuse(msgToken, "SELECT", n.pos)
	case formCase:
		return refuse(msgExpression, n.text)
	case formCall:
		inSet, known := functions[n.text]
		if !known || where == inSet {
			return refuse(msgFunction, n.text, n.pos)
		}
	case formOperator:
		if where {
			switch n.text {
			case "and", "or", "not", "=", "<>", "<", "<=", ">", ">=", "between", "in":
			default:
				return refuse(msgOperatorIn, strings.ToUpper(n.text))
			}
		}
	case formName, formPath:
		_, err := pathOf(n)
		return err
	case formIon:
		return refuse(msgIon, n.text, n.pos)
	case formIs:
	}
	for _, arg := range n.args {
		if n.form == formOperator && n.text == "in" && arg.form == formList {
			for _, candidate := range arg.args {
				if err := b.values(candidate, where); err != nil {
					return err
				}
			}
			continue
		}
		if err := b.values(arg, where); err != nil {
			return err
		}
	}
	return nil
}

// literal returns the value of a literal or parameter, and stores it in the node.
func (b *binder) literal(n *node) (attr.Value, error) {
	v, err := b.literalAt(n, nil, 1)
	n.value, n.known = v, err == nil
	return v, err
}

// place is the position of a value inside another: root, root.name, root[0]. It becomes text
// only for messages.
type place struct {
	in    *place // nil: the root
	name  string
	index int // if name is ""
}

func (p *place) String() string {
	var steps []string
	for ; p != nil; p = p.in {
		if p.name != "" {
			steps = append(steps, "."+p.name)
		} else {
			steps = append(steps, "["+strconv.Itoa(p.index)+"]")
		}
	}
	slices.Reverse(steps)
	return "root" + strings.Join(steps, "")
}

// literalAt returns the value of a literal or parameter that is inside depth others, at the given
// place. It does not store the value in the node.
func (b *binder) literalAt(n *node, at *place, depth int) (attr.Value, error) {
	if depth > attr.MaxDepth {
		return attr.Value{}, refuse(msgNested, at)
	}
	switch n.form {
	case formString:
		return attr.String(n.text), nil
	case formNumber:
		v, err := attr.Number(n.text)
		var e *attr.Error
		if errors.As(err, &e) {
			text, _ := e.AWSMessage()
			return v, refuse("%s under %s", text, at)
		}
		return v, err
	case formWord:
		switch n.text {
		case "true", "false":
			return attr.Boolean(n.text == "true"), nil
		case "null":
			return attr.Null(), nil
		}
	case formParam:
		if n.index >= len(b.parameters) {
			return attr.Value{}, nil // refused later
		}
		v := b.parameters[n.index]
		if depth > 1 && depth-1+v.Depth() > attr.MaxDepth {
			return attr.Value{}, refuse(msgNested, at)
		}
		return v, nil
	case formList:
		list := make([]attr.Value, len(n.args))
		step := &place{in: at}
		for i, arg := range n.args {
			step.index = i
			var err error
			if list[i], err = b.literalAt(arg, step, depth+1); err != nil {
				return attr.Value{}, err
			}
		}
		return attr.ListOf(list...), nil
	case formMap:
		m := make(map[string]attr.Value, len(n.args)/2)
		step := &place{in: at}
		within := step
		if depth == 0 {
			within = nil // the attribute of an item is a root
		}
		for i := 0; i < len(n.args); i += 2 {
			name := n.args[i]
			if name.form != formString {
				return attr.Value{}, refuse(msgUnderKey, name.kindName(), name.pos)
			}
			if name.text == "" {
				return attr.Value{}, refuse("Empty attribute name")
			}
			step.name = name.text
			v, err := b.literalAt(n.args[i+1], within, depth+1)
			if err != nil {
				return attr.Value{}, err
			}
			m[name.text] = v
		}
		return attr.MapOf(m), nil
	case formBag:
		return b.bag(n, at)
	case formCall:
		return attr.Value{}, refuse(msgUnderKey, n.text, n.pos)
	case formIon:
		return attr.Value{}, refuse(msgIon, n.text, n.pos)
	case formName, formPath, formOperator, formIs, formCase, formSelect, formOther:
	}
	return attr.Value{}, refuse(msgUnderKey, n.kindName(), n.pos)
}

// bag returns the set that a bag of strings or numbers stands for.
func (b *binder) bag(n *node, at *place) (attr.Value, error) {
	if len(n.args) == 0 {
		return attr.Value{}, refuse(msgEmptyBag)
	}
	members := make([]string, len(n.args))
	t := attr.SS
	step := &place{in: at}
	for i, arg := range n.args {
		if arg.form == formParam {
			return attr.Value{}, refuse(msgParameterIn, at, arg.pos)
		}
		if arg.form != formString && arg.form != formNumber || i > 0 && arg.form != n.args[0].form {
			return attr.Value{}, refuse(msgBagType, arg.pos)
		}
		step.index = i
		v, err := b.literalAt(arg, step, 1)
		if err != nil {
			return attr.Value{}, err
		}
		if members[i] = v.Str; v.Type == attr.N {
			t = attr.NS
		}
	}
	set := attr.SetOf(t, members...)
	if len(set.Set) != len(members) {
		return attr.Value{}, refuse(msgDuplicates, strings.Join(members, ", "))
	}
	return set, nil
}

// isTypes are DynamoDB's types after IS.
var isTypes = map[string]string{
	"NULL": "NULL", "BOOL": "BOOL", "BOOLEAN": "BOOL", "BLOB": "B", "STRING": "S", "NUMERIC": "N", "STRUCT": "M", "TUPLE": "M", "LIST": "L",
}

// test converts a WHERE to a condition.
func (b *binder) test(n *node) (expr.Test, error) {
	b.operators++
	switch n.form {
	case formIs:
		path, err := b.term(n.args[0])
		if err != nil {
			return expr.Test{}, err
		}
		var test expr.Test
		switch t, ok := isTypes[n.text]; {
		case n.text == "MISSING":
			test = expr.Holds(expr.CallTerm("attribute_not_exists", path))
		case !ok:
			return expr.Test{}, refuse(msgIsType, n.text)
		default:
			test = expr.Holds(expr.CallTerm("attribute_type", path, expr.ValueTerm(attr.String(t))))
		}
		return negated(test, n.negated), nil
	case formCall:
		call, err := b.call(n)
		if n.text == "size" && err == nil {
			err = refuse(msgNoBoolean)
		}
		return expr.Holds(call), err
	case formOperator:
	case formName, formPath, formString, formNumber, formWord, formIon, formList, formMap, formBag, formParam, formCase, formSelect, formOther:
		return expr.Test{}, refuse(msgNoBoolean)
	}
	switch n.text {
	case "and", "or", "not":
		b.operators += max(0, len(n.args)-2)
		parts := make([]expr.Test, len(n.args))
		for i, arg := range n.args {
			var err error
			if parts[i], err = b.test(arg); err != nil {
				return expr.Test{}, err
			}
		}
		switch n.text {
		case "and":
			return expr.All(parts...), nil
		case "or":
			return expr.Any(parts...), nil
		}
		return expr.Not(parts[0]), nil
	}
	args := n.args
	if n.text == "in" {
		list := args[1]
		if list.form != formList && list.form != formBag {
			return expr.Test{}, refuse(msgOperatorIn, "IN")
		}
		if len(list.args) > expr.MaxInOperands {
			return expr.Test{}, refuse(msgInOperands, len(list.args))
		}
		args = append([]*node{args[0]}, list.args...)
	}
	terms := make([]expr.Term, len(args))
	for i, arg := range args {
		var err error
		if terms[i], err = b.term(arg); err != nil {
			return expr.Test{}, err
		}
	}
	return negated(expr.Comparison(strings.ToUpper(n.text), terms...), n.negated), nil
}

func negated(test expr.Test, is bool) expr.Test {
	if is {
		return expr.Not(test)
	}
	return test
}

// term converts a value, path or call to an operand.
func (b *binder) term(n *node) (expr.Term, error) {
	switch n.form {
	case formName, formPath:
		path, err := pathOf(n)
		return expr.PathTerm(path), err
	case formCall:
		b.operators++
		return b.call(n)
	case formOperator:
		return expr.Term{}, refuse(msgOperatorIn, strings.ToUpper(n.text))
	case formIs, formCase, formSelect, formOther:
		return expr.Term{}, refuse(msgExpression, n.kindName())
	case formString, formNumber, formWord, formIon, formList, formMap, formBag, formParam:
	}
	if n.form == formParam && n.index >= len(b.parameters) {
		return expr.PathTerm(expr.AttributePath("?")), nil // refused if all else is correct
	}
	if n.known {
		return expr.ValueTerm(n.value), nil
	}
	v, err := b.literal(n)
	return expr.ValueTerm(v), err
}

func (b *binder) call(n *node) (expr.Term, error) {
	args := make([]expr.Term, len(n.args))
	for i, arg := range n.args {
		var err error
		if args[i], err = b.term(arg); err != nil {
			return expr.Term{}, err
		}
	}
	return expr.CallTerm(n.text, args...), nil
}

// update converts SET and REMOVE to an update.
func (b *binder) update(st *Statement, out *Bound) error {
	if st.Kind != Update {
		return nil
	}
	actions := make([]expr.Action, len(st.changes))
	for i, c := range st.changes {
		path, err := pathOf(c.target)
		if err != nil {
			return err
		}
		actions[i] = expr.Action{Path: path, Verb: expr.Remove}
		if c.remove {
			continue
		}
		if actions[i].Verb, actions[i].Value, err = b.assigned(path, c.value); err != nil {
			return err
		}
	}
	var err error
	out.Update, err = expr.UpdateOf(actions...)
	return err
}

// assigned returns the action of SET on a path.
func (b *binder) assigned(path expr.Path, n *node) (expr.Verb, expr.Term, error) {
	name := strings.ToUpper(n.text)
	switch {
	case n.form == formCall && (n.text == "set_add" || n.text == "set_delete"):
		if len(n.args) != 2 {
			return 0, expr.Term{}, refuse(msgSetCount, name, n.pos)
		}
		if first, err := pathOf(n.args[0]); err != nil || !first.Equal(path) {
			return 0, expr.Term{}, refuse(msgSetTarget, name, n.pos)
		}
		if set := n.args[1]; !set.value.Type.IsSet() {
			return 0, expr.Term{}, refuse(msgSetValue, name, n.args[0].pos)
		}
		verb := expr.Add
		if n.text == "set_delete" {
			verb = expr.Delete
		}
		return verb, expr.ValueTerm(n.args[1].value), nil
	case n.form == formOperator && (n.text == "+" || n.text == "-") && len(n.args) == 2:
		left, err := b.term(n.args[0])
		if err != nil {
			return 0, left, err
		}
		right, err := b.term(n.args[1])
		return expr.Set, expr.CallTerm(n.text, left, right), err
	}
	value, err := b.term(n)
	return expr.Set, value, err
}
