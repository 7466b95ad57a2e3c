package linear

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/anishathalye/porcupine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/testkit"
)

// verb is the effect of a call on a row.
type verb uint8

const (
	read        verb = iota // ReadRows
	write                   // MutateRow: delete the row and set both cells
	remove                  // MutateRow: delete the row
	compareSwap             // CheckAndMutateRow: write if the value is from
	increment               // ReadModifyWriteRow of both cells
)

// rowCall is a call on a row, which has the same number in two families.
type rowCall struct {
	row   string
	verb  verb
	from  int64 // compareSwap
	value int64 // write, compareSwap, and the amount to increment
}

// rowState is the content of a row.
type rowState struct {
	exists bool
	value  int64
}

// rows returns the model of a table, row by row.
func rows() porcupine.Model {
	return Model(rowState{}, func(s rowState, input any) (rowState, any) {
		switch c := input.(rowCall); c.verb {
		case read:
			return s, s
		case write:
			return rowState{true, c.value}, nil
		case remove:
			return rowState{}, nil
		case compareSwap:
			if s != (rowState{true, c.from}) {
				return s, false
			}
			return rowState{true, c.value}, true
		case increment:
			s = rowState{true, s.value + c.value}
			return s, s.value
		}
		return s, nil
	}, func(input any) string { return input.(rowCall).row })
}

const tableName = "projects/tabletop/instances/tabletop/tables/t"

// twice is the row whose calls are all delivered twice.
const twice = "twice"

func TestBigtable(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t, testkit.WithSeed(*seed))
	if err := env.BigtableAdmin(t).CreateTableFromConf(t.Context(), &bigtable.TableConf{
		TableID: "t", Families: map[string]bigtable.GCPolicy{"f": bigtable.NoGcPolicy(), "g": bigtable.NoGcPolicy()},
	}); err != nil {
		t.Fatal(err)
	}
	faults := map[string][]*testkit.Fault{}
	for _, method := range []string{"MutateRow", "CheckAndMutateRow", "ReadModifyWriteRow"} {
		for name, fault := range map[string]*testkit.Fault{
			"refused":         env.Fail(method, status.Error(codes.Unavailable, "refused"), testkit.WithProbability(0.1)),
			"delivered twice": env.Duplicate(method, testkit.OnRow(twice)),
			"lost":            env.Fail(method, status.Error(codes.Aborted, "lost"), testkit.Applied(), testkit.WithProbability(0.1)),
		} {
			faults[name] = append(faults[name], fault)
		}
	}
	c := btpb.NewBigtableClient(env.Conn()) // without the retries of an official client
	h := New(clients)
	run(func(client int, rng *rand.Rand) {
		call := rowCall{
			row: []string{"a", "b", twice}[rng.IntN(3)], verb: verb(rng.IntN(int(increment) + 1)),
			from: rng.Int64N(4), value: rng.Int64N(4),
		}
		copies := 1
		if call.row == twice && call.verb != read {
			copies = 2
		}
		h.Record(client, copies, call, func() (any, Known) {
			output, err := call.make(t, c)
			switch code := status.Code(err); {
			case code == codes.OK:
				return output, Answered
			case code == codes.Unavailable:
				return nil, Refused
			case code == codes.Aborted:
				return nil, Lost
			}
			t.Errorf("%+v: %v", call, err)
			return nil, Unknown
		})
	})
	for name, alike := range faults { // chance may spare all calls of one method
		hits := 0
		for _, f := range alike {
			hits += f.Hits()
		}
		if hits == 0 {
			t.Errorf("no call was %s", name)
		}
	}
	check(t, h, rows())
}

