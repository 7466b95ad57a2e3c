package emu

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

func int64Type() *btapb.Type {
	return &btapb.Type{Kind: &btapb.Type_Int64Type{Int64Type: &btapb.Type_Int64{Encoding: &btapb.Type_Int64_Encoding{
		Encoding: &btapb.Type_Int64_Encoding_BigEndianBytes_{BigEndianBytes: &btapb.Type_Int64_Encoding_BigEndianBytes{}},
	}}}}
}

func bytesType() *btapb.Type {
	return &btapb.Type{Kind: &btapb.Type_BytesType{BytesType: &btapb.Type_Bytes{Encoding: &btapb.Type_Bytes_Encoding{
		Encoding: &btapb.Type_Bytes_Encoding_Raw_{Raw: &btapb.Type_Bytes_Encoding_Raw{}},
	}}}}
}

func stringType() *btapb.Type {
	return &btapb.Type{Kind: &btapb.Type_StringType{StringType: &btapb.Type_String{Encoding: &btapb.Type_String_Encoding{
		Encoding: &btapb.Type_String_Encoding_Utf8Bytes_{Utf8Bytes: &btapb.Type_String_Encoding_Utf8Bytes{}},
	}}}}
}

// aggregateOf returns a family with an aggregate: sum, min, max or hll.
func aggregateOf(name string, input *btapb.Type) *btapb.ColumnFamily {
	agg := &btapb.Type_Aggregate{InputType: input}
	switch name {
	case "sum":
		agg.Aggregator = &btapb.Type_Aggregate_Sum_{Sum: &btapb.Type_Aggregate_Sum{}}
	case "min":
		agg.Aggregator = &btapb.Type_Aggregate_Min_{Min: &btapb.Type_Aggregate_Min{}}
	case "max":
		agg.Aggregator = &btapb.Type_Aggregate_Max_{Max: &btapb.Type_Aggregate_Max{}}
	case "hll":
		agg.Aggregator = &btapb.Type_Aggregate_HllppUniqueCount{HllppUniqueCount: &btapb.Type_Aggregate_HyperLogLogPlusPlusUniqueCount{}}
	}
	return &btapb.ColumnFamily{ValueType: &btapb.Type{Kind: &btapb.Type_AggregateType{AggregateType: agg}}}
}

// newAggregates returns a table with a family for each aggregate, and a plain one.
func newAggregates(t *testing.T) *env {
	t.Helper()
	e := newTable(t, "f")
	for _, a := range []string{"sum", "min", "max", "hll"} {
		e.modifyFamilies("t", createFamily(a, aggregateOf(a, int64Type())))
	}
	e.modifyFamilies("t", createFamily("hllb", aggregateOf("hll", bytesType())), createFamily("hlls", aggregateOf("hll", stringType())))
	return e
}

func rawValue(b string) *btpb.Value {
	return &btpb.Value{Kind: &btpb.Value_RawValue{RawValue: []byte(b)}}
}

func bytesValueOf(b string) *btpb.Value {
	return &btpb.Value{Kind: &btpb.Value_BytesValue{BytesValue: []byte(b)}}
}

func rawMicros(n int64) *btpb.Value {
	return &btpb.Value{Kind: &btpb.Value_RawTimestampMicros{RawTimestampMicros: n}}
}

func intValueOf(n int64) *btpb.Value {
	return &btpb.Value{Kind: &btpb.Value_IntValue{IntValue: n}}
}

func addTo(family, qualifier string, micros int64, input *btpb.Value) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{
		FamilyName: family, ColumnQualifier: rawValue(qualifier), Timestamp: rawMicros(micros), Input: input,
	}}}
}

func mergeTo(family, qualifier string, micros int64, input *btpb.Value) *btpb.Mutation {
	return &btpb.Mutation{Mutation: &btpb.Mutation_MergeToCell_{MergeToCell: &btpb.Mutation_MergeToCell{
		FamilyName: family, ColumnQualifier: rawValue(qualifier), Timestamp: rawMicros(micros), Input: input,
	}}}
}

