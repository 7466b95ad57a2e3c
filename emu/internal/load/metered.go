package load

import (
	"bytes"
	"context"
	"sync"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/tabletop-emu/tabletop/internal/heat"
	"github.com/tabletop-emu/tabletop/internal/probe"
)

// Meter says which requests are counted, and where.
type Meter struct {
	Heat *heat.Store
	// Cluster returns the id of the cluster that answers a request, and false for
	// one that is not counted. It allocates nothing for the latter.
	Cluster func(req any) (string, bool)
	// Exists reports whether there is a table. Requests that fail because there is
	// none are not counted.
	Exists func(table string) bool
}

// Service is a server of data whose requests are counted.
type Service struct {
	btpb.BigtableServer
	*Meter
}

// counts returns the cluster that answers a request, and whether it is counted.
func (m *Meter) counts(ctx context.Context, req any) (string, bool) {
	cluster, ok := m.Cluster(req)
	return cluster, ok && !probe.Is(ctx)
}

// named is a request to a table or to a view of one.
type named interface {
	GetTableName() string
	GetAuthorizedViewName() string
}

// place returns where a request is counted that ended with err; nil if it is not.
func (m *Meter) place(cluster string, req named, err error) *heat.Table {
	table := req.GetTableName()
	if table == "" {
		table = tableOf(req.GetAuthorizedViewName())
	}
	if err != nil && !m.Exists(table) {
		return nil
	}
	return m.Heat.Table(cluster, table)
}

// tableOf returns the table of a view.
func tableOf(view string) string {
	const segments = 6 // projects/P/instances/I/tables/T
	slashes := 0
	for i := range len(view) {
		if view[i] == '/' {
			if slashes++; slashes == segments {
				return view[:i]
			}
		}
	}
	return view
}

// write adds a request that writes one row; bytes are counted if it succeeded.
func write(t *heat.Table, key []byte, content int, err error) {
	c := heat.Counts{Writes: 1, Errors: failed(err)}
	if err == nil {
		c.Bytes = uint64(len(key) + content)
	}
	t.Add(key, c)
}

func failed(err error) uint64 {
	if err != nil {
		return 1
	}
	return 0
}

// mutated is how many bytes mutations bring.
func mutated(muts []*btpb.Mutation) int {
	n := 0
	for _, m := range muts {
		switch m := m.GetMutation().(type) {
		case *btpb.Mutation_SetCell_:
			n += len(m.SetCell.GetColumnQualifier()) + len(m.SetCell.GetValue())
		case *btpb.Mutation_AddToCell_:
			n += len(m.AddToCell.GetColumnQualifier().GetRawValue()) + 8
		case *btpb.Mutation_MergeToCell_:
			n += len(m.MergeToCell.GetColumnQualifier().GetRawValue()) + len(m.MergeToCell.GetInput().GetBytesValue())
		}
	}
	return n
}

// MutateRow implements btpb.BigtableServer.
func (s Service) MutateRow(ctx context.Context, req *btpb.MutateRowRequest) (*btpb.MutateRowResponse, error) {
	cluster, ok := s.counts(ctx, req)
	resp, err := s.BigtableServer.MutateRow(ctx, req)
	if ok {
		if t := s.place(cluster, req, err); t != nil {
			write(t, req.GetRowKey(), mutated(req.GetMutations()), err)
		}
	}
	return resp, err
}

// CheckAndMutateRow implements btpb.BigtableServer.
func (s Service) CheckAndMutateRow(ctx context.Context, req *btpb.CheckAndMutateRowRequest) (*btpb.CheckAndMutateRowResponse, error) {
	cluster, ok := s.counts(ctx, req)
	resp, err := s.BigtableServer.CheckAndMutateRow(ctx, req)
	if ok {
		if t := s.place(cluster, req, err); t != nil {
			applied := req.GetFalseMutations()
			if resp.GetPredicateMatched() {
				applied = req.GetTrueMutations()
			}
			write(t, req.GetRowKey(), mutated(applied), err)
		}
	}
	return resp, err
}

// ReadModifyWriteRow implements btpb.BigtableServer.
func (s Service) ReadModifyWriteRow(ctx context.Context, req *btpb.ReadModifyWriteRowRequest) (*btpb.ReadModifyWriteRowResponse, error) {
	cluster, ok := s.counts(ctx, req)
	resp, err := s.BigtableServer.ReadModifyWriteRow(ctx, req)
	if ok {
		if t := s.place(cluster, req, err); t != nil {
			content := 0
			for _, r := range req.GetRules() {
				if content += len(r.GetColumnQualifier()); r.GetAppendValue() != nil {
					content += len(r.GetAppendValue())
				} else {
					content += 8
				}
			}
			write(t, req.GetRowKey(), content, err)
		}
	}
	return resp, err
}

// entries is the stream of a MutateRows request that is counted.
type entries struct {
	grpc.ServerStreamingServer[btpb.MutateRowsResponse]
	*Meter
	cluster string
	req     *btpb.MutateRowsRequest
}

var entriesPool = sync.Pool{New: func() any { return new(entries) }}

