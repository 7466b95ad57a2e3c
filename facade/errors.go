package facade

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/throttle"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// Error is an error as the DynamoDB API returns it.
type Error struct {
	// Code is the error's short name, such as "ValidationException".
	Code string
	// HTTPStatus is the status of the response: 400, 500 or 503.
	HTTPStatus int
	// Message is the text; "" leaves the member out.
	Message string
	// Item is the item as it was before, in a ConditionalCheckFailedException if
	// the request asked for it; otherwise nil.
	Item attr.Item
	// Reasons are those of a TransactionCanceledException, one for each action of
	// the request, in the request's order; otherwise nil.
	Reasons []CancellationReason
	// Throttling says which limits a throttled request on items exceeded.
	Throttling []ThrottlingReason
}

// ThrottlingReason says which limit a request exceeded.
type ThrottlingReason struct {
	Reason   string // such as "TableWriteProvisionedThroughputExceeded"
	Resource string // the ARN of the table or index
}

// CancellationReason says what one action contributed to the cancellation of
// its transaction.
type CancellationReason struct {
	// Code is "None" for an action that was not at fault; otherwise, for example,
	// "ConditionalCheckFailed", "TransactionConflict", "ValidationError".
	Code string
	// Message is the text; "" for the code "None".
	Message string
	// Item is the item as it was, if the action asked for it; otherwise nil.
	Item attr.Item
}

// Error returns "Code: Message".
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

func badRequest(code, message string) *Error {
	return &Error{Code: code, HTTPStatus: http.StatusBadRequest, Message: message}
}

func validationError(message string) *Error { return badRequest(wire.CodeValidation, message) }

func unknownOperationError(message string) *Error {
	return badRequest(wire.CodeUnknownOperation, message)
}

func resourceNotFoundError(message string) *Error {
	return badRequest(wire.CodeResourceNotFound, message)
}

func resourceInUseError(message string) *Error { return badRequest(wire.CodeResourceInUse, message) }

func limitExceededError(message string) *Error { return badRequest(wire.CodeLimitExceeded, message) }

// conditionalCheckFailedError carries old when the request asked for it.
func conditionalCheckFailedError(old attr.Item) *Error {
	e := badRequest(wire.CodeConditionalCheckFailed, awserr.MsgConditionFailed)
	e.Item = old
	return e
}

// The codes of cancellation reasons.
const (
	reasonNone            = "None"
	reasonConditionFailed = "ConditionalCheckFailed"
	reasonConflict        = "TransactionConflict"
	reasonDuplicate       = "DuplicateItem"
	reasonProvisioned     = "ProvisionedThroughputExceeded"
	reasonThrottling      = "ThrottlingError"
	reasonValidation      = "ValidationError"
)

// transactionCanceledError says for each action what it had to do with it.
func transactionCanceledError(reasons []CancellationReason) *Error {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = r.Code
	}
	e := badRequest(wire.CodeTransactionCanceled, fmt.Sprintf(awserr.MsgTransactionCanceled, strings.Join(codes, ", ")))
	e.Reasons = reasons
	return e
}

func internalServerError() *Error {
	return &Error{Code: wire.CodeInternalServerError, HTTPStatus: http.StatusInternalServerError, Message: awserr.MsgInternalError}
}

func serviceUnavailableError(detail string) *Error {
	return &Error{Code: wire.CodeServiceUnavailable, HTTPStatus: http.StatusServiceUnavailable, Message: fmt.Sprintf(awserr.MsgServiceUnavailable, detail)}
}

// asError returns the *Error that err is, or is answered with, if it is one of
// DynamoDB's own.
func asError(err error) (*Error, bool) {
	var e *Error
	if errors.As(err, &e) {
		return e, true
	}
	var r *wire.Refusal
	if errors.As(err, &r) {
		return &Error{Code: r.Code, HTTPStatus: r.HTTPStatus, Message: r.Message}, true
	}
	var throttled *throttle.Error
	if errors.As(err, &throttled) {
		e := badRequest(throttled.Code, throttled.Message)
		for _, r := range throttled.Reasons {
			e.Throttling = append(e.Throttling, ThrottlingReason(r))
		}
		return e, true
	}
	return nil, false
}

