package soak

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	rowsTable = "rows"
	longTable = "long"
	counters  = 16
	batchRows = 8
)

// ledger is the table of the Bigtable clients. Each has a row of its own and a batch of rows,
// with one number in two families; they share rows of counters, each with its sum and the part
// of every client.
type ledger struct {
	*soak
	clients []*bigtableClient
}

func newLedger(s *soak, clients int) *ledger {
	t := s.t
	t.Helper()
	admin := s.env.BigtableAdmin(t)
	newest := bigtable.MaxVersionsPolicy(1)
	for _, table := range []string{rowsTable, longTable} {
		if err := admin.CreateTableFromConf(t.Context(), &bigtable.TableConf{
			TableID: table, Families: map[string]bigtable.GCPolicy{"f": newest, "g": newest},
		}); err != nil {
			t.Fatal(err)
		}
	}
	long := s.env.Bigtable(t).Open(longTable)
	for i := 0; i < *longRows; i += 100 {
		var keys []string
		var muts []*bigtable.Mutation
		for j := range 100 {
			m := bigtable.NewMutation()
			m.Set("f", "q", 1000, []byte(strings.Repeat("v", 1000)))
			keys, muts = append(keys, fmt.Sprintf("%06d", i+j)), append(muts, m)
		}
		if errs, err := long.ApplyBulk(t.Context(), keys, muts); err != nil || errs != nil {
			t.Fatal(err, errs)
		}
	}
	l := &ledger{soak: s}
	for i := range clients {
		conn, err := grpc.NewClient("passthrough:///"+s.env.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		l.clients = append(l.clients, &bigtableClient{ledger: l, name: fmt.Sprintf("w%04d", i), api: btpb.NewBigtableClient(conn), made: map[string]int64{}})
	}
	return l
}

func (l *ledger) client(i int) worker { return l.clients[i] }

// scan reads the long table to its end. It continues a stream that a fault cuts off.
func (l *ledger) scan(ctx context.Context) error {
	rows, start := 0, ""
	for {
		n, last, err := l.clients[0].keys(ctx, longTable, start)
		rows += n
		switch code := status.Code(err); {
		case code == codes.OK && rows != *longRows:
			return fmt.Errorf("%d rows, want %d", rows, *longRows)
		case code == codes.OK:
			return nil
		case code != refusedScan && code != cutStream:
			return err
		default:
			l.saw(code.String())
		}
		if last != "" {
			start = last
		}
	}
}

// bigtableClient has a connection of its own.
type bigtableClient struct {
	*ledger
	name string
	api  btpb.BigtableClient
	// The state by the answers: its own row's number, that of its batch, and the number of its
	// additions to each counter.
	own, batch int64
	made       map[string]int64
}

func tableName(s *soak, id string) string {
	return "projects/" + s.env.Project() + "/instances/" + s.env.Instance() + "/tables/" + id
}

// call implements worker.
func (c *bigtableClient) call(ctx context.Context, rng *rand.Rand) time.Duration {
	table, next := tableName(c.soak, rowsTable), rng.Int64()
	began := time.Now()
	var kind string
	var took time.Duration
	var err error
	done := func() {} // records the effect
	switch rng.IntN(8) {
	case 0, 1, 2:
		kind = "MutateRow"
		_, err = c.api.MutateRow(ctx, &btpb.MutateRowRequest{TableName: table, RowKey: []byte("own-" + c.name), Mutations: both(next)})
		took = time.Since(began)
		done = func() { c.own = next }
	case 3:
		kind = "ReadModifyWriteRow"
		row := fmt.Sprintf("counter-%02d", rng.IntN(counters))
		rule := func(family, qualifier string) *btpb.ReadModifyWriteRule {
			return &btpb.ReadModifyWriteRule{
				FamilyName: family, ColumnQualifier: []byte(qualifier), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1},
			}
		}
		_, err = c.api.ReadModifyWriteRow(ctx, &btpb.ReadModifyWriteRowRequest{
			TableName: table, RowKey: []byte(row), Rules: []*btpb.ReadModifyWriteRule{rule("f", "sum"), rule("g", c.name)},
		})
		took = time.Since(began)
		done = func() { c.made[row]++ }
	case 4:
		kind = "CheckAndMutateRow"
		var resp *btpb.CheckAndMutateRowResponse
		resp, err = c.api.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{
			TableName: table, RowKey: []byte("own-" + c.name), TrueMutations: both(next), FalseMutations: both(next), PredicateFilter: latestIs(c.own),
		})
		took = time.Since(began)
		if known := c.own != 0; err == nil && resp.GetPredicateMatched() != known {
			c.t.Errorf("%s: its own row holds something else than %d", c.name, c.own)
		}
		done = func() { c.own = next }
	case 5:
		kind = "MutateRows"
		err = c.writeBatch(ctx, table, next)
		done = func() { c.batch = next }
	case 6:
		kind = "ReadRows"
		var got []int64
		got, err = c.numbers(ctx, "own-"+c.name)
		if want := twice(c.own); err == nil && !slices.Equal(got, want) {
			c.t.Errorf("%s: its own row holds %d, want %d", c.name, got, want)
		}
	case 7:
		kind = "ReadRows of a counter"
		err = c.readCounter(ctx, fmt.Sprintf("counter-%02d", rng.IntN(counters)))
	}
	c.mu.Lock()
	c.calls[kind]++
	c.mu.Unlock()
	switch code := status.Code(err); {
	case code == codes.OK:
		done()
	case code == lostAnswer:
		c.saw(code.String())
		done()
	case code == refusedCall:
		c.saw(code.String())
	default:
		c.t.Errorf("%s: %s: %v", c.name, kind, err)
	}
	return took
}

