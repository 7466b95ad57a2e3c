package facade

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/legacy"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/facade/internal/wording"
)

// validator checks the members of one request in AWS's order. Constraints of
// the API model gather first; constrained then answers for all of them. What
// comes after it fails at once.
type validator struct {
	operation string
	current   bool // MessagesCurrent
	failures  wording.Failures
}

func (s *Server) validator(operation string) *validator {
	return &validator{operation: operation, current: s.opts.Messages == MessagesCurrent}
}

// wording is that of the answers to the request.
func (v *validator) wording() wording.Request {
	return wording.Request{Operation: v.operation, Current: v.current}
}

// fail records a failed constraint of a member. value is the text AWS shows:
// quoted, or "null".
func (v *validator) fail(member, value, constraint string) {
	v.failures.Add(v.wording(), member, value, constraint)
}

// constrained answers for the constraints checked so far.
func (v *validator) constrained() error { return v.failures.Err(v.wording()) }

// reject is a failure of an expression or a value.
func (v *validator) reject(message string) error { return v.wording().Reject(message) }

// rejectSelect is a failure of Select.
func (v *validator) rejectSelect(message string) error { return v.wording().RejectSelect(message) }

// value checks what decoding left to say about a value or an item.
func (v *validator) value(err error) error { return v.wording().Value(err) }

// expression gives an error of package expr its place in the answer.
func (v *validator) expression(err error) error { return v.wording().Expression(err) }

// attributeErrorText is AWS's text for an error of package attr.
func (v *validator) attributeErrorText(err error) string { return v.wording().AttributeErrorText(err) }

func (v *validator) required(member string, present bool) {
	if !present {
		v.fail(member, "null", msgMemberNotNull)
	}
}

// enum checks an optional member; set is printed as AWS orders it.
func (v *validator) enum(member string, value *string, set ...string) {
	if value != nil && !slices.Contains(set, *value) {
		v.fail(member, quoted(*value), fmt.Sprintf(msgMemberEnum, strings.Join(set, ", ")))
	}
}

func (v *validator) atLeast(member string, value *int32, least int32) {
	if value != nil && *value < least {
		v.fail(member, quoted(strconv.Itoa(int(*value))), fmt.Sprintf(msgMemberMinValue, least))
	}
}

func (v *validator) atMost(member string, value *int32, most int32) {
	if value != nil && *value > most {
		v.fail(member, quoted(strconv.Itoa(int(*value))), fmt.Sprintf(msgMemberMaxValue, most))
	}
}

// length checks the number of characters of an optional member.
func (v *validator) length(member string, value *string, least, most int) {
	if value == nil {
		return
	}
	switch n := utf8.RuneCountInString(*value); {
	case n < least:
		v.fail(member, quoted(*value), fmt.Sprintf(msgMemberMinLength, least))
	case n > most:
		v.fail(member, quoted(*value), fmt.Sprintf(msgMemberMaxLength, most))
	}
}

// count checks the number of elements of a required list; what they are is shown
// where there are too many.
func (v *validator) count(member string, absent bool, n, most int, elements string) {
	switch {
	case absent:
		v.required(member, false)
	case n == 0:
		v.fail(member, "'[]'", fmt.Sprintf(msgMemberMinLength, 1))
	case n > most:
		v.fail(member, fmt.Sprintf("'[%d %s]'", n, elements), fmt.Sprintf(msgMemberMaxLength, most))
	}
}

const namePatternText = "[a-zA-Z0-9_.-]+"

var (
	namePattern     = regexp.MustCompile("^" + namePatternText + "$")
	tableARNPattern = regexp.MustCompile(`^arn:[a-z-]+:dynamodb:[a-z0-9-]*:[0-9]*:table/([^/]+)$`)
)

// tableName checks the member TableName of an operation on items and returns
// the name; the member may be a table's ARN.
func (v *validator) tableName(value *string) string {
	const member = "TableName"
	if value == nil {
		v.required(member, false)
		return ""
	}
	name := tableOfARN(*value)
	v.name(member, name)
	return name
}

// tableOfARN returns the name in a table's ARN; what is none it returns as it
// is.
func tableOfARN(given string) string {
	if m := tableARNPattern.FindStringSubmatch(given); m != nil && len(given) <= maxTableARNChars {
		return m[1]
	}
	return given
}

// batchTable checks a name in RequestItems, which may be a table's ARN, and
// returns the table's; value stands for what the request wants of it.
func (v *validator) batchTable(given, value string) string {
	name := tableOfARN(given)
	if n := utf8.RuneCountInString(name); n < minTableNameChars || n > maxTableNameChars || !namePattern.MatchString(name) {
		v.fail("RequestItems", "'{"+given+"="+value+"}'", msgMapKeys)
	}
	return name
}

// name checks the name of a table or an index.
func (v *validator) name(member, name string) {
	least := minTableNameChars
	if name == "" && member == "TableName" {
		least = 1 // the member itself; what is given may also be an ARN
	}
	if !namePattern.MatchString(name) && least > 1 {
		v.fail(member, quoted(name), fmt.Sprintf(msgMemberPattern, namePatternText))
	}
	v.length(member, &name, least, maxTableNameChars)
}

