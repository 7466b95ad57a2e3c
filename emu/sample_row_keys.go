package emu

import (
	"bytes"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// SampleRowKeys streams keys that divide the table into parts of similar size, each with the
// approximate number of bytes before it. The last sample is the end of row_range, or "" for the end
// of the table. For an authorized view, it samples each of the view's spans of row keys up to the
// end of the span, even if the view has no columns.
func (c *call) SampleRowKeys(req *btpb.SampleRowKeysRequest, stream btpb.Bigtable_SampleRowKeysServer) error {
	t, err := c.readTarget(stream.Context(), req.GetTableName(), req.GetAuthorizedViewName(), req.GetMaterializedViewName())
	if err != nil {
		return err
	}
	if err := c.admit(req, t.resource(), req.GetAppProfileId(), reads); err != nil {
		return err
	}
	var span filter.Span
	if r := req.GetRowRange(); r != nil {
		var ok bool
		if span, ok, err = c.rowRange("row_range", 0, r); err != nil {
			return err
		}
		if !ok {
			return refusal.BadRange("row_range", 0)
		}
	}
	within := []filter.Span{span}
	if t.view != nil {
		within = t.rows(filter.Of(within)).Spans
	}
	ends := make([][]byte, 0, len(within))
	for _, sp := range within {
		ends = append(ends, sp.End)
	}
	// Each end is also sampled, so that the last sample of a span has the offset of its end.
	samples, err := c.db.SampleRowKeys(stream.Context(), t.Name, ends...)
	if err != nil {
		return refusal.Of(err)
	}
	for _, span := range within {
		for len(samples) > 0 {
			sample := samples[0]
			last := len(sample.RowKey) == 0 || len(span.End) > 0 && bytes.Compare(sample.RowKey, span.End) >= 0
			key := sample.RowKey
			if last {
				key = span.End
			}
			if last || bytes.Compare(key, span.Start) > 0 {
				if err := stream.Send(&btpb.SampleRowKeysResponse{RowKey: bytes.Clone(key), OffsetBytes: sample.OffsetBytes}); err != nil {
					return err
				}
			}
			if last {
				break
			}
			samples = samples[1:]
		}
	}
	return nil
}
