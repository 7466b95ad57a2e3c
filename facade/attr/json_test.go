package attr

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// nested returns a value with the given number of levels.
func nested(levels int) string {
	return strings.Repeat(`{"L":[`, levels-1) + `{"S":"x"}` + strings.Repeat(`]}`, levels-1)
}

func TestUnmarshalItem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, json, want string }{
		{"empty", ` { } `, `{}`},
		{
			"booleans as strings", `{"a":{"BOOL":"true"},"b":{"BOOL":"NO"},"c":{"NULL":"1"}}`,
			`{"a":{"BOOL":true},"b":{"BOOL":false},"c":{"NULL":true}}`,
		},
		{
			"ten types", `{"s":{"S":""},"n":{"N":"01.50"},"b":{"B":"AAE="},"t":{"BOOL":true},"f":{"BOOL":false},"z":{"NULL":true},
			"ss":{"SS":["b","a",""]},"ns":{"NS":["10","9","-1.0"]},"bs":{"BS":["/w==","AA==",""]},"l":{"L":[]},"m":{"M":{}}}`,
			`{"b":{"B":"AAE="},"bs":{"BS":["","AA==","/w=="]},"f":{"BOOL":false},"l":{"L":[]},"m":{"M":{}},"n":{"N":"1.5"},"ns":{"NS":["-1","9","10"]},` +
				`"s":{"S":""},"ss":{"SS":["","a","b"]},"t":{"BOOL":true},"z":{"NULL":true}}`,
		},
		{
			"sorted names", `{"b":{"M":{"é":{"N":"1"},"a":{"N":"2"},"":{"N":"3"},"B":{"N":"4"}}},"a":{"S":"x"}}`,
			`{"a":{"S":"x"},"b":{"M":{"":{"N":"3"},"B":{"N":"4"},"a":{"N":"2"},"é":{"N":"1"}}}}`,
		},
		{"escapes", `{"a":{"S":"\u0000\t\"\\\/\u00e9\ud83d\ude00<>&\u2028"}}`, `{"a":{"S":"\u0000\t\"\\/é😀<>&` + "\u2028" + `"}}`},
		{"32 levels", `{"a":` + nested(32) + `}`, `{"a":` + nested(32) + `}`},
		{
			"empty list at level 32", `{"a":` + strings.Repeat(`{"L":[`, 32) + strings.Repeat(`]}`, 32) + `}`,
			`{"a":` + strings.Repeat(`{"L":[`, 32) + strings.Repeat(`]}`, 32) + `}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			item, err := UnmarshalItem([]byte(c.json))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(AppendItemJSON(nil, item))); diff != "" {
				t.Errorf("canonical JSON (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnmarshalItem_Refused(t *testing.T) {
	t.Parallel()
	const (
		noType        = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
		invalid       = "One or more parameter values were invalid: "
		serialization = "serialization: "
	)
	for _, c := range []struct {
		json    string
		problem Problem
		err     string
		aws     string
	}{
		{``, BadJSON, "Item: not valid JSON: unexpected EOF", serialization},
		{`{`, BadJSON, "", serialization},
		{`{"a":{"S":"x"}`, BadJSON, "", serialization},
		{`{"a":{"S":"x"}} {}`, BadJSON, "not valid JSON: more text follows the value", serialization},
		{`{"a":{"S":"x"}}]`, BadJSON, "", serialization},
		{`{"a":{"S":x}}`, BadJSON, "", serialization},
		{`{"a":{"S":"x"},}`, BadJSON, "", serialization},
		{"{\"a\":{\"S\":\"\xff\"}}", BadJSON, "", serialization},
		{`{"a":{"S":"\ud800"}}`, BadJSON, "", serialization},
		{`{"a":{"S":"x"},"a":{"S":"y"}}`, DuplicateName, "Item: member name \"a\" appears twice", serialization},
		{`{"a":{"M":{"b":{"S":"x"},"b":{"S":"y"}}}}`, DuplicateName, "Item.a: member name \"b\" appears twice", serialization},
		{`{"a":{"S":"x","S":"y"}}`, DuplicateName, "Item.a: member name \"S\" appears twice", serialization},
		{`[]`, WrongToken, "Item: want a JSON object, found array", serialization + "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>"},
		{`"x"`, WrongToken, "Item: want a JSON object, found string", serialization + "Unexpected field type"},
		{`{"a":"x"}`, WrongToken, "Item.a: want a JSON object with a type tag, such as {\"S\": \"a\"}, found string", serialization + "Unexpected value type in payload"},
		{`{"a":[]}`, WrongToken, "", serialization + "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue"},
		{`{"a":{"S":1}}`, WrongToken, "Item.a: S requires a JSON string, found number", serialization + "NUMBER_VALUE cannot be converted to String"},
		{`{"a":{"N":1.5}}`, WrongToken, "", serialization + "DECIMAL_VALUE cannot be converted to String"},
		{`{"a":{"S":true}}`, WrongToken, "", serialization + "TRUE_VALUE cannot be converted to String"},
		{`{"a":{"S":false}}`, WrongToken, "", serialization + "FALSE_VALUE cannot be converted to String"},
		{`{"a":{"S":{}}}`, WrongToken, "", serialization + "Start of structure or map found where not expected"},
		{`{"a":{"S":[]}}`, WrongToken, "", serialization + "Unrecognized collection type class java.lang.String"},
		{`{"a":{"BOOL":"on"}}`, WrongToken, "", serialization + "Unexpected token received from parser"},
		{`{"a":{"BOOL":1}}`, WrongToken, "", serialization + "NUMBER_VALUE cannot be converted to Boolean"},
		{`{"a":{"B":1}}`, WrongToken, "", serialization + "only base-64-encoded strings are convertible to bytes"},
		{`{"a":{"SS":"x"}}`, WrongToken, "", serialization + "Unexpected field type"},
		{`{"a":{"L":{}}}`, WrongToken, "", serialization + "Start of structure or map found where not expected"},
		{`{"a":{"M":[]}}`, WrongToken, "", serialization + "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>"},
		{`{"a":{"NS":["1",2]}}`, WrongToken, "Item.a[1]: NS requires a JSON string, found number", serialization + "NUMBER_VALUE cannot be converted to String"},
		{`{"a":{"SS":["1",null]}}`, WrongToken, "Item.a[1]: SS requires a JSON string, found null", serialization + "Unexpected token received from parser"},
		{`{"a":{"B":"AAE"}}`, BadBase64, `Item.a: binary is not standard padded base64: "AAE"`, serialization + "Base64 encoded length is expected a multiple of 4 bytes but found: 3"},
		{`{"a":{"B":"AAF="}}`, BadBase64, "", serialization + "Invalid last non-pad Base64 character dectected"},
		{`{"a":{"B":"A-_="}}`, BadBase64, "", serialization + "Invalid last non-pad Base64 character dectected"},
		{`{"a":{"B":"AAE=\n"}}`, BadBase64, "", serialization + "Base64 encoded length is expected a multiple of 4 bytes but found: 5"},
		{`{"a":{"B":"\r\n\r\n"}}`, BadBase64, "", serialization + "Invalid last non-pad Base64 character dectected"},
		{`{"a":{}}`, NoType, "Item.a: value without a type tag", noType},
		{`{"a":null}`, NoType, "", noType},
		{`{"a":{"S":null}}`, NoType, "", noType},
		{`{"a":{"L":[{"S":"x"},{}]}}`, NoType, "Item.a[1]: value without a type tag", noType},
		{`{"a":{"s":"x"}}`, UnknownType, `Item.a: unknown type tag "s", want one of S N B BOOL NULL SS NS BS L M`, noType},
		{`{"a":{"":"x"}}`, UnknownType, "", noType},
		{`{"a":{"S":"x","Q":1}}`, UnknownType, "", noType},
		{`{"a":{"S":"x","N":"1"}}`, ManyTypes, `Item.a: value with more than one type tag, second is "N"`, "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"},
		{`{"a":{"NULL":false}}`, NullNotTrue, "Item.a: NULL must be true", invalid + "Null attribute value types must have the value of true"},
		{`{"a":{"SS":[]}}`, EmptySet, "Item.a: SS is empty", invalid + "An string set  may not be empty"},
		{`{"a":{"NS":[]}}`, EmptySet, "", invalid + "An number set  may not be empty"},
		{`{"a":{"BS":[]}}`, EmptySet, "", invalid + "Binary sets should not be empty"},
		{`{"a":{"SS":["a","b","a"]}}`, DuplicateMember, "Item.a: SS has duplicate members: [a, b, a]", invalid + "Input collection [a, b, a] contains duplicates."},
		{`{"a":{"NS":["1","1.0"]}}`, DuplicateMember, "", "Input collection contains duplicates"},
		{`{"a":{"BS":["Yg==","Yg=="]}}`, DuplicateMember, "", invalid + "Input collection [Yg==, Yg==]of type BS contains duplicates."},
		{`{"a":{"M":{"x y":{"L":[{"N":"1"},{"M":{"n":{"N":"12a"}}}]}}}}`, NotNumber, `Item.a."x y"[1].n: not a number: "12a"`, "The parameter cannot be converted to a numeric value: 12a"},
		{`{"a":{"N":""}}`, NotNumber, "", "The parameter cannot be converted to a numeric value"},
		{`{"a":{"NS":["1","x"]}}`, NotNumber, `Item.a[1]: not a number: "x"`, "The parameter cannot be converted to a numeric value: x"},
		{`{"a":{"N":"1e126"}}`, Overflow, "", "Number overflow. Attempting to store a number with magnitude larger than supported range"},
		{`{"a":{"N":"1e-131"}}`, Underflow, "", "Number underflow. Attempting to store a number with magnitude smaller than supported range"},
		{`{"a":{"N":"` + strings.Repeat("1", 39) + `"}}`, TooPrecise, "", "Attempting to store more than 38 significant digits in a Number"},
		{`{"` + strings.Repeat("n", 65536) + `":{"S":"x"}}`, LongName, "", "One or more parameter values were invalid: Attribute name must be between 1 and 65535 bytes long"},
		{`{"a":{"M":{"` + strings.Repeat("n", 65536) + `":{"S":"x"}}}}`, LongName, "", "One or more parameter values were invalid: Attribute name must be between 1 and 65535 bytes long"},
		{`{"a":` + nested(33) + `}`, TooDeep, "", "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"},
		{`{"a":` + strings.Repeat(`{"L":[`, 9000), TooDeep, "", "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"},
	} {
		item, err := UnmarshalItem([]byte(c.json))
		var e *Error
		if !errors.As(err, &e) || item != nil {
			t.Errorf("%s: item %v, error %T %v", c.json, item, err, err)
			continue
		}
		if e.Problem != c.problem || c.err != "" && err.Error() != c.err {
			t.Errorf("%s: problem %d: %v, want problem %d: %s", c.json, e.Problem, err, c.problem, c.err)
		}
		text, isSerialization := e.AWSMessage()
		if isSerialization {
			text = serialization + text
		}
		if text != c.aws {
			t.Errorf("%s: DynamoDB's text is %q, want %q", c.json, text, c.aws)
		}
		if e.Offset < 0 || e.Offset > int64(len(c.json)) {
			t.Errorf("%s: offset %d", c.json, e.Offset)
		}
	}
}

func TestDecodeItem(t *testing.T) {
	t.Parallel()
	d := jsontext.NewDecoder(strings.NewReader("{\"a\":{\"S\":\"x\"}}\n{\"b\":{\"N\":\"1.0\"}} {\"c\":{\"Q\":1}}"))
	for _, want := range []string{`{"a":{"S":"x"}}`, `{"b":{"N":"1"}}`} {
		item, err := DecodeItem(d)
		if err != nil || item.String() != want {
			t.Fatalf("item %s, %v, want %s", item, err, want)
		}
	}
	if item, err := DecodeItem(d); err == nil || err.Error() != `Item.c: unknown type tag "Q", want one of S N B BOOL NULL SS NS BS L M` {
		t.Fatalf("item %s, %v", item, err)
	}
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

func TestDecodeItem_ReaderError(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	d := jsontext.NewDecoder(io.MultiReader(strings.NewReader(`{"a":{"S":"x`), brokenReader{broken}))
	_, err := DecodeItem(d)
	var e *Error
	if !errors.Is(err, broken) || errors.As(err, &e) {
		t.Fatalf("%T %v, want the reader's own error", err, err)
	}
}

// values generates values of all types, canonical by construction.
func values(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		types := []Type{S, N, B, BOOL, NULL, SS, NS, BS, L, M}
		if depth == 0 {
			types = types[:8]
		}
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "b", "\x00", "#", "é", "😀", "\u2028"}))
		raw := rapid.SliceOfN(rapid.Byte(), 0, 5)
		switch rapid.SampledFrom(types).Draw(t, "type") {
		case S:
			return String(text.Draw(t, "s"))
		case N:
			return Value{Type: N, Str: numbers().Draw(t, "n")}
		case B:
			return Binary(raw.Draw(t, "b"))
		case BOOL:
			return Boolean(rapid.Bool().Draw(t, "bool"))
		case NULL:
			return Null()
		case SS:
			return SetOf(SS, rapid.SliceOfN(text, 1, 4).Draw(t, "ss")...)
		case NS:
			return SetOf(NS, rapid.SliceOfN(numbers(), 1, 4).Draw(t, "ns")...)
		case BS:
			return SetOf(BS, rapid.SliceOfN(rapid.Map(raw, func(b []byte) string { return string(b) }), 1, 4).Draw(t, "bs")...)
		case L:
			return ListOf(rapid.SliceOfN(values(depth-1), 0, 3).Draw(t, "l")...)
		case Absent, M:
		}
		return MapOf(rapid.MapOfN(text, values(depth-1), 0, 3).Draw(t, "m"))
	})
}

func items() *rapid.Generator[Item] {
	return rapid.Map(rapid.MapOfN(rapid.String(), values(3), 0, 5), func(m map[string]Value) Item { return m })
}

func TestJSON_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		item := items().Draw(t, "item")
		json := AppendItemJSON([]byte("x"), item)[1:]
		back, err := UnmarshalItem(json)
		if err != nil {
			t.Fatalf("%s: %v", json, err)
		}
		if !EqualItems(item, back) {
			t.Fatalf("%s reads back as %s", json, back)
		}
		for name, v := range item {
			back, err := UnmarshalValue(AppendJSON(nil, v))
			if err != nil || !Equal(v, back) {
				t.Fatalf("%s: %s reads back as %s, %v", name, v, back, err)
			}
		}
	})
}