// controlTableName is tableName for operations on tables, which answer for
// the name alone and with texts of their own.
func (v *validator) controlTableName(value *string) (string, error) {
	name, err := v.changedTableName(value)
	if err != nil {
		return "", err
	}
	return name, v.constrained()
}

// changedTableName is controlTableName where what the name does not satisfy is told
// with what other members do not.
func (v *validator) changedTableName(value *string) (string, error) {
	if value == nil {
		return "", validationError(fmt.Sprintf(msgParameterRequired, "TableName"))
	}
	name := tableOfARN(*value)
	n := utf8.RuneCountInString(name)
	wrongLength := n > 0 && (n < minTableNameChars || n > maxTableNameChars)
	if wrongLength && v.operation != "CreateTable" { // which says it by the constraint
		return "", validationError(msgTableNameLength)
	}
	v.name("TableName", name)
	return name, nil
}

// returnOptions checks the members that say what a call reports.
func (v *validator) returnOptions(capacity, collections *string) {
	v.enum("ReturnConsumedCapacity", capacity, "INDEXES", "TOTAL", "NONE")
	v.enum("ReturnItemCollectionMetrics", collections, "SIZE", "NONE")
}

// returnValues checks ReturnValues against the model's enum, whose text has
// another form in the newer wording.
func (v *validator) returnValues(value, onFailure *string) {
	v.movedEnum("ReturnValues", value, msgReturnValuesEnum, "ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW")
	v.enum("ReturnValuesOnConditionCheckFailure", onFailure, "ALL_OLD", "NONE")
}

// joiningOperator checks ConditionalOperator against the model's enum,
// whose text has another form in the newer wording, but for Scan.
func (v *validator) joiningOperator(value *string) {
	newer := wording.MsgConditionalOperatorEnum
	if v.operation == "Scan" {
		newer = ""
	}
	v.movedEnum("ConditionalOperator", value, newer, "OR", "AND")
}

// movedEnum is enum with a text of its own in the newer wording.
func (v *validator) movedEnum(member string, value *string, newer string, set ...string) {
	n := len(v.failures)
	v.enum(member, value, set...)
	if v.current && len(v.failures) > n {
		v.failures[n].Newer = newer
	}
}

// expressionParameter is one expression of a request, nil when not given.
type expressionParameter struct {
	name string
	text *string
}

// expressionStyle checks the way a request uses expressions: not together with
// legacy parameters, names and values only with an expression. What the names
// and values are is for placeholders, which comes after the other members.
func (v *validator) expressionStyle(names map[string]string, values map[string]wire.Value, expressions []expressionParameter, legacy []string) error {
	var given, absent []string // absent: of those that can use values
	valued := false
	for _, e := range expressions {
		uses := e.name != "ProjectionExpression"
		switch {
		case e.text != nil:
			given = append(given, e.name)
			valued = valued || uses
		case uses:
			absent = append(absent, e.name)
		}
	}
	if len(legacy) > 0 && len(given) > 0 {
		return v.reject(fmt.Sprintf(msgMixedStyles, strings.Join(legacy, ", "), strings.Join(given, ", ")))
	}
	if len(given) == 0 && names != nil {
		return v.reject(msgNamesWithoutExpr)
	}
	if values != nil && !valued {
		if v.current {
			return v.reject(msgValuesWithoutExpr)
		}
		verb := "is"
		if len(absent) > 1 {
			verb = "are"
		}
		return v.reject(fmt.Sprintf(msgValuesWithoutExprNull, strings.Join(absent, " and "), verb))
	}
	return nil
}

// placeholders checks the names and values of the expressions of a request.
func (v *validator) placeholders(names map[string]string, values map[string]wire.Value) (*expr.Placeholders, error) {
	var plain map[string]attr.Value
	if values != nil {
		plain = make(map[string]attr.Value, len(values))
		for key, value := range values {
			plain[key] = value.Value
		}
	}
	p, err := expr.NewPlaceholders(names, plain)
	if err != nil {
		return nil, v.expression(err)
	}
	for _, key := range sortedKeys(values) {
		if err := values[key].Err; err != nil {
			return nil, v.wording().PlaceholderValue(key, err)
		}
	}
	return p, nil
}

// legacy checks the parameters from before expressions, and refuses as v does.
func (v *validator) legacy() legacy.Parameters {
	return legacy.Parameters{By: legacyRefuser{v}, Current: v.current}
}

// legacyRefuser is a validator as package legacy asks for one.
type legacyRefuser struct{ v *validator }

func (r legacyRefuser) Required(member string, present bool) { r.v.required(member, present) }

func (r legacyRefuser) Enum(member string, value *string, set ...string) {
	r.v.enum(member, value, set...)
}

func (r legacyRefuser) Value(err error) error { return r.v.value(err) }

func (r legacyRefuser) Reject(message string) error { return r.v.reject(message) }

func (r legacyRefuser) Refuse(message string) error { return validationError(message) }

// legacyGiven returns the names of the members that are there, in order.
func legacyGiven(members ...legacyMember) []string {
	var given []string
	for _, m := range members {
		if m.given {
			given = append(given, m.name)
		}
	}
	return given
}

// legacyMember is a parameter from before expressions.
type legacyMember struct {
	name  string
	given bool
}

func quoted(s string) string { return "'" + s + "'" }
