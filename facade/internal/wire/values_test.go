package wire

import (
	"math"
	"testing"
)

// TestInteger: any number has a nearest Integer; the older layer refuses it as before.
func TestInteger(t *testing.T) {
	t.Parallel()
	const mismatch = "SerializationException: "
	for _, c := range []struct {
		body  string
		want  int32
		older string // the error of the older layer
	}{
		{"0", 0, ""},
		{"-0", 0, ""},
		{"-7", -7, ""},
		{"2147483647", math.MaxInt32, ""},
		{"2147483648", math.MaxInt32, mismatch + "NUMBER_VALUE cannot be converted to Integer"},
		{"-2147483649", math.MinInt32, mismatch + "NUMBER_VALUE cannot be converted to Integer"},
		{"99999999999999999999", math.MaxInt32, mismatch + "NUMBER_VALUE cannot be converted to Integer"},
		{"1.5", 1, mismatch + "DECIMAL_VALUE cannot be converted to Integer"},
		{"-1.5", -1, mismatch + "DECIMAL_VALUE cannot be converted to Integer"},
		{"1e400", math.MaxInt32, mismatch + "DECIMAL_VALUE cannot be converted to Integer"},
		{"-1e400", math.MinInt32, mismatch + "DECIMAL_VALUE cannot be converted to Integer"},
	} {
		var in struct{ Limit *Integer }
		if err := Decode([]byte(`{"Limit":`+c.body+`}`), &in); err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		older := ""
		if in.Limit.Err != nil {
			older = in.Limit.Err.Error()
		}
		if n := in.Limit.Int32(); *n != c.want || older != c.older {
			t.Errorf("%s: %d, %q, want %d, %q", c.body, *n, older, c.want, c.older)
		}
	}
	var absent struct{ Limit *Integer }
	if err := Decode([]byte(`{"Limit":null}`), &absent); err != nil || absent.Limit.Int32() != nil {
		t.Errorf("null: %v, %v", absent.Limit, err)
	}
	for body, want := range map[string]string{
		`"1"`: "STRING_VALUE cannot be converted to Integer", "true": "TRUE_VALUE cannot be converted to Integer",
		"{}": "Start of structure or map found where not expected", "[]": "Unrecognized collection type class java.lang.Integer",
	} {
		var in struct{ Limit *Integer }
		if err := Decode([]byte(`{"Limit":`+body+`}`), &in); err == nil || err.Error() != mismatch+want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
