package emu

import (
	"bytes"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
)

// SampleRowKeys streams keys that cut the table into parts of similar size,
// each with the approximate number of bytes before it. The last sample is the
// end of the table, "", or of row_range.
func (s dataService) SampleRowKeys(req *btpb.SampleRowKeysRequest, stream btpb.Bigtable_SampleRowKeysServer) error {
	table, err := s.readTarget(req.GetTableName(), req.GetAuthorizedViewName(), req.GetMaterializedViewName())
	if err != nil {
		return err
	}
	if err := s.checkProfile(table.Name, req.GetAppProfileId(), reads); err != nil {
		return err
	}
	var span filter.Span
	if r := req.GetRowRange(); r != nil {
		var ok bool
		if span, ok, err = s.rowRange("row_range", 0, r); err != nil {
			return err
		}
		if !ok {
			return statusBadRange("row_range", 0)
		}
	}
	// Cut at the end of the range, the last sample has the offset of that key.
	samples, err := s.db.SampleRowKeys(stream.Context(), table.Name, span.End)
	if err != nil {
		return toStatus(err)
	}
	for _, sample := range samples {
		last := len(sample.RowKey) == 0 || len(span.End) > 0 && bytes.Compare(sample.RowKey, span.End) >= 0
		if !last && bytes.Compare(sample.RowKey, span.Start) <= 0 {
			continue
		}
		key := bytes.Clone(sample.RowKey)
		if last {
			key = bytes.Clone(span.End)
		}
		if err := stream.Send(&btpb.SampleRowKeysResponse{RowKey: key, OffsetBytes: sample.OffsetBytes}); err != nil {
			return err
		}
		if last {
			break
		}
	}
	return nil
}
