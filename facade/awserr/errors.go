package awserr

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// Error is an error of the DynamoDB API.
type Error struct {
	// Code is the short name of the error, such as "ValidationException".
	Code string
	// HTTPStatus is the status of the response: 400, 413, 500 or 503.
	HTTPStatus int
	// Message is the text. The response omits an empty message.
	Message string
	// Item is the item before the request, for a ConditionalCheckFailedException whose
	// request asked for it; otherwise nil.
	Item attr.Item
	// Reasons are the cancellation reasons of a TransactionCanceledException, one for each
	// action in the order of the request; nil for other errors.
	Reasons []CancellationReason
	// Throttling lists the limits that a throttled request on items exceeded.
	Throttling []ThrottlingReason
	// RetryAfter is the minimum delay before a throttled request may be retried. The response
	// omits zero.
	RetryAfter time.Duration
}

// Error returns "Code: Message", or the code alone without a message.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

// CancellationReason explains the outcome of one action of a canceled transaction.
type CancellationReason struct {
	// Code is one of the constants Reason..., such as "ConditionalCheckFailed".
	Code string
	// Message is the text; "" for the code "None".
	Message string
	// Item is the item before the transaction if the action asked for it; otherwise nil.
	Item attr.Item
}

// ThrottlingReason names a limit that a request exceeded.
type ThrottlingReason struct {
	Reason   string // such as "TableWriteProvisionedThroughputExceeded"
	Resource string // ARN of the table or index
}

// As returns the first *Error in the tree of err; ok reports whether it has one.
func As(err error) (e *Error, ok bool) {
	return errors.AsType[*Error](err)
}

// New returns an error with the HTTP status of its code. It formats the message like
// [fmt.Sprintf].
func New(code, format string, args ...any) *Error {
	return &Error{Code: code, HTTPStatus: httpStatus(code), Message: fmt.Sprintf(format, args...)}
}

// Validation returns a ValidationException.
func Validation(format string, args ...any) *Error { return New(CodeValidation, format, args...) }

// ResourceNotFound returns a ResourceNotFoundException.
func ResourceNotFound(format string, args ...any) *Error {
	return New(CodeResourceNotFound, format, args...)
}

// InternalServerError returns the error of a request that failed for an internal reason.
func InternalServerError() *Error { return New(CodeInternalServerError, MsgInternalError) }

// ConditionalCheckFailed returns a ConditionalCheckFailedException with the item before the
// request; nil if the request did not ask for it.
func ConditionalCheckFailed(old attr.Item) *Error {
	e := New(CodeConditionalCheckFailed, MsgConditionFailed)
	e.Item = old
	return e
}

// TransactionCanceled returns a TransactionCanceledException with a reason for each action.
func TransactionCanceled(reasons []CancellationReason) *Error {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = r.Code
	}
	e := New(CodeTransactionCanceled, MsgTransactionCanceled, strings.Join(codes, ", "))
	e.Reasons = reasons
	return e
}

// httpStatus returns the HTTP status of an error code.
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
