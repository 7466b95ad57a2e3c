package admin

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/emu/internal/pending"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// Long-running operations. An RPC has its full effect before it returns, and
// its operation is done too, unless Control.Delay postpones its visible end.
// The result stays available, even after a restart, under
//
//	operations/projects/P/instances/I/operations/NUMBER
//
// The record of an operation holds its final state and, with a delay, the time
// at which it reaches it; see package pending. The state before is computed
// from the record and the clock.

// maxOperations is the maximum number of operations that are kept.
const maxOperations = 10_000

// start records an operation on an instance as part of a change, and returns
// it. It is done at doneAt, at once if that has passed. metadata and response
// are final: their end times equal doneAt. Package pending derives the state
// before.
func (s *Control) start(tx *engine.CatalogTx, instance string, metadata, response proto.Message, doneAt time.Time) (*longrunningpb.Operation, error) {
	number, err := count(tx, operationCount)
	if err != nil {
		return nil, err
	}
	op := &longrunningpb.Operation{
		Name: fmt.Sprintf("operations/%s/operations/%d", instance, number), Metadata: &anypb.Any{}, Done: true,
	}
	result := &anypb.Any{}
	opts := proto.MarshalOptions{Deterministic: true} // equal changes must produce equal stores
	if err := errors.Join(anypb.MarshalFrom(op.GetMetadata(), metadata, opts), anypb.MarshalFrom(result, response, opts)); err != nil {
		return nil, err
	}
	op.Result = &longrunningpb.Operation_Response{Response: result}
	stored := &storedOperation{Message: op, State: s.until(doneAt)}
	if number > maxOperations {
		if err := remove(tx, operationKey(number-maxOperations)); err != nil {
			return nil, err
		}
	}
	if err := storeRecord(tx, operationKey(number), op, stored.State); err != nil {
		return nil, err
	}
	return shownOperation(stored, s.now())
}

// span returns the start and the end of an operation that begins now.
func (s *Control) span() (began, doneAt *timestamppb.Timestamp) {
	now := s.now()
	return timestamppb.New(now), timestamppb.New(now.Add(s.Delay))
}

// storedOperation is a stored operation, which is running until its time.
type storedOperation = pending.Record[*longrunningpb.Operation]

// shownOperation returns the state of an operation at a given time.
func shownOperation(stored *storedOperation, now time.Time) (*longrunningpb.Operation, error) {
	done := stored.Message
	if !stored.Before(now) {
		return done, nil
	}
	metadata, err := done.GetMetadata().UnmarshalNew()
	if err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", done.GetName(), err)
	}
	unfinished(metadata.ProtoReflect(), stored.At, now)
	op := &longrunningpb.Operation{Name: done.GetName(), Metadata: &anypb.Any{}}
	return op, anypb.MarshalFrom(op.GetMetadata(), metadata, proto.MarshalOptions{Deterministic: true})
}

// unfinished changes the metadata of an operation that is done at doneAt to its
// state at now: without an end time, and with partial progress. It finds the
// fields by name, since all metadata messages name them alike.
func unfinished(metadata protoreflect.Message, doneAt, now time.Time) {
	fields := metadata.Descriptor().Fields()
	for _, name := range []protoreflect.Name{"end_time", "finish_time"} {
		if f := fields.ByName(name); f != nil {
			metadata.Clear(f)
		}
	}
	switch m := metadata.Interface().(type) {
	case *btapb.OperationProgress:
		began := m.GetStartTime().AsTime()
		m.ProgressPercent = int32(100 * (float64(max(now.Sub(began), 0)) / float64(max(doneAt.Sub(began), 1))))
	case *btapb.CreateClusterMetadata:
		for _, t := range m.GetTables() {
			t.State = btapb.CreateClusterMetadata_TableProgress_COPYING
		}
	}
	if f := fields.ByName("progress"); f != nil && metadata.Has(f) {
		unfinished(metadata.Mutable(f).Message(), doneAt, now)
	}
}

func operationKey(number int64) string { return fmt.Sprintf("%s%020d", kindOperation, number) }

