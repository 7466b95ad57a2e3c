package wire

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// The namespaces in __type.
const (
	namespaceService      = "com.amazon.coral.service#"
	namespaceValidate     = "com.amazon.coral.validate#"
	namespaceDynamoDB     = "com.amazonaws.dynamodb.v20120810#"
	namespaceAvailability = "com.amazon.coral.availability#"
)

// namespaceOf returns AWS's namespace for an error code.
func namespaceOf(code string) string {
	switch code {
	case awserr.CodeSerialization, awserr.CodeUnknownOperation, awserr.CodeMissingAuthentication, awserr.CodeIncompleteSignature,
		awserr.CodeInvalidSignature, awserr.CodeUnrecognizedClient, awserr.CodeExpiredToken, awserr.CodeRequestTooLarge, awserr.CodeAccessDenied:
		return namespaceService
	case awserr.CodeValidation:
		return namespaceValidate
	case awserr.CodeThrottling:
		return namespaceAvailability
	default:
		return namespaceDynamoDB
	}
}

// messageMember returns the name of the message member: AWS capitalizes it in a few errors,
// and in errors with an item.
func messageMember(e *awserr.Error) string {
	switch e.Code {
	case awserr.CodeSerialization, awserr.CodeAccessDenied, awserr.CodeIdempotentMismatch, awserr.CodeTransactionCanceled, awserr.CodeTransactionInProgress:
		return "Message"
	}
	if e.Item != nil {
		return "Message"
	}
	return "message"
}

// serializationError rejects invalid JSON, or members of the wrong type.
func serializationError(format string, args ...any) *awserr.Error {
	return awserr.New(awserr.CodeSerialization, format, args...)
}

// reason encodes an element of the CancellationReasons of an error.
type reason awserr.CancellationReason

// MarshalJSONTo implements json.MarshalerTo.
func (r reason) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, struct {
		Code    string
		Message string `json:",omitzero"`
		Item    *Item  `json:",omitzero"`
	}{r.Code, strings.ToValidUTF8(r.Message, "\uFFFD"), OptionalItem(r.Item)}, answerOptions)
}

// throttlingReason encodes an element of the ThrottlingReasons of an error.
type throttlingReason struct {
	Reason   string `json:"reason"`
	Resource string `json:"resource"`
}

// EncodeError returns the body of an error response. It omits an empty message, a nil item
// and empty reasons.
func EncodeError(e *awserr.Error) []byte {
	var buf bytes.Buffer
	enc := jsontext.NewEncoder(&buf, answerOptions)
	tokens := []jsontext.Token{jsontext.BeginObject, jsontext.String("__type"), jsontext.String(namespaceOf(e.Code) + e.Code)}
	if e.Message != "" {
		tokens = append(tokens, jsontext.String(messageMember(e)), jsontext.String(strings.ToValidUTF8(e.Message, "\uFFFD")))
	}
	for _, token := range tokens {
		if err := enc.WriteToken(token); err != nil {
			return nil // a Buffer accepts every token of this fixed shape
		}
	}
	if e.Item != nil {
		_ = enc.WriteToken(jsontext.String("Item"))
		_ = json.MarshalEncode(enc, Item{Item: e.Item}, answerOptions)
	}
	if len(e.Reasons) > 0 {
		reasons := make([]reason, len(e.Reasons))
		for i, r := range e.Reasons {
			reasons[i] = reason(r)
		}
		_ = enc.WriteToken(jsontext.String("CancellationReasons"))
		_ = json.MarshalEncode(enc, reasons, answerOptions)
	}
	if len(e.Throttling) > 0 {
		throttling := make([]throttlingReason, len(e.Throttling))
		for i, r := range e.Throttling {
			throttling[i] = throttlingReason(r)
		}
		member := "ThrottlingReasons"
		if e.Code == awserr.CodeThrottling {
			member = "throttlingReasons"
		}
		_ = enc.WriteToken(jsontext.String(member))
		_ = json.MarshalEncode(enc, throttling, answerOptions)
	}
	_ = enc.WriteToken(jsontext.EndObject)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
