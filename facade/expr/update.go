package expr

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Update is an update, usually from an update expression. It is immutable.
type Update struct {
	clauses []clause
	paths   []Path // see Paths
	reads   []Path // see ReadPaths
}

// clause is one element of a section: the change at one path.
type clause struct {
	section section
	target  *operand
	value   *operand // nil for REMOVE
}

type section uint8

const (
	sectionSet section = iota
	sectionRemove
	sectionAdd
	sectionDelete
)

func (s section) String() string { return updateKeywords[s] }

// The functions and operators of updates. The tree has operators as calls.
const (
	fnIfNotExists = "if_not_exists"
	fnListAppend  = "list_append"
	fnPlus        = "+"
	fnMinus       = "-"
)

// updateFunctions holds the operand counts of the functions and operators.
var updateFunctions = map[string]int{fnIfNotExists: 2, fnListAppend: 2, fnPlus: 2, fnMinus: 2}

// ParseUpdate parses an update expression. Errors are of type *Error. After parsing, it
// checks, in DynamoDB's order: reserved words, functions by name and position, sections,
// names, values, overlapping paths, conflicting paths, operands of ADD and DELETE, and
// operands of functions.
func ParseUpdate(src string, p *Placeholders) (*Update, error) {
	ps, err := newParser(UpdateExpression, src, updateKeywords, p)
	if err != nil {
		return nil, err
	}
	ps.certain = true
	u := updateParser{parser: ps}
	if err := u.parse(); err != nil {
		return nil, err
	}
	if err := u.check(); err != nil {
		return nil, err
	}
	update := &Update{clauses: u.clauses}
	for _, c := range u.clauses {
		update.paths = append(update.paths, c.target.path)
	}
	for _, o := range u.operands {
		if o.form == pathOperand && !o.isTarget {
			update.reads = append(update.reads, o.path)
		}
	}
	return update, nil
}

type updateParser struct {
	*parser
	clauses  []clause
	sections []section
}

func (u *updateParser) parse() error {
	for {
		t := u.peek()
		if t.kind == tokEnd && len(u.sections) > 0 {
			return nil
		}
		if t.kind != tokKeyword {
			return u.unexpected()
		}
		u.next++
		s := section(slices.Index(updateKeywords, t.text))
		u.sections = append(u.sections, s)
		for {
			c, err := u.clause(s)
			if err != nil {
				return err
			}
			u.clauses = append(u.clauses, c)
			if !u.accept(",") {
				break
			}
		}
	}
}

func (u *updateParser) clause(s section) (clause, error) {
	target, err := u.path()
	if err != nil {
		return clause{}, err
	}
	target.isTarget = true
	c := clause{section: s, target: target}
	switch s {
	case sectionSet:
		if err = u.expect("="); err == nil {
			c.value, err = u.setValue()
		}
	case sectionAdd, sectionDelete:
		if u.peek().kind != tokValue {
			return c, u.unexpected()
		}
		c.value, err = u.plainOperand()
	case sectionRemove:
	}
	return c, err
}

// setValue parses the value of a SET clause: an operand, or two operands joined by + or -. The
// value and each operand may be in parentheses.
func (u *updateParser) setValue() (*operand, error) {
	o, _, err := u.term()
	return o, err
}

// term acts like setValue. parenthesized reports whether parentheses enclose the whole value.
func (u *updateParser) term() (o *operand, parenthesized bool, err error) {
	var left *operand
	if u.accept("(") {
		again := false
		if left, again, err = u.term(); err != nil {
			return nil, false, err
		}
		if err = u.expect(")"); err != nil {
			return nil, false, err
		}
		if err = u.closed(again); err != nil {
			return nil, false, err
		}
		parenthesized = true
		if left.text == fnPlus || left.text == fnMinus {
			return left, true, nil
		}
	} else if left, err = u.plainOperand(); err != nil {
		return nil, false, err
	}
	t := u.peek()
	if !t.is(fnPlus) && !t.is(fnMinus) {
		return left, parenthesized, nil
	}
	u.next++
	if err = u.operator(); err != nil {
		return nil, false, err
	}
	right, err := u.operand()
	if err != nil {
		return nil, false, err
	}
	o = &operand{form: callOperand, text: t.text, args: []*operand{left, right}}
	u.operands = append(u.operands, o)
	return o, false, nil
}

