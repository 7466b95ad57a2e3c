package request

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/expr"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Validator checks the members of one request in AWS's order. It first collects the
// violated constraints of the API model; Constrained returns their error. Later checks
// return an error at once, in the wording of the Request.
type Validator struct {
	Request
	failures Failures
}

// NewValidator returns a Validator for a request.
func NewValidator(r Request) Validator { return Validator{Request: r} }

// Fail records that a member violates a constraint. value is AWS's text for the member:
// Quoted, or "null".
func (v *Validator) Fail(member, value, constraint string) {
	v.failures.Add(v.Request, member, value, constraint)
}

// Constrained returns the error for all constraints that were violated so far.
func (v *Validator) Constrained() error { return v.failures.Err(v.Request) }

// Required records a violation if a required member is missing.
func (v *Validator) Required(member string, present bool) {
	if !present {
		v.Fail(member, "null", awserr.MsgMemberNotNull)
	}
}

// Enum checks that an optional member is one of the values in set, which is in AWS's
// order.
func (v *Validator) Enum(member string, value *string, set ...string) {
	if value != nil && !slices.Contains(set, *value) {
		v.Fail(member, Quoted(*value), fmt.Sprintf(awserr.MsgMemberEnum, strings.Join(set, ", ")))
	}
}

// AtLeast checks the minimum of an optional member.
func (v *Validator) AtLeast(member string, value *int32, least int32) {
	if value != nil && *value < least {
		v.Fail(member, Quoted(strconv.Itoa(int(*value))), fmt.Sprintf(awserr.MsgMemberMinValue, least))
	}
}

// AtMost checks the maximum of an optional member.
func (v *Validator) AtMost(member string, value *int32, most int32) {
	if value != nil && *value > most {
		v.Fail(member, Quoted(strconv.Itoa(int(*value))), fmt.Sprintf(awserr.MsgMemberMaxValue, most))
	}
}

// Length checks the number of characters in an optional member.
func (v *Validator) Length(member string, value *string, least, most int) {
	if value == nil {
		return
	}
	switch n := utf8.RuneCountInString(*value); {
	case n < least:
		v.Fail(member, Quoted(*value), fmt.Sprintf(awserr.MsgMemberMinLength, least))
	case n > most:
		v.Fail(member, Quoted(*value), fmt.Sprintf(awserr.MsgMemberMaxLength, most))
	}
}

// Pattern checks that an optional member matches a regular expression as a whole. The
// error shows the expression as the model spells it.
func (v *Validator) Pattern(member string, value *string, pattern string) {
	if value != nil && !regexp.MustCompile("^(?:"+pattern+")$").MatchString(*value) {
		v.Fail(member, Quoted(*value), fmt.Sprintf(awserr.MsgMemberPattern, pattern))
	}
}

// Count checks that a required list has 1 to most elements. The error for too many shows only
// their number, followed by the noun elements.
func (v *Validator) Count(member string, absent bool, n, most int, elements string) {
	switch {
	case absent:
		v.Required(member, false)
	case n == 0:
		v.Fail(member, "'[]'", fmt.Sprintf(awserr.MsgMemberMinLength, 1))
	case n > most:
		v.Fail(member, fmt.Sprintf("'[%d %s]'", n, elements), fmt.Sprintf(awserr.MsgMemberMaxLength, most))
	}
}

// Statement is a PartiQL statement in a list of statements.
type Statement struct {
	Text       *string
	Parameters []wire.Parameter
	More       []string // AWS's text that follows the parameters
}

// Statements checks the number of elements in a list of statements. The error for too
// many statements shows them, with the parameters of each only as a number. Beyond twice
// the limit, it shows only the number of further statements. kind is the name of an
// element in the API model.
func (v *Validator) Statements(member, kind string, absent bool, n, most int, at func(i int) Statement) {
	if n <= most {
		v.Count(member, absent, n, most, "")
		return
	}
	shown := make([]string, min(n, 2*most))
	for i := range shown {
		st, parameters := at(i), "null"
		if st.Parameters != nil {
			parameters = fmt.Sprintf("[%d parameters]", len(st.Parameters))
		}
		shown[i] = fmt.Sprintf(awserr.MsgStatementShown, kind, OrNull(st.Text), parameters, strings.Join(st.More, ", "))
	}
	if n > len(shown) {
		shown = append(shown, fmt.Sprintf("[%d statements]", n-len(shown)))
	}
	v.Fail(member, Quoted("["+strings.Join(shown, ", ")+"]"), fmt.Sprintf(awserr.MsgMemberMaxLength, most))
}

