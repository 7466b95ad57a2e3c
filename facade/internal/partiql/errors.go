package partiql

import "fmt"

// Error is the ValidationException with which DynamoDB rejects a statement. Message is
// the complete text.
type Error struct {
	Message      string
	Problem      Problem
	Table, Index string // source of a SELECT with the problem CallInColumns, if it was parsed
}

// Problem distinguishes the errors for which operations return texts of their own.
type Problem uint8

// Problems of statements.
const (
	_             Problem = iota // any other
	NoKey                        // the WHERE does not select a single item
	WrongKey                     // the type of a value differs from that of its key attribute
	CallInColumns                // a SELECT calls a function, such as COUNT(*)
)

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func refuse(format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

func refuseKey(problem Problem, format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...), Problem: problem}
}

// malformed returns the error of a statement that cannot be parsed.
func malformed(detail string) error { return refuse(msgMalformed, detail) }

// NestedParameter returns the error for a parameter that is nested one level too deeply.
// Deeper nesting gets the usual text for values.
func NestedParameter() error { return refuse(msgNestedValue) }

// DynamoDB's texts for statements, as captured from the service; "assumed" marks texts that
// have not been captured.
const (
	msgMalformed    = "Statement wasn't well formed, can't be processed: %s"
	msgLeftover     = "Unexpected token after expression"
	msgSecond       = "Unexpected token after semicolon. (Only one query is allowed.)"
	msgTerm         = "Unexpected term"
	msgKeyword      = "Unexpected keyword"
	msgOperator     = "Unexpected operator"
	msgRightHand    = "Missing right-hand side expression of infix operator"
	msgManipulation = "Expected data manipulation"
	msgSimplePath   = "Expected identifier for simple path"
	msgFromOfDelete = "Expected FROM after DELETE"
	msgTypeName     = "Expected type name"
	msgAndOfBetween = "Expected AND keyword"
	msgBehindAnd    = "Expected expression after AND"
	msgExpected     = "Expected %s"
	msgDotComponent = "Invalid path dot component"
	msgTooDeep      = "Nesting Levels have exceeded supported limits under root"
	msgParameterIn  = "Unsupported data type: Parameter under key %s at %s"
	msgAliasing     = "Aliasing is not supported"
	msgComponent    = "Unexpected path component at %s"
	msgFunction     = "Unrecognized function: %s at %s"
	msgExpression   = "Unsupported operation: %s"
	msgToken        = "Unsupported token in expression: %s at %s"
	msgClause       = "Unsupported clause: %s at %s" // assumed
	msgMissing      = "MISSING must be compared using IS operator"
	msgOperatorIn   = "Unsupported operator in Condition Expression. Operator: %s"
	msgIsType       = "Unsupported data type for IS operator: %s" // assumed after "operator"
	msgEmptyBag     = "Empty bags are not supported"
	msgBagType      = "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags at %s"
	msgUnderKey     = "Unsupported data type: %s under key root at %s"
	msgIon          = "Ion Literals are not supported: %s under key root at %s"
	msgEmptyName    = "Path component cannot be an empty string"
	msgLongSource   = "A path may contain at most 2 components in the FROM clause"
	msgInsertIndex  = "FROM clause may only contain a single table name in data manipulation statements at %s"
	msgJoin         = "Only select from a single table or index is supported."
	msgNoBoolean    = "WHERE clause must contain an expression that resolves to a boolean"
	msgKeyTwice     = "Multiple conditions on same key"
	msgOverlap      = "Overlapping conditions with range keys are not supported in where clause"
	msgKeyType      = "Key attribute's data type should match its data type in table's schema: Key %s"
	msgKeyKind      = "Key value must be of type S, N, or B. Key name: %s, Key type: %s"
	msgNoKey        = "Where clause does not contain a mandatory equality on all key attributes"
	msgOrderWhere   = "Must have WHERE clause in the statement when using ORDER BY clause."
	msgOrderHash    = "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."
	msgOrderKey     = "Attribute %s in ORDER BY clause must be part of the primary key"
	msgOrderTerm    = "Argument to ORDER BY must be of type VariableReference. Type: %s at %s"
	msgOrderSeveral = "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause." // assumed
	msgOperators    = "The expression contains too many operators; operator count: %d"
	msgInOperands   = "The IN operator is provided with too many operands; number of operands: %d"
	msgSetTarget    = "The first argument to %s must equal the assignment value at %s"
	msgSetValue     = "The second argument to %s must be a value with type SET at %s"
	msgSetCount     = "%s must have exactly two arguments at %s"
	msgReturning    = "Invalid returning clause: RETURNING %s *. Only RETURNING ALL OLD * is allowed in DELETE statements."
	msgParameters   = "Number of parameters in request and statement don't match."
	msgInsertMap    = "Unsupported data type: %s" // assumed
	msgDuplicates   = "One or more parameter values were invalid: Input collection [%s] contains duplicates."
	msgNestedValue  = "Nesting Levels have exceeded supported limits"
	msgNested       = "Nesting Levels have exceeded supported limits under %s"
)

// The texts about page tokens.
const (
	msgOtherToken   = "NextToken does not match request"
	msgInvalidToken = "Invalid NextToken"
)
