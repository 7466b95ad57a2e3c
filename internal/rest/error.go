package rest

import (
	"bytes"
	"encoding/json"
	"net/http"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// httpStatus has the HTTP status of each code, as google/rpc/code.proto maps it.
var httpStatus = [...]int{
	codes.OK:                 http.StatusOK,
	codes.Canceled:           499,
	codes.Unknown:            http.StatusInternalServerError,
	codes.InvalidArgument:    http.StatusBadRequest,
	codes.DeadlineExceeded:   http.StatusGatewayTimeout,
	codes.NotFound:           http.StatusNotFound,
	codes.AlreadyExists:      http.StatusConflict,
	codes.PermissionDenied:   http.StatusForbidden,
	codes.ResourceExhausted:  http.StatusTooManyRequests,
	codes.FailedPrecondition: http.StatusBadRequest,
	codes.Aborted:            http.StatusConflict,
	codes.OutOfRange:         http.StatusBadRequest,
	codes.Unimplemented:      http.StatusNotImplemented,
	codes.Internal:           http.StatusInternalServerError,
	codes.Unavailable:        http.StatusServiceUnavailable,
	codes.DataLoss:           http.StatusInternalServerError,
	codes.Unauthenticated:    http.StatusUnauthorized,
}

// errorBody returns the HTTP status and the body of an error.
func errorBody(err error) (httpCode int, body []byte) {
	s := status.Convert(err)
	httpCode = http.StatusInternalServerError
	if int(s.Code()) < len(httpStatus) {
		httpCode = httpStatus[s.Code()]
	}
	return httpCode, bodyOf(httpCode, s)
}

// bodyOf returns the body of an error with an HTTP status.
func bodyOf(httpCode int, s *status.Status) []byte {
	type content struct {
		Code    int               `json:"code"`
		Message string            `json:"message"`
		Status  string            `json:"status"`
		Details []json.RawMessage `json:"details,omitempty"`
	}
	c := content{Code: httpCode, Message: s.Message(), Status: code.Code(s.Code()).String()}
	for _, d := range s.Proto().GetDetails() {
		if text, err := protojson.Marshal(d); err == nil { // one of an unknown type is left out
			c.Details = append(c.Details, text)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(map[string]content{"error": c}); err != nil {
		return []byte("{}\n") // not reached: the details are valid JSON
	}
	return b.Bytes()
}