// operation returns the record of an operation and its key.
func operation(r Catalog, name string) (*storedOperation, string, error) {
	rest, ok := strings.CutPrefix(name, "operations/")
	number, err := strconv.ParseInt(resname.Last(name), 10, 64)
	if !ok || !resname.HasShape(rest, "projects", "instances", "operations") {
		return nil, "", refusal.BadName("name", name, "operations/projects/PROJECT/instances/INSTANCE/operations/NUMBER")
	}
	if err != nil {
		return nil, "", refusal.NotFound("Operation", name)
	}
	key := operationKey(number)
	op, found, err := loadRecord[longrunningpb.Operation](r, key)
	if err != nil {
		return nil, "", refusal.Of(err)
	} else if !found || op.Message.GetName() != name {
		return nil, "", refusal.NotFound("Operation", name)
	}
	return op, key, nil
}

// GetOperation returns an operation.
func (s operationsService) GetOperation(_ context.Context, req *longrunningpb.GetOperationRequest) (*longrunningpb.Operation, error) {
	op, _, err := s.operationNow(req.GetName())
	return op, err
}

// operationNow returns the current state of an operation, and its end.
func (s *Control) operationNow(name string) (op *longrunningpb.Operation, doneAt time.Time, err error) {
	stored, _, err := operation(s.DB, name)
	if err != nil {
		return nil, time.Time{}, err
	}
	op, err = shownOperation(stored, s.now())
	return op, stored.At, refusal.Of(err)
}

// WaitOperation returns an operation once it is done or the timeout has passed on the server's
// clock.
func (s operationsService) WaitOperation(ctx context.Context, req *longrunningpb.WaitOperationRequest) (*longrunningpb.Operation, error) {
	d := req.GetTimeout()
	if d != nil && (!d.IsValid() || d.AsDuration() < 0) {
		return nil, refusal.Invalid("timeout", "%v is not a valid timeout", d)
	}
	late := s.now().Add(d.AsDuration())
	for {
		ended := s.operationsEnded.Next()
		op, doneAt, err := s.operationNow(req.GetName())
		if err != nil || op.GetDone() || d != nil && !late.After(s.now()) {
			return op, err
		}
		if d != nil && late.Before(doneAt) {
			doneAt = late
		}
		reached, stop := s.Clock.At(doneAt)
		select {
		case <-reached:
		case <-ended:
		case <-ctx.Done():
		}
		stop()
		if err := ctx.Err(); err != nil {
			return nil, refusal.Of(err)
		}
	}
}

// CancelOperation ends a running operation with a Canceled error if its effect can be undone; see
// undo. For other operations, it succeeds without an effect.
func (s operationsService) CancelOperation(ctx context.Context, req *longrunningpb.CancelOperationRequest) (*emptypb.Empty, error) {
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		stored, _, err := operation(tx, req.GetName())
		if err != nil {
			return err
		}
		op, doneAt := stored.Message, stored.At
		if !stored.Before(s.now()) {
			return nil
		}
		metadata, err := op.GetMetadata().UnmarshalNew()
		if err != nil {
			return err
		}
		undone, err := undo(tx, metadata, op.GetResponse(), doneAt)
		if err != nil || !undone {
			return err
		}
		return cancel(tx, op.GetName())
	})
	if err != nil {
		return nil, err
	}
	s.operationsEnded.Notify()
	return &emptypb.Empty{}, nil
}

// undo reverts the effect of a running operation if possible, and reports whether it did.
// metadata and response are those of the operation. Its end, doneAt, distinguishes the created
// resource from a later one of the same name. For backups and tables, the comments of their RPCs
// promise cancellation; that clusters are removed at once is an assumption.
func undo(tx *engine.CatalogTx, metadata proto.Message, response *anypb.Any, doneAt time.Time) (bool, error) {
	m, err := response.UnmarshalNew()
	if err != nil {
		return false, err
	}
	switch made := m.(type) {
	case *btapb.Cluster:
		if _, ok := metadata.(*btapb.CreateClusterMetadata); !ok {
			return false, nil
		}
		c, found, err := loadRecord[btapb.Cluster](tx, kindCluster+made.GetName())
		if err != nil || !found || !c.At.Equal(doneAt) {
			return false, err
		}
		return true, remove(tx, kindCluster+made.GetName())
	case *btapb.Backup:
		b := &btapb.Backup{}
		found, err := loadOne(tx, KindBackup+made.GetName(), b)
		if err != nil || !found || !b.GetEndTime().AsTime().Equal(doneAt) {
			return false, err
		}
		return true, dropBackup(tx, made.GetName())
	case *btapb.Table:
		restore, ok := metadata.(*btapb.RestoreTableMetadata)
		t, err := tx.Table(made.GetName())
		if !ok || err != nil || !readyAt(t).Equal(doneAt) || protected(t) || checkNoStream(t, "") != nil {
			return false, nil //nolint:nilerr // it was deleted
		}
		if name := restore.GetOptimizeTableOperationName(); name != "" {
			if err := cancel(tx, name); err != nil {
				return false, err
			}
		}
		return true, errors.Join(tx.DeleteTable(t.Name), removeAll(tx, t.Name))
	default:
		return false, nil
	}
}

