package emu

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/engine"
)

// Every status of the server is made here. Each constructor says where its
// text comes from: "seen" (reported from production in public threads), "doc"
// (the API's documentation) or "ours".

// newStatus is status.Errorf with a text that a wire can carry: gRPC wants
// UTF-8, and texts quote what a request held.
func newStatus(code codes.Code, format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	if !utf8.ValidString(msg) {
		msg = fmt.Sprintf("%+q", msg)
	}
	return status.Error(code, msg)
}

// statusInvalid refuses the value of a field. Form: seen in "Error in field
// 'row_ranges' : Error in element #0 : …" (java-bigtable-hbase#1512).
func statusInvalid(field, format string, args ...any) error {
	return newStatus(codes.InvalidArgument, "Error in field '%s' : %s", field, fmt.Sprintf(format, args...))
}

// statusBadRange refuses a row range that can hold no key. Seen:
// java-bigtable-hbase#1512.
func statusBadRange(field string, n int) error {
	return statusInvalid(field, "Error in element #%d : start_key must be less than end_key", n)
}

// statusBadName refuses a resource name. Ours.
func statusBadName(field, name, shape string) error {
	return statusInvalid(field, "%q is not of the form %s", name, shape)
}

// statusEmptyRowKeyRegex refuses an empty row_key_regex_filter, which is named
// without the filters around it. Seen: google-cloud-go#6519.
func statusEmptyRowKeyRegex() error {
	return statusInvalid("row_key_regex_filter", "%v", filter.ErrEmptyRowKeyRegex)
}

// statusNoMutations refuses a change without mutations. Seen:
// google-cloud-go#4309.
func statusNoMutations() error {
	return newStatus(codes.InvalidArgument, "No mutations provided")
}

// statusTooManyMutations refuses a request with more mutations than one may
// have. Seen: nodejs-bigtable#291, google-cloud-go#1111.
func statusTooManyMutations(n int) error {
	return newStatus(codes.InvalidArgument, "Too many mutations: %d provided; limit %d", n, maxMutations)
}

// statusKeyOfAnotherRegion refuses a key of Cloud KMS for a cluster. Seen:
// java-bigtable, BigtableCmekIT.
func statusKeyOfAnotherRegion(field, key, location string) error {
	return statusPrecondition("Error in field '%s' : Error in field 'encryption_config.kms_key_name' : CMEK key %s cannot be used to protect a cluster in zone %s", field, key, location)
}

// statusGranularity refuses a timestamp. Seen: google-cloud-ruby#3737.
func statusGranularity(micros int64) error {
	return newStatus(codes.InvalidArgument,
		"Timestamp granularity mismatch. Expected a multiple of 1000 (millisecond granularity), but got %d.", micros)
}

// statusNoFamily answers for a family that the table does not have. The code
// and the first sentence: seen; the rest is ours.
func statusNoFamily(table, family string) error {
	return newStatus(codes.NotFound, "Requested column family not found. Table %s has no family %q.", table, family)
}

// statusImmutableValueType refuses to change the type of a family. Seen:
// bttest, inmem.go.
func statusImmutableValueType() error {
	return newStatus(codes.InvalidArgument, "Immutable fields 'value_type.aggregate_type' cannot be updated")
}

// statusNoReverseScans refuses reversed without the client's feature flag.
// Seen: bigtable_rs#53.
func statusNoReverseScans() error {
	return newStatus(codes.Unimplemented, "Client doesn't support reverse scans yet")
}

// statusIdempotencyExpired refuses a mutation that may have been applied longer
// ago than tokens are kept. Ours.
func statusIdempotencyExpired(age time.Duration) error {
	return newStatus(codes.FailedPrecondition,
		"The first attempt of the mutation was sent %v ago; idempotency protects for %v.", age, idempotencyWindow)
}

// statusSessionPermission refuses a virtual RPC that its session was not opened
// for. Ours.
func statusSessionPermission(rpc, permission string) error {
	return newStatus(codes.PermissionDenied, "The session lacks permission %s, which %s needs.", permission, rpc)
}

// statusOutsideView refuses a write that reaches what an authorized view does not
// hold. The words "outside the Authorized View": python-bigtable, tests of views;
// the rest is ours.
func statusOutsideView(view, format string, args ...any) error {
	return newStatus(codes.PermissionDenied, "%s is outside the Authorized View %s.", fmt.Sprintf(format, args...), view)
}

// statusNotBuilt refuses what Tabletop does not have. Ours.
func statusNotBuilt(what string) error {
	return newStatus(codes.Unimplemented, "%s is not built in Tabletop", what)
}

// statusProtected refuses a change that deletion_protection forbids. Ours.
func statusProtected(table, what string) error {
	return newStatus(codes.FailedPrecondition, "Table %s has deletion_protection; %s is not allowed.", table, what)
}

// statusViewProtected refuses what the deletion_protection of a view forbids.
// Ours.
func statusViewProtected(view, what string) error {
	return newStatus(codes.FailedPrecondition, "Authorized view %s has deletion_protection; %s is not allowed.", view, what)
}

// statusStreamed refuses to delete a table whose change stream is enabled. Ours;
// that it is refused: the resource manager of the Dataflow templates and the
// clean-up of java-bigtable's tests, which disable the stream first.
func statusStreamed(table, what string) error {
	return newStatus(codes.FailedPrecondition, "Table %s has a change stream; %s is not allowed before it is disabled.", table, what)
}

