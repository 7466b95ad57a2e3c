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
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// foreignError returns the error of DynamoDB for an error of the store, or of the Bigtable
// behind it.
func foreignError(err error) *awserr.Error {
	var busy *tabledef.TableInUseError
	switch {
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
	case errors.Is(err, store.ErrContended):
		return awserr.New(awserr.CodeServiceUnavailable, awserr.MsgServiceUnavailable, err)
	}
	var unreadable *lens.Error
	if errors.As(err, &unreadable) {
		// Another client wrote what the layout cannot say. A retry would read
		// the same, so that the answer says where it stands instead.
		return awserr.Validation(awserr.MsgUnreadableRow, err)
	}
	switch status.Code(err) { //nolint:exhaustive // the others are nobody's but this server's
	case codes.NotFound: // the table of the rows, or of all, was dropped by another client
		if strings.Contains(err.Error(), "table "+store.CatalogTable) { // as package btclient names it
			return awserr.New(awserr.CodeServiceUnavailable, awserr.MsgServiceUnavailable,
				fmt.Sprintf(awserr.MsgCatalogLost, store.CatalogTable, err))
		}
		return awserr.ResourceNotFound(awserr.MsgRowsNotFound, err)
	// What a retry may get past; SDKs send all three kinds again.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
	case codes.ResourceExhausted: // which SDKs wait longer for
		return awserr.New(awserr.CodeRequestLimit, awserr.MsgBigtableLimit, err)
	case codes.DeadlineExceeded: // of a write that failed so, it says, nobody knows whether it was done
		return awserr.New(awserr.CodeInternalServerError, awserr.MsgBigtableSilent, err)
	case codes.Unavailable, codes.Aborted, codes.Canceled:
		return awserr.New(awserr.CodeServiceUnavailable, awserr.MsgServiceUnavailable, err)
	}
	return awserr.InternalServerError()
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