// body is the body of the answer.
func (e *Error) body() []byte {
	var reasons []wire.Reason
	for _, r := range e.Reasons {
		reasons = append(reasons, wire.Reason(r))
	}
	var throttling []wire.ThrottlingReason
	for _, r := range e.Throttling {
		throttling = append(throttling, wire.ThrottlingReason(r))
	}
	return wire.EncodeError(e.Code, e.Message, e.Item, reasons, throttling)
}

// foreignError turns an error of the store, or of the Bigtable behind it,
// into the one to answer.
func foreignError(err error) *Error {
	var busy *tabledef.TableInUseError
	switch {
	case errors.Is(err, store.ErrOutsideMapping):
		return validationError(awserr.MsgInvalidParameterPrefix + err.Error())
	case errors.Is(err, store.ErrSchemaConflict):
		return validationError(awserr.MsgInvalidParameterPrefix + err.Error())
	case errors.Is(err, store.ErrIntent):
		return badRequest(wire.CodeTransactionConflict, awserr.MsgTransactionOngoing)
	case errors.Is(err, store.ErrTokenMismatch):
		return badRequest(wire.CodeIdempotentMismatch, awserr.MsgTokenMismatch)
	case errors.Is(err, store.ErrTokenRunning):
		return badRequest(wire.CodeTransactionInProgress, awserr.MsgTokenRunning)
	case errors.Is(err, store.ErrTableNotFound):
		return resourceNotFoundError(awserr.MsgResourceNotFound)
	case errors.As(err, &busy) && busy.Stream != "":
		return resourceInUseError(fmt.Sprintf(awserr.MsgStreamChanging, busy.Table, busy.Label, busy.Stream))
	case errors.As(err, &busy):
		return resourceInUseError(fmt.Sprintf(awserr.MsgTableInUse, inUseWord(busy.Status), busy.Table))
	case errors.Is(err, store.ErrContended):
		return serviceUnavailableError(err.Error())
	}
	var unreadable *lens.Error
	if errors.As(err, &unreadable) {
		// Another client wrote what the layout cannot say. A retry would read
		// the same, so that the answer says where it stands instead.
		return validationError(fmt.Sprintf(awserr.MsgUnreadableRow, err))
	}
	switch status.Code(err) { //nolint:exhaustive // the others are nobody's but this server's
	case codes.NotFound: // the table of the rows, or of all, was dropped by another client
		if strings.Contains(err.Error(), "table "+store.CatalogTable) { // as package btclient names it
			return serviceUnavailableError(fmt.Sprintf(awserr.MsgCatalogLost, store.CatalogTable, err))
		}
		return resourceNotFoundError(fmt.Sprintf(awserr.MsgRowsNotFound, err))
	// What a retry may get past; SDKs send all three kinds again.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
	case codes.ResourceExhausted: // which SDKs wait longer for
		return badRequest(wire.CodeRequestLimit, fmt.Sprintf(awserr.MsgBigtableLimit, err))
	case codes.DeadlineExceeded: // of a write that failed so, it says, nobody knows whether it was done
		return &Error{Code: wire.CodeInternalServerError, HTTPStatus: http.StatusInternalServerError, Message: fmt.Sprintf(awserr.MsgBigtableSilent, err)}
	case codes.Unavailable, codes.Aborted, codes.Canceled:
		return serviceUnavailableError(err.Error())
	}
	return internalServerError()
}

// inUseWord is what AWS calls a status of a table that refuses to be changed.
func inUseWord(status string) string {
	switch status {
	case tabledef.StatusCreating:
		return "created"
	case tabledef.StatusDeleting:
		return "deleted"
	default:
		return "updated"
	}
}