// maxFootprint limits the bytes of an item in memory for each byte of its JSON text: a number
// of five characters is 126 digits, a NULL a whole Value.
const maxFootprint = 32

// footprint returns a lower bound of a value's memory, without the Value itself.
func footprint(v Value) int {
	const valueBytes, stringBytes = int(unsafe.Sizeof(Value{})), int(unsafe.Sizeof(""))
	n := len(v.Str) + cap(v.Set)*stringBytes + cap(v.List)*valueBytes + 2*len(v.Map)*(stringBytes+valueBytes)
	for _, member := range v.Set {
		n += len(member)
	}
	for _, element := range v.List {
		n += footprint(element)
	}
	for name, element := range v.Map {
		n += len(name) + footprint(element)
	}
	return n
}

func checkFootprint(tb testing.TB, data []byte, item Item) {
	tb.Helper()
	const smallest = 1 << 10
	if n := footprint(Value{Type: M, Map: item}); n > maxFootprint*len(data)+smallest {
		tb.Errorf("%.80q… of %d bytes takes %d in memory", data, len(data), n)
	}
}

// The memory that an item takes is limited by the length of its text, whatever it contains.
func TestUnmarshalItem_Footprint(t *testing.T) {
	t.Parallel()
	const elements = 20_000
	list := func(element string) string {
		return `{"a":{"L":[` + strings.Repeat(element+",", elements-1) + element + `]}}`
	}
	numbers := make([]string, elements)
	members := make([]string, elements)
	for i := range numbers {
		numbers[i] = `"` + strconv.Itoa(10_000+i) + `E120"`
		members[i] = `"` + strconv.FormatInt(int64(i), 36) + `":{"NULL":true}`
	}
	for _, text := range []string{
		list(`{"NULL":true}`), list(`{"N":"1E125"}`), list(`{"S":""}`), list(`{"L":[]}`), list(`{"M":{}}`), list(`{"L":[{"M":{}}]}`), list(`{"SS":["a"]}`),
		`{"a":{"NS":[` + strings.Join(numbers, ",") + `]}}`, `{"a":{"M":{` + strings.Join(members, ",") + `}}}`,
		`{"a":{"N":"` + strings.Repeat("0", 1<<20) + `1"}}`, `{"a":` + nested(31) + `}`,
	} {
		item, err := UnmarshalItem([]byte(text))
		if err != nil {
			t.Errorf("%.80s…: %v", text, err)
		}
		checkFootprint(t, []byte(text), item)
	}
}

