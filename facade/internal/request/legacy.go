package request

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// LegacyParameters checks the parameters that expressions replaced. Its errors have the
// wording of its validator.
type LegacyParameters struct {
	v *Validator
}

// Condition is one element of KeyConditions, QueryFilter or ScanFilter.
type Condition struct {
	AttributeValueList []wire.Value
	ComparisonOperator *string
}

// ExpectedAttributeValue is one element of Expected. AWS's error for a value of the wrong
// type contains this name.
type ExpectedAttributeValue struct {
	Value              *wire.Value
	Exists             *wire.Flag
	ComparisonOperator *string
	AttributeValueList []wire.Value
}

// AttributeValueUpdate is one element of AttributeUpdates.
type AttributeValueUpdate struct {
	Value  *wire.Value
	Action *string
}

// comparisonOperators are in AWS's order.
var comparisonOperators = []string{
	"IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT", "NOT_NULL", "NE", "LE", "BEGINS_WITH", "GE", "CONTAINS",
}

// keyOperators are the operators of KeyConditions. Others are refused, but only once the
// table is known.
var keyOperators = map[string]attr.RangeOp{
	"EQ": attr.RangeEqual, "LT": attr.RangeLess, "LE": attr.RangeLessEqual, "GT": attr.RangeGreater, "GE": attr.RangeGreaterEqual,
	"BETWEEN": attr.RangeBetween, "BEGINS_WITH": attr.RangeBeginsWith,
}

// comparisonText has the symbols of the operators with two operands.
var comparisonText = map[string]string{"EQ": "=", "NE": "<>", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}

// CheckConditions checks conditions against the API model.
func (p LegacyParameters) CheckConditions(member string, conditions map[string]Condition) {
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		path := member + "." + name + ".member.ComparisonOperator"
		p.v.Required(path, conditions[name].ComparisonOperator != nil)
		p.v.Enum(path, conditions[name].ComparisonOperator, comparisonOperators...)
	}
}

// CheckExpected checks the elements of Expected against the API model.
func (p LegacyParameters) CheckExpected(expected map[string]ExpectedAttributeValue) {
	if p.v.Current {
		return // expectedPart checks it
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		p.v.Enum("Expected."+name+".member.ComparisonOperator", expected[name].ComparisonOperator, comparisonOperators...)
	}
}

// CheckUpdates checks the elements of AttributeUpdates against the API model.
func (p LegacyParameters) CheckUpdates(updates map[string]AttributeValueUpdate) {
	for _, name := range slices.Sorted(maps.Keys(updates)) {
		p.v.Enum("AttributeUpdates."+name+".member.Action", updates[name].Action, "ADD", "PUT", "DELETE")
	}
}

// name checks an attribute name outside expressions and items.
func (p LegacyParameters) name(attribute string) error {
	switch {
	case attribute == "":
		return p.v.Reject(awserr.MsgEmptyName)
	case len(attribute) > attr.MaxNameBytes:
		return p.v.Value(&attr.Error{Problem: attr.LongName, Text: attribute})
	}
	return nil
}

// operands checks the name and the values of a condition, and returns the values.
func (p LegacyParameters) operands(attribute, operator string, list []wire.Value) ([]attr.Value, error) {
	if err := p.name(attribute); err != nil {
		return nil, err
	}
	values := make([]attr.Value, len(list))
	for i, given := range list {
		if given.Err != nil {
			return nil, p.v.Value(given.Err)
		}
		values[i] = given.Value
	}
	return values, p.checkComparison(operator, values)
}

// checkComparison checks the number and types of a comparison's arguments.
func (p LegacyParameters) checkComparison(operator string, values []attr.Value) error {
	arity := 1
	switch operator {
	case "NULL", "NOT_NULL":
		arity = 0
	case "BETWEEN":
		arity = 2
	case "IN":
		arity = max(1, len(values))
	}
	if len(values) != arity {
		return p.v.Reject(fmt.Sprintf(awserr.MsgLegacyArity, operator))
	}
	for _, value := range values {
		if value.Type != values[0].Type {
			return p.v.Reject(awserr.MsgLegacyMixedTypes)
		}
		comparable := true
		switch operator {
		case "LT", "LE", "GT", "GE", "BETWEEN", "IN", "CONTAINS", "NOT_CONTAINS":
			comparable = value.Type == attr.S || value.Type == attr.N || value.Type == attr.B
		case "BEGINS_WITH":
			comparable = value.Type == attr.S || value.Type == attr.B
		}
		if !comparable {
			return p.v.Reject(fmt.Sprintf(awserr.MsgLegacyOperatorType, operator, value.Type))
		}
	}
	if operator == "BETWEEN" {
		if c, ok := attr.Compare(values[0], values[1]); ok && c > 0 {
			return p.v.Reject(awserr.MsgLegacyBetweenOrder)
		}
	}
	return nil
}

