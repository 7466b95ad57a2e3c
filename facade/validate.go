package facade

import (
	"errors"
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
)

// validator checks the members of one request in AWS's order. Constraints of
// the API model gather first; constrained then answers for all of them. What
// comes after it fails at once.
type validator struct {
	operation string
	current   bool // MessagesCurrent
	failures  []failure
}

// failure is a constraint that a member of the request does not satisfy.
type failure struct {
	member  string
	text    string
	newer   string // in the newer wording, where the profile has it
	missing bool   // the member is not there
}

func (s *Server) validator(operation string) *validator {
	return &validator{operation: operation, current: s.opts.Messages == MessagesCurrent}
}

// newWording: the constraint errors with the newer wording, which names the
// member with capitals, shows no value, and comes before all others: those of
// an empty table name, the limits of reads, and the keys of a BatchGetItem. The
// latter two have it in every region, but for the limits of Scan.
func (v *validator) newWording(member, value string) bool {
	switch v.operation {
	case "PutItem", "UpdateItem", "DeleteItem", "GetItem":
		return v.current && member == "TableName" && value == "''"
	case "Query":
		return member == "Limit" || v.current && member == "TableName" && value == "''"
	case "Scan":
		return v.current && (member == "Limit" || member == "Segment" || member == "TotalSegments" || member == "TableName" && value == "''")
	case "BatchGetItem":
		return strings.HasSuffix(member, ".member.Keys") || v.current && member == "RequestItems"
	default:
		return false
	}
}

// reject is a failure of an expression or a value. Three operations carry the
// newer prefix.
func (v *validator) reject(message string) error {
	switch v.operation {
	case "PutItem", "UpdateItem", "DeleteItem":
		if v.current {
			message = fmt.Sprintf(msgValidationErrors, 1, "", message)
		}
	}
	return validationError(message)
}

// rejectSelect is a failure of Select: of the two operations that have it, Query
// carries the newer prefix.
func (v *validator) rejectSelect(message string) error {
	if v.current && v.operation == "Query" {
		message = fmt.Sprintf(msgValidationErrors, 1, "", message)
	}
	return validationError(message)
}

// fail records a failed constraint of a member. value is the text AWS shows:
// quoted, or "null".
func (v *validator) fail(member, value, constraint string) {
	f := failure{member: member, text: fmt.Sprintf(msgMemberClassic, value, lowerPath(member), constraint), missing: value == "null"}
	if v.newWording(member, value) {
		f.newer = fmt.Sprintf(msgMemberCurrent, member, constraint)
	}
	v.failures = append(v.failures, f)
}

// memberOrder is the order in which an operation's failures are listed.
// Operations and members that are not here: as they are checked.
var memberOrder = map[string][]string{
	"CreateTable": {"AttributeDefinitions", "TableName", "BillingMode", "ProvisionedThroughput", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes"},
	"UpdateTable": {"AttributeDefinitions", "TableName", "BillingMode", "ProvisionedThroughput", "GlobalSecondaryIndexUpdates"},
	"DeleteItem":  {"ReturnConsumedCapacity", "TableName", "ReturnValues", "ReturnItemCollectionMetrics", "ConditionalOperator", "Key"},
	"GetItem":     {"ReturnConsumedCapacity", "AttributesToGet", "TableName", "Key"},
	"Query":       {"Select", "IndexName", "ReturnConsumedCapacity", "QueryFilter", "TableName", "ConditionalOperator", "AttributesToGet", "Limit", "KeyConditions"},
	"Scan":        {"Select", "IndexName", "Segment", "TotalSegments", "ReturnConsumedCapacity", "TableName", "ConditionalOperator", "ScanFilter", "Limit", "AttributesToGet"},
	"PutItem":     {"ReturnConsumedCapacity", "TableName", "Item", "ConditionalOperator", "Expected", "ReturnValues", "ReturnItemCollectionMetrics"},
	"UpdateItem":  {"ReturnConsumedCapacity", "TableName", "ReturnItemCollectionMetrics", "ReturnValues", "ConditionalOperator", "Key"},
}

func (v *validator) rank(f failure) int {
	order := memberOrder[v.operation]
	root, _, _ := strings.Cut(f.member, ".")
	if i := slices.Index(order, root); i >= 0 {
		return i
	}
	return len(order)
}

// isWrite reports whether the operation writes one item.
func (v *validator) isWrite() bool {
	return v.operation == "PutItem" || v.operation == "UpdateItem" || v.operation == "DeleteItem"
}

// constrained answers for the constraints checked so far.
func (v *validator) constrained() error {
	slices.SortStableFunc(v.failures, func(a, b failure) int { return v.rank(a) - v.rank(b) })
	var older, newer []string
	missing := false
	for _, f := range v.failures {
		missing = missing || f.missing
		switch {
		case f.newer == "":
			older = append(older, f.text)
		case v.current:
			newer = append(newer, f.newer)
		case len(newer) == 0:
			newer = []string{f.newer} // stops at the first
		}
	}
	texts := newer
	switch {
	case v.current && missing:
		// Such a request gets no further than the older checks.
		texts = nil
		for _, f := range v.failures {
			texts = append(texts, f.text)
		}
	case len(newer) == 0, !v.current && len(older) > 0:
		texts = older
	case newer[0] == msgConditionalOperatorEnum && !v.isWrite():
		return validationError(newer[0])
	case v.isWrite():
		texts = newer[:1]
	}
	n := min(len(texts), maxMemberErrorCount)
	if n == 0 {
		return nil
	}
	plural := "s"
	if n == 1 {
		plural = ""
	}
	return validationError(fmt.Sprintf(msgValidationErrors, n, plural, strings.Join(texts[:n], "; ")))
}

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
	switch n := utf8.RuneCountInString(name); {
	case n < least:
		v.fail(member, quoted(name), fmt.Sprintf(msgMemberMinLength, least))
	case n > maxTableNameChars:
		v.fail(member, quoted(name), fmt.Sprintf(msgMemberMaxLength, maxTableNameChars))
	}
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
	newer := msgConditionalOperatorEnum
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
		v.failures[n].newer = newer
	}
}