// Limits of the lengths of names.
const (
	MinTableNameChars = 3
	MaxTableNameChars = 255
	MaxTableARNChars  = 1024
)

const namePatternText = "[a-zA-Z0-9_.-]+"

var (
	namePattern = regexp.MustCompile("^" + namePatternText + "$")
	tableARN    = regexp.MustCompile(`^arn:[a-z-]+:dynamodb:[a-z0-9-]*:[0-9]*:table/([^/]+)$`)
)

// TableName checks the member TableName of an operation on items, and returns the name.
// The member may be an ARN.
func (v *Validator) TableName(value *string) string {
	const member = "TableName"
	if value == nil {
		v.Required(member, false)
		return ""
	}
	name := TableOfARN(*value)
	v.Name(member, name)
	return name
}

// TableOfARN returns the name in the ARN of a table. It returns any other text unchanged.
func TableOfARN(given string) string {
	if m := tableARN.FindStringSubmatch(given); m != nil && len(given) <= MaxTableARNChars {
		return m[1]
	}
	return given
}

// ARN is the parsed ARN of a table or of a part of a table.
type ARN struct{ Region, Account, Table, Rest string }

// String returns the text that ParseARN parses.
func (a ARN) String() string {
	return "arn:aws:dynamodb:" + a.Region + ":" + a.Account + ":table/" + a.Table + a.Rest
}