// joint checks ConditionalOperator for n conditions, and returns the word that joins them.
func (p LegacyParameters) joint(operator *string, n int) (string, error) {
	if operator == nil {
		return " AND ", nil
	}
	switch n {
	case 0:
		return "", p.v.Reject(awserr.MsgLegacyOperatorAlone)
	case 1:
		return "", p.v.Reject(awserr.MsgLegacyOperatorOne)
	}
	return " " + *operator + " ", nil
}

// Filter converts a QueryFilter or ScanFilter to a condition. It returns nil if the
// filter is not given.
func (p LegacyParameters) Filter(conditions map[string]Condition, operator *string) (*expr.Condition, error) {
	if p.v.Operation == "Scan" && !p.v.Current {
		if err := p.checkDepth(conditions); err != nil {
			return nil, err
		}
	}
	joint, err := p.joint(operator, len(conditions))
	if err != nil || len(conditions) == 0 {
		return nil, err
	}
	var l text
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		operator := *conditions[name].ComparisonOperator
		values, err := p.operands(name, operator, conditions[name].AttributeValueList)
		if err != nil {
			return nil, err
		}
		parts = append(parts, l.comparison(name, operator, values))
	}
	return expr.ParseCondition(expr.FilterExpression, strings.Join(parts, joint), l.placeholders())
}

// checkDepth checks the depth of all values. The older layer of Scan does so before it checks
// ConditionalOperator.
func (p LegacyParameters) checkDepth(conditions map[string]Condition) error {
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		for _, given := range conditions[name].AttributeValueList {
			var e *attr.Error
			if errors.As(given.Err, &e) && e.Problem == attr.TooDeep {
				return p.v.Value(given.Err)
			}
		}
	}
	return nil
}

// Condition converts Expected to a condition. It returns nil if Expected is not given.
func (p LegacyParameters) Condition(expected map[string]ExpectedAttributeValue, operator *string) (*expr.Condition, error) {
	joint, err := p.joint(operator, len(expected))
	if err != nil || len(expected) == 0 {
		return nil, err
	}
	var l text
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		operator, list, err := p.expectedPart(name, expected[name])
		if err != nil {
			return nil, err
		}
		values, err := p.operands(name, operator, list)
		if err != nil {
			return nil, err
		}
		parts = append(parts, l.comparison(name, operator, values))
	}
	return expr.ParseCondition(expr.ConditionExpression, strings.Join(parts, joint), l.placeholders())
}

// expectedPart returns the comparison for an element of Expected.
func (p LegacyParameters) expectedPart(name string, e ExpectedAttributeValue) (operator string, list []wire.Value, err error) {
	list = e.AttributeValueList
	if e.Value != nil {
		list = []wire.Value{*e.Value}
	}
	refuse := func(format string, args ...any) (string, []wire.Value, error) {
		return "", nil, p.v.Reject(fmt.Sprintf(format, args...))
	}
	if err := p.name(name); err != nil {
		return "", nil, err
	}
	switch {
	case e.ComparisonOperator != nil && !slices.Contains(comparisonOperators, *e.ComparisonOperator):
		return refuse(awserr.MsgExpectedOperatorUnknown)
	case e.Value != nil && e.AttributeValueList != nil:
		return refuse(awserr.MsgExpectedValueAndList, name)
	case e.ComparisonOperator != nil && e.Exists != nil:
		return refuse(awserr.MsgExpectedExistsOperator, name)
	case e.ComparisonOperator != nil && list == nil && *e.ComparisonOperator != "NULL" && *e.ComparisonOperator != "NOT_NULL":
		return refuse(awserr.MsgExpectedOperatorAlone, *e.ComparisonOperator, name)
	case e.ComparisonOperator == nil && e.AttributeValueList != nil:
		return refuse(awserr.MsgExpectedListAlone, name)
	case e.ComparisonOperator != nil:
		return *e.ComparisonOperator, list, nil
	}
	if e.Value != nil && e.Value.Err != nil {
		return "", nil, p.v.Value(e.Value.Err)
	}
	switch exists := e.Exists == nil || bool(*e.Exists); {
	case exists && e.Value == nil:
		given := "null"
		if e.Exists != nil {
			given = "true"
		}
		return refuse(awserr.MsgExpectedValueMissing, given, name)
	case !exists && e.Value != nil:
		return refuse(awserr.MsgExpectedValueSurplus, name)
	case !exists:
		return "NULL", nil, nil
	default:
		return "EQ", list, nil
	}
}

// Projection converts AttributesToGet to a projection to top-level attributes. It returns
// nil if AttributesToGet is not given.
func (p LegacyParameters) Projection(attributes []string) (*expr.Projection, error) {
	if attributes == nil {
		return nil, nil
	}
	paths := make([]expr.Path, len(attributes))
	seen := make(map[string]bool, len(attributes)) // a request can have a million
	for i, name := range attributes {
		if err := p.name(name); err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, p.v.Reject(fmt.Sprintf(awserr.MsgDuplicateAttribute, name))
		}
		seen[name] = true
		paths[i] = expr.AttributePath(name)
	}
	return expr.ProjectionOf(paths...), nil
}

