package facade

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// Error is an error as the DynamoDB API answers it.
type Error struct {
	// Code is the error's short name, such as "ValidationException".
	Code string
	// HTTPStatus is the status of the answer: 400, 500 or 503.
	HTTPStatus int
	// Message is the text; "" leaves the member out.
	Message string
	// Item is the item as it was before, in a
	// ConditionalCheckFailedException that was asked to carry it; else nil.
	Item attr.Item
	// Reasons are those of a TransactionCanceledException, one for each action
	// of the request, in its order; else nil.
	Reasons []CancellationReason
}

// CancellationReason says what one action has to do with the cancellation of
// its transaction.
type CancellationReason struct {
	// Code is "None" for an action that was not at fault; else, for example,
	// "ConditionalCheckFailed", "TransactionConflict", "ValidationError".
	Code string
	// Message is the text; "" for the code "None".
	Message string
	// Item is the item as it was, where the action asked for it; else nil.
	Item attr.Item
}

// Error returns "Code: Message".
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return e.Code + ": " + e.Message
}

// The namespaces of __type.
const (
	namespaceService  = "com.amazon.coral.service#"
	namespaceValidate = "com.amazon.coral.validate#"
	namespaceDynamoDB = "com.amazonaws.dynamodb.v20120810#"
)

// Error codes.
const (
	codeAccessDenied           = "AccessDeniedException"
	codeConditionalCheckFailed = "ConditionalCheckFailedException"
	codeIdempotentMismatch     = "IdempotentParameterMismatchException"
	codeIncompleteSignature    = "IncompleteSignatureException"
	codeInternalServerError    = "InternalServerError"
	codeInvalidSignature       = "InvalidSignatureException"
	codeLimitExceeded          = "LimitExceededException"
	codeMissingAuthentication  = "MissingAuthenticationTokenException"
	codePolicyNotFound         = "PolicyNotFoundException"
	codeRequestTooLarge        = "RequestEntityTooLargeException"
	codeResourceInUse          = "ResourceInUseException"
	codeResourceNotFound       = "ResourceNotFoundException"
	codeSerialization          = "SerializationException"
	codeServiceUnavailable     = "ServiceUnavailable"
	codeTransactionCanceled    = "TransactionCanceledException"
	codeTransactionConflict    = "TransactionConflictException"
	codeTransactionInProgress  = "TransactionInProgressException"
	codeUnknownOperation       = "UnknownOperationException"
	codeUnrecognizedClient     = "UnrecognizedClientException"
	codeValidation             = "ValidationException"
)

// namespaceOf returns the namespace that AWS puts before an error code.
func namespaceOf(code string) string {
	switch code {
	case codeSerialization, codeUnknownOperation, codeMissingAuthentication, codeIncompleteSignature,
		codeInvalidSignature, codeUnrecognizedClient, codeRequestTooLarge, codeAccessDenied:
		return namespaceService
	case codeValidation:
		return namespaceValidate
	default:
		return namespaceDynamoDB
	}
}

// messageMember returns the name of the text's member: AWS writes it with a
// capital for a few errors.
func messageMember(code string) string {
	switch code {
	case codeSerialization, codeAccessDenied, codeIdempotentMismatch, codeTransactionCanceled, codeTransactionInProgress:
		return "Message"
	default:
		return "message"
	}
}

func badRequest(code, message string) *Error {
	return &Error{Code: code, HTTPStatus: http.StatusBadRequest, Message: message}
}

func validationError(message string) *Error { return badRequest(codeValidation, message) }

func serializationError(message string) *Error { return badRequest(codeSerialization, message) }

func unknownOperationError(message string) *Error { return badRequest(codeUnknownOperation, message) }

func resourceNotFoundError(message string) *Error { return badRequest(codeResourceNotFound, message) }

func resourceInUseError(message string) *Error { return badRequest(codeResourceInUse, message) }

func limitExceededError(message string) *Error { return badRequest(codeLimitExceeded, message) }

func requestTooLargeError(message string) *Error {
	return &Error{Code: codeRequestTooLarge, HTTPStatus: http.StatusRequestEntityTooLarge, Message: message}
}

// conditionalCheckFailedError carries old when the request asked for it.
func conditionalCheckFailedError(old attr.Item) *Error {
	e := badRequest(codeConditionalCheckFailed, msgConditionFailed)
	e.Item = old
	return e
}

// The codes of cancellation reasons.
const (
	reasonNone            = "None"
	reasonConditionFailed = "ConditionalCheckFailed"
	reasonConflict        = "TransactionConflict"
	reasonValidation      = "ValidationError"
)

// transactionCanceledError says for each action what it had to do with it.
func transactionCanceledError(reasons []CancellationReason) *Error {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = r.Code
	}
	e := badRequest(codeTransactionCanceled, fmt.Sprintf(msgTransactionCanceled, strings.Join(codes, ", ")))
	e.Reasons = reasons
	return e
}

func internalServerError() *Error {
	return &Error{Code: codeInternalServerError, HTTPStatus: http.StatusInternalServerError, Message: msgInternalError}
}

func serviceUnavailableError(detail string) *Error {
	return &Error{Code: codeServiceUnavailable, HTTPStatus: http.StatusServiceUnavailable, Message: fmt.Sprintf(msgServiceUnavailable, detail)}
}

// asError returns err's *Error, if it has one.
func asError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// foreignError turns an error of the store, or of the Bigtable behind it,
// into the one to answer.
func foreignError(err error) *Error {
	var busy *TableInUseError
	switch {
	case errors.Is(err, errOutsideMapping):
		return validationError(msgInvalidParameterPrefix + err.Error())
	case errors.Is(err, errSchemaConflict):
		return validationError(msgInvalidParameterPrefix + err.Error())
	case errors.Is(err, errIntent):
		return badRequest(codeTransactionConflict, msgTransactionOngoing)
	case errors.Is(err, errTokenMismatch):
		return badRequest(codeIdempotentMismatch, msgTokenMismatch)
	case errors.Is(err, errTokenRunning):
		return badRequest(codeTransactionInProgress, msgTokenRunning)
	case errors.Is(err, errTableNotFound):
		return resourceNotFoundError(msgResourceNotFound)
	case errors.As(err, &busy):
		return resourceInUseError(fmt.Sprintf(msgTableInUse, inUseWord(busy.Status), busy.Table))
	case errors.Is(err, errContended):
		return serviceUnavailableError(err.Error())
	}
	var unreadable *layout.Error
	if errors.As(err, &unreadable) {
		// Another client wrote what the layout cannot say. A retry would read
		// the same, so that the answer says where it stands instead.
		return validationError(fmt.Sprintf(msgUnreadableRow, err))
	}
	switch code := status.Code(err); {
	case code == codes.NotFound: // the rows' table was dropped by another client
		return resourceNotFoundError(fmt.Sprintf(msgRowsNotFound, err))
	case slices.Contains(unavailableCodes, code):
		return serviceUnavailableError(err.Error())
	}
	return internalServerError()
}

// inUseWord is what AWS calls a status of a table that refuses to be changed.
func inUseWord(status string) string {
	switch status {
	case statusCreating:
		return "created"
	case statusDeleting:
		return "deleted"
	default:
		return "updated"
	}
}

// unavailableCodes are the failures of a Bigtable that a retry may get past.
var unavailableCodes = []codes.Code{
	codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted, codes.Aborted,
}
