package awserr

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

func TestNew(t *testing.T) {
	t.Parallel()
	old := attr.Item{"k": {Type: attr.S, Str: "v"}}
	for _, c := range []struct {
		err    *Error
		status int
		text   string
	}{
		{Validation(MsgParameterRequired, "TableName"), http.StatusBadRequest, "ValidationException: The parameter 'TableName' is required but was not present in the request"},
		{ResourceNotFound(MsgResourceNotFound), http.StatusBadRequest, "ResourceNotFoundException: Requested resource not found"},
		{New(CodeRequestTooLarge, MsgRequestTooLarge, 2, 1), http.StatusRequestEntityTooLarge, "RequestEntityTooLargeException: the request body has at least 2 bytes, the limit is 1"},
		{New(CodeServiceUnavailable, MsgServiceUnavailable, "gone"), http.StatusServiceUnavailable, "ServiceUnavailable: The Bigtable behind this endpoint is unavailable: gone"},
		{New(CodeInvalidEndpoint, ""), http.StatusMisdirectedRequest, "InvalidEndpointException"},
		{InternalServerError(), http.StatusInternalServerError, "InternalServerError: " + MsgInternalError},
		{New(CodeUnknownOperation, ""), http.StatusBadRequest, "UnknownOperationException"},
		{ConditionalCheckFailed(old), http.StatusBadRequest, "ConditionalCheckFailedException: The conditional request failed"},
		{
			TransactionCanceled([]CancellationReason{{Code: ReasonNone}, {Code: ReasonConflict}}), http.StatusBadRequest,
			"TransactionCanceledException: Transaction cancelled, please refer cancellation reasons for specific reasons [None, TransactionConflict]",
		},
	} {
		if c.err.HTTPStatus != c.status || c.err.Error() != c.text {
			t.Errorf("%d %v; want %d %s", c.err.HTTPStatus, c.err, c.status, c.text)
		}
	}
	if e := ConditionalCheckFailed(old); len(e.Item) != 1 {
		t.Errorf("the item is %v, want %v", e.Item, old)
	}
}

func TestAs(t *testing.T) {
	t.Parallel()
	if e, ok := As(fmt.Errorf("refused: %w", Validation("no"))); !ok || e.Code != CodeValidation {
		t.Errorf("a wrapped error: %v, %t", e, ok)
	}
	for _, err := range []error{nil, errors.New("another")} {
		if e, ok := As(err); ok || e != nil {
			t.Errorf("%v: %v, %t", err, e, ok)
		}
	}
}
