// Package refusal creates every error status that the server returns. Each constructor names
// the source of its text: "seen" (reported from production in public threads), "doc" (the
// API's documentation) or "ours".
package refusal

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
	"github.com/tabletop-emu/tabletop/engine"
)

// New is like status.Errorf, but makes the text valid UTF-8, as gRPC requires. Texts may quote
// arbitrary bytes of requests.
func New(code codes.Code, format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	if !utf8.ValidString(msg) {
		msg = fmt.Sprintf("%+q", msg)
	}
	return status.Error(code, msg)
}

// Invalid returns the status for an invalid value of a field. The format was seen in "Error in
// field 'row_ranges' : Error in element #0 : …" (java-bigtable-hbase#1512).
func Invalid(field, format string, args ...any) error {
	return New(codes.InvalidArgument, "Error in field '%s' : %s", field, fmt.Sprintf(format, args...))
}

// Element returns the name of the n-th element of a repeated field.
func Element(field string, n int) string { return fmt.Sprintf("%s[%d]", field, n) }

// BadRange returns the status for a row range that cannot contain a key. Seen:
// java-bigtable-hbase#1512.
func BadRange(field string, n int) error {
	return Invalid(field, "Error in element #%d : start_key must be less than end_key", n)
}

// BadName returns the status for a malformed resource name. Text: ours.
func BadName(field, name, shape string) error {
	return Invalid(field, "%q is not of the form %s", name, shape)
}

// EmptyRegex returns the status for an empty row_key_regex_filter or
// family_name_regex_filter. field omits the enclosing filters. Seen:
// google-cloud-go#6519, for row keys.
func EmptyRegex(field string) error {
	return Invalid(field, "argument must not be empty")
}

// NoMutations returns the status for a change without mutations. Seen:
// google-cloud-go#4309.
func NoMutations() error {
	return New(codes.InvalidArgument, "No mutations provided")
}

// TooManyMutations returns the status for a request with more mutations than
// the limit. Seen: nodejs-bigtable#291, google-cloud-go#1111.
func TooManyMutations(n, limit int) error {
	return New(codes.InvalidArgument, "Too many mutations: %d provided; limit %d", n, limit)
}

// KeyOfAnotherRegion returns the status for a Cloud KMS key outside a cluster's region. Seen:
// java-bigtable, BigtableCmekIT.
func KeyOfAnotherRegion(field, key, location string) error {
	return Precondition("Error in field '%s' : Error in field 'encryption_config.kms_key_name' : CMEK key %s cannot be used to protect a cluster in zone %s", field, key, location)
}

// Granularity returns the status for a timestamp that is finer than the table's granularity. Seen:
// google-cloud-ruby#3737.
func Granularity(micros int64) error {
	return New(codes.InvalidArgument,
		"Timestamp granularity mismatch. Expected a multiple of 1000 (millisecond granularity), but got %d.", micros)
}

// NoFamily returns the status for a family that the table does not have. The code and the
// first sentence were seen; the rest is ours.
func NoFamily(table, family string) error {
	return New(codes.NotFound, "Requested column family not found. Table %s has no family %q.", table, family)
}

// NoFamilyToRead returns the status for a read of a family that the table does not have. Seen:
// java-bigtable#32.
func NoFamilyToRead(table string) error {
	return New(codes.NotFound, "Error while reading table '%s' : Requested column family not found", table)
}

// ImmutableValueType returns the status for a change of the type of a family. Seen:
// bttest, inmem.go.
func ImmutableValueType() error {
	return New(codes.InvalidArgument, "Immutable fields 'value_type.aggregate_type' cannot be updated")
}

// NoReverseScans returns the status for a reversed read by a client without the feature flag for
// it. Seen: bigtable_rs#53.
func NoReverseScans() error {
	return New(codes.Unimplemented, "Client doesn't support reverse scans yet")
}

// IdempotencyExpired returns the status for a mutation whose first attempt is older than the
// retention of idempotency tokens, so that it may have been applied already. Text: ours.
func IdempotencyExpired(age, window time.Duration) error {
	return New(codes.FailedPrecondition,
		"The first attempt of the mutation was sent %v ago; idempotency tokens protect for only %v.", age, window)
}

// SessionPermission returns the status for a virtual RPC in a session that lacks the required
// permission. Text: ours.
func SessionPermission(rpc, permission string) error {
	return New(codes.PermissionDenied, "The session lacks permission %s, which %s needs.", permission, rpc)
}

// OutsideView returns the status for a write of cells outside an authorized view.
// Seen: nodejs-bigtable, tests of authorized views.
func OutsideView(view string) error {
	return New(codes.PermissionDenied, "Cannot mutate from %s because the mutation contains cells outside the Authorized View.", view)
}

