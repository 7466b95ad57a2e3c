package wire

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// The namespaces of __type.
const (
	namespaceService      = "com.amazon.coral.service#"
	namespaceValidate     = "com.amazon.coral.validate#"
	namespaceDynamoDB     = "com.amazonaws.dynamodb.v20120810#"
	namespaceAvailability = "com.amazon.coral.availability#"
)

// The codes of errors, those of operations among them: AWS puts different
// namespaces before them.
const (
	CodeAccessDenied                   = "AccessDeniedException"
	CodeConditionalCheckFailed         = "ConditionalCheckFailedException"
	CodeDuplicateItem                  = "DuplicateItemException"
	CodeExpiredIterator                = "ExpiredIteratorException"
	CodeTrimmedData                    = "TrimmedDataAccessException"
	CodeGlobalTableNotFound            = "GlobalTableNotFoundException"
	CodeIdempotentMismatch             = "IdempotentParameterMismatchException"
	codeIncompleteSignature            = "IncompleteSignatureException"
	CodeInternalServerError            = "InternalServerError"
	codeInvalidSignature               = "InvalidSignatureException"
	CodeLimitExceeded                  = "LimitExceededException"
	codeMissingAuthentication          = "MissingAuthenticationTokenException"
	CodePolicyNotFound                 = "PolicyNotFoundException"
	CodeProvisionedThroughput          = "ProvisionedThroughputExceededException"
	CodeRequestLimit                   = "RequestLimitExceeded"
	codeRequestTooLarge                = "RequestEntityTooLargeException"
	CodeResourceInUse                  = "ResourceInUseException"
	CodeResourceNotFound               = "ResourceNotFoundException"
	codeSerialization                  = "SerializationException"
	CodeServiceUnavailable             = "ServiceUnavailable"
	CodeBackupInUse                    = "BackupInUseException"
	CodeBackupNotFound                 = "BackupNotFoundException"
	CodeContinuousBackupsUnavailable   = "ContinuousBackupsUnavailableException"
	CodeInvalidRestoreTime             = "InvalidRestoreTimeException"
	CodePointInTimeRecoveryUnavailable = "PointInTimeRecoveryUnavailableException"
	CodeTableAlreadyExists             = "TableAlreadyExistsException"
	CodeTableInUse                     = "TableInUseException"
	CodeTableNotFound                  = "TableNotFoundException"
	CodeThrottling                     = "ThrottlingException"
	CodeTransactionCanceled            = "TransactionCanceledException"
	CodeTransactionConflict            = "TransactionConflictException"
	CodeTransactionInProgress          = "TransactionInProgressException"
	CodeUnknownOperation               = "UnknownOperationException"
	codeUnrecognizedClient             = "UnrecognizedClientException"
	CodeValidation                     = "ValidationException"
)

// namespaceOf returns the namespace that AWS puts before an error code.
func namespaceOf(code string) string {
	switch code {
	case codeSerialization, CodeUnknownOperation, codeMissingAuthentication, codeIncompleteSignature,
		codeInvalidSignature, codeUnrecognizedClient, codeRequestTooLarge, CodeAccessDenied:
		return namespaceService
	case CodeValidation:
		return namespaceValidate
	case CodeThrottling:
		return namespaceAvailability
	default:
		return namespaceDynamoDB
	}
}

// messageMember returns the name of the text's member: AWS writes it with a
// capital for a few errors.
func messageMember(code string) string {
	switch code {
	case codeSerialization, CodeAccessDenied, CodeIdempotentMismatch, CodeTransactionCanceled, CodeTransactionInProgress:
		return "Message"
	default:
		return "message"
	}
}

// Refusal is the answer to a request that does not get as far as its operation,
// or whose members are not of the model's types.
type Refusal struct {
	Code       string
	HTTPStatus int
	Message    string // "" leaves the member out
}

// Error returns "Code: Message".
func (r *Refusal) Error() string {
	if r.Message == "" {
		return r.Code
	}
	return r.Code + ": " + r.Message
}

func badRequest(code, message string) *Refusal {
	return &Refusal{Code: code, HTTPStatus: http.StatusBadRequest, Message: message}
}

// ValidationError refuses what a request says.
func ValidationError(message string) error { return badRequest(CodeValidation, message) }

// LimitExceededError refuses what an account may not have.
func LimitExceededError(message string) error { return badRequest(CodeLimitExceeded, message) }

func serializationError(message string) *Refusal { return badRequest(codeSerialization, message) }

func requestTooLargeError(bytes int64) *Refusal {
	return &Refusal{
		Code: codeRequestTooLarge, HTTPStatus: http.StatusRequestEntityTooLarge,
		Message: fmt.Sprintf(awserr.MsgRequestTooLarge, bytes, MaxRequestBytes),
	}
}

// Reason is an element of the CancellationReasons of an error.
type Reason struct {
	Code    string
	Message string
	Item    attr.Item // nil: none
}

// MarshalJSONTo implements json.MarshalerTo.
func (r Reason) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, struct {
		Code    string
		Message string `json:",omitzero"`
		Item    *Item  `json:",omitzero"`
	}{r.Code, strings.ToValidUTF8(r.Message, "\uFFFD"), OptionalItem(r.Item)}, answerOptions)
}

// ThrottlingReason says which limit a throttled request exceeded.
type ThrottlingReason struct {
	Reason   string `json:"reason"`   // "TableReadProvisionedThroughputExceeded"
	Resource string `json:"resource"` // ARN of the table or index
}

// EncodeError returns the body of an error answer. An empty message, a nil item
// and nil reasons are left out.
func EncodeError(code, message string, item attr.Item, reasons []Reason, throttling []ThrottlingReason) []byte {
	var buf bytes.Buffer
	enc := jsontext.NewEncoder(&buf, answerOptions)
	tokens := []jsontext.Token{jsontext.BeginObject, jsontext.String("__type"), jsontext.String(namespaceOf(code) + code)}
	if message != "" {
		tokens = append(tokens, jsontext.String(messageMember(code)), jsontext.String(strings.ToValidUTF8(message, "\uFFFD")))
	}
	for _, token := range tokens {
		if err := enc.WriteToken(token); err != nil {
			return nil // a Buffer takes every token of this fixed shape
		}
	}
	if item != nil {
		_ = enc.WriteToken(jsontext.String("Item"))
		_ = json.MarshalEncode(enc, Item{Item: item}, answerOptions)
	}
	if reasons != nil {
		_ = enc.WriteToken(jsontext.String("CancellationReasons"))
		_ = json.MarshalEncode(enc, reasons, answerOptions)
	}
	if throttling != nil {
		member := "ThrottlingReasons"
		if code == CodeThrottling {
			member = "throttlingReasons"
		}
		_ = enc.WriteToken(jsontext.String(member))
		_ = json.MarshalEncode(enc, throttling, answerOptions)
	}
	_ = enc.WriteToken(jsontext.EndObject)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
