package stream

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// plainRecord is a MODIFY with one key.
func plainRecord() *types.Record {
	key := map[string]types.AttributeValue{"id": text("k")}
	return &types.Record{EventName: types.OperationTypeModify, Dynamodb: &types.StreamRecord{
		ApproximateCreationDateTime: aws.Time(time.Unix(1_800_000_000, 0)), SequenceNumber: aws.String("100"), Keys: key, NewImage: key, OldImage: key,
	}}
}

// Values of all types become canonical ones.
func TestCursor_Values(t *testing.T) {
	t.Parallel()
	in := plainRecord()
	in.Dynamodb.NewImage = map[string]types.AttributeValue{
		"id": text("k"), "n": number("1.50E1"), "b": &types.AttributeValueMemberB{Value: []byte{0, 255}},
		"t": &types.AttributeValueMemberBOOL{Value: true}, "null": &types.AttributeValueMemberNULL{Value: true},
		"ss": &types.AttributeValueMemberSS{Value: []string{"b", "a"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"10", "9.0"}},
		"bs": &types.AttributeValueMemberBS{Value: [][]byte{{2}, {1}}},
		"l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{text("x"), &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"y": number("-0")}}}},
		"e":  &types.AttributeValueMemberL{}, "m": &types.AttributeValueMemberM{},
	}
	want, err := attr.UnmarshalItem([]byte(`{"id":{"S":"k"},"n":{"N":"15"},"b":{"B":"AP8="},"t":{"BOOL":true},"null":{"NULL":true},"ss":{"SS":["a","b"]},
		"ns":{"NS":["9","10"]},"bs":{"BS":["AQ==","Ag=="]},"l":{"L":[{"S":"x"},{"M":{"y":{"N":"0"}}}]},"e":{"L":[]},"m":{"M":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	c := cursor{shard: "s", kept: true}
	r, keep, err := c.take(in, true, false)
	if err != nil || !keep || !attr.EqualItems(r.New, want) || string(attr.AppendItemJSON(nil, r.New)) != string(attr.AppendItemJSON(nil, want)) {
		t.Errorf("%v, %v: %s", keep, err, attr.AppendItemJSON(nil, r.New))
	}
	if r.Shard != "s" || r.Sequence != "100" || r.Expired || len(r.Old) != 1 || len(r.Keys) != 1 || r.Time.Unix() != 1_800_000_000 {
		t.Errorf("%+v", r)
	}
	if r.cost() < 11*valueBytes {
		t.Errorf("the record counts %d bytes", r.cost())
	}
}

// Only deletions of the service are marked, and the numbers of Tabletop's endpoint have the
// exact time.
func TestCursor_Deletions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		by    *types.Identity
		wants bool
	}{
		{nil, false},
		{&types.Identity{Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com")}, true},
		{&types.Identity{Type: aws.String("Service"), PrincipalId: aws.String("other.amazonaws.com")}, false},
		{&types.Identity{PrincipalId: aws.String("dynamodb.amazonaws.com")}, false},
	} {
		in := plainRecord()
		in.EventName, in.Dynamodb.NewImage, in.UserIdentity = types.OperationTypeRemove, nil, c.by
		in.Dynamodb.SequenceNumber = aws.String("10180000000012345678900007")
		at := cursor{kept: true}
		r, _, err := at.take(in, true, true)
		if err != nil || r.Expired != c.wants || r.New != nil || r.Time.UnixNano() != 1_800_000_000_123_456_789 {
			t.Errorf("%+v: %v, %+v", c.by, err, r)
		}
	}
}

// A record that contradicts the documentation is refused by name.
func TestCursor_Refusals(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*types.Record){
		"without a sequence number":                                   func(r *types.Record) { r.Dynamodb = nil },
		"a record without a sequence number":                          func(r *types.Record) { r.Dynamodb.SequenceNumber = nil },
		`"12x" does not have 1 to 40 digits`:                          func(r *types.Record) { r.Dynamodb.SequenceNumber = aws.String("12x") },
		strings.Repeat("9", 41) + `" does not have`:                   func(r *types.Record) { r.Dynamodb.SequenceNumber = aws.String(strings.Repeat("9", 41)) },
		"the record 99 follows 99, but its number is not greater":     func(r *types.Record) { r.Dynamodb.SequenceNumber = aws.String("99") },
		"the record 100 has no time":                                  func(r *types.Record) { r.Dynamodb.ApproximateCreationDateTime = nil },
		`the event "CHANGE"`:                                          func(r *types.Record) { r.EventName = "CHANGE" },
		"has no Keys":                                                 func(r *types.Record) { r.Dynamodb.Keys = nil },
		"the NewImage of the record 100 contradicts its event MODIFY": func(r *types.Record) { r.Dynamodb.NewImage = nil },
		"the NewImage of the record 100 contradicts its event REMOVE": func(r *types.Record) { r.EventName = types.OperationTypeRemove },
		"the OldImage of the record 100 contradicts its event INSERT": func(r *types.Record) { r.EventName = types.OperationTypeInsert },
		"the OldImage of the record 100 contradicts its event MODIFY": func(r *types.Record) { r.Dynamodb.OldImage = nil },
		`the NewImage of the record 100: attribute "n": not a number`: func(r *types.Record) {
			r.Dynamodb.NewImage = map[string]types.AttributeValue{"n": number("x")}
		},
		`the Keys of the record 100: attribute "n": not a number`: func(r *types.Record) {
			r.Dynamodb.Keys = map[string]types.AttributeValue{"n": &types.AttributeValueMemberNS{Value: []string{"x"}}}
		},
		"a set of type SS without members": func(r *types.Record) {
			r.Dynamodb.OldImage = map[string]types.AttributeValue{"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberSS{}}}}
		},
		"a value of the unknown type": func(r *types.Record) {
			r.Dynamodb.OldImage = map[string]types.AttributeValue{"u": &types.UnknownUnionMember{Tag: "X"}}
		},
	} {
		in := plainRecord()
		change(in)
		c := cursor{kept: true, sequence: "99"}
		c.last, _ = parseOrder("99")
		if _, _, err := c.take(in, true, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	c := cursor{kept: true, before: "100", epoch: 1<<16 - 1}
	if _, _, err := c.take(plainRecord(), true, false); err == nil || !strings.Contains(err.Error(), "begins epoch 65536") {
		t.Errorf("the error is %v", err)
	}
	in := plainRecord()
	in.Dynamodb.OldImage = nil
	if _, _, err := (&cursor{kept: true}).take(in, false, false); err != nil {
		t.Errorf("the view NEW_IMAGE: %v", err)
	}
}

// Positions order by epoch, then by number, for numbers of up to 40 digits.
func TestParseOrder(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", maxDigits)
	var before Position
	for _, c := range []struct {
		epoch  uint16
		number string
	}{{0, "1"}, {0, "2"}, {0, "10"}, {0, "100000000000000000001"}, {0, "0000000000000000100000000000000000002"}, {0, nines}, {1, "1"}, {255, nines}, {256, "0"}, {math.MaxUint16, "1"}} {
		o, ok := parseOrder(c.number)
		p := o.position(c.epoch)
		if !ok || string(p[:]) <= string(before[:]) {
			t.Errorf("%v is at %x, after %x", c, p, before)
		}
		before = p
	}
	for _, bad := range []string{"", "-1", "+1", "1a", " 1", nines + "0", "1.0", "٣"} {
		if _, ok := parseOrder(bad); ok {
			t.Errorf("%q is a number", bad)
		}
	}
}