// cancel ends an operation with a Canceled error.
func cancel(tx *engine.CatalogTx, name string) error {
	op, key, err := operation(tx, name)
	if err != nil {
		return err
	}
	op.Message.Result = &longrunningpb.Operation_Error{Error: refusal.Canceled(name)}
	return storeRecord(tx, key, op.Message, pending.State{})
}

// DeleteOperation deletes the record of an operation, and keeps its effects.
func (s operationsService) DeleteOperation(ctx context.Context, req *longrunningpb.DeleteOperationRequest) (*emptypb.Empty, error) {
	err := s.change(ctx, func(tx *engine.CatalogTx) error {
		_, key, err := operation(tx, req.GetName())
		if err != nil {
			return err
		}
		return tx.DeleteResource(key)
	})
	if err != nil {
		return nil, err
	}
	s.operationsEnded.Notify()
	return &emptypb.Empty{}, nil
}

// ListOperations returns the operations of a project or an instance, oldest first, in pages. The
// name in the request is "operations" followed by the name of the resource, or "operations" alone
// for all operations. It rejects filters.
func (s operationsService) ListOperations(_ context.Context, req *longrunningpb.ListOperationsRequest) (*longrunningpb.ListOperationsResponse, error) {
	parent, ok := strings.CutPrefix(req.GetName(), "operations")
	parent = strings.TrimPrefix(parent, "/")
	if !ok || parent != "" && !resname.HasShape(parent, "projects") && !resname.HasShape(parent, "projects", "instances") {
		return nil, refusal.BadName("name", req.GetName(), "operations/projects/PROJECT[/instances/INSTANCE]")
	}
	if req.GetFilter() != "" {
		return nil, refusal.Invalid("filter", "filters of operations are not supported")
	}
	ops, err := loadRecords[longrunningpb.Operation](s.DB, kindOperation, "")
	if err != nil {
		return nil, refusal.Of(err)
	}
	prefix := strings.TrimSuffix("operations/"+parent, "/") + "/"
	kept := ops[:0]
	for _, op := range ops {
		if strings.HasPrefix(op.Message.GetName(), prefix) {
			kept = append(kept, op)
		}
	}
	resp := &longrunningpb.ListOperationsResponse{}
	kept, resp.NextPageToken, err = page(kept, req.GetPageSize(), req.GetPageToken(), func(op *storedOperation) string {
		number, _ := strconv.ParseInt(resname.Last(op.Message.GetName()), 10, 64)
		return operationKey(number)
	})
	if err != nil {
		return nil, err
	}
	now := s.now()
	for _, stored := range kept {
		op, err := shownOperation(stored, now)
		if err != nil {
			return nil, refusal.Of(err)
		}
		resp.Operations = append(resp.Operations, op)
	}
	return resp, nil
}

// maxPageSize is the maximum and default page size of lists.
const maxPageSize = 1_000

// page returns a page of a sorted list, and the token of the next page. A token
// is the key of the last element of the page before, so that new and deleted
// elements do not shift the others.
func page[T any](all []T, size int32, token string, key func(T) string) ([]T, string, error) {
	switch {
	case size < 0:
		return nil, "", refusal.Invalid("page_size", "%d is negative", size)
	case size == 0 || size > maxPageSize:
		size = maxPageSize
	}
	if token != "" {
		last, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return nil, "", refusal.Invalid("page_token", "%q is not a token that this server issued", token)
		}
		for len(all) > 0 && key(all[0]) <= string(last) {
			all = all[1:]
		}
	}
	if len(all) <= int(size) {
		return all, "", nil
	}
	all = all[:size]
	return all, base64.RawURLEncoding.EncodeToString([]byte(key(all[size-1]))), nil
}
