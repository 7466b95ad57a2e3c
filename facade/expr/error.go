package expr

import "fmt"

// Kind is where an expression stands in a request.
type Kind uint8

// The kinds of expressions. Filter expressions are conditions by another name.
const (
	ConditionExpression Kind = iota + 1
	FilterExpression
	KeyConditionExpression
	ProjectionExpression
	UpdateExpression
)

var kindNames = [...]string{
	ConditionExpression:    "ConditionExpression",
	FilterExpression:       "FilterExpression",
	KeyConditionExpression: "KeyConditionExpression",
	ProjectionExpression:   "ProjectionExpression",
	UpdateExpression:       "UpdateExpression",
}

// String returns the name of the request parameter, "ConditionExpression", ….
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// Error is an expression that DynamoDB refuses with a ValidationException.
// Message is DynamoDB's whole text.
type Error struct {
	Message string
	// Classic is the older wording, "" where it is the same.
	Classic string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrOperandType is the error of an update that meets an item whose attribute
// has another type than an operator takes. The legacy AttributeUpdates have a
// text of their own for it.
var ErrOperandType = newError(msgUpdateOperand)

func newError(format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

// invalid is the error of an expression of kind k.
func (k Kind) invalid(format string, args ...any) *Error {
	return &Error{Message: "Invalid " + k.String() + ": " + fmt.Sprintf(format, args...)}
}

// orClassic gives e its older wording.
func (e *Error) orClassic(older *Error) *Error {
	e.Classic = older.Message
	return e
}

// DynamoDB's texts, without what stands before them. They are facts of the
// service, seen in captures of it; the two marked as ours are for limits whose
// text is in no capture.
const (
	msgEmpty          = "The expression can not be empty;"
	msgTooLong        = "Expression size has exceeded the maximum allowed size;"         // of updates and projections
	msgTooLongSize    = msgTooLong + " expression size: %d"                              // of conditions of all kinds
	msgTooManyOps     = "The expression contains too many operators; operator count: %d" // ours
	msgSyntax         = `Syntax error; token: "%s", near: "%s"`
	msgReserved       = "Attribute name is a reserved keyword; reserved keyword: %s"
	msgNameUndefined  = "An expression attribute name used in the document path is not defined; attribute name: %s"
	msgValueUndefined = "An expression attribute value used in expression is not defined; attribute value: %s"
	msgUnknownFunc    = "Invalid function name; function: %s"
	msgNotInUpdate    = "The function is not allowed in an update expression; function: %s"
	msgNotInCondition = "The function is not allowed in a condition expression; function: %s"
	msgMisused        = "The function is not allowed to be used this way in an expression; function: %s"
	msgOperandCount   = "Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d"
	msgOperandType    = "Incorrect operand type for operator or function; operator or function: %s, operand type: %s"
	msgClauseType     = msgClauseClassic + ", typeSet: ALLOWED_FOR_ADD_OPERAND" // of DELETE too
	msgClauseClassic  = "Incorrect operand type for operator or function; operator: %s, operand type: %s"
	msgPathWanted     = "Operator or function requires a document path; operator or function: %s"
	msgNotDistinct    = "The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s"
	msgTypeName       = "Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"
	msgParentheses    = "The expression has redundant parentheses;"
	msgBetweenTypes   = "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: %s, upper bound operand: %s"
	msgBetweenOrder   = "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: %s, upper bound operand: %s"
	msgSectionTwice   = `The "%s" section can only be used once in an update expression;`
	msgOverlap        = "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s"
	msgConflict       = "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: %s, path two: %s"
	msgPathTooDeep    = "The document path has too many nesting levels; nesting levels: %d"
	msgIndexRange     = "List index is not within the allowable range; index: [%s]"

	msgUpdatePath    = "The document path provided in the update expression is invalid for update"
	msgUpdateOperand = "An operand in the update expression has an incorrect data type"
	msgUpdateMissing = "The provided expression refers to an attribute that does not exist in the item"

	msgNamesEmpty   = "ExpressionAttributeNames must not be empty"
	msgValuesEmpty  = "ExpressionAttributeValues must not be empty"
	msgNameKey      = `ExpressionAttributeNames contains invalid key: Syntax error; key: "%s"`
	msgValueKey     = `ExpressionAttributeValues contains invalid key: Syntax error; key: "%s"`
	msgNameValue    = "ExpressionAttributeNames contains invalid value: Attribute name must be between 1 and 65535 bytes long; key: %s" // ours
	msgNameEmpty    = "ExpressionAttributeNames contains invalid value: Empty attribute name for key %s"
	msgTooLarge     = "Expression attribute names and values have exceeded the maximum allowed size of %d bytes; size: %d" // ours
	msgInvalidValue = "ExpressionAttributeValues contains invalid value: %s for key %s"
	msgNamesUnused  = "Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}"
	msgValuesUnused = "Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}"

	msgKeyOperator     = "Invalid operator used in KeyConditionExpression: %s"
	msgKeyNested       = "KeyConditionExpressions cannot contain nested operations"
	msgKeyFirst        = "Invalid condition in KeyConditionExpression: %s operator must have the key attribute as its first operand"
	msgKeyManyNames    = "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"
	msgKeyNestedAttr   = "KeyConditionExpressions cannot have conditions on nested attributes"
	msgKeyNoName       = "Invalid condition in KeyConditionExpression: No key attribute specified"
	msgKeyTwice        = "Invalid KeyConditionExpression: " + msgKeyTwiceClassic
	msgKeyTwiceClassic = "KeyConditionExpressions must only contain one condition per key"
	msgKeyCount        = "The number of query conditions (%d) exceeds the number of key attributes defined in the schema (%d)"
	msgKeyCountClassic = "Conditions can be of length 1 or 2 only"
	msgKeyHashMissed   = "HASH key attributes %s must have equality conditions specified in the query"
	msgKeyRangeMissed  = "RANGE key attributes %s must have equality conditions specified in the query because a condition is present on key attribute %s"
	msgKeyMissed       = "Query condition missed key schema element: %s"
	msgKeyUnsupported  = "Query key condition not supported"
	msgKeyNotIndexable = "Attempted conditional constraint is not an indexable operation"
	msgKeyType         = "One or more parameter values were invalid: Condition parameter type does not match schema type"
)
