package emu

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/engine"
)

// Long-running operations. Each is done when its RPC returns: the work was done
// there. What it did can be asked for later, also after a restart, under
//
//	operations/projects/P/instances/I/operations/NUMBER

// finish records an operation on an instance that is done, as part of a change,
// and returns it. What becomes visible with the change is its response.
func finish(tx *engine.CatalogTx, instance string, metadata, response proto.Message) (*longrunningpb.Operation, error) {
	number, err := count(tx, operationCount)
	if err != nil {
		return nil, err
	}
	op := &longrunningpb.Operation{
		Name: fmt.Sprintf("operations/%s/operations/%d", instance, number), Metadata: &anypb.Any{}, Done: true,
	}
	result := &anypb.Any{}
	opts := proto.MarshalOptions{Deterministic: true} // the same change leaves the same store
	if err := errors.Join(anypb.MarshalFrom(op.GetMetadata(), metadata, opts), anypb.MarshalFrom(result, response, opts)); err != nil {
		return nil, err
	}
	op.Result = &longrunningpb.Operation_Response{Response: result}
	if number > maxOperations {
		if err := remove(tx, operationKey(number-maxOperations)); err != nil {
			return nil, err
		}
	}
	return op, store(tx, operationKey(number), op)
}

func operationKey(number int64) string { return fmt.Sprintf("%s%020d", kindOperation, number) }

// operation returns the operation of a name, and its key.
func operation(r catalogReader, name string) (*longrunningpb.Operation, string, error) {
	rest, ok := strings.CutPrefix(name, "operations/")
	number, err := strconv.ParseInt(lastSegment(name), 10, 64)
	if !ok || !hasShape(rest, "projects", "instances", "operations") {
		return nil, "", refusal.BadName("name", name, "operations/projects/PROJECT/instances/INSTANCE/operations/NUMBER")
	}
	if err != nil {
		return nil, "", refusal.NotFound("Operation", name)
	}
	op := &longrunningpb.Operation{}
	key := operationKey(number)
	if found, err := load(r, key, op); err != nil {
		return nil, "", refusal.Of(err)
	} else if !found || op.GetName() != name {
		return nil, "", refusal.NotFound("Operation", name)
	}
	return op, key, nil
}

// GetOperation returns an operation.
func (s operationsService) GetOperation(_ context.Context, req *longrunningpb.GetOperationRequest) (*longrunningpb.Operation, error) {
	op, _, err := operation(s.db, req.GetName())
	return op, err
}

// WaitOperation returns at once: operations are done.
func (s operationsService) WaitOperation(_ context.Context, req *longrunningpb.WaitOperationRequest) (*longrunningpb.Operation, error) {
	if d := req.GetTimeout(); d != nil && (!d.IsValid() || d.AsDuration() < 0) {
		return nil, refusal.Invalid("timeout", "%v is not a duration to wait", d)
	}
	op, _, err := operation(s.db, req.GetName())
	return op, err
}

// CancelOperation does nothing: an operation that is done cannot be canceled,
// and success only says that it was tried.
func (s operationsService) CancelOperation(_ context.Context, req *longrunningpb.CancelOperationRequest) (*emptypb.Empty, error) {
	if _, _, err := operation(s.db, req.GetName()); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

// DeleteOperation forgets an operation; what it did stays.
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
	return &emptypb.Empty{}, nil
}

// ListOperations returns the operations of a project or an instance, oldest
// first, in pages. name is "operations" followed by the resource, or
// "operations" alone for all. Filters are refused.
func (s operationsService) ListOperations(_ context.Context, req *longrunningpb.ListOperationsRequest) (*longrunningpb.ListOperationsResponse, error) {
	parent, ok := strings.CutPrefix(req.GetName(), "operations")
	parent = strings.TrimPrefix(parent, "/")
	if !ok || parent != "" && !hasShape(parent, "projects") && !hasShape(parent, "projects", "instances") {
		return nil, refusal.BadName("name", req.GetName(), "operations/projects/PROJECT[/instances/INSTANCE]")
	}
	if req.GetFilter() != "" {
		return nil, refusal.Invalid("filter", "filters of operations are not supported")
	}
	ops, err := loadAll[longrunningpb.Operation](s.db, kindOperation, "")
	if err != nil {
		return nil, refusal.Of(err)
	}
	prefix := strings.TrimSuffix("operations/"+parent, "/") + "/"
	kept := ops[:0]
	for _, op := range ops {
		if strings.HasPrefix(op.GetName(), prefix) {
			kept = append(kept, op)
		}
	}
	resp := &longrunningpb.ListOperationsResponse{}
	resp.Operations, resp.NextPageToken, err = page(kept, req.GetPageSize(), req.GetPageToken(), func(op *longrunningpb.Operation) string {
		number, _ := strconv.ParseInt(lastSegment(op.GetName()), 10, 64)
		return operationKey(number)
	})
	return resp, err
}

// page returns the part of a sorted list that a page holds and the token of
// the next. A token is the key of the last element of the page before, so that
// elements that come and go between pages move no other.
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
			return nil, "", refusal.Invalid("page_token", "%q is not a token of this server", token)
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
