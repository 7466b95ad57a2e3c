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

// OutOfRange returns an error of an evaluation, such as a division by zero.
func OutOfRange(format string, args ...any) error {
	return &Error{Code: codes.OutOfRange, Text: fmt.Sprintf(format, args...)}
}

// InvalidArgument returns an error for an invalid statement or parameter.
func InvalidArgument(format string, args ...any) error {
	return &Error{Code: codes.InvalidArgument, Text: fmt.Sprintf(format, args...)}
}

// Unimplemented returns the error for a documented but unsupported part of the language.
func Unimplemented(format string, args ...any) error {
	return &Error{Code: codes.Unimplemented, Text: fmt.Sprintf(format, args...)}
}

// Exhausted returns an error for a query that exceeds a limit of memory or size.
func Exhausted(format string, args ...any) error {
	return &Error{Code: codes.ResourceExhausted, Text: fmt.Sprintf(format, args...)}
}
