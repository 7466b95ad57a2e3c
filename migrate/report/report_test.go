package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// check records failures of a check.
func check(t *testing.T, r *Report, name string, failures ...Failure) {
	t.Helper()
	err := r.Check(name, "t", func() (string, error) {
		for _, f := range failures {
			r.Fail(f)
		}
		return "", nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func many(n int, kind Kind) (all []Failure) {
	for i := range n {
		all = append(all, Failure{Kind: kind, Column: fmt.Sprint(i)})
	}
	return all
}

// A frequent kind of difference, or a check with many, leaves room for an example of each other
// one.
func TestReport_EachCheckAndKindHasAnExample(t *testing.T) {
	t.Parallel()
	r := New(5)
	check(t, r, "round trip", append(many(100, TimestampDiffers), many(2, MissingRow)...)...)
	check(t, r, "index GSI1", many(3, IndexStale)...)
	stale := r.Aside()
	stale.Fail(Failure{Kind: ExtraCell})
	stale.Fail(Failure{Kind: ValueDiffers})
	if err := r.Check("index GSI2", "t", func() (string, error) { r.FailAs(IndexStale, stale); return "", nil }); err != nil {
		t.Fatal(err)
	}
	r.BeginPattern("p1")
	if r.Lists(PatternDiffers) != true {
		t.Error("the first difference of a pattern would not be listed")
	}
	r.Fail(Failure{Kind: PatternDiffers, Pattern: "p1"})
	if r.Lists(PatternDiffers) {
		t.Error("a second difference of a pattern would be listed in a full report")
	}
	r.Fail(Failure{Kind: PatternDiffers, Pattern: "p1"})
	var got []string
	for _, f := range r.Failures {
		got = append(got, f.Check+" "+string(f.Kind)+" "+f.Detail)
	}
	want := "round trip TimestampDiffers |round trip MissingRow |index GSI1 IndexStale |index GSI2 IndexStale ExtraCell|index GSI2 IndexStale ValueDiffers|pattern p1 PatternDiffers "
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("listed:\n%s\nwant:\n%s", text, want)
	}
	if r.Differences != 109 {
		t.Errorf("%d differences are counted, want 109", r.Differences)
	}
	// If there is room, the first failures are listed.
	r = New(5)
	check(t, r, "round trip", append(many(4, TimestampDiffers), many(10, MissingRow)...)...)
	if len(r.Failures) != 5 || r.Failures[4].Kind != MissingRow || r.Failures[3].Kind != TimestampDiffers {
		t.Errorf("listed: %v", r.Failures)
	}
}

// Every form of a report lists the parts that a mapping does not lay out.
func TestInfer_NotLaidOut(t *testing.T) {
	t.Parallel()
	r := New(5)
	r.Source, r.Compared = "in.json", true
	r.LeaveOut("orders")
	if len(r.Checks)+len(r.Warnings) != 0 {
		t.Errorf("omitted parts are not reported: %+v", r.Checks)
	}
	r.LeaveOut("orders", NotLaidOut{"orders", "index GSI1", "its mapping says as: none"}, NotLaidOut{"orders", "index GSI2", "no index of its mapping"})
	var json, junit, html bytes.Buffer
	for _, err := range []error{r.WriteJSON(&json), WriteJUnit(&junit, r), r.WriteHTML(&html)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string][]string{
		r.Text(): {
			"warn not laid out, table orders: index GSI1, index GSI2: not compared\n",
			"warning: table orders: index GSI1 is not laid out: its mapping says as: none\n",
		},
		json.String():  {`"notLaidOut": [`, `"what": "index GSI2"`, `"state": "noted"`},
		junit.String(): {`<testsuites tests="1" failures="0">`, `skipped="1"`, `<skipped message="index GSI1, index GSI2: not compared">`},
		html.String():  {"Equal, 2 parts not laid out", `badge noted`},
	} {
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in:\n%.2000s", part, text)
			}
		}
	}
	if !r.Equal() {
		t.Error("a part that is not laid out is a difference")
	}
}

// A phase of several passes shows the number of items, not the sum over its passes.
func TestPhase_Passes(t *testing.T) {
	t.Parallel()
	var r TableReport
	for range 3 {
		r.AddPhase("checking", 25_000, 2*time.Second)
	}
	r.AddPhase("loading", 1, time.Second)
	r.AddPhase("linting", 7, 0)
	want := []string{"checking 25000 items, 3 passes, in 6.00 s, 12500 a second", "loading 1 item in 1.00 s, 1 a second", "linting 7 items in 0.00 s"}
	for i, p := range r.Phases {
		if p.String() != want[i] {
			t.Errorf("%q, want %q", p, want[i])
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back Phase
		if err := json.Unmarshal(text, &back); err != nil || back.String() != want[i] {
			t.Errorf("a phase of a report that was written: %q, error %v; want %q", back, err, want[i])
		}
	}
}