// value checks what decoding left to say about a value or an item.
func (v *validator) value(err error) error {
	if err == nil {
		return nil
	}
	var e *attr.Error
	switch {
	case errors.As(err, &e) && (isUntyped(e) || e.Problem == attr.ManyTypes) && v.newValueWording():
		return validationError(v.attributeErrorText(err)) // it has no prefix
	default:
		return v.reject(v.attributeErrorText(err))
	}
}

// isUntyped reports whether a value has no type.
func isUntyped(e *attr.Error) bool { return e.Problem == attr.NoType || e.Problem == attr.UnknownType }

// placeholderValue is value for an expression attribute value.
func (v *validator) placeholderValue(key string, err error) error {
	text := v.attributeErrorText(err)
	named := fmt.Sprintf(msgValueInvalid, text, key)
	var e *attr.Error
	switch {
	case !v.newValueWording() || !errors.As(err, &e):
		return v.reject(named)
	case isUntyped(e):
		return validationError(text)
	case e.Problem == attr.ManyTypes:
		return validationError(named)
	case e.IsNumber(), e.Problem == attr.DuplicateMember, e.Problem == attr.NullNotTrue, e.Problem == attr.TooDeep:
		return v.reject(text)
	case e.Problem == attr.EmptySet && v.isWrite():
		return v.reject(text)
	default:
		return v.reject(named)
	}
}

// newValueWording: the operations whose errors about values moved to the newer
// wording.
func (v *validator) newValueWording() bool {
	switch v.operation {
	case "BatchWriteItem", "Scan", "TransactGetItems", "TransactWriteItems":
		return false
	default:
		return v.current
	}
}

// attributeErrorText is AWS's text for an error of package attr.
func (v *validator) attributeErrorText(err error) string {
	var e *attr.Error
	if errors.As(err, &e) {
		if text := e.CurrentAWSMessage(); text != "" && v.newValueWording() {
			return text
		}
		if text, _ := e.AWSMessage(); text != "" {
			return text
		}
	}
	return err.Error()
}

// expression gives an error of package expr its place in the answer.
func (v *validator) expression(err error) error {
	if err == nil {
		return nil
	}
	var e *expr.Error
	if errors.As(err, &e) {
		if v.current || e.Classic == "" {
			return v.reject(e.Message)
		}
		return v.reject(e.Classic)
	}
	return err
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
			return nil, v.placeholderValue(key, err)
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

// lowerPath writes the path of a member as the older wording does, each name
// with a small first letter.
func lowerPath(member string) string {
	names := strings.Split(member, ".")
	for i, name := range names {
		if name != "" {
			names[i] = strings.ToLower(name[:1]) + name[1:]
		}
	}
	return strings.Join(names, ".")
}