// Send counts the entries that a message is about.
func (e *entries) Send(resp *btpb.MutateRowsResponse) error {
	if t := e.place(e.cluster, e.req, nil); t != nil {
		for _, r := range resp.GetEntries() {
			i := r.GetIndex()
			if i < 0 || i >= int64(len(e.req.GetEntries())) {
				continue
			}
			entry := e.req.GetEntries()[i]
			if codes.Code(r.GetStatus().GetCode()) != codes.OK {
				t.Add(entry.GetRowKey(), heat.Counts{Errors: 1})
				continue
			}
			t.Add(entry.GetRowKey(), heat.Counts{Bytes: uint64(len(entry.GetRowKey()) + mutated(entry.GetMutations()))})
		}
	}
	return e.ServerStreamingServer.Send(resp)
}

// MutateRows implements btpb.BigtableServer.
func (s Service) MutateRows(req *btpb.MutateRowsRequest, stream btpb.Bigtable_MutateRowsServer) error {
	cluster, ok := s.counts(stream.Context(), req)
	if !ok {
		return s.BigtableServer.MutateRows(req, stream)
	}
	e := entriesPool.Get().(*entries)
	*e = entries{ServerStreamingServer: stream, Meter: s.Meter, cluster: cluster, req: req}
	err := s.BigtableServer.MutateRows(req, e)
	*e = entries{}
	entriesPool.Put(e)
	if t := s.place(cluster, req, err); t != nil {
		var key []byte
		if len(req.GetEntries()) > 0 {
			key = req.GetEntries()[0].GetRowKey()
		}
		t.Add(key, heat.Counts{Writes: 1, Errors: failed(err)})
	}
	return err
}

// rows is the stream of a ReadRows request that is counted.
type rows struct {
	grpc.ServerStreamingServer[btpb.ReadRowsResponse]
	*Meter
	cluster string
	req     *btpb.ReadRowsRequest
	// The row that is on its way, which may go on in the next message, and how many
	// bytes of it there were. The memory of the key is used again.
	key   []byte
	bytes int
}

var rowsPool = sync.Pool{New: func() any { return new(rows) }}

// Send counts the rows that a message ends, but for the last: a read of one row is
// counted as a whole.
func (r *rows) Send(resp *btpb.ReadRowsResponse) error {
	var t *heat.Table
	for _, c := range resp.GetChunks() {
		if len(c.GetRowKey()) > 0 {
			if r.bytes > 0 {
				if t == nil {
					t = r.place(r.cluster, r.req, nil)
				}
				t.Add(r.key, heat.Counts{Bytes: uint64(r.bytes)})
			}
			r.key, r.bytes = append(r.key[:0], c.GetRowKey()...), len(c.GetRowKey())
		}
		r.bytes += len(c.GetQualifier().GetValue()) + len(c.GetValue())
	}
	return r.ServerStreamingServer.Send(resp)
}

// ReadRows implements btpb.BigtableServer.
func (s Service) ReadRows(req *btpb.ReadRowsRequest, stream btpb.Bigtable_ReadRowsServer) error {
	cluster, ok := s.counts(stream.Context(), req)
	if !ok {
		return s.BigtableServer.ReadRows(req, stream)
	}
	r := rowsPool.Get().(*rows)
	*r = rows{ServerStreamingServer: stream, Meter: s.Meter, cluster: cluster, req: req, key: r.key[:0]}
	err := s.BigtableServer.ReadRows(req, r)
	if t := s.place(cluster, req, err); t != nil {
		first, c := firstKey(req.GetRows()), heat.Counts{Reads: 1, Errors: failed(err)}
		switch {
		case bytes.Equal(r.key, first):
			c.Bytes = uint64(r.bytes)
		case r.bytes > 0:
			t.Add(r.key, heat.Counts{Bytes: uint64(r.bytes)})
		}
		t.Add(first, c)
	}
	*r = rows{key: r.key}
	rowsPool.Put(r)
	return err
}

// firstKey is the first key that a set names, or the first beginning of a range.
func firstKey(set *btpb.RowSet) []byte {
	if keys := set.GetRowKeys(); len(keys) > 0 {
		return keys[0]
	}
	if ranges := set.GetRowRanges(); len(ranges) > 0 {
		if key := ranges[0].GetStartKeyClosed(); key != nil {
			return key
		}
		return ranges[0].GetStartKeyOpen()
	}
	return nil
}

// SessionRead counts a read of a row in a session on a table, whose answer is row.
func (m *Meter) SessionRead(cluster, table string, key []byte, row *btpb.Row, err error) {
	c := heat.Counts{Reads: 1, Errors: failed(err)}
	if row != nil {
		c.Bytes = uint64(len(key))
	}
	for _, f := range row.GetFamilies() {
		for _, column := range f.GetColumns() {
			c.Bytes += uint64(len(column.GetQualifier()))
			for _, cell := range column.GetCells() {
				c.Bytes += uint64(len(cell.GetValue()))
			}
		}
	}
	m.Heat.Table(cluster, table).Add(key, c)
}

// SessionWrite counts a write of a row in a session on a table.
func (m *Meter) SessionWrite(cluster, table string, key []byte, muts []*btpb.Mutation, err error) {
	write(m.Heat.Table(cluster, table), key, mutated(muts), err)
}