func (u *updateParser) check() error {
	for _, check := range []func() *Error{
		u.checkReserved,
		func() *Error { return u.checkFunctionNames(updateFunctions, conditionFunctions, msgNotInUpdate) },
		u.checkFunctionPlaces, u.checkSections,
		func() *Error { return u.pathError },
		func() *Error { return u.resolveAll(true, false) },
		func() *Error { return u.resolveAll(false, true) },
		u.checkTargets, u.checkClauses, u.checkCalls,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkFunctionPlaces rejects list_append as an operand: it must be the whole value of a
// clause.
func (u *updateParser) checkFunctionPlaces() *Error {
	for _, call := range u.operands {
		for _, o := range call.args {
			if o.form == callOperand && o.text == fnListAppend {
				return u.kind.invalid(msgMisused, o.text)
			}
		}
	}
	return nil
}

func (u *updateParser) checkSections() *Error {
	for i, s := range u.sections {
		if slices.Contains(u.sections[:i], s) {
			return u.kind.invalid(msgSectionTwice, s)
		}
	}
	return nil
}

func (u *updateParser) resolveAll(names, values bool) *Error {
	for _, o := range u.operands {
		if o.form == callOperand {
			continue // u.operands has the operands of the call too
		}
		if err := u.resolve(o, names, values); err != nil {
			return err
		}
	}
	return nil
}

func (u *updateParser) checkTargets() *Error {
	paths := make([]Path, len(u.clauses))
	for i, c := range u.clauses {
		paths[i] = c.target.path
	}
	return checkPaths(UpdateExpression, paths)
}

// longTypeNames holds the names of unsupported types in messages about ADD and DELETE.
// classicTypeNames holds the names that differ in the older wording.
var (
	longTypeNames = map[attr.Type]string{
		attr.S: "STRING", attr.N: "NUMBER", attr.B: "Binary", attr.NULL: "NULL",
		attr.BOOL: "BOOL", attr.L: "LIST", attr.M: "MAP",
	}
	classicTypeNames = map[attr.Type]string{attr.B: "BINARY", attr.BOOL: "BOOLEAN"}
)

func (u *updateParser) checkClauses() *Error {
	for _, c := range u.clauses {
		if c.section != sectionAdd && c.section != sectionDelete {
			continue
		}
		t := c.value.value.Type
		if !t.IsSet() && (c.section != sectionAdd || t != attr.N) {
			older := u.kind.invalid(msgClauseClassic, c.section, cmp.Or(classicTypeNames[t], longTypeNames[t]))
			return u.kind.invalid(msgClauseType, c.section, longTypeNames[t]).orClassic(older)
		}
	}
	return nil
}

func (u *updateParser) checkCalls() *Error {
	for _, call := range u.operands {
		if call.form != callOperand {
			continue
		}
		if len(call.args) != updateFunctions[call.text] {
			return u.kind.invalid(msgOperandCount, call.text, len(call.args))
		}
		want := attr.N
		switch call.text {
		case fnIfNotExists:
			if call.args[0].form != pathOperand {
				return u.kind.invalid(msgPathWanted, call.text)
			}
			continue
		case fnListAppend:
			want = attr.L
		}
		for _, o := range call.args {
			if o.form == valueOperand && o.value.Type != want {
				return u.kind.invalid(msgOperandType, call.text, o.value.Type)
			}
		}
	}
	return nil
}

// Paths returns the paths that the update changes, in textual order. None of them lies
// inside another.
func (u *Update) Paths() []Path { return u.paths }

// ReadPaths returns the paths that the operands of the update read, in textual order. A
// path that occurs several times is repeated.
func (u *Update) ReadPaths() []Path { return u.reads }

// TypeOf returns the type of the value that the update sets an attribute to, adds to it,
// or deletes from it. ok is false if that type depends on the item.
func (u *Update) TypeOf(attribute string) (attr.Type, bool) {
	for _, c := range u.clauses {
		if len(c.target.path) == 1 && c.target.path.Attribute() == attribute && c.value != nil {
			return c.value.knownType()
		}
	}
	return attr.Absent, false
}

// Given returns the value in the request if the update sets an attribute to it, adds it to
// the attribute, or deletes it from the attribute. Otherwise it returns an absent value.
func (u *Update) Given(attribute string) attr.Value {
	for _, c := range u.clauses {
		if len(c.target.path) == 1 && c.target.path.Attribute() == attribute && c.value != nil && c.value.form == valueOperand {
			return c.value.value
		}
	}
	return attr.Value{}
}

// knownType returns the type of o's value if it is the same for every item.
func (o *operand) knownType() (attr.Type, bool) {
	switch {
	case o.form == valueOperand:
		return o.value.Type, true
	case o.form == pathOperand:
		return attr.Absent, false
	}
	switch o.text {
	case fnListAppend:
		return attr.L, true
	case fnIfNotExists:
		return o.args[1].knownType()
	default: // + and -
		return attr.N, true
	}
}

// Apply returns the updated item. It does not modify item, which may be nil. To create an
// item, pass its key, which DynamoDB's updates can read. All clauses read the original
// item. Errors are of type *Error. Apply fails if an operand is missing or has the wrong
// type, or if a path has no parent. It also fails if a number is out of range, or if
// values are nested too deeply.
//
// Indexes of list elements refer to the original list. Removals happen after all other
// changes, and elements that are set beyond the end are appended in the order of their
// indexes.
//
// For UPDATED_OLD and UPDATED_NEW, apply ProjectionOf(u.Paths()...) to the items before
// and after the update.
func (u *Update) Apply(item attr.Item) (attr.Item, error) {
	root := &edit{}
	for _, c := range u.clauses {
		v, err := c.result(item)
		if err != nil {
			return nil, err
		}
		root.add(c.target.path, v)
	}
	for _, c := range u.clauses {
		if err := checkParent(item, c.target.path); err != nil {
			return nil, err
		}
	}
	return root.editMembers(item), nil
}

// result returns the new value at a clause's path, or an absent value to remove the path.
func (c clause) result(item attr.Item) (attr.Value, error) {
	if c.section == sectionRemove {
		return attr.Value{}, nil
	}
	if c.section == sectionSet {
		v, err := c.value.compute(item)
		if err == nil && len(c.target.path)-1+v.Depth() > attr.MaxDepth {
			err = valueError(&attr.Error{Problem: attr.TooDeep})
		}
		return v, err
	}
	old, operand := c.target.path.Lookup(item), c.value.value
	if present(old) && old.Type != operand.Type {
		return attr.Value{}, ErrOperandType
	}
	switch {
	case c.section == sectionDelete:
		return attr.SetOf(old.Type, slices.DeleteFunc(slices.Clone(old.Set), operand.HasMember)...), nil
	case !present(old):
		return operand, nil
	case operand.Type == attr.N:
		n, err := attr.AddNumbers(old.Str, operand.Str)
		return attr.Value{Type: attr.N, Str: n}, arithmeticError(err)
	}
	return attr.SetOf(old.Type, append(slices.Clone(old.Set), operand.Set...)...), nil
}

// arithmeticError acts like valueError for a sum. DynamoDB reports an overflow if the exact
// sum has too many digits.
func arithmeticError(err error) error {
	var e *attr.Error
	if errors.As(err, &e) && e.Problem == attr.TooPrecise {
		err = &attr.Error{Problem: attr.Overflow, Type: e.Type, Text: e.Text, Offset: e.Offset}
	}
	return valueError(err)
}

// valueError converts an error of package attr to an *Error with DynamoDB's text.
func valueError(err error) error {
	var e *attr.Error
	if errors.As(err, &e) {
		text, _ := e.AWSMessage()
		return &Error{Message: text}
	}
	return err
}

// compute returns the value of an operand of SET for item. Unlike eval, it returns an error if
// an attribute is missing or has the wrong type.
func (o *operand) compute(item attr.Item) (attr.Value, error) {
	switch o.form {
	case valueOperand:
		return o.value, nil
	case pathOperand:
		v := o.path.Lookup(item)
		if !present(v) {
			return v, newError(msgUpdateMissing)
		}
		return v, nil
	case callOperand:
	}
	if o.text == fnIfNotExists {
		if v := o.args[0].path.Lookup(item); present(v) {
			return v, nil
		}
		return o.args[1].compute(item)
	}
	want := attr.N
	if o.text == fnListAppend {
		want = attr.L
	}
	var args [2]attr.Value
	for i := range args {
		v, err := o.args[i].compute(item)
		if err != nil {
			return attr.Value{}, err
		}
		if v.Type != want {
			return attr.Value{}, ErrOperandType
		}
		args[i] = v
	}
	arithmetic := attr.AddNumbers
	switch o.text {
	case fnListAppend:
		return attr.ListOf(slices.Concat(args[0].List, args[1].List)...), nil
	case fnMinus:
		arithmetic = attr.SubtractNumbers
	}
	n, err := arithmetic(args[0].Str, args[1].Str)
	return attr.Value{Type: attr.N, Str: n}, arithmeticError(err)
}

// checkParent rejects a path in an update whose last step leads into a value that is missing in
// item, or that is not a map or a list as the step requires.
func checkParent(item attr.Item, path Path) error {
	last := path[len(path)-1]
	if len(path) == 1 {
		return nil
	}
	want := attr.M
	if last.IsIndex {
		want = attr.L
	}
	if path[:len(path)-1].Lookup(item).Type != want {
		return newError(msgUpdatePath)
	}
	return nil
}

// edit is a tree of changes to a value and its contents.
type edit struct {
	leaf     bool       // value replaces the old value
	value    attr.Value // the new value, or absent to remove it
	members  map[string]*edit
	elements map[int]*edit
}

// add adds the change of the value at path to v. Paths in a tree must not overlap.
func (e *edit) add(path Path, v attr.Value) {
	for _, step := range path {
		var c *edit
		if step.IsIndex {
			if c = e.elements[step.Index]; c == nil {
				c = &edit{}
				if e.elements == nil {
					e.elements = map[int]*edit{}
				}
				e.elements[step.Index] = c
			}
		} else if c = e.members[step.Name]; c == nil {
			c = &edit{}
			if e.members == nil {
				e.members = map[string]*edit{}
			}
			e.members[step.Name] = c
		}
		e = c
	}
	e.leaf, e.value = true, v
}

// apply returns v with the changes of the tree. checkParent must have checked the paths.
func (e *edit) apply(v attr.Value) attr.Value {
	switch {
	case e.leaf:
		return e.value
	case v.Type == attr.M:
		return attr.MapOf(e.editMembers(v.Map))
	}
	return attr.ListOf(e.editElements(v.List)...)
}

func (e *edit) editMembers(old map[string]attr.Value) map[string]attr.Value {
	m := make(map[string]attr.Value, len(old)+len(e.members))
	maps.Copy(m, old)
	for name, c := range e.members {
		if v := c.apply(old[name]); present(v) {
			m[name] = v
		} else {
			delete(m, name)
		}
	}
	return m
}

func (e *edit) editElements(old []attr.Value) []attr.Value {
	list := make([]attr.Value, 0, len(old)+len(e.elements))
	for i, v := range old {
		if c := e.elements[i]; c != nil {
			v = c.apply(v)
		}
		if present(v) {
			list = append(list, v)
		}
	}
	for _, i := range sortedKeys(e.elements) {
		if c := e.elements[i]; i >= len(old) && present(c.value) {
			list = append(list, c.value)
		}
	}
	return list
}
