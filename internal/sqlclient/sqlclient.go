// Package sqlclient runs SQL queries on a Bigtable. It converts Go values to parameters, and rows to text, JSON
// or Go values.
package sqlclient

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Query is a query with its parameters. Instance is the full name of the instance.
type Query struct {
	Instance, AppProfile, Text string
	Params, ViewParams         map[string]*btpb.Value // with their types
}

// Rows iterates over a result.
type Rows struct {
	// Columns are the columns of each row.
	Columns []*btpb.ColumnMetadata
	// Prepared is the token of the prepared query.
	Prepared []byte

	stream btpb.Bigtable_ExecuteQueryClient
	cancel context.CancelFunc
	data   []byte        // of the current batch
	values []*btpb.Value // of rows that All has not yielded
	ended  bool
}

// Run prepares a query and starts it. The caller must close the result.
func Run(ctx context.Context, conn grpc.ClientConnInterface, q Query) (*Rows, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, "x-goog-request-params", "name="+q.Instance+"&app_profile_id="+q.AppProfile)
	ctx, cancel := context.WithCancel(ctx)
	r, err := run(ctx, btpb.NewBigtableClient(conn), q)
	if err != nil {
		cancel()
		return nil, err
	}
	r.cancel = cancel
	return r, nil
}

// maxPrepares is the number of times that Run prepares a query whose plan expires before it starts.
const maxPrepares = 3

func run(ctx context.Context, client btpb.BigtableClient, q Query) (*Rows, error) {
	types := map[string]*btpb.Type{}
	for name, v := range q.Params {
		types[name] = v.GetType()
	}
	for try := 1; ; try++ {
		prepared, err := client.PrepareQuery(ctx, &btpb.PrepareQueryRequest{
			InstanceName: q.Instance, AppProfileId: q.AppProfile, Query: q.Text, ParamTypes: types,
			DataFormat: &btpb.PrepareQueryRequest_ProtoFormat{ProtoFormat: &btpb.ProtoFormat{}},
		})
		if err != nil {
			return nil, err
		}
		stream, err := client.ExecuteQuery(ctx, &btpb.ExecuteQueryRequest{
			InstanceName: q.Instance, AppProfileId: q.AppProfile, PreparedQuery: prepared.GetPreparedQuery(), Params: q.Params, ViewParameters: q.ViewParams,
		})
		if err != nil {
			return nil, err
		}
		r := &Rows{Columns: prepared.GetMetadata().GetProtoSchema().GetColumns(), Prepared: prepared.GetPreparedQuery(), stream: stream}
		if err = r.fill(); expired(err) && try < maxPrepares {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return r, nil
	}
}

// expired reports whether err means that the plan of a query has expired.
func expired(err error) bool {
	for _, d := range status.Convert(err).Details() {
		if f, ok := d.(*errdetails.PreconditionFailure); ok {
			for _, v := range f.GetViolations() {
				if v.GetType() == "PREPARED_QUERY_EXPIRED" {
					return true
				}
			}
		}
	}
	return false
}

// castagnoli is the table of the checksums of batches.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fill receives until a row is available. It returns io.EOF after the last row.
func (r *Rows) fill() error {
	for len(r.values) == 0 {
		if r.ended {
			return io.EOF
		}
		answer, err := r.stream.Recv()
		if errors.Is(err, io.EOF) {
			r.ended = true
			continue
		}
		if err != nil {
			return err
		}
		set := answer.GetResults()
		if set.GetReset_() {
			r.data, r.values = nil, nil
		}
		r.data = append(r.data, set.GetProtoRowsBatch().GetBatchData()...)
		if set.BatchChecksum == nil {
			continue
		}
		if got := crc32.Checksum(r.data, castagnoli); got != set.GetBatchChecksum() {
			return fmt.Errorf("a batch of rows has the checksum %08x, but its sender says %08x", got, set.GetBatchChecksum())
		}
		rows := &btpb.ProtoRows{}
		if err := proto.Unmarshal(r.data, rows); err != nil {
			return fmt.Errorf("a batch of rows: %w", err)
		}
		r.data, r.values = nil, rows.GetValues()
	}
	if len(r.values) < len(r.Columns) {
		return fmt.Errorf("a batch of rows ends within a row of %d columns", len(r.Columns))
	}
	return nil
}

// All yields the remaining rows. After an error it yields nothing more.
func (r *Rows) All() iter.Seq2[[]*btpb.Value, error] {
	return func(yield func([]*btpb.Value, error) bool) {
		for {
			err := r.fill()
			if errors.Is(err, io.EOF) {
				return
			}
			var row []*btpb.Value
			if err == nil {
				row, r.values = r.values[:len(r.Columns)], r.values[len(r.Columns):]
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the query.
func (r *Rows) Close() { r.cancel() }
