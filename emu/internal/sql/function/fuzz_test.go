package function_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/emu/internal/sql/function"
	"github.com/tabletop-emu/tabletop/emu/internal/sql/value"
)

// resolve returns a call of a function for expressions of types.
func resolve(tb testing.TB, f *function.Function, types ...value.Type) function.Call {
	tb.Helper()
	var args []function.Arg
	for _, typ := range types {
		args = append(args, function.Arg{Type: typ})
	}
	c, err := f.Resolve(args)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func lookup(tb testing.TB, name string) *function.Function {
	tb.Helper()
	f, ok := function.Lookup(name)
	if !ok {
		f, ok = function.Operator(name)
	}
	if !ok {
		tb.Fatalf("no function %s", name)
	}
	return f
}

// checkError checks that an error is one for the client.
func checkError(t *testing.T, err error) {
	t.Helper()
	var e *value.Error
	if err != nil && !errors.As(err, &e) {
		t.Errorf("an error of another type: %v", err)
	}
}

// FuzzLike compares LIKE with a regular expression.
func FuzzLike(f *testing.F) {
	for _, s := range [][2]string{{"abc", "a%c"}, {"Zoë", "Zo_"}, {"a%b", `a\%b`}, {"", "%_"}, {"x", `\`}, {"aaaaaaaaab", "%a%a%a%b%c"}, {"\xff", "_"}} {
		f.Add(s[0], s[1])
	}
	like := lookup(f, "LIKE")
	ofString, ofBytes := resolve(f, like, value.StringType, value.StringType), resolve(f, like, value.BytesType, value.BytesType)
	f.Fuzz(func(t *testing.T, text, pattern string) {
		if len(text) > 200 || len(pattern) > 50 || !utf8.ValidString(text) || !utf8.ValidString(pattern) {
			_, err := ofBytes.Eval(newContext(), []value.Value{value.BytesOf(text), value.BytesOf(pattern)})
			checkError(t, err)
			return
		}
		got, err := ofString.Eval(newContext(), []value.Value{value.String(text), value.String(pattern)})
		var b strings.Builder
		b.WriteString(`(?s)\A`)
		escaped := false
		for _, r := range pattern {
			switch {
			case escaped:
				escaped = false
				b.WriteString(regexp.QuoteMeta(string(r)))
			case r == '\\':
				escaped = true
			case r == '%':
				b.WriteString(".*")
			case r == '_':
				b.WriteString(".")
			default:
				b.WriteString(regexp.QuoteMeta(string(r)))
			}
		}
		if escaped {
			if err == nil {
				t.Errorf("a pattern ends in a backslash: %q", pattern)
			}
			return
		}
		want := regexp.MustCompile(b.String() + `\z`).MatchString(text)
		if err != nil || got.Bool() != want {
			t.Errorf("%q LIKE %q is %v, %v; want %t", text, pattern, got, err, want)
		}
	})
}

// FuzzFormat formats values of each type.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{"%05d|%s|%t", "%'+-#010.5x", "%*.*f", "%T%T%T", "%%%", "%1048577d", "%.1000000e", "%g%#G", "%\xff"} {
		f.Add(s, int64(-5), 1e300, "é\x00")
	}
	format := resolve(f, lookup(f, "FORMAT"), value.StringType, value.Int64Type, value.Float64Type, value.StringType)
	f.Fuzz(func(t *testing.T, pattern string, n int64, x float64, s string) {
		if !utf8.ValidString(s) || !utf8.ValidString(pattern) {
			return
		}
		v, err := format.Eval(newContext(), []value.Value{value.String(pattern), value.Int64(n), value.Float64(x), value.String(s)})
		checkError(t, err)
		if len(v.Str()) > 1<<23 || !utf8.ValidString(v.Str()) {
			t.Errorf("%q has a result of %d bytes", pattern, len(v.Str()))
		}
	})
}

// FuzzTimeFormat prints and reads timestamps by formats.
func FuzzTimeFormat(f *testing.F) {
	for _, s := range []string{"%Y-%m-%d %H:%M:%E6S%Ez", "%c %Z", "%y%j%C", "%E*S%%%n%t", "%", "%E", "%O", "%E99S", "%é", "%s", "%D%F%R%r%T%X%x", "%G%V%u"} {
		f.Add(s, "2024-03-05 07:08:09", int64(now))
	}
	print := resolve(f, lookup(f, "FORMAT_TIMESTAMP"), value.StringType, value.TimestampType, value.StringType)
	read := resolve(f, lookup(f, "PARSE_TIMESTAMP"), value.StringType, value.StringType, value.StringType)
	date := resolve(f, lookup(f, "FORMAT_DATE"), value.StringType, value.DateType)
	parseDate := resolve(f, lookup(f, "PARSE_DATE"), value.StringType, value.StringType)
	f.Fuzz(func(t *testing.T, format, text string, micros int64) {
		micros = min(max(micros, value.MinMicros+86400e6), value.MaxMicros-86400e6)
		ctx, zone, pattern := newContext(), value.String("Asia/Kolkata"), value.String(format)
		v, err := print.Eval(ctx, []value.Value{pattern, value.Timestamp(micros), zone})
		checkError(t, err)
		if utf8.ValidString(format) && !utf8.ValidString(v.Str()) {
			t.Errorf("%q has the result %q", format, v.Str())
		}
		if err == nil {
			_, err = read.Eval(ctx, []value.Value{pattern, v, zone})
			checkError(t, err)
		}
		_, err = read.Eval(ctx, []value.Value{pattern, value.String(text), zone})
		checkError(t, err)
		_, err = date.Eval(ctx, []value.Value{pattern, value.Date(19787)})
		checkError(t, err)
		_, err = parseDate.Eval(ctx, []value.Value{pattern, value.String(text)})
		checkError(t, err)
		full := value.String("%E4Y-%m-%d %H:%M:%E6S%Ez" + "%%")
		v, err = print.Eval(ctx, []value.Value{full, value.Timestamp(micros), zone})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := read.Eval(ctx, []value.Value{full, v, zone}); err != nil || again.Int64() != micros {
			t.Errorf("%d is %q, which is %v, %v", micros, v.Str(), again.Int64(), err)
		}
	})
}

// FuzzCastFormat prints and reads dates by formats of CAST.
func FuzzCastFormat(f *testing.F) {
	for _, s := range []string{"YYYY-MM-DD HH24:MI:SS.FF6 TZH:TZM", `DAY "a\"b" Mon`, "HH12 A.M.", "FF9FF1", `"`, "Y,YYY", "é"} {
		f.Add(s, "2024-03-05")
	}
	str, date, stamp := function.Arg{Type: value.StringType}, function.Arg{Type: value.DateType}, function.Arg{Type: value.TimestampType}
	cast := func(from function.Arg, to value.Type) function.Call {
		c, err := function.CastFormat(from, to, false, false)
		if err != nil {
			f.Fatal(err)
		}
		return c
	}
	calls := []function.Call{cast(date, value.StringType), cast(stamp, value.StringType), cast(str, value.DateType), cast(str, value.TimestampType), cast(str, value.BytesType)}
	f.Fuzz(func(t *testing.T, format, text string) {
		for i, v := range []value.Value{value.Date(19787), value.Timestamp(now), value.String(text), value.String(text), value.String(text)} {
			_, err := calls[i].Eval(newContext(), []value.Value{v, value.String(format)})
			checkError(t, err)
		}
	})
}

// FuzzJSON extracts from documents; a result is JSON.
func FuzzJSON(f *testing.F) {
	for _, s := range [][2]string{
		{`{"a":[1.50,{"b":null}],"a":2}`, "$.a[0]"},
		{`[[1,2],"\u2028"]`, `$[0][1]`},
		{"not json", "$"},
		{`{"a.b":1}`, `$."a.b"`},
		{"\xff", "$"},
		{`{"é":1}`, "$.é"},
		{"[1]", "$[99999999999999999999]"},
		{`{"a":1}`, "$['a']"},
		{strings.Repeat("[", 11000), "$[0]"},
	} {
		f.Add(s[0], s[1])
	}
	var calls []function.Call
	for _, name := range []string{"JSON_QUERY", "JSON_EXTRACT", "JSON_VALUE", "JSON_EXTRACT_SCALAR", "JSON_QUERY_ARRAY"} {
		calls = append(calls, resolve(f, lookup(f, name), value.BytesType, value.StringType))
	}
	f.Fuzz(func(t *testing.T, document, path string) {
		for i, c := range calls {
			v, err := c.Eval(newContext(), []value.Value{value.BytesOf(document), value.String(path)})
			checkError(t, err)
			if i < 2 && !v.IsNull() && !jsontext.Value(v.Str()).IsValid(jsontext.AllowDuplicateNames(true)) {
				t.Errorf("%s of %q at %q is %q", c.Function.Name, document, path, v.Str())
			}
		}
	})
}

// FuzzRegexp searches texts by expressions, with characters and with bytes.
func FuzzRegexp(f *testing.F) {
	for _, s := range [][2]string{{"aabca", "a*"}, {"ab ab", `\bab`}, {"xaQb", `\Qa`}, {"é", "(?i)É|."}, {"\xff", `\xff`}, {"a", "(a)(b)?"}, {"ab", "^b"}} {
		f.Add(s[0], s[1], int64(2))
	}
	var calls []function.Call
	for _, typ := range []value.Type{value.StringType, value.BytesType} {
		calls = append(calls, resolve(f, lookup(f, "REGEXP_EXTRACT"), typ, typ, value.Int64Type, value.Int64Type),
			resolve(f, lookup(f, "REGEXP_INSTR"), typ, typ, value.Int64Type, value.Int64Type))
	}
	f.Fuzz(func(t *testing.T, text, pattern string, position int64) {
		if len(text) > 1000 || len(pattern) > 100 {
			return
		}
		for i, c := range calls {
			s, p := value.String(text), value.String(pattern)
			if i >= 2 {
				s, p = value.BytesOf(text), value.BytesOf(pattern)
			} else if !utf8.ValidString(text) || !utf8.ValidString(pattern) {
				continue
			}
			_, err := c.Eval(newContext(), []value.Value{s, p, value.Int64(position), value.Int64(1)})
			checkError(t, err)
		}
	})
}

// BenchmarkCall evaluates calls that a scan makes for each row.
func BenchmarkCall(b *testing.B) {
	key := value.BytesOf("user#0000000012#2024-03-05")
	for _, c := range []struct {
		name  string
		types []value.Type
		args  []value.Value
	}{
		{"=", []value.Type{value.BytesType, value.BytesType}, []value.Value{key, key}},
		{"+", []value.Type{value.Int64Type, value.Int64Type}, []value.Value{value.Int64(1), value.Int64(2)}},
		{"TO_INT64", []value.Type{value.BytesType}, []value.Value{value.BytesOf("\x00\x00\x00\x00\x00\x00\x00\x0c")}},
		{"LIKE", []value.Type{value.BytesType, value.BytesType}, []value.Value{key, value.BytesOf("user#%2024%")}},
		{"SPLIT", []value.Type{value.BytesType, value.BytesType}, []value.Value{key, value.BytesOf("#")}},
		{"REGEXP_CONTAINS", []value.Type{value.BytesType, value.BytesType}, []value.Value{key, value.BytesOf("#[0-9]+#2024")}},
		{"JSON_VALUE", []value.Type{value.BytesType, value.StringType}, []value.Value{value.BytesOf(`{"abc":1,"list":["x","y"]}`), value.String("$.abc")}},
	} {
		b.Run(c.name, func(b *testing.B) {
			call, ctx := resolve(b, lookup(b, c.name), c.types...), newContext()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call.Eval(ctx, c.args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
