package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// Arm starts the fault that a spec describes, which affects RPCs until it is removed. Faults apply
// in the order in which they were armed. If one of them fails a call, later ones are skipped. The
// name of a DynamoDB table that exists now selects the Bigtable table with its items. Arm returns an
// error if the spec cannot affect any call.
func (l *Lab) Arm(spec fault.Spec) (*fault.Fault, error) {
	if l.opts.Faultless {
		return nil, ErrFaultless
	}
	if spec.DynamoDB {
		return nil, errors.New("a DynamoDB fault must be armed at the DynamoDB endpoint")
	}
	if err := l.checkRPC(&spec); err != nil {
		return nil, err
	}
	if spec.Table != "" {
		spec.RowsTable = l.RowsOf(l.ctx, spec.Table)
	}
	return l.faults.Arm(spec)
}

// ErrFaultless is returned by Arm if Options.Faultless is set.
var ErrFaultless = errors.New("this server does not allow faults")

// Faults returns the armed faults of RPCs, in the order in which they were armed.
func (l *Lab) Faults() []*fault.Fault { return l.faults.All() }

func (l *Lab) checkRPC(s *fault.Spec) error {
	switch {
	case s.Effect == fault.FailCall && s.Err == nil:
		return fmt.Errorf("cannot fail %s: the error is nil", s.Method)
	case s.Effect == fault.CutRows && (s.Err == nil || s.Rows < 0):
		return fmt.Errorf("cannot cut ReadRows after %d rows: want a number of at least 0, and an error", s.Rows)
	case s.Effect == fault.DelayCall && s.Delay < 0:
		return fmt.Errorf("cannot delay %s by %v, which is negative", s.Method, s.Delay)
	case s.Effect == fault.LeaveEntries || s.Effect == fault.ReadOld:
		return fmt.Errorf("the effect chosen for %q applies only to DynamoDB operations", s.Method)
	case s.Item != nil:
		return errors.New("an item can limit only DynamoDB faults")
	case s.Failure.Message != "" || s.Failure.Reasons != nil:
		return errors.New("only DynamoDB failures can have a message or reasons")
	case !knownMethod(s.Method):
		return fmt.Errorf("unknown RPC %q%s", s.Method, l.hint(s.Method))
	case s.Applied && s.Effect != fault.FailCall:
		return fault.ErrApplied
	}
	return nil
}

// hint returns the meaning of a name that is not of an RPC, as a part of an error.
func (l *Lab) hint(method string) string {
	if sent := sentBy[method]; sent != "" {
		return fmt.Sprintf(": %s of the Go client sends %s", method, sent)
	}
	if slices.Contains(l.endpoint.Operations(), method) {
		return ": it is an operation of DynamoDB, whose faults belong to the DynamoDB endpoint (in Go: FailDynamoDB, DynamoDBLatency)"
	}
	return fault.Near(method, methods())
}

// sentBy has the RPCs that methods of the Go client send.
var sentBy = map[string]string{
	"Apply": "MutateRow or CheckAndMutateRow", "ApplyBulk": "MutateRows", "ApplyReadModifyWrite": "ReadModifyWriteRow", "DropAllRows": "DropRowRange",
}

// knownMethod reports whether a method is one of the server's.
func knownMethod(method string) bool {
	return method == "*" || slices.ContainsFunc(emu.Support(), func(row emu.Feature) bool {
		return !inMessage[row.Group] && (row.Name == method || row.Group+"/"+row.Name == method)
	})
}

// methods returns the names of the RPCs, without their services.
func methods() (all []string) {
	for _, row := range emu.Support() {
		if !inMessage[row.Group] {
			all = append(all, row.Name)
		}
	}
	return all
}

// inMessage holds the groups of the support table that are not services.
var inMessage = map[string]bool{"RowFilter": true, "Mutation": true, "GcRule": true}

// rpcFaults applies faults to the RPCs of a server.
type rpcFaults struct {
	*fault.Set
	clock *clock.Clock
}

// of returns the faults that may affect calls of a method, by its full name,
// "/google.bigtable.v2.Bigtable/ReadRows". behind means that the DynamoDB endpoint makes the
// call.
func (s *rpcFaults) of(fullMethod string, behind bool) []*fault.Fault {
	var out []*fault.Fault
	for _, f := range s.All() {
		spec := f.Spec()
		if spec.BehindDynamoDB == behind && (spec.Method == "*" || strings.HasSuffix(fullMethod, "/"+spec.Method) ||
			strings.HasSuffix(fullMethod, "."+spec.Method)) {
			out = append(out, f)
		}
	}
	return out
}

