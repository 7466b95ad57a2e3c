package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/internal/bucketjobs"
)

// exportTableToPointInTime starts an export of a table, or of its changes, into a bucket.
func (s *Server) exportTableToPointInTime(ctx context.Context, in *bucketjobs.ExportRequest) (*bucketjobs.ExportOutput, error) {
	return throughBuckets(ctx, s, "ExportTableToPointInTime", in, (*bucketjobs.Service).Export)
}

func (s *Server) describeExport(ctx context.Context, in *bucketjobs.DescribeExportRequest) (*bucketjobs.ExportOutput, error) {
	return throughBuckets(ctx, s, "DescribeExport", in, (*bucketjobs.Service).DescribeExport)
}

func (s *Server) listExports(ctx context.Context, in *bucketjobs.ListExportsRequest) (*bucketjobs.ListExportsOutput, error) {
	return throughBuckets(ctx, s, "ListExports", in, (*bucketjobs.Service).ListExports)
}
