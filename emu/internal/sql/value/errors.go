package value

import (
	"fmt"

	"google.golang.org/grpc/codes"
)

// Error is an error of a statement: the text for the client, without a position.
type Error struct {
	Code codes.Code
	Text string
}

func (e *Error) Error() string { return e.Text }

// OutOfRange is an error of evaluation, such as a division by zero.
func OutOfRange(format string, args ...any) error {
	return &Error{codes.OutOfRange, fmt.Sprintf(format, args...)}
}

// InvalidArgument is an error of a statement or of a parameter.
func InvalidArgument(format string, args ...any) error {
	return &Error{codes.InvalidArgument, fmt.Sprintf(format, args...)}
}

// Unimplemented is the error for a documented part of the language that is missing here.
func Unimplemented(format string, args ...any) error {
	return &Error{codes.Unimplemented, fmt.Sprintf(format, args...)}
}

// Exhausted is an error for a result that is larger than the limits allow.
func Exhausted(format string, args ...any) error {
	return &Error{codes.ResourceExhausted, fmt.Sprintf(format, args...)}
}
