package facade

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// The parameters from before expressions: Expected, AttributeUpdates,
// KeyConditions, QueryFilter, ScanFilter, ConditionalOperator. They are
// checked by their own rules and then written as expressions, so that there is
// one evaluator. A condition or filter of several hundred attributes can exceed
// the size limits of expressions, which then refuse it; AttributeUpdates cannot.

// legacyCondition is one element of KeyConditions, QueryFilter or ScanFilter.
type legacyCondition struct {
	AttributeValueList []wire.Value
	ComparisonOperator *string
}

// expectedAttribute is one element of Expected.
type expectedAttribute struct {
	Value              *wire.Value
	Exists             *wire.Flag
	ComparisonOperator *string
	AttributeValueList []wire.Value
}

// attributeUpdate is one element of AttributeUpdates.
type attributeUpdate struct {
	Value  *wire.Value
	Action *string
}

// comparisonOperators in AWS's order.
var comparisonOperators = []string{
	"IN", "NULL", "BETWEEN", "LT", "NOT_CONTAINS", "EQ", "GT", "NOT_NULL", "NE", "LE", "BEGINS_WITH", "GE", "CONTAINS",
}

// comparisonText writes the operators that have two operands.
var comparisonText = map[string]string{"EQ": "=", "NE": "<>", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}

// legacyConditions checks the elements against the model.
func (v *validator) legacyConditions(member string, conditions map[string]legacyCondition) {
	for _, name := range sortedKeys(conditions) {
		path := member + "." + name + ".member.ComparisonOperator"
		v.required(path, conditions[name].ComparisonOperator != nil)
		v.enum(path, conditions[name].ComparisonOperator, comparisonOperators...)
	}
}

func (v *validator) expected(expected map[string]expectedAttribute) {
	if v.current {
		return // its own check, see expectedPart
	}
	for _, name := range sortedKeys(expected) {
		v.enum("Expected."+name+".member.ComparisonOperator", expected[name].ComparisonOperator, comparisonOperators...)
	}
}

func (v *validator) attributeUpdates(updates map[string]attributeUpdate) {
	for _, name := range sortedKeys(updates) {
		v.enum("AttributeUpdates."+name+".member.Action", updates[name].Action, "ADD", "PUT", "DELETE")
	}
}

// legacyText writes an expression and collects its placeholders.
type legacyText struct {
	v      *validator
	names  map[string]string
	values map[string]attr.Value
}

func newLegacyText(v *validator) *legacyText {
	return &legacyText{v: v, names: map[string]string{}, values: map[string]attr.Value{}}
}

func (l *legacyText) name(attribute string) string {
	placeholder := "#n" + strconv.Itoa(len(l.names))
	l.names[placeholder] = attribute
	return placeholder
}

func (l *legacyText) value(value attr.Value) string {
	placeholder := ":v" + strconv.Itoa(len(l.values))
	l.values[placeholder] = value
	return placeholder
}

// placeholders returns those of everything written so far.
func (l *legacyText) placeholders() (*expr.Placeholders, error) {
	values := l.values
	if len(values) == 0 {
		values = nil
	}
	return expr.NewPlaceholders(l.names, values)
}

// readValues checks the values of one attribute.
func (l *legacyText) readValues(list []wire.Value) ([]attr.Value, error) {
	values := make([]attr.Value, len(list))
	for i, given := range list {
		if given.Err != nil {
			return nil, l.v.value(given.Err)
		}
		values[i] = given.Value
	}
	return values, nil
}

// comparison checks one comparison and writes it.
func (l *legacyText) comparison(attribute, operator string, values []attr.Value) (string, error) {
	if err := l.checkComparison(operator, values); err != nil {
		return "", err
	}
	name := l.name(attribute)
	operands := make([]string, len(values))
	for i, value := range values {
		operands[i] = l.value(value)
	}
	switch operator {
	case "NULL":
		return "attribute_not_exists(" + name + ")", nil
	case "NOT_NULL":
		return "attribute_exists(" + name + ")", nil
	case "BETWEEN":
		return name + " BETWEEN " + operands[0] + " AND " + operands[1], nil
	case "IN":
		return name + " IN (" + strings.Join(operands, ", ") + ")", nil
	case "CONTAINS":
		return "contains(" + name + ", " + operands[0] + ")", nil
	case "NOT_CONTAINS":
		return "attribute_exists(" + name + ") AND NOT contains(" + name + ", " + operands[0] + ")", nil
	case "BEGINS_WITH":
		return "begins_with(" + name + ", " + operands[0] + ")", nil
	default:
		return name + " " + comparisonText[operator] + " " + operands[0], nil
	}
}

