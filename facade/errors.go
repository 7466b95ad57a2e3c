package facade

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/maperr"
)

// foreignError returns DynamoDB's error for an error of the store or its Bigtable.
func foreignError(err error) *awserr.Error {
	var busy *tabledef.TableInUseError
	var followed *store.FollowedError
	switch {
	case errors.As(err, &followed):
		return awserr.Validation("%v", followed) // SDKs do not retry it
	case errors.Is(err, store.ErrOutsideMapping):
		return awserr.Validation(awserr.MsgInvalidParameterPrefix+"%v", err)
	case errors.Is(err, store.ErrSchemaConflict):
		return awserr.Validation(awserr.MsgInvalidParameterPrefix+"%v", err)
	case errors.Is(err, store.ErrIntent):
		return awserr.New(awserr.CodeTransactionConflict, awserr.MsgTransactionOngoing)
	case errors.Is(err, store.ErrTokenMismatch):
		return awserr.New(awserr.CodeIdempotentMismatch, awserr.MsgTokenMismatch)
	case errors.Is(err, store.ErrTokenRunning):
		return awserr.New(awserr.CodeTransactionInProgress, awserr.MsgTokenRunning)
	case errors.Is(err, store.ErrTableNotFound):
		return awserr.ResourceNotFound(awserr.MsgResourceNotFound)
	case errors.As(err, &busy) && busy.Stream != "":
		return awserr.New(awserr.CodeResourceInUse, awserr.MsgStreamChanging, busy.Table, busy.Label, busy.Stream)
	case errors.As(err, &busy):
		return awserr.New(awserr.CodeResourceInUse, awserr.MsgTableInUse, inUseWord(busy.Status), busy.Table)
	case errors.Is(err, store.ErrContended), errors.Is(err, store.ErrViewFilling):
		return awserr.New(awserr.CodeServiceUnavailable, awserr.MsgServiceUnavailable, err)
	}
	var unreadable *maperr.Error
	if errors.As(err, &unreadable) {
		// Another client wrote cells that the layout cannot read. A retry would read the
		// same cells, so the error names the row and is not retried.
		return awserr.Validation(awserr.MsgUnreadableRow, err)
	}
	switch status.Code(err) { //nolint:exhaustive // other codes are faults of this server
	case codes.NotFound: // another client dropped the table of the rows, or all tables
		if strings.Contains(err.Error(), "table "+store.CatalogTable) { // package btclient writes it so
			return awserr.New(awserr.CodeServiceUnavailable, awserr.MsgServiceUnavailable,
				fmt.Sprintf(awserr.MsgCatalogLost, store.CatalogTable, err))
		}
		return awserr.ResourceNotFound(awserr.MsgRowsNotFound, err)
	// Errors that a retry may overcome; SDKs retry all three kinds.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
	case codes.ResourceExhausted: // SDKs wait longer before this retry
		return awserr.New(awserr.CodeRequestLimit, awserr.MsgBigtableLimit, err)
	case codes.DeadlineExceeded: // for a write, the text says that the outcome is unknown
		return awserr.New(awserr.CodeInternalServerError, awserr.MsgBigtableSilent, err)
	case codes.Unavailable, codes.Aborted, codes.Canceled:
		return awserr.New(awserr.CodeServiceUnavailable, awserr.MsgServiceUnavailable, err)
	}
	return awserr.InternalServerError()
}

// inUseWord returns AWS's word for a table status other than ACTIVE, which prevents changes.
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
