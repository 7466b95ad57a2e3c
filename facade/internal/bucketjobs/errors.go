package bucketjobs

import (
	"net/http"

	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// The codes of errors of these operations alone.
const (
	codeExportConflict    = "ExportConflictException"
	codeExportNotFound    = "ExportNotFoundException"
	codeImportConflict    = "ImportConflictException"
	codeImportNotFound    = "ImportNotFoundException"
	codeInvalidExportTime = "InvalidExportTimeException"
	codeNoRecovery        = "PointInTimeRecoveryUnavailableException"
)

// The codes of jobs that failed.
const (
	codeNoSuchBucket = "S3NoSuchBucket"
	codeAccessDenied = "S3AccessDenied"
	codeTableExists  = "TableAlreadyExists"
	codeItems        = "ItemValidationError"
	codeNoTable      = "TableNotFound"
)

// words are what differs between exports and imports where a job is looked for.
type words struct{ invalidARN, notFoundCode, notFound, otherRegion string }

func refusal(code, message string) error {
	return &wire.Refusal{Code: code, HTTPStatus: http.StatusBadRequest, Message: message}
}