// FamilyOutsideView returns the status for a read of a family that an authorized view excludes. The
// code and the words "outside the Authorized View" were seen in python-bigtable, tests of views.
func FamilyOutsideView(view, family string) error {
	return New(codes.PermissionDenied, "Cannot read from %s because the family %q is outside the Authorized View.", view, family)
}

// NotBuilt returns the status for a feature that Tabletop lacks. Text: ours.
func NotBuilt(what string) error {
	return New(codes.Unimplemented, "%s is not implemented in Tabletop", what)
}

// Protected returns the status for a change that deletion_protection forbids. Text: ours.
func Protected(table, what string) error {
	return New(codes.FailedPrecondition, "Table %s has deletion_protection; %s is not allowed.", table, what)
}

// ViewProtected returns the status for a change that the deletion_protection of a
// view forbids. Text: ours.
func ViewProtected(view, what string) error {
	return New(codes.FailedPrecondition, "Authorized view %s has deletion_protection; %s is not allowed.", view, what)
}

// RelaxedGC returns the status for a rule that keeps cells longer, on a replicated table.
// Seen: google-cloud-ruby#10829.
func RelaxedGC(family string) error {
	return Precondition("Cannot relax pure age-based GC for a replicated family (%s). If you must relax the age constraint, unreplicate the instance and try again.", family)
}

// ShortAge returns the status for a rule with a max_age below a millisecond. For a
// modification, the text has its number instead of a field. Seen: getsentry/sentry,
// nodestore/bigtable.
func ShortAge(field string) error {
	const text = "max_age must be at least one millisecond"
	var n int
	if _, err := fmt.Sscanf(field, "modifications[%d]", &n); err == nil {
		return Invalid("Modifications list", "Error in element #%d : %s", n, text)
	}
	return Invalid(field, text)
}

// NotFound returns the status for a resource that does not exist. Text: ours.
func NotFound(what, name string) error {
	return New(codes.NotFound, "%s %s not found.", what, name)
}

// Exists returns the status for the creation of an existing resource. Text: ours.
func Exists(what, name string) error {
	return New(codes.AlreadyExists, "%s %s already exists.", what, name)
}

// Precondition returns the status for a request that the state of a resource forbids. Text: ours.
func Precondition(format string, args ...any) error {
	return New(codes.FailedPrecondition, format, args...)
}

// NoAppProfile returns the status for a request through an app profile that the
// instance does not have. Text: ours.
func NoAppProfile(instance, id string) error {
	return New(codes.NotFound, "Requested app profile not found. Instance %s has no app profile %q.", instance, id)
}

// NoTransactions returns the status for a single-row transaction through an app profile that
// forbids single-row transactions. Text: ours.
func NoTransactions(profile string) error {
	return Precondition("Single-row transactions are not allowed by app profile %s; it must route to a single cluster and set allow_transactional_writes.", profile)
}

// DataBoost returns the status for a request that Data Boost does not support. Text: ours.
func DataBoost(profile, what string) error {
	return Precondition("App profile %s is read-only: it uses Data Boost, which does not serve %s.", profile, what)
}

// Aborted returns the status for an update of a resource that has changed since the client read it.
// The text is ours; the code follows the API's rules for etags.
func Aborted(format string, args ...any) error {
	return New(codes.Aborted, format, args...)
}

// Stopping returns the status that ends change streams when the server stops.
// Clients continue from their last token. Text: ours.
func Stopping() error {
	return New(codes.Unavailable, "The server is stopping.")
}

// TooManyBundles returns the status for the creation of a schema bundle beyond the limit per table.
// Text: ours.
func TooManyBundles(table string, n int) error {
	return New(codes.ResourceExhausted, "Table %s has %d schema bundles, the maximum for a table.", table, n)
}

// Canceled returns the result of a canceled operation. The code is documented for
// google.longrunning.Operations.CancelOperation; the text is ours.
func Canceled(name string) *statuspb.Status {
	return status.New(codes.Canceled, "Operation "+name+" was canceled.").Proto()
}

// TooManyTables returns the status for creating a table beyond the limit per instance. Text: ours.
func TooManyTables(instance string, n int) error {
	return New(codes.ResourceExhausted, "Instance %s has %d tables, the maximum for an instance.", instance, n)
}

// TooManyBackups returns the status for the creation of a backup beyond the limit per table and
// cluster. Text: ours.
func TooManyBackups(table, cluster string, n int) error {
	return New(codes.ResourceExhausted, "Table %s has %d backups of this type in cluster %s, the maximum.", table, n, cluster)
}

// UntrackedKey returns the status of the encryption key of a backup. Seen: java-bigtable,
// BigtableCmekIT.
func UntrackedKey() *statuspb.Status {
	return &statuspb.Status{Code: int32(codes.Unknown), Message: "Status of the associated key version is not tracked."}
}