// Compiled on first use, to keep the start fast.
var resourceARN = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^arn:[a-z-]+:dynamodb:([a-z0-9-]*):([0-9]*):table/([^/]*)(/.*)?$`)
})

// ParseARN parses the ARN of a table or of a part of a table. ok is false for any other
// text. Rest begins with a slash, or is empty for a table. ParseARN does not check the
// name.
func ParseARN(arn string) (a ARN, ok bool) {
	m := resourceARN().FindStringSubmatch(arn)
	if m == nil {
		return a, false
	}
	return ARN{m[1], m[2], m[3], m[4]}, true
}

// BatchTables checks the names in RequestItems, which may be ARNs of tables. echo returns
// RequestItems in AWS's format.
func (v *Validator) BatchTables(given []string, echo func() string) {
	for _, g := range given {
		if !IsTableName(TableOfARN(g)) {
			v.Fail("RequestItems", Quoted(echo()), awserr.MsgMapKeys)
			return
		}
	}
}

// IsTableName reports whether a table can have the given name.
func IsTableName(name string) bool {
	n := utf8.RuneCountInString(name)
	return MinTableNameChars <= n && n <= MaxTableNameChars && namePattern.MatchString(name)
}

// Name checks the name of a table or an index.
func (v *Validator) Name(member, name string) {
	least := MinTableNameChars
	if name == "" && member == "TableName" {
		least = 1 // the member itself; the value may also be an ARN
	}
	if !namePattern.MatchString(name) && least > 1 {
		v.Fail(member, Quoted(name), fmt.Sprintf(awserr.MsgMemberPattern, namePatternText))
	}
	v.Length(member, &name, least, MaxTableNameChars)
}

// ControlTableName is like TableName, but checks operations on tables. Their errors have
// different texts, which show only the name.
func (v *Validator) ControlTableName(value *string) (string, error) {
	name, err := v.ChangedTableName(value)
	if err != nil {
		return "", err
	}
	return name, v.Constrained()
}

// ChangedTableName is like ControlTableName, but reports violated constraints of the name
// together with those of other members.
func (v *Validator) ChangedTableName(value *string) (string, error) {
	if value == nil {
		return "", awserr.Validation(awserr.MsgParameterRequired, "TableName")
	}
	name := TableOfARN(*value)
	n := utf8.RuneCountInString(name)
	if n == 0 && v.Operation == "DescribeTable" { // the only operation known to report both
		v.Length("TableName", value, MinTableNameChars, MaxTableNameChars)
		v.Pattern("TableName", value, namePatternText)
		return "", v.Constrained()
	}
	wrongLength := n > 0 && (n < MinTableNameChars || n > MaxTableNameChars)
	if wrongLength && v.Operation != "CreateTable" { // CreateTable reports it as a constraint
		return "", awserr.Validation(awserr.MsgNameLength, "TableName")
	}
	v.Name("TableName", name)
	return name, nil
}

// WatchedIndex checks the name of an index for contributor insights. A nil name means the
// table itself.
func (v *Validator) WatchedIndex(name *string) error {
	if name == nil {
		return nil
	}
	if n := utf8.RuneCountInString(*name); n < MinTableNameChars || n > MaxTableNameChars {
		return awserr.Validation(awserr.MsgNameLength, "IndexName")
	}
	v.Name("IndexName", *name)
	return nil
}

// ReturnOptions checks the members that select the contents of the response. In the newer
// wording of two operations, ReturnItemCollectionMetrics has a different text.
func (v *Validator) ReturnOptions(capacity, collections *string) {
	v.Enum("ReturnConsumedCapacity", capacity, "INDEXES", "TOTAL", "NONE")
	newer := ""
	if v.Operation == "PutItem" || v.Operation == "DeleteItem" {
		newer = awserr.MsgCollectionMetricsEnum
	}
	v.movedEnum("ReturnItemCollectionMetrics", collections, newer, "SIZE", "NONE")
}

// ReturnValues checks ReturnValues against the enum of the API model. Its error has a
// different text in the newer wording.
func (v *Validator) ReturnValues(value, onFailure *string) {
	v.movedEnum("ReturnValues", value, awserr.MsgReturnValuesEnum, "ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW")
	v.Enum("ReturnValuesOnConditionCheckFailure", onFailure, "ALL_OLD", "NONE")
}

// JoiningOperator checks ConditionalOperator against the enum of the API model. Its error
// has a different text in the newer wording.
func (v *Validator) JoiningOperator(value *string) {
	v.movedEnum("ConditionalOperator", value, awserr.MsgConditionalOperatorEnum, "OR", "AND")
}

// movedEnum is like Enum, but has a separate text in the newer wording.
func (v *Validator) movedEnum(member string, value *string, newer string, set ...string) {
	n := len(v.failures)
	v.Enum(member, value, set...)
	if v.Current && len(v.failures) > n {
		v.failures[n].Newer = newer
	}
}

// ExpressionParameter is one expression of a request. It is nil if the request does not
// have the expression.
type ExpressionParameter struct {
	Name string
	Text *string
}

// ExpressionStyle checks that expressions are not combined with legacy parameters, and
// that names and values are only given together with an expression. Placeholders checks
// the names and values themselves, after the other members.
func (v *Validator) ExpressionStyle(names map[string]string, values map[string]wire.Value, expressions []ExpressionParameter, legacy []string) error {
	var given, absent []string // absent: the missing ones that could use values
	valued := false
	for _, e := range expressions {
		uses := e.Name != "ProjectionExpression"
		switch {
		case e.Text != nil:
			given = append(given, e.Name)
			valued = valued || uses
		case uses:
			absent = append(absent, e.Name)
		}
	}
	if len(legacy) > 0 && len(given) > 0 {
		return v.Reject(fmt.Sprintf(awserr.MsgMixedStyles, strings.Join(legacy, ", "), strings.Join(given, ", ")))
	}
	if len(given) == 0 && names != nil {
		return v.Reject(awserr.MsgNamesWithoutExpr)
	}
	if values != nil && !valued {
		if v.Current {
			return v.Reject(awserr.MsgValuesWithoutExpr)
		}
		verb := "is"
		if len(absent) > 1 {
			verb = "are"
		}
		return v.Reject(fmt.Sprintf(awserr.MsgValuesWithoutExprNull, strings.Join(absent, " and "), verb))
	}
	return nil
}

// Placeholders checks the names and values of the expressions of a request.
func (v *Validator) Placeholders(names map[string]string, values map[string]wire.Value) (*expr.Placeholders, error) {
	var plain map[string]attr.Value
	if values != nil {
		plain = make(map[string]attr.Value, len(values))
		for key, value := range values {
			plain[key] = value.Value
		}
	}
	p, err := expr.NewPlaceholders(names, plain)
	if err != nil {
		return nil, v.Expression(err)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := values[key].Err; err != nil {
			return nil, v.PlaceholderValue(key, err)
		}
	}
	return p, nil
}

// Legacy returns a LegacyParameters that uses the wording of v.
func (v *Validator) Legacy() LegacyParameters {
	return LegacyParameters{v}
}

// Given returns the names of those members that are given, in order.
func Given(members ...LegacyMember) []string {
	var given []string
	for _, m := range members {
		if m.Given {
			given = append(given, m.Name)
		}
	}
	return given
}

// LegacyMember is a parameter that expressions replaced.
type LegacyMember struct {
	Name  string
	Given bool
}

// Quoted quotes a text in the way that AWS does in a failed constraint.
func Quoted(s string) string { return "'" + s + "'" }