// KeyConditions converts KeyConditions to a key condition.
func (p LegacyParameters) KeyConditions(conditions map[string]Condition) (*expr.KeyCondition, error) {
	var terms []expr.KeyTerm
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		operator := *conditions[name].ComparisonOperator
		values, err := p.operands(name, operator, conditions[name].AttributeValueList)
		if err != nil {
			return nil, err
		}
		terms = append(terms, expr.KeyTerm{Name: name, Op: keyOperators[operator], Args: values})
	}
	switch n := len(conditions); {
	case n == 0 && p.v.Current:
		return nil, awserr.Validation("%s", awserr.MsgNoKeyCondition)
	case (n < 1 || n > 2) && !p.v.Current:
		return nil, awserr.Validation("%s", awserr.MsgKeyConditionCount)
	}
	return expr.KeyConditionOf(terms...), nil
}

// Update converts AttributeUpdates to an update. It returns nil if updates is empty.
func (p LegacyParameters) Update(updates map[string]AttributeValueUpdate) (*expr.Update, error) {
	if len(updates) == 0 {
		return nil, nil
	}
	var l text
	clauses := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(updates)) {
		action, err := p.checkUpdate(name, updates[name])
		if err != nil {
			return nil, err
		}
		section, clause := l.clause(name, action, updates[name].Value)
		clauses[section] = append(clauses[section], clause)
	}
	var sections []string
	for _, section := range slices.Sorted(maps.Keys(clauses)) {
		sections = append(sections, section+" "+strings.Join(clauses[section], ", "))
	}
	return expr.ParseUpdate(strings.Join(sections, " "), l.placeholders())
}

// checkUpdate checks an element of AttributeUpdates and returns its action.
func (p LegacyParameters) checkUpdate(name string, u AttributeValueUpdate) (action string, err error) {
	if err := p.name(name); err != nil {
		return "", err
	}
	action = "PUT"
	if u.Action != nil {
		action = *u.Action
	}
	if u.Value == nil {
		if action != "DELETE" {
			return "", awserr.Validation("%s", awserr.MsgUpdateValueMissing)
		}
		return action, nil
	}
	if u.Value.Err != nil {
		return "", p.v.Value(u.Value.Err)
	}
	switch t := u.Value.Value.Type; {
	case action == "DELETE" && !t.IsSet():
		return "", awserr.Validation("%s", fmt.Sprintf(awserr.MsgUpdateDeleteType, t))
	case action == "ADD" && t != attr.N && t != attr.L && !t.IsSet():
		return "", awserr.Validation("%s", fmt.Sprintf(awserr.MsgUpdateAddType, t))
	}
	return action, nil
}

// text writes an expression and collects its placeholders.
type text struct {
	names  map[string]string
	values map[string]attr.Value
}

func (l *text) name(attribute string) string {
	if l.names == nil {
		l.names = map[string]string{}
	}
	placeholder := "#n" + strconv.Itoa(len(l.names))
	l.names[placeholder] = attribute
	return placeholder
}

func (l *text) value(value attr.Value) string {
	if l.values == nil {
		l.values = map[string]attr.Value{}
	}
	placeholder := ":v" + strconv.Itoa(len(l.values))
	l.values[placeholder] = value
	return placeholder
}

// placeholders returns the placeholders of the text so far.
func (l *text) placeholders() *expr.Placeholders {
	return expr.UnlimitedPlaceholders(l.names, l.values)
}

// comparison writes a checked comparison.
func (l *text) comparison(attribute, operator string, values []attr.Value) string {
	name := l.name(attribute)
	operands := make([]string, len(values))
	for i, value := range values {
		operands[i] = l.value(value)
	}
	switch operator {
	case "NULL":
		return "attribute_not_exists(" + name + ")"
	case "NOT_NULL":
		return "attribute_exists(" + name + ")"
	case "BETWEEN":
		return name + " BETWEEN " + operands[0] + " AND " + operands[1]
	case "IN":
		return name + " IN (" + strings.Join(operands, ", ") + ")"
	case "CONTAINS":
		return "contains(" + name + ", " + operands[0] + ")"
	case "NOT_CONTAINS":
		return "attribute_exists(" + name + ") AND NOT contains(" + name + ", " + operands[0] + ")"
	case "BEGINS_WITH":
		return "begins_with(" + name + ", " + operands[0] + ")"
	default:
		return name + " " + comparisonText[operator] + " " + operands[0]
	}
}

// clause converts a checked element of AttributeUpdates to a clause of an update expression, and
// returns it with its section: SET, REMOVE, ADD or DELETE.
func (l *text) clause(attribute, action string, value *wire.Value) (section, clause string) {
	name := l.name(attribute)
	switch {
	case value == nil:
		return "REMOVE", name
	case action == "ADD" && value.Value.Type == attr.L:
		return "SET", name + " = list_append(if_not_exists(" + name + ", " + l.value(attr.ListOf()) + "), " + l.value(value.Value) + ")"
	case action == "ADD", action == "DELETE":
		return action, name + " " + l.value(value.Value)
	default:
		return "SET", name + " = " + l.value(value.Value)
	}
}