func (c *bigtableClient) writeBatch(ctx context.Context, table string, n int64) error {
	req := &btpb.MutateRowsRequest{TableName: table}
	for i := range batchRows {
		req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{RowKey: fmt.Appendf(nil, "batch-%s-%d", c.name, i), Mutations: both(n)})
	}
	stream, err := c.api.MutateRows(ctx, req)
	if err != nil {
		return err
	}
	answered := 0
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if answered != batchRows {
				return fmt.Errorf("%d entries are answered, want %d", answered, batchRows)
			}
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range resp.GetEntries() {
			if err := status.ErrorProto(e.GetStatus()); err != nil {
				return err
			}
			answered++
		}
	}
}

// readCounter checks that a counter is the sum of its parts, so that no write is half visible.
func (c *bigtableClient) readCounter(ctx context.Context, row string) error {
	parts, err := c.numbers(ctx, row)
	if err != nil || parts == nil {
		return err
	}
	sum := int64(0)
	for _, n := range parts[1:] {
		sum += n
	}
	if sum != parts[0] {
		c.t.Errorf("%s is %d, its parts are %d", row, parts[0], sum)
	}
	return nil
}

// numbers returns the newest values of a row's cells.
func (c *bigtableClient) numbers(ctx context.Context, row string) ([]int64, error) {
	stream, err := c.api.ReadRows(ctx, &btpb.ReadRowsRequest{
		TableName: tableName(c.soak, rowsTable), Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte(row)}}, Filter: latest(),
	})
	if err != nil {
		return nil, err
	}
	var out []int64
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		for _, chunk := range resp.GetChunks() { // a value of eight bytes is one chunk
			out = append(out, int64(binary.BigEndian.Uint64(chunk.GetValue())))
		}
	}
}

// keys reads the rows of a table after a key. It returns their number, and the last key.
func (c *bigtableClient) keys(ctx context.Context, table, after string) (n int, last string, err error) {
	span := &btpb.RowRange{StartKey: &btpb.RowRange_StartKeyOpen{StartKeyOpen: []byte(after)}}
	stream, err := c.api.ReadRows(ctx, &btpb.ReadRowsRequest{
		TableName: tableName(c.soak, table), Rows: &btpb.RowSet{RowRanges: []*btpb.RowRange{span}},
	})
	if err != nil {
		return 0, "", err
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return n, last, nil
		}
		if err != nil {
			return n, last, err
		}
		for _, chunk := range resp.GetChunks() { // one cell per row
			last = string(chunk.GetRowKey())
			n++
		}
	}
}

// check compares all rows with the answers.
func (l *ledger) check() {
	for _, c := range l.clients {
		expect := func(row string, n int64) {
			if got, err := c.numbers(l.t.Context(), row); err != nil || !slices.Equal(got, twice(n)) {
				l.t.Errorf("row %s holds %d (%v), want %d twice", row, got, err, n)
			}
		}
		expect("own-"+c.name, c.own)
		for i := range batchRows {
			expect(fmt.Sprintf("batch-%s-%d", c.name, i), c.batch)
		}
	}
	for i := range counters {
		row := fmt.Sprintf("counter-%02d", i)
		var want int64
		var parts []int64
		for _, c := range l.clients { // their names are in order, as columns are
			if n := c.made[row]; n > 0 {
				want += n
				parts = append(parts, n)
			}
		}
		if want == 0 {
			continue
		}
		if got, err := l.clients[0].numbers(l.t.Context(), row); err != nil || !slices.Equal(got, append([]int64{want}, parts...)) {
			l.t.Errorf("%s and its parts are %d (%v), want %d and %d", row, got, err, want, parts)
		}
	}
}

// both sets the two cells of a row to a number.
func both(n int64) []*btpb.Mutation {
	var out []*btpb.Mutation
	for _, family := range []string{"f", "g"} {
		out = append(out, &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
			FamilyName: family, ColumnQualifier: []byte("n"), TimestampMicros: -1, Value: binary.BigEndian.AppendUint64(nil, uint64(n)),
		}}})
	}
	return out
}

// twice returns the content of a row set to a number; 0 means never set.
func twice(n int64) []int64 {
	if n == 0 {
		return nil
	}
	return []int64{n, n}
}

func latest() *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}}
}

// latestIs passes the newest cells that contain a number.
func latestIs(n int64) *btpb.RowFilter {
	value := binary.BigEndian.AppendUint64(nil, uint64(n))
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: []*btpb.RowFilter{
		latest(),
		{Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: &btpb.ValueRange{
			StartValue: &btpb.ValueRange_StartValueClosed{StartValueClosed: value},
			EndValue:   &btpb.ValueRange_EndValueClosed{EndValueClosed: value},
		}}},
	}}}}
}