// The newer wording lists the elements of a set, quoted as JSON: first those before the first
// repeated one, sorted, and then the others as given.
func TestError_CurrentAWSMessage(t *testing.T) {
	t.Parallel()
	const invalid = "One or more parameter values were invalid: "
	for _, c := range []struct{ json, want string }{
		{`{"SS":["b","a","b","a"]}`, invalid + `Input collection ["a", "b", "b", "a"] contains duplicates.`},
		{`{"SS":["c","\"","c"]}`, invalid + `Input collection ["\"", "c", "c"] contains duplicates.`},
		{`{"BS":["Yg==","YQ==","Yg=="]}`, invalid + `Input collection ["YQ==","Yg==","Yg=="]of type BS contains duplicates.`},
		{`{"NS":["1","1.0"]}`, invalid + "Input collection contains duplicates."},
		{`{"N":"x"}`, ""},
	} {
		_, err := UnmarshalValue([]byte(c.json))
		var e *Error
		if !errors.As(err, &e) || e.CurrentAWSMessage() != c.want {
			t.Errorf("%s: %q, want %q", c.json, e.CurrentAWSMessage(), c.want)
		}
	}
}

func FuzzUnmarshalItem(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":{"S":"x"}}`, `{"a":{"NS":["1","2.50"]},"b":{"L":[{"NULL":true},{"M":{"k":{"B":"AA=="}}}]}}`,
		`{"a":{"BS":["AA=="]},"z":{"BOOL":false}}`, `{"a":` + nested(32) + `}`, `{"a":{"SS":["a","a"]}}`, `{"a":{}}`, "{\"a\":{\"S\":\"\xff\"}}",
		" {\t\"a\" : { \"L\" : [ ] , \n} } ", `{"a":{"S":"\u00e9\\\"é"},"\u0061":{"S":"x"}}`, `{"a":{"S":"\ud800"}}`, `{"a":{"NULL":true},"a":{"NULL":true}}`,
		`{"a":{"SS":["a",]}}`, `{"a":{"M":{}}}x`, "{\"a\":{\"S\":\"\x01\"}}", `{"a":{"S":"\`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		item, err := UnmarshalItem(bytes.Clone(data))
		if decoded, decodeErr := unmarshal(data, DecodeItem); (err == nil) != (decodeErr == nil) || err == nil && !EqualItems(item, decoded) {
			t.Fatalf("scanned as %v, %v; decoded as %v, %v", item, err, decoded, decodeErr)
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Error() == "" {
				t.Fatalf("%T %v", err, err)
			}
			if text, serialization := e.AWSMessage(); text == "" && !serialization {
				t.Fatalf("no text for %v", err)
			}
			return
		}
		checkFootprint(t, data, item)
		json := AppendItemJSON(nil, item)
		back, err := UnmarshalItem(bytes.Clone(json))
		if err != nil || !EqualItems(item, back) || !bytes.Equal(json, AppendItemJSON(nil, back)) {
			t.Fatalf("%s reads back as %s, %v", json, back, err)
		}
		for name, v := range item {
			if v.Depth() > MaxDepth || v.Size() < 0 {
				t.Fatalf("%s has depth %d, size %d", name, v.Depth(), v.Size())
			}
		}
	})
}

// TestIsPlain checks isPlain for texts of any length, with any byte at any place.
func TestIsPlain(t *testing.T) {
	t.Parallel()
	for length := range 20 {
		if !isPlain(strings.Repeat("~", length)) || !isPlain(strings.Repeat(" ", length)) {
			t.Errorf("%d plain characters are not plain", length)
		}
		for at := range length {
			for c := range 256 {
				text := []byte(strings.Repeat("a", length))
				text[at] = byte(c)
				want := c >= ' ' && c <= '~' && c != '"' && c != '\\'
				if got := isPlain(string(text)); got != want {
					t.Errorf("%q: plain %t, want %t", text, got, want)
				}
			}
		}
	}
}

// A list that is read in pieces has all elements, in their order.
func TestUnmarshalItem_LongList(t *testing.T) {
	t.Parallel()
	for _, n := range []int{listPiece - 1, listPiece, listPiece + 1, 3*listPiece + 1} {
		var want []Value
		text := []byte(`{"l":{"L":[`)
		for i := range n {
			if i > 0 {
				text = append(text, ',')
			}
			want = append(want, Int(int64(i)))
			text = AppendJSON(text, want[i])
		}
		text = append(text, "]}}"...)
		if got, err := UnmarshalItem(text); err != nil || !EqualItems(got, Item{"l": ListOf(want...)}) {
			t.Errorf("a list of %d elements has %d, %v", n, len(got["l"].List), err)
		}
	}
}
