package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/internal/bucketjobs"
)

// startBulkPutItems starts an operation that puts the items of a bucket into an existing table.
func (s *Server) startBulkPutItems(ctx context.Context, in *bucketjobs.BulkRequest) (*bucketjobs.BulkOperationOutput, error) {
	return throughBuckets(ctx, s, "StartBulkPutItems", in, (*bucketjobs.Service).StartBulk)
}

// describeBulkOperation describes a bulk operation.
func (s *Server) describeBulkOperation(ctx context.Context, in *bucketjobs.BulkARNRequest) (*bucketjobs.BulkOperationOutput, error) {
	return throughBuckets(ctx, s, "DescribeBulkOperation", in, (*bucketjobs.Service).DescribeBulk)
}

// listBulkOperations lists bulk operations.
func (s *Server) listBulkOperations(ctx context.Context, in *bucketjobs.ListBulkRequest) (*bucketjobs.ListBulkOutput, error) {
	return throughBuckets(ctx, s, "ListBulkOperations", in, (*bucketjobs.Service).ListBulk)
}

// cancelBulkOperation cancels a bulk operation.
func (s *Server) cancelBulkOperation(ctx context.Context, in *bucketjobs.BulkARNRequest) (*bucketjobs.CancelBulkOutput, error) {
	return throughBuckets(ctx, s, "CancelBulkOperation", in, (*bucketjobs.Service).CancelBulk)
}
