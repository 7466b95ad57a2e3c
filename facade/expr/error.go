package expr

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

// String returns the name of the request parameter, "ConditionExpression", ….
func (k Kind) String() string { panic("x") }

// Error is an expression that DynamoDB refuses with a ValidationException.
// Message is DynamoDB's whole text.
type Error struct {
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }
