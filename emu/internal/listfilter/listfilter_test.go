package listfilter

import (
	"strings"
	"testing"
	"time"
)

var fields = Fields{"name": Text, "source_table": Text, "state": Text, "size_bytes": Number, "start_time": Time}

func element(field string) Value {
	return map[string]Value{
		"name":         {Text: "projects/p/instances/i/clusters/c/backups/B-1.x"},
		"source_table": {Text: "projects/p/instances/i/tables/t"},
		"state":        {Text: "READY"},
		"size_bytes":   {Number: 12},
		"start_time":   {Time: time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)},
	}[field]
}

func TestTrap77_Filter(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string]bool{
		"":  true,
		" ": true,
		"source_table:projects/p/instances/i/tables/t":                         true,
		"source_table:projects/p/instances/i/tables/u":                         false,
		"(source_table:projects/p/instances/i/tables/t) AND (state:ready)":     true,
		"(source_table:projects/p/instances/i/tables/t) AND (size_bytes > 12)": false,
		`name:"b-1.x"`: false, // equals
		`name:b-1.x`:   true,  // contains
		`name = "projects/p/instances/i/clusters/c/backups/b-1.x"`: true,
		`state=READY`:                                    true,
		`state=ready size_bytes>=12`:                     true, // AND is implied
		`state=creating OR size_bytes=12`:                true,
		`NOT state=creating`:                             true,
		`not state=ready or size_bytes!=13`:              true,
		`NOT (state=ready or size_bytes!=13)`:            false,
		`size_bytes<12 OR size_bytes>12 AND state=ready`: false,
		`start_time > "2024-01-01T00:00:00Z"`:            true,
		`start_time < 2024-01-02T03:04:05.000001Z`:       true,
		`start_time <= 2024-01-02T04:04:04+01:00`:        false,
		`name:'B-1'`: false,
	} {
		f, err := Parse(filter, fields)
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		if got := f.Match(element); got != want {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
	for _, filter := range []string{
		"nothing:x", "name", "name:", "name:x)", "(name:x", `name:"x`, "size_bytes:x", "start_time>yesterday", "AND", "name:x OR",
		"NOT", strings.Repeat("(", 1000), strings.Repeat("NOT ", 1000), "name ~ x",
	} {
		if _, err := Parse(filter, fields); err == nil {
			t.Errorf("%.40s: no error", filter)
		}
	}
}

func TestTrap79_Order(t *testing.T) {
	t.Parallel()
	o, err := ParseOrder(" size_bytes   desc ,name,size_bytes", fields)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string, size int64) func(string) Value {
		return func(f string) Value { return Value{Text: name, Number: size} }
	}
	for _, c := range []struct {
		a, b func(string) Value
		want int
	}{{of("a", 1), of("b", 2), 1}, {of("a", 1), of("b", 1), -1}, {of("a", 1), of("a", 1), 0}} {
		if got := o.Compare(c.a, c.b); got != c.want {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
	for _, bad := range []string{"none", "name up", "name,", ",", "name desc desc"} {
		if _, err := ParseOrder(bad, fields); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// FuzzParse parses any text, and applies the filter.
func FuzzParse(f *testing.F) {
	f.Add("(source_table:projects/p/instances/i/tables/t) AND NOT (size_bytes>1 OR state:ready)", "size_bytes desc, name")
	f.Add(`name:"x\"" start_time<=2024-01-02T03:04:05Z`, "")
	f.Fuzz(func(t *testing.T, filter, order string) {
		if x, err := Parse(filter, fields); err == nil {
			x.Match(element)
			if n, err := Parse("NOT ("+filter+")", fields); strings.TrimSpace(filter) != "" && err == nil && n.Match(element) == x.Match(element) {
				t.Errorf("%q and its negation agree", filter)
			}
		}
		if o, err := ParseOrder(order, fields); err == nil && o.Compare(element, element) != 0 {
			t.Errorf("%q orders an element beside itself", order)
		}
	})
}