// statusNotFound answers for a resource that does not exist. Ours.
func statusNotFound(what, name string) error {
	return newStatus(codes.NotFound, "%s %s not found.", what, name)
}

// statusExists refuses to create a resource again. Ours.
func statusExists(what, name string) error {
	return newStatus(codes.AlreadyExists, "%s %s already exists.", what, name)
}

// statusPrecondition refuses what the state of a resource forbids. Ours.
func statusPrecondition(format string, args ...any) error {
	return newStatus(codes.FailedPrecondition, format, args...)
}

// statusNoAppProfile answers a request through an app profile that the instance
// does not have. Ours.
func statusNoAppProfile(instance, id string) error {
	return newStatus(codes.NotFound, "Requested app profile not found. Instance %s has no app profile %q.", instance, id)
}

// statusNoTransactions refuses a single-row transaction. Ours.
func statusNoTransactions(profile string) error {
	return statusPrecondition("Single-row transactions are not allowed by app profile %s; it must route to a single cluster and set allow_transactional_writes.", profile)
}

// statusDataBoost refuses what Data Boost cannot do. Ours.
func statusDataBoost(profile, what string) error {
	return statusPrecondition("App profile %s is read-only: it uses Data Boost, which serves no %s.", profile, what)
}

// statusAborted refuses a change of something that has changed since it was
// read. Ours; the code is that of the API's rules on etags.
func statusAborted(format string, args ...any) error {
	return newStatus(codes.Aborted, format, args...)
}

// statusCanceled is how an operation ends that CancelOperation has ended. The code
// is that of google.longrunning.Operations.CancelOperation; the text is ours.
func statusCanceled(name string) *statuspb.Status {
	return status.New(codes.Canceled, "Operation "+name+" was canceled.").Proto()
}

// statusTooManyBundles refuses another schema bundle. Ours.
func statusTooManyBundles(table string) error {
	return newStatus(codes.ResourceExhausted, "Table %s has %d schema bundles, the most a table can have.", table, maxSchemaBundles)
}

// statusTooManyTables refuses another table. Ours.
func statusTooManyTables(instance string) error {
	return newStatus(codes.ResourceExhausted, "Instance %s has %d tables, the most an instance can have.", instance, maxTablesPerInstance)
}

// statusTooManyBackups refuses another backup. Ours.
func statusTooManyBackups(table, cluster string, n int) error {
	return newStatus(codes.ResourceExhausted, "Table %s has %d backups of the type in cluster %s, the most it can have.", table, n, cluster)
}

// untrackedKey is the status of a backup's key. Seen: java-bigtable,
// BigtableCmekIT.
func untrackedKey() *statuspb.Status {
	return &statuspb.Status{Code: int32(codes.Unknown), Message: "Status of the associated key version is not tracked."}
}

// statusLargeRow refuses to read a row above maxRowBytes. The code, reason and
// metadata: the Java client's LargeReadRowsResumptionStrategy.
func statusLargeRow(row []byte) error {
	st := status.Newf(codes.FailedPrecondition, "Row %+q is larger than the limit of %d bytes.", row, maxRowBytes)
	detailed, err := st.WithDetails(&errdetails.ErrorInfo{
		Reason:   "LargeRowReadError",
		Domain:   "bigtable.googleapis.com",
		Metadata: map[string]string{"rowKeyBase64Encoded": base64.StdEncoding.EncodeToString(row)},
	})
	if err != nil {
		return st.Err()
	}
	return detailed.Err()
}

// statusPanic answers for a handler that panicked. Ours.
func statusPanic(fullMethod string, r any) error {
	return newStatus(codes.Internal, "%s: internal fault: %v", fullMethod, r)
}

// toStatus turns an error of the engine or a context into a status. A status
// stays what it is.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, engine.ErrBackupBytes) {
		return newStatus(codes.ResourceExhausted, "%v; delete backups, or allow them more: --backup-bytes of serve, BackupBytes of engine.Options.", err)
	}
	code := codes.Internal
	switch {
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, engine.ErrTableNotFound), errors.Is(err, engine.ErrFamilyNotFound), errors.Is(err, engine.ErrBackupNotFound):
		code = codes.NotFound
	case errors.Is(err, engine.ErrTableExists), errors.Is(err, engine.ErrFamilyExists), errors.Is(err, engine.ErrBackupExists):
		code = codes.AlreadyExists
	case errors.Is(err, engine.ErrInvalid), errors.Is(err, engine.ErrAggregate), errors.Is(err, filter.ErrTooManyCopies), errors.Is(err, filter.ErrTooManySteps):
		code = codes.InvalidArgument
	case errors.Is(err, engine.ErrNotCounter), errors.Is(err, engine.ErrValueTooLarge):
		code = codes.FailedPrecondition
	case errors.Is(err, engine.ErrNoSpace):
		code = codes.ResourceExhausted // clients do not ask again: it takes an administrator
	case errors.Is(err, engine.ErrClosed):
		code = codes.Unavailable
	}
	return newStatus(code, "%v", err)
}

// statusNoToken refuses an RPC without a token, on a server that wants one.
// Ours.
func statusNoToken() error {
	return newStatus(codes.Unauthenticated, "The request carries no token; this server wants the header authorization: Bearer TOKEN.")
}

// statusWrongToken refuses an RPC with a token that is not the server's. Ours.
func statusWrongToken() error {
	return newStatus(codes.Unauthenticated, "The header authorization is not Bearer and the token of this server.")
}
