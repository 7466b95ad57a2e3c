package wire

import (
	"reflect"
	"testing"
)

// A request with members of each kind, and one type that is left to the decoder.
type (
	testRequest struct {
		testMembers
		Name    *string
		Items   []Item
		Key     *Item `json:",omitzero"`
		Numbers []int32
		Renamed *int64 `json:"Other,omitzero"`
		ByName  map[string][]testElement
		Ratio   *float64
	}
	testMembers struct {
		Names   map[string]string
		Values  map[string]Value
		Given   *Flag
		element *testElement //nolint:unused // no body sets it: it is not exported
	}
	testElement struct {
		Value *Value
		Flag  Flag
	}
)

// FuzzScan: a scan gives the decoder's result.
func FuzzScan(f *testing.F) {
	for body, scanned := range map[string]bool{
		`{"Name":"n\u00e9","Items":[{"a":{"S":"b"}},{}],"Key":{"":{"N":"1"}},"Numbers":[1,-2,0],"Other":9223372036854775807}`:     true,
		`{"Names":{"#a":"a"},"Values":{":a":{"BOOL":true}},"Given":false,"ByName":{"a":[{"Value":{"S":""},"Flag":true}],"b":[]}}`: true,
		` { } `:                           true,
		`{"Items":[]}`:                    true,
		`{"Ratio":1}`:                     false,
		`{"Renamed":1}`:                   false,
		`{"element":{}}`:                  false,
		`{"testMembers":{}}`:              false,
		`{"Name":null}`:                   false,
		`{"Given":"true"}`:                false,
		`{"Numbers":[01]}`:                false,
		`{"Numbers":[1.0]}`:               false,
		`{"Numbers":[1,]}`:                false,
		`{"Numbers":[2147483648]}`:        false,
		`{"Other":9223372036854775808}`:   false,
		`{"Names":{"#a":"a","#a":"a"}}`:   false,
		`{"Values":{":a":{"S":"a"},}}`:    false,
		`{"ByName":{"a":[{"Value":{}}]}}`: false,
		`{"ByName":{"a":[],"a":[]}}`:      false,
		`{"Name":"a"} {}`:                 false,
		"{\"Name\":\"\xff\"}":             false,
		`[]`:                              false,
		`"Name"`:                          false,
		``:                                false,
	} {
		if got := Scan([]byte(body), &testRequest{}); got != scanned {
			f.Errorf("%s is scanned: %t, want %t", body, got, scanned)
		}
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var scanned, decoded testRequest
		if !Scan(body, &scanned) {
			return
		}
		if err := CheckJSON(body); err != nil {
			t.Errorf("%q is scanned: %v", body, err)
		}
		if err := Decode(body, &decoded); err != nil || !reflect.DeepEqual(scanned, decoded) {
			t.Errorf("%q is scanned as %+v, decoded as %+v, %v", body, scanned, decoded, err)
		}
	})
}

// A request without scannable members is decoded.
func TestScan_Nothing(t *testing.T) {
	t.Parallel()
	if Scan([]byte("1"), new(float64)) {
		t.Error("a fraction is scanned")
	}
}