// checkComparison checks number and types of a comparison's arguments.
func (l *legacyText) checkComparison(operator string, values []attr.Value) error {
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
		return l.v.reject(fmt.Sprintf(msgLegacyArity, operator))
	}
	for _, value := range values {
		if value.Type != values[0].Type {
			return l.v.reject(msgLegacyMixedTypes)
		}
		comparable := true
		switch operator {
		case "LT", "LE", "GT", "GE", "BETWEEN", "IN", "CONTAINS", "NOT_CONTAINS":
			comparable = value.Type == attr.S || value.Type == attr.N || value.Type == attr.B
		case "BEGINS_WITH":
			comparable = value.Type == attr.S || value.Type == attr.B
		}
		if !comparable {
			return l.v.reject(fmt.Sprintf(msgLegacyOperatorType, operator, value.Type))
		}
	}
	if operator == "BETWEEN" {
		if c, ok := attr.Compare(values[0], values[1]); ok && c > 0 {
			return l.v.reject(msgLegacyBetweenOrder)
		}
	}
	return nil
}

// conditionalOperator checks the member of that name for n conditions and
// returns the word to join them with.
func (v *validator) conditionalOperator(operator *string, n int) (string, error) {
	if operator == nil {
		return " AND ", nil
	}
	switch n {
	case 0:
		return "", v.reject(msgLegacyOperatorAlone)
	case 1:
		return "", v.reject(msgLegacyOperatorOne)
	}
	return " " + *operator + " ", nil
}

// legacyFilter turns a QueryFilter or ScanFilter into a condition, nil for
// none.
func (v *validator) legacyFilter(conditions map[string]legacyCondition, operator *string) (*expr.Condition, error) {
	joint, err := v.conditionalOperator(operator, len(conditions))
	if err != nil || len(conditions) == 0 {
		return nil, err
	}
	l := newLegacyText(v)
	var parts []string
	for _, name := range sortedKeys(conditions) {
		values, err := l.readValues(conditions[name].AttributeValueList)
		if err != nil {
			return nil, err
		}
		part, err := l.comparison(name, *conditions[name].ComparisonOperator, values)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return l.condition(v, expr.FilterExpression, strings.Join(parts, joint))
}

func (l *legacyText) condition(v *validator, kind expr.Kind, text string) (*expr.Condition, error) {
	p, err := l.placeholders()
	if err != nil {
		return nil, v.expression(err)
	}
	c, err := expr.ParseCondition(kind, text, p)
	return c, v.expression(err)
}

// legacyExpected turns Expected into a condition, nil for none.
func (v *validator) legacyExpected(expected map[string]expectedAttribute, operator *string) (*expr.Condition, error) {
	joint, err := v.conditionalOperator(operator, len(expected))
	if err != nil || len(expected) == 0 {
		return nil, err
	}
	l := newLegacyText(v)
	var parts []string
	for _, name := range sortedKeys(expected) {
		part, err := l.expectedPart(name, expected[name])
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return l.condition(v, expr.ConditionExpression, strings.Join(parts, joint))
}

func (l *legacyText) expectedPart(name string, e expectedAttribute) (string, error) {
	list := e.AttributeValueList
	if e.Value != nil {
		list = []wire.Value{*e.Value}
	}
	switch {
	case e.ComparisonOperator != nil && !slices.Contains(comparisonOperators, *e.ComparisonOperator):
		return "", l.v.reject(msgExpectedOperatorUnknown)
	case e.Value != nil && e.AttributeValueList != nil:
		return "", l.v.reject(fmt.Sprintf(msgExpectedValueAndList, name))
	case e.ComparisonOperator != nil && e.Exists != nil:
		return "", l.v.reject(fmt.Sprintf(msgExpectedExistsOperator, name))
	case e.ComparisonOperator != nil && list == nil && *e.ComparisonOperator != "NULL" && *e.ComparisonOperator != "NOT_NULL":
		return "", l.v.reject(fmt.Sprintf(msgExpectedOperatorAlone, *e.ComparisonOperator, name))
	case e.ComparisonOperator == nil && e.AttributeValueList != nil:
		return "", l.v.reject(fmt.Sprintf(msgExpectedListAlone, name))
	}
	values, err := l.readValues(list)
	if err != nil {
		return "", err
	}
	if e.ComparisonOperator != nil {
		return l.comparison(name, *e.ComparisonOperator, values)
	}
	switch exists := e.Exists == nil || bool(*e.Exists); {
	case exists && e.Value == nil:
		given := "null"
		if e.Exists != nil {
			given = "true"
		}
		return "", l.v.reject(fmt.Sprintf(msgExpectedValueMissing, given, name))
	case !exists && e.Value != nil:
		return "", l.v.reject(fmt.Sprintf(msgExpectedValueSurplus, name))
	case !exists:
		return l.comparison(name, "NULL", nil)
	default:
		return l.comparison(name, "EQ", values)
	}
}

// legacyKeyConditions turns KeyConditions into a key condition.
func (v *validator) legacyKeyConditions(conditions map[string]legacyCondition) (*expr.KeyCondition, error) {
	switch n := len(conditions); {
	case n == 0 && v.current:
		return nil, validationError(msgNoKeyCondition)
	case (n < 1 || n > 2) && !v.current:
		return nil, validationError(msgKeyConditionCount)
	}
	l := newLegacyText(v)
	var parts []string
	for _, name := range sortedKeys(conditions) {
		values, err := l.readValues(conditions[name].AttributeValueList)
		if err != nil {
			return nil, err
		}
		operator := *conditions[name].ComparisonOperator
		if !slices.Contains([]string{"EQ", "LE", "LT", "GE", "GT", "BEGINS_WITH", "BETWEEN"}, operator) {
			return nil, validationError(msgKeyConditionOperator)
		}
		part, err := l.comparison(name, operator, values)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	p, err := l.placeholders()
	if err != nil {
		return nil, v.expression(err)
	}
	k, err := expr.ParseKeyCondition(strings.Join(parts, " AND "), p)
	return k, v.expression(err)
}

// legacyUpdate turns AttributeUpdates into an update, nil for none.
func (v *validator) legacyUpdate(updates map[string]attributeUpdate) (*expr.Update, error) {
	if len(updates) == 0 {
		return nil, nil
	}
	l := newLegacyText(v)
	clauses := map[string][]string{}
	for _, name := range sortedKeys(updates) {
		section, clause, err := l.updateClause(name, updates[name])
		if err != nil {
			return nil, err
		}
		clauses[section] = append(clauses[section], clause)
	}
	var text []string
	for _, section := range sortedKeys(clauses) {
		text = append(text, section+" "+strings.Join(clauses[section], ", "))
	}
	p, err := l.placeholders()
	if err != nil {
		return nil, v.expression(err)
	}
	u, err := expr.ParseUpdate(strings.Join(text, " "), p.Unlimited())
	return u, v.expression(err)
}

func (l *legacyText) updateClause(name string, u attributeUpdate) (section, clause string, err error) {
	action := "PUT"
	if u.Action != nil {
		action = *u.Action
	}
	if u.Value == nil {
		if action != "DELETE" {
			return "", "", validationError(msgUpdateValueMissing)
		}
		return "REMOVE", l.name(name), nil
	}
	if u.Value.Err != nil {
		return "", "", validationError(l.v.attributeErrorText(u.Value.Err))
	}
	value := u.Value.Value
	switch {
	case action == "DELETE" && !value.Type.IsSet():
		return "", "", validationError(fmt.Sprintf(msgUpdateDeleteType, value.Type))
	case action == "DELETE":
		return "DELETE", l.name(name) + " " + l.value(value), nil
	case action == "ADD" && value.Type == attr.L:
		placeholder := l.name(name)
		return "SET", placeholder + " = list_append(if_not_exists(" + placeholder + ", " + l.value(attr.ListOf()) + "), " + l.value(value) + ")", nil
	case action == "ADD" && value.Type != attr.N && !value.Type.IsSet():
		return "", "", validationError(fmt.Sprintf(msgUpdateAddType, value.Type))
	case action == "ADD":
		return "ADD", l.name(name) + " " + l.value(value), nil
	default:
		return "SET", l.name(name) + " = " + l.value(value), nil
	}
}