// wantStates compares the cell states of the table, as numbers.
func (e *env) wantStates(want ...string) {
	e.t.Helper()
	var got []string
	for _, r := range e.mustRead(&btpb.ReadRowsRequest{}).rows {
		for _, c := range r.cells {
			if len(c.value) != 8 {
				e.t.Fatalf("a state of %d bytes", len(c.value))
			}
			got = append(got, fmt.Sprintf("%s %s:%s@%d=%d", r.key, c.family, c.qualifier, c.micros, int64(binary.BigEndian.Uint64([]byte(c.value)))))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		e.t.Errorf("got:  %v\nwant: %v", got, want)
	}
}

func TestTrap49_Aggregates(t *testing.T) {
	t.Parallel()
	e := newAggregates(t)
	e.mustMutate("r", addTo("sum", "q", 1000, intValueOf(5)), addTo("min", "q", 1000, intValueOf(5)), addTo("max", "q", 1000, intValueOf(7)))
	e.mustMutate("r", addTo("sum", "q", 1000, intValueOf(7)), addTo("min", "q", 1000, intValueOf(7)), addTo("max", "q", 1000, intValueOf(5)))
	e.wantStates("r sum:q@1000=12", "r min:q@1000=5", "r max:q@1000=7")
	// Each timestamp has its own cell; several inputs in one request.
	e.mustMutate("r", addTo("sum", "q", 2000, intValueOf(1)), addTo("sum", "q", 2000, intValueOf(-3)), addTo("sum", "p", 0, rawValue(be(4))))
	e.wantStates("r sum:p@0=4", "r sum:q@2000=-2", "r sum:q@1000=12", "r min:q@1000=5", "r max:q@1000=7")
	// Deletes and adds apply in order; sums wrap.
	e.mustMutate("r", deleteColumn("sum", "q", 0, 0), addTo("sum", "q", 1000, intValueOf(math.MaxInt64)), deleteFamily("min"), deleteFamily("max"))
	e.mustMutate("r", addTo("sum", "q", 1000, intValueOf(1)), addTo("min", "q", 0, intValueOf(-1)), addTo("min", "q", 0, intValueOf(1)))
	e.wantStates("r sum:p@0=4", fmt.Sprintf("r sum:q@1000=%d", int64(math.MinInt64)), "r min:q@0=-1")
	e.mustMutate("r", deleteRow(), addTo("sum", "q", 1000, intValueOf(1)))
	e.wantStates("r sum:q@1000=1")

	// Plain writes to aggregate families, and aggregate inputs to plain families, are rejected
	// with their whole request.
	for _, m := range []*btpb.Mutation{
		set("sum", "q", 1000, be(1)),
		addTo("f", "q", 1000, intValueOf(1)),
		mergeTo("f", "q", 1000, rawValue(be(1))),
	} {
		wantCode(t, e.mutate("r", addTo("sum", "q", 1000, intValueOf(1)), m), codes.InvalidArgument)
	}
	wantCode(t, e.mutate("r", addTo("nope", "q", 1000, intValueOf(1))), codes.NotFound)
	for _, rule := range []*btpb.ReadModifyWriteRule{
		{FamilyName: "sum", ColumnQualifier: []byte("q"), Rule: &btpb.ReadModifyWriteRule_IncrementAmount{IncrementAmount: 1}},
		{FamilyName: "sum", ColumnQualifier: []byte("q"), Rule: &btpb.ReadModifyWriteRule_AppendValue{AppendValue: []byte("x")}},
	} {
		_, err := e.data.ReadModifyWriteRow(e.ctx(), &btpb.ReadModifyWriteRowRequest{TableName: testTable, RowKey: []byte("r"), Rules: []*btpb.ReadModifyWriteRule{rule}})
		wantCode(t, err, codes.InvalidArgument)
	}
	e.wantStates("r sum:q@1000=1")
	// The same in MutateRows and CheckAndMutateRow.
	got, err := e.mutateRows(entry("r", addTo("sum", "q", 1000, intValueOf(1))), entry("r", addTo("sum", "q", 1000, intValueOf(1))), entry("r", addTo("f", "q", 1000, intValueOf(1))))
	if err != nil || got[0] != codes.OK || got[1] != codes.OK || got[2] != codes.InvalidArgument {
		t.Errorf("%v, %v", got, err)
	}
	_, err = e.data.CheckAndMutateRow(e.ctx(), &btpb.CheckAndMutateRowRequest{
		TableName: testTable, RowKey: []byte("r"), TrueMutations: []*btpb.Mutation{addTo("sum", "q", 1000, intValueOf(10))},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.wantStates("r sum:q@1000=13")
}

func TestTrap50_MergeToCell(t *testing.T) {
	t.Parallel()
	e := newAggregates(t)
	e.mustMutate("r", addTo("sum", "q", 1000, intValueOf(5)))
	e.mustMutate("r", mergeTo("sum", "q", 1000, rawValue(be(3))), mergeTo("sum", "q", 1000, bytesValueOf(be(-1))), mergeTo("sum", "q", 1000, intValueOf(2)))
	e.mustMutate("r", mergeTo("max", "q", 0, rawValue(be(3))), mergeTo("max", "q", 0, rawValue(be(2))))
	e.wantStates("r sum:q@1000=9", "r max:q@0=3")
	// NULL has no effect, even on a missing cell.
	e.mustMutate("r", mergeTo("sum", "q", 1000, &btpb.Value{}), mergeTo("sum", "no", 1000, &btpb.Value{}), mergeTo("hll", "no", 1000, &btpb.Value{}))
	e.wantStates("r sum:q@1000=9", "r max:q@0=3")

	sum := func(qualifier, micros, input *btpb.Value) []*btpb.Mutation {
		return []*btpb.Mutation{
			{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{FamilyName: "sum", ColumnQualifier: qualifier, Timestamp: micros, Input: input}}},
			{Mutation: &btpb.Mutation_MergeToCell_{MergeToCell: &btpb.Mutation_MergeToCell{FamilyName: "sum", ColumnQualifier: qualifier, Timestamp: micros, Input: input}}},
		}
	}
	q, ts, one := rawValue("q"), rawMicros(1000), intValueOf(1)
	typed := proto.Clone(q).(*btpb.Value)
	typed.Type = &btpb.Type{Kind: &btpb.Type_BytesType{}}
	bad := []*btpb.Mutation{
		addTo("sum", "q", 1000, &btpb.Value{}), // NULL
		addTo("hll", "q", 1000, &btpb.Value{}),
		addTo("hll", "q", 1000, bytesValueOf("not an int64")),
		addTo("hllb", "q", 1000, intValueOf(1)),
		addTo("hlls", "q", 1000, rawValue("x")),
		mergeTo("hll", "q", 1000, intValueOf(1)),
		mergeTo("hll", "q", 1000, rawValue("no sketch")),
		{Mutation: &btpb.Mutation_AddToCell_{AddToCell: &btpb.Mutation_AddToCell{FamilyName: "sum"}}},
		{Mutation: &btpb.Mutation_MergeToCell_{MergeToCell: &btpb.Mutation_MergeToCell{FamilyName: "sum"}}},
	}
	bad = append(bad, sum(q, ts, nil)...)
	bad = append(bad, sum(q, ts, rawValue("abc"))...)
	bad = append(bad, sum(q, ts, bytesValueOf(""))...)
	bad = append(bad, sum(q, ts, &btpb.Value{Kind: &btpb.Value_FloatValue{FloatValue: 1}})...)
	bad = append(bad, sum(nil, ts, one)...)
	bad = append(bad, sum(bytesValueOf("q"), ts, one)...)
	bad = append(bad, sum(typed, ts, one)...)
	bad = append(bad, sum(q, nil, one)...)
	bad = append(bad, sum(q, one, one)...)
	bad = append(bad, sum(q, rawMicros(1), one)...) // granularity
	bad = append(bad, sum(q, rawMicros(-1), one)...)
	bad = append(bad, sum(q, rawMicros(-1000), one)...)
	for _, m := range bad {
		if err := e.mutate("r", addTo("sum", "q", 1000, one), m); err == nil {
			t.Errorf("%v was accepted", m)
		} else {
			wantCode(t, err, codes.InvalidArgument)
		}
	}
	for _, m := range []*btpb.Mutation{{Mutation: &btpb.Mutation_AddToCell_{}}, {Mutation: &btpb.Mutation_MergeToCell_{}}} {
		wantCode(t, e.mutate("r", m), codes.NotFound) // a family without a name
	}
	e.wantStates("r sum:q@1000=9", "r max:q@0=3")
	// A timestamp that the client library chose is truncated.
	m := addTo("sum", "q", 1234, one)
	m.TimestampOrigin = btpb.Mutation_CLIENT_AUTO_GENERATED
	e.mustMutate("r", m)
	e.wantStates("r sum:q@1000=10", "r max:q@0=3")
}

// TestTrap49_HLL counts distinct values: a value that is added twice counts once, and the
// sketch of one cell merges into another.
func TestTrap49_HLL(t *testing.T) {
	t.Parallel()
	e := newAggregates(t)
	for range 2 {
		e.mustMutate("r", addTo("hll", "q", 0, intValueOf(1)), addTo("hll", "q", 0, intValueOf(2)))
		e.mustMutate("r", addTo("hllb", "q", 0, bytesValueOf("a")), addTo("hllb", "q", 0, rawValue("b")))
		e.mustMutate("r", addTo("hlls", "q", 0, &btpb.Value{Kind: &btpb.Value_StringValue{StringValue: "a"}}),
			addTo("hlls", "q", 0, &btpb.Value{Kind: &btpb.Value_StringValue{StringValue: "b"}}))
	}
	states := func() map[string]string {
		out := map[string]string{}
		for _, c := range e.mustRead(&btpb.ReadRowsRequest{}).rows[0].cells {
			out[c.family] = c.value
		}
		return out
	}
	// The sketch of a state follows the count of inputs.
	sketches := func() map[string]string {
		out := states()
		for family, s := range out {
			if len(s) < 10 || s[2] != 0x10 || s[3] > 127 {
				t.Fatalf("%s: %q does not begin with the type and a short count", family, s)
			}
			out[family] = s[4:]
		}
		return out
	}
	first, sketch := states(), sketches()
	if len(first) != 3 || sketch["hllb"] != sketch["hlls"] {
		t.Fatalf("states %q", first)
	}
	// Adding once more, and merging a sketch into itself, changes nothing.
	e.mustMutate("r", addTo("hll", "q", 0, intValueOf(2)), mergeTo("hll", "q", 0, rawValue(first["hll"])), mergeTo("hllb", "q", 0, bytesValueOf(first["hllb"])))
	if got := sketches(); fmt.Sprint(got) != fmt.Sprint(sketch) {
		t.Errorf("sketches %q, want %q", got, sketch)
	}
	e.mustMutate("r", addTo("hll", "q", 0, intValueOf(3)))
	if got := sketches(); got["hll"] == sketch["hll"] {
		t.Error("a new value left the sketch as it was")
	}
}

func TestTrap52_ValueTypes(t *testing.T) {
	t.Parallel()
	e := newAggregates(t)
	modify := func(m ...*btapb.ModifyColumnFamiliesRequest_Modification) error {
		_, err := e.admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{Name: testTable, Modifications: m})
		return err
	}
	types := func() map[string]*btapb.ColumnFamily {
		t.Helper()
		got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: testTable})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetColumnFamilies()
	}
	// The server fills in the state type.
	check := func() {
		t.Helper()
		got := types()
		for name, want := range map[string]struct{ input, state *btapb.Type }{
			"sum": {int64Type(), int64Type()}, "min": {int64Type(), int64Type()}, "max": {int64Type(), int64Type()},
			"hll": {int64Type(), bytesType()}, "hllb": {bytesType(), bytesType()}, "hlls": {stringType(), bytesType()},
		} {
			agg := got[name].GetValueType().GetAggregateType()
			if !proto.Equal(agg.GetInputType(), want.input) || !proto.Equal(agg.GetStateType(), want.state) || agg.GetAggregator() == nil {
				t.Errorf("%s: %v", name, agg)
			}
		}
		if got["f"].GetValueType() != nil || len(got) != 7 {
			t.Errorf("%v", got)
		}
	}
	check()
	// The type of a family cannot change after creation.
	sum := aggregateOf("sum", int64Type())
	for _, m := range []*btapb.ModifyColumnFamiliesRequest_Modification{
		updateFamily("f", sum, "value_type"),
		updateFamily("min", sum, "value_type"),
		updateFamily("hll", aggregateOf("hll", bytesType()), "gc_rule", "value_type"),
		updateFamily("f", &btapb.ColumnFamily{}, "nope"),
	} {
		wantCode(t, modify(m), codes.InvalidArgument)
	}
	// Repeating the current type is allowed; only the rule changes.
	sum.GcRule = maxVersions(3)
	e.modifyFamilies("t", updateFamily("sum", sum, "gc_rule", "value_type"), updateFamily("max", &btapb.ColumnFamily{GcRule: maxVersions(2)}, "gc_rule"))
	check()
	if got := types(); !proto.Equal(got["sum"].GetGcRule(), maxVersions(3)) || !proto.Equal(got["max"].GetGcRule(), maxVersions(2)) {
		t.Errorf("rules: %v", got)
	}
	e.modifyFamilies("t", createFamily("x", aggregateOf("min", int64Type())), updateFamily("x", aggregateOf("min", int64Type()), "value_type"), dropFamily("x"))
	wantCode(t, modify(createFamily("x", aggregateOf("min", int64Type())), updateFamily("x", aggregateOf("max", int64Type()), "value_type")), codes.InvalidArgument)
	wantCode(t, modify(dropFamily("min"), updateFamily("min", sum)), codes.NotFound)

	unencoded := &btapb.Type{Kind: &btapb.Type_Int64Type{Int64Type: &btapb.Type_Int64{}}}
	for _, cf := range []*btapb.ColumnFamily{
		{ValueType: &btapb.Type{}},
		{ValueType: int64Type()},
		aggregateOf("", int64Type()),
		aggregateOf("sum", nil),
		aggregateOf("sum", bytesType()),
		aggregateOf("max", stringType()),
		aggregateOf("min", unencoded),
		aggregateOf("hll", &btapb.Type{Kind: &btapb.Type_BytesType{}}),
		aggregateOf("hll", &btapb.Type{Kind: &btapb.Type_StringType{}}),
		aggregateOf("hll", &btapb.Type{Kind: &btapb.Type_BoolType{}}),
	} {
		wantCode(t, modify(createFamily("new", cf)), codes.InvalidArgument)
		_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{
			Parent: testInstance, TableId: "new", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"new": cf}},
		})
		wantCode(t, err, codes.InvalidArgument)
	}
	got, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{
		Parent: testInstance, TableId: "new", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"new": aggregateOf("sum", int64Type())}},
	})
	if err != nil || got.GetColumnFamilies()["new"].GetValueType().GetAggregateType().GetStateType() == nil {
		t.Errorf("%v, %v", got, err)
	}
}
