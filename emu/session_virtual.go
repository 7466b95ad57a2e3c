package emu

import (
	"context"
	"strings"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// virtualRequest is a virtual RPC, such as a TableRequest. It may also have a GetMutateRow
// method.
type virtualRequest interface {
	proto.Message
	GetReadRow() *btpb.SessionReadRowRequest
}

// callVirtual runs do, which answers a virtual RPC on a resource, through an interceptor. The
// interceptor sees a ReadRows or a MutateRow of the row. If ic is nil or the request is of
// another kind, callVirtual runs do directly.
func callVirtual(ctx context.Context, ic grpc.UnaryServerInterceptor, resource, profile string, req virtualRequest, do func(context.Context) ([]byte, error)) ([]byte, error) {
	if ic == nil {
		return do(ctx)
	}
	method, like := likeVirtual(resource, profile, req)
	if like == nil {
		return do(ctx)
	}
	info := &grpc.UnaryServerInfo{FullMethod: "/" + btpb.Bigtable_ServiceDesc.ServiceName + "/" + method}
	answer, err := ic(ctx, like, info, func(ctx context.Context, _ any) (any, error) { return do(ctx) })
	if err != nil {
		return nil, err
	}
	out, _ := answer.([]byte)
	return out, nil
}

// likeVirtual returns the method and request equivalent to a virtual RPC, or nil.
func likeVirtual(resource, profile string, req virtualRequest) (string, proto.Message) {
	table, view, materialized := resource, "", ""
	switch {
	case strings.Contains(resource, "/authorizedViews/"):
		table, view = "", resource
	case strings.Contains(resource, "/materializedViews/"):
		table, materialized = "", resource
	}
	if read := req.GetReadRow(); read != nil {
		return "ReadRows", &btpb.ReadRowsRequest{
			TableName: table, AuthorizedViewName: view, MaterializedViewName: materialized, AppProfileId: profile,
			Rows: &btpb.RowSet{RowKeys: [][]byte{read.GetKey()}}, Filter: read.GetFilter(), RowsLimit: 1,
		}
	}
	if writer, ok := req.(interface {
		GetMutateRow() *btpb.SessionMutateRowRequest
	}); ok && writer.GetMutateRow() != nil {
		return "MutateRow", &btpb.MutateRowRequest{
			TableName: table, AuthorizedViewName: view, AppProfileId: profile,
			RowKey: writer.GetMutateRow().GetKey(), Mutations: writer.GetMutateRow().GetMutations(),
		}
	}
	return "", nil
}

// virtualError returns the response to a failed virtual RPC. It copies a RetryInfo from the
// status details into the response, since clients of sessions read only that.
func virtualError(id int64, where *btpb.ClusterInformation, err error) *btpb.SessionResponse {
	st := status.Convert(err)
	out := &btpb.ErrorResponse{RpcId: id, ClusterInfo: where, Status: st.Proto()}
	for _, detail := range st.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			out.RetryInfo = retry
		}
	}
	return &btpb.SessionResponse{Payload: &btpb.SessionResponse_Error{Error: out}}
}