// LargeRow returns the status for a read of a row larger than limit bytes. The code, reason and
// metadata follow the Java client's LargeReadRowsResumptionStrategy.
func LargeRow(row []byte, limit int) error {
	st := status.Newf(codes.FailedPrecondition, "Row %+q is larger than the limit of %d bytes.", row, limit)
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

// Panic returns the status for a handler that panicked. Text: ours.
func Panic(fullMethod string, r any) error {
	return New(codes.Internal, "%s: internal fault: %v", fullMethod, r)
}

// Of converts an error of the engine or of a context to a status. It returns errors that are
// statuses unchanged.
func Of(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if errors.Is(err, engine.ErrBackupBytes) {
		return New(codes.ResourceExhausted, "%v; delete backups, or raise the limit: --backup-bytes of serve, BackupBytes of engine.Options.", err)
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
		code = codes.ResourceExhausted // clients do not retry it: only an administrator can fix it
	case errors.Is(err, engine.ErrNoJournal):
		code = codes.FailedPrecondition
	case errors.Is(err, engine.ErrJournalPosition), errors.Is(err, engine.ErrJournalTrimmed):
		code = codes.InvalidArgument
	case errors.Is(err, engine.ErrClosed), errors.Is(err, engine.ErrRestored):
		code = codes.Unavailable
	}
	return New(code, "%v", err)
}

// NoToken returns the status for an RPC without a token on a server that requires one. Text: ours.
func NoToken() error {
	return New(codes.Unauthenticated, "The request has no token; this server requires the header authorization: Bearer TOKEN.")
}

// WrongToken returns the status for an RPC with a wrong token. Text: ours.
func WrongToken() error {
	return New(codes.Unauthenticated, "The authorization header does not contain the token of this server.")
}

// UntypedParam returns the status for a parameter of a query without a type. Seen: better-bttest.
func UntypedParam(name string) error {
	return New(codes.InvalidArgument, "params '%s' has no type", name)
}

// InvalidPreparedQuery returns the status for a prepared_query that no PrepareQuery returned. Seen:
// better-bttest.
func InvalidPreparedQuery() error {
	return New(codes.InvalidArgument, "Invalid prepared query. Please retry request with a valid prepared query")
}

// ExpiredQuery returns the status for a prepared query that is not valid any more. The text
// repeats its sentence `causes` times: twice for a dropped family, once for other causes. Clients
// prepare the query again because of the violation. Seen: better-bttest.
func ExpiredQuery(causes int) error {
	const text = "The prepared query has expired. Please re-issue the ExecuteQuery with a valid prepared query."
	st := status.New(codes.FailedPrecondition, strings.Join(slices.Repeat([]string{text}, causes), " : "))
	detailed, err := st.WithDetails(&errdetails.PreconditionFailure{
		Violations: []*errdetails.PreconditionFailure_Violation{{Type: "PREPARED_QUERY_EXPIRED"}},
	})
	if err != nil {
		return st.Err()
	}
	return detailed.Err()
}

// InvalidView returns the status for a query that no materialized view may have. Its callers name the source of
// the text: better-bttest has seen some, the others are ours.
func InvalidView(text string) error { return New(codes.InvalidArgument, "%s", text) }

// UnselectedKey returns the status for a materialized view that does not select a column of its
// GROUP BY or ORDER BY. Seen: better-bttest.
func UnselectedKey(clause string) error {
	return New(codes.InvalidArgument, "every %s column must be selected in the final query", clause)
}

// NoSourceKey returns the status for a materialized view whose ORDER BY does not contain the row
// key of its table. Seen: better-bttest.
func NoSourceKey() error {
	return New(codes.InvalidArgument, "queries must select and order by the unmodified _key column from the source table")
}

// KeyHint returns the status for a column _key of a materialized view that is not its only key. Seen:
// better-bttest.
func KeyHint() error {
	return New(codes.InvalidArgument, "queries that provide a _key hint must only group by _key (and optionally _timestamp). Use a different column name if you want to create a composite key.")
}

// OfQuery converts an error of a query to a status.
func OfQuery(err error) error {
	if e, ok := errors.AsType[*value.Error](err); ok {
		return New(e.Code, "%s", e.Error())
	}
	return Of(err)
}

// NoMaterializedView returns the status for a materialized view that does not exist. Seen: better-bttest.
func NoMaterializedView(name string) error { return New(codes.NotFound, "Failed to read: %s", name) }

// UnpopulatedView returns the status for a read of a materialized view that is being populated for the first
// time. The service rejects it too; the code and the text are ours.
func UnpopulatedView(name string) error {
	return New(codes.FailedPrecondition, "Materialized View %s is being populated. Until then only SQL queries with the hint @{allow_incomplete_view=true} can read it.", name)
}

// ImmutableView returns the status for a change of the query of a materialized view. Seen: better-bttest.
func ImmutableView() error {
	return New(codes.InvalidArgument, "Immutable fields 'query,name' cannot be updated.")
}