// make makes the call. A read that finds different cells fails the test.
func (c rowCall) make(t *testing.T, client btpb.BigtableClient) (any, error) {
	t.Helper()
	ctx, key := t.Context(), []byte(c.row)
	switch c.verb {
	case read:
		return c.read(t, client)
	case write:
		_, err := client.MutateRow(ctx, &btpb.MutateRowRequest{TableName: tableName, RowKey: key, Mutations: replaceRow(c.value)})
		return nil, err
	case remove:
		_, err := client.MutateRow(ctx, &btpb.MutateRowRequest{TableName: tableName, RowKey: key, Mutations: replaceRow(0)[:1]})
		return nil, err
	case compareSwap:
		filters := []*btpb.RowFilter{
			{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}},
			{Filter: &btpb.RowFilter_ValueRangeFilter{ValueRangeFilter: &btpb.ValueRange{
				StartValue: &btpb.ValueRange_StartValueClosed{StartValueClosed: counter(c.from)},
				EndValue:   &btpb.ValueRange_EndValueClosed{EndValueClosed: counter(c.from)},
			}}},
		}
		resp, err := client.CheckAndMutateRow(ctx, &btpb.CheckAndMutateRowRequest{
			TableName: tableName, RowKey: key, TrueMutations: replaceRow(c.value),
			PredicateFilter: &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: filters}}},
		})
		return resp.GetPredicateMatched(), err
	case increment:
		rule := func(family string) *btpb.ReadModifyWriteRule {
			return &btpb.ReadModifyWriteRule{
				FamilyName: family, ColumnQualifier: []byte("q"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: c.value},
			}
		}
		resp, err := client.ReadModifyWriteRow(ctx, &btpb.ReadModifyWriteRowRequest{
			TableName: tableName, RowKey: key, Rules: []*btpb.ReadModifyWriteRule{rule("f"), rule("g")},
		})
		if err != nil {
			return nil, err
		}
		var values []int64
		for _, f := range resp.GetRow().GetFamilies() {
			values = append(values, number(f.GetColumns()[0].GetCells()[0].GetValue()))
		}
		return wholeRow(t, c, values).value, nil
	}
	return nil, errors.New("no call")
}

func (c rowCall) read(t *testing.T, client btpb.BigtableClient) (any, error) {
	t.Helper()
	stream, err := client.ReadRows(t.Context(), &btpb.ReadRowsRequest{
		TableName: tableName, Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte(c.row)}},
		Filter: &btpb.RowFilter{Filter: &btpb.RowFilter_CellsPerColumnLimitFilter{CellsPerColumnLimitFilter: 1}},
	})
	if err != nil {
		return nil, err
	}
	var values []int64
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return wholeRow(t, c, values), nil
		}
		if err != nil {
			return nil, err
		}
		for _, chunk := range resp.GetChunks() { // a value of eight bytes is one chunk
			values = append(values, number(chunk.GetValue()))
		}
	}
}

// wholeRow returns the state of a row from its values, which are two equal ones or none.
func wholeRow(t *testing.T, c rowCall, values []int64) rowState {
	t.Helper()
	switch {
	case len(values) == 0:
		return rowState{}
	case len(values) != 2 || values[0] != values[1]:
		t.Errorf("%+v: half of a change is seen: %v", c, values)
	}
	return rowState{true, values[0]}
}

// replaceRow replaces the content of a row with a number.
func replaceRow(n int64) []*btpb.Mutation {
	out := []*btpb.Mutation{{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}}}
	for _, family := range []string{"f", "g"} {
		out = append(out, &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
			FamilyName: family, ColumnQualifier: []byte("q"), TimestampMicros: 1000, Value: counter(n),
		}}})
	}
	return out
}

func counter(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func number(b []byte) int64 {
	if len(b) != 8 {
		return -1
	}
	return int64(binary.BigEndian.Uint64(b))
}

// TestModel gives the checker histories with one fault each, which it must find, and the same
// ones without the fault.
func TestModel(t *testing.T) {
	t.Parallel()
	op := func(call, end int64, c rowCall, output any) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: end, Input: c, Output: Result{Output: output}}
	}
	for i, c := range []struct{ good, bad porcupine.Operation }{
		{op(5, 6, rowCall{verb: read}, rowState{true, 7}), op(5, 6, rowCall{verb: read}, rowState{true, 3})}, // stale
		{op(5, 6, rowCall{verb: read}, rowState{true, 7}), op(5, 6, rowCall{verb: read}, rowState{})},        // deleted
		{op(2, 6, rowCall{verb: read}, rowState{true, 3}), op(5, 6, rowCall{verb: read}, rowState{true, 3})}, // late
		{op(5, 6, rowCall{verb: increment, value: 1}, int64(8)), op(5, 6, rowCall{verb: increment, value: 1}, int64(4))},
		{op(5, 6, rowCall{verb: compareSwap, from: 7}, true), op(5, 6, rowCall{verb: compareSwap, from: 3}, true)},
		{op(5, 6, rowCall{verb: compareSwap, from: 3}, false), op(5, 6, rowCall{verb: compareSwap, from: 7}, false)},
	} {
		before := []porcupine.Operation{op(0, 1, rowCall{verb: write, value: 3}, nil), op(3, 4, rowCall{verb: increment, value: 4}, int64(7))}
		if !porcupine.CheckOperations(rows(), append(slices.Clip(before), c.good)) {
			t.Errorf("%d: a history without a fault is refused", i)
		}
		if porcupine.CheckOperations(rows(), append(slices.Clip(before), c.bad)) {
			t.Error("a fault is not found: " + strconv.Itoa(i))
		}
	}
}
