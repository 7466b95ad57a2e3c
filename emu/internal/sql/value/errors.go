package value

import (
	"fmt"

	"google.golang.org/grpc/codes"
)

// Error is an error of a statement.
type Error struct {
	Code codes.Code
	Text string
	// At is the position in the statement, such as [at 1:8]; "" for an error without one.
	At string
}

// Error returns the text for the client.
func (e *Error) Error() string {
	if e.At == "" {
		return e.Text
	}
	return e.Text + " " + e.At
}

// OutOfRange is an error of evaluation, such as a division by zero.
func OutOfRange(format string, args ...any) error {
	return &Error{Code: codes.OutOfRange, Text: fmt.Sprintf(format, args...)}
}

// InvalidArgument is an error of a statement or of a parameter.
func InvalidArgument(format string, args ...any) error {
	return &Error{Code: codes.InvalidArgument, Text: fmt.Sprintf(format, args...)}
}

// Unimplemented is the error for a documented part of the language that is missing here.
func Unimplemented(format string, args ...any) error {
	return &Error{Code: codes.Unimplemented, Text: fmt.Sprintf(format, args...)}
}

// Exhausted is an error for a result that is larger than the limits allow.
func Exhausted(format string, args ...any) error {
	return &Error{Code: codes.ResourceExhausted, Text: fmt.Sprintf(format, args...)}
}