// holds reports whether a fault is for the row with a key.
func holds(f *fault.Fault, key []byte) bool { return bytes.Equal(f.Spec().Row, key) }

// matches reports whether a request has a fault's table and row.
func matches(f *fault.Fault, req any) bool {
	table, rows, row := f.Spec().Table, f.Spec().RowsTable, f.Spec().Row
	holds := func(key []byte) bool { return bytes.Equal(row, key) }
	if table != "" && !isOnTable(req, table) && (rows == "" || !isOnTable(req, rows)) {
		return false
	}
	if row == nil {
		return true
	}
	switch req := req.(type) {
	case *btpb.ReadRowsRequest:
		set := req.GetRows()
		return len(set.GetRowKeys())+len(set.GetRowRanges()) == 0 ||
			slices.ContainsFunc(set.GetRowKeys(), holds) ||
			slices.ContainsFunc(set.GetRowRanges(), func(r *btpb.RowRange) bool { return rangeHolds(r, row) })
	case *btpb.MutateRowsRequest:
		return slices.ContainsFunc(req.GetEntries(), func(e *btpb.MutateRowsRequest_Entry) bool { return holds(e.GetRowKey()) })
	case interface{ GetRowKey() []byte }:
		return holds(req.GetRowKey())
	}
	return false
}

// isOnTable reports whether a request concerns a table or a materialized view, or a resource below it.
func isOnTable(req any, id string) bool {
	var name string
	switch req := req.(type) {
	case interface{ GetTableName() string }:
		name = req.GetTableName()
	case interface{ GetTableId() string }:
		return req.GetTableId() == id
	case interface{ GetMaterializedViewId() string }:
		return req.GetMaterializedViewId() == id
	case interface{ GetName() string }:
		name = req.GetName()
	}
	if view, ok := req.(interface{ GetAuthorizedViewName() string }); ok && name == "" {
		name = view.GetAuthorizedViewName()
	}
	if view, ok := req.(interface{ GetMaterializedViewName() string }); ok && name == "" {
		name = view.GetMaterializedViewName()
	}
	for _, kind := range []string{"/tables/", "/materializedViews/"} {
		if _, after, ok := strings.Cut(name, kind); ok {
			got, _, _ := strings.Cut(after, "/")
			return got == id
		}
	}
	return false
}

// rangeHolds reports whether a row range contains a key. An empty bound is unbounded.
func rangeHolds(r *btpb.RowRange, key []byte) bool {
	switch start := r.GetStartKey().(type) {
	case *btpb.RowRange_StartKeyClosed:
		if bytes.Compare(key, start.StartKeyClosed) < 0 {
			return false
		}
	case *btpb.RowRange_StartKeyOpen:
		if bytes.Compare(key, start.StartKeyOpen) <= 0 && len(start.StartKeyOpen) > 0 {
			return false
		}
	}
	switch end := r.GetEndKey().(type) {
	case *btpb.RowRange_EndKeyClosed:
		return len(end.EndKeyClosed) == 0 || bytes.Compare(key, end.EndKeyClosed) <= 0
	case *btpb.RowRange_EndKeyOpen:
		return len(end.EndKeyOpen) == 0 || bytes.Compare(key, end.EndKeyOpen) < 0
	}
	return true
}

// wait advances the clock by d, without waiting. If the call's deadline is earlier, it
// advances the clock only to the deadline, and returns DeadlineExceeded.
func (s *rpcFaults) wait(ctx context.Context, d time.Duration) error {
	if err := pass(ctx, s.clock, d); err != nil {
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	return nil
}

// Pass advances the clock by d for an in-process call, without waiting. If the deadline of ctx is
// earlier, it advances the clock only to the deadline and returns context.DeadlineExceeded.
func (l *Lab) Pass(ctx context.Context, d time.Duration) error { return pass(ctx, l.Clock(), d) }

func pass(ctx context.Context, on *clock.Clock, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline) //nolint:forbidigo // deadlines of contexts are wall time
		if left <= d {
			on.Advance(left)
			return context.DeadlineExceeded
		}
	}
	on.Advance(d)
	return nil
}
