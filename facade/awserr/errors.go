package awserr

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Error is an error in the form that the DynamoDB API returns.
type Error struct {
	// Code is the short name of the error, such as "ValidationException".
	Code string
	// HTTPStatus is the status of the response: 400, 413, 421, 500 or 503.
	HTTPStatus int
	// Message is the text of the error. The response omits it if it is empty.
	Message string
	// Item is the item before the request, for a ConditionalCheckFailedException or a
	// DuplicateItemException whose request asked for the item. Otherwise it is nil.
	Item attr.Item
	// Reasons are the cancellation reasons of a TransactionCanceledException, one per
	// action, in the order of the request. It is nil for other errors.
	Reasons []CancellationReason
	// Throttling lists the limits that a throttled request exceeded.
	Throttling []ThrottlingReason
	// RetryAfter is the minimum delay before a throttled request may be retried. If it is
	// zero, the response omits it.
	RetryAfter time.Duration
}

// Error returns "Code: Message", or only the code if the message is empty.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

// CancellationReason explains the outcome of one action of a canceled transaction.
type CancellationReason struct {
	// Code is one of the Reason constants, such as "ConditionalCheckFailed".
	Code string
	// Message is the text of the reason. It is "" for the code "None".
	Message string
	// Item is the item before the transaction if the action asked for it. Otherwise it is
	// nil.
	Item attr.Item
}

// ThrottlingReason names a limit that a throttled request exceeded.
type ThrottlingReason struct {
	Reason   string // such as "TableWriteProvisionedThroughputExceeded"
	Resource string // ARN of the table or index
}

// As returns the first *Error in the tree of err, like [errors.As]. ok is false if err has
// none.
func As(err error) (e *Error, ok bool) {
	return errors.AsType[*Error](err)
}

// New returns an error with the given code and the HTTP status of that code. It formats
// the message like [fmt.Sprintf].
func New(code, format string, args ...any) *Error {
	return &Error{Code: code, HTTPStatus: httpStatus(code), Message: fmt.Sprintf(format, args...)}
}

// Validation returns a ValidationException with a formatted message.
func Validation(format string, args ...any) *Error { return New(CodeValidation, format, args...) }

// ResourceNotFound returns a ResourceNotFoundException with a formatted message.
func ResourceNotFound(format string, args ...any) *Error {
	return New(CodeResourceNotFound, format, args...)
}

// InternalServerError returns the error for a request that failed for an internal reason.
func InternalServerError() *Error { return New(CodeInternalServerError, MsgInternalError) }

// ConditionalCheckFailed returns a ConditionalCheckFailedException. old is the item before
// the request, or nil if the request did not ask for it.
func ConditionalCheckFailed(old attr.Item) *Error {
	e := New(CodeConditionalCheckFailed, MsgConditionFailed)
	e.Item = old
	return e
}

// TransactionCanceled returns a TransactionCanceledException with one reason per action.
func TransactionCanceled(reasons []CancellationReason) *Error {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = r.Code
	}
	e := New(CodeTransactionCanceled, MsgTransactionCanceled, strings.Join(codes, ", "))
	e.Reasons = reasons
	return e
}

// httpStatus returns the HTTP status of responses with an error code.
func httpStatus(code string) int {
	switch code {
	case CodeInternalServerError:
		return http.StatusInternalServerError
	case CodeServiceUnavailable:
		return http.StatusServiceUnavailable
	case CodeInvalidEndpoint:
		return http.StatusMisdirectedRequest
	case CodeRequestTooLarge:
		return http.StatusRequestEntityTooLarge
	default:
		return http.StatusBadRequest
	}
}
