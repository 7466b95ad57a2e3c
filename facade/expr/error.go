package expr

import "fmt"

// Kind is the role of an expression in a request.
type Kind uint8

// Kinds of expressions. A filter expression has the syntax of a condition.
const (
	ConditionExpression Kind = iota + 1
	FilterExpression
	KeyConditionExpression
	ProjectionExpression
	UpdateExpression
	SearchConditionExpression
	// Statement is a PartiQL statement. Its errors do not name the kind of expression.
	Statement
)

var kindNames = [...]string{
	ConditionExpression:    "ConditionExpression",
	FilterExpression:       "FilterExpression",
	KeyConditionExpression: "KeyConditionExpression",
	ProjectionExpression:   "ProjectionExpression",
	UpdateExpression:       "UpdateExpression",

	SearchConditionExpression: "SearchConditionExpression",
}

// String returns the name of the request parameter, such as "ConditionExpression".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// Error is the error of a ValidationException with which DynamoDB rejects an expression.
type Error struct {
	Message string // the complete text
	// Classic is the older wording, or "" if the wording did not change.
	Classic string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrOperandType means that an operator of an update does not accept the type of the item's
// attribute. For the legacy AttributeUpdates, the service has another text.
var ErrOperandType = newError(msgUpdateOperand)

func newError(format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

// invalid returns an error for an expression of kind k. Unless k is Statement, the message
// begins with "Invalid <kind>: ".
func (k Kind) invalid(format string, args ...any) *Error {
	if k == Statement {
		return newError(format, args...)
	}
	return &Error{Message: "Invalid " + k.String() + ": " + fmt.Sprintf(format, args...)}
}

// orClassic sets the older wording of e to the message of older, and returns e.
func (e *Error) orClassic(older *Error) *Error {
	e.Classic = older.Message
	return e
}

// DynamoDB's texts, without the prefixes, as captured from the service. "our own text" marks limits
// whose text has not been captured. The comment after a text names its row in
// ../testdata/messages.tsv; texts without a comment have no row yet.
const (
	msgEmpty          = "The expression can not be empty;"                                                          // row 75
	msgTooLong        = "Expression size has exceeded the maximum allowed size;"                                    // row 92b, of updates and projections
	msgTooLongSize    = msgTooLong + " expression size: %d"                                                         // row 92, of conditions of all kinds
	msgTooManyOps     = "The expression contains too many operators; operator count: %d"                            // our own text
	msgSyntax         = `Syntax error; token: "%s", near: "%s"`                                                     // row 76
	msgReserved       = "Attribute name is a reserved keyword; reserved keyword: %s"                                // row 77
	msgNameUndefined  = "An expression attribute name used in the document path is not defined; attribute name: %s" // row 77b
	msgValueUndefined = "An expression attribute value used in expression is not defined; attribute value: %s"      // row 78
	msgUnknownFunc    = "Invalid function name; function: %s"                                                       // row 79
	msgNotInUpdate    = "The function is not allowed in an update expression; function: %s"
	msgNotInCondition = "The function is not allowed in a condition expression; function: %s"
	msgMisused        = "The function is not allowed to be used this way in an expression; function: %s"                          // row 84
	msgOperandCount   = "Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d" // row 80
	msgOperandType    = "Incorrect operand type for operator or function; operator or function: %s, operand type: %s"             // row 81
	msgClauseType     = msgClauseClassic + ", typeSet: ALLOWED_FOR_ADD_OPERAND"                                                   // of DELETE too
	msgClauseClassic  = "Incorrect operand type for operator or function; operator: %s, operand type: %s"
	msgPathWanted     = "Operator or function requires a document path; operator or function: %s"                                                                // row 82
	msgNotDistinct    = "The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s"          // row 83
	msgTypeName       = "Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"                                               // row 85
	msgParentheses    = "The expression has redundant parentheses;"                                                                                              // row 86
	msgBetweenTypes   = "The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: %s, upper bound operand: %s"              // row 90
	msgBetweenOrder   = "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: %s, upper bound operand: %s" // row 91
	msgSectionTwice   = `The "%s" section can only be used once in an update expression;`                                                                        // row 87
	msgOverlap        = "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s"                      // row 88
	msgConflict       = "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: %s, path two: %s"                     // row 89
	msgPathTooDeep    = "The document path has too many nesting levels; nesting levels: %d"
	msgIndexRange     = "List index is not within the allowable range; index: [%s]"

	msgUpdatePath    = "The document path provided in the update expression is invalid for update"      // row 93
	msgUpdateOperand = "An operand in the update expression has an incorrect data type"                 // row 94
	msgUpdateMissing = "The provided expression refers to an attribute that does not exist in the item" // row 95

	msgNamesEmpty   = "ExpressionAttributeNames must not be empty"                                                                      // row 100
	msgValuesEmpty  = "ExpressionAttributeValues must not be empty"                                                                     // row 100
	msgNameKey      = `ExpressionAttributeNames contains invalid key: Syntax error; key: "%s"`                                          // row 101
	msgValueKey     = `ExpressionAttributeValues contains invalid key: Syntax error; key: "%s"`                                         // row 101
	msgNameValue    = "ExpressionAttributeNames contains invalid value: Attribute name must be between 1 and 65535 bytes long; key: %s" // our own text
	msgNameEmpty    = "ExpressionAttributeNames contains invalid value: Empty attribute name for key %s"
	msgTooLarge     = "Expression attribute names and values have exceeded the maximum allowed size of %d bytes; size: %d" // our own text
	msgNamesUnused  = "Value provided in ExpressionAttributeNames unused in expressions: keys: {%s}"                       // row 103
	msgValuesUnused = "Value provided in ExpressionAttributeValues unused in expressions: keys: {%s}"                      // row 104

	msgKeyOperator     = "Invalid operator used in KeyConditionExpression: %s" // row 128
	msgKeyNested       = "KeyConditionExpressions cannot contain nested operations"
	msgKeyFirst        = "Invalid condition in KeyConditionExpression: %s operator must have the key attribute as its first operand"
	msgKeyManyNames    = "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"
	msgKeyNestedAttr   = "KeyConditionExpressions cannot have conditions on nested attributes"
	msgKeyNoName       = "Invalid condition in KeyConditionExpression: No key attribute specified"                             // row 130
	msgKeyTwice        = "Invalid KeyConditionExpression: " + msgKeyTwiceClassic                                               // row 129
	msgKeyTwiceClassic = "KeyConditionExpressions must only contain one condition per key"                                     // row 129
	msgKeyCount        = "The number of query conditions (%d) exceeds the number of key attributes defined in the schema (%d)" // row 123b
	msgKeyCountClassic = "Conditions can be of length 1 or 2 only"                                                             // row 123, classic
	msgKeyHashMissed   = "HASH key attributes %s must have equality conditions specified in the query"                         // row 131
	msgKeyRangeMissed  = "RANGE key attributes %s must have equality conditions specified in the query because a condition is present on key attribute %s"
	msgKeyMissed       = "Query condition missed key schema element: %s"                                                  // row 124
	msgKeyUnsupported  = "Query key condition not supported"                                                              // row 125
	msgKeyNotIndexable = "Attempted conditional constraint is not an indexable operation"                                 // row 126
	msgKeyType         = "One or more parameter values were invalid: Condition parameter type does not match schema type" // row 127
)
