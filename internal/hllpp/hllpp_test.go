package hllpp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// input returns the sketch of TYPE,P,SP,FROM,TO.
func input(t *testing.T, spec string) *Sketch {
	t.Helper()
	w := strings.Split(spec, ",")
	var n [4]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(w[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	s := &Sketch{valueType: Bytes, p: n[0], sp: n[1]}
	if w[0] == "int64" {
		s.valueType = Int64
	}
	for i := n[2]; i < n[3]; i++ {
		var err error
		if s.valueType == Int64 {
			err = s.AddInt64(int64(uint64(i) * 0x9E3779B97F4A7C15))
		} else {
			err = s.AddBytes(strconv.AppendInt(nil, int64(i), 10))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestZetasketch compares with sketches of the library; testdata/zetasketch.txt describes how
// they were made.
func TestZetasketch(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/zetasketch.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		w := strings.Fields(line)
		switch w[0] {
		case "#":
			continue
		case "hash-bytes":
			n, _ := strconv.Atoi(w[1])
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(i*37 + n)
			}
			if got := fmt.Sprintf("%016x", fingerprint(b)); got != w[2] {
				t.Errorf("%s: got %s", line, got)
			}
		case "hash-int64":
			n, _ := strconv.ParseInt(w[1], 10, 64)
			if got := fmt.Sprintf("%016x", fingerprintInt64(n)); got != w[2] {
				t.Errorf("%s: got %s", line, got)
			}
		default:
			checkSketch(t, line)
		}
		lines++
	}
	if lines < 300 {
		t.Errorf("%d vectors", lines)
	}
}

func checkSketch(t *testing.T, line string) {
	t.Helper()
	in, out, _ := strings.Cut(line, " = ")
	specs, want := strings.Fields(in), strings.Fields(out)
	s := input(t, specs[0])
	for _, spec := range specs[1:] {
		o, err := Unmarshal(input(t, spec).Marshal())
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		if err := s.Merge(o); err != nil {
			if want[0] != "error" {
				t.Errorf("%s: %v", in, err)
			}
			return
		}
	}
	if want[0] == "error" {
		t.Errorf("%s: merged", in)
		return
	}
	b := s.Marshal()
	got := hex.EncodeToString(b)
	if strings.HasPrefix(want[2], "sha256:") {
		got = fmt.Sprintf("sha256:%x", sha256.Sum256(b))
	}
	if got != want[2] || strconv.Itoa(len(b)) != want[0] {
		t.Errorf("%s: got %d bytes %s, want %s bytes %s", in, len(b), got, want[0], want[2])
		return
	}
	again, err := Unmarshal(b)
	if err != nil {
		t.Errorf("%s: %v", in, err)
		return
	}
	if string(again.Marshal()) != string(b) {
		t.Errorf("%s: not the same after a round trip", in)
	}
	theirs, err := strconv.ParseFloat(want[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	// A sparse estimate is the same number; a dense one is within a fraction of the standard
	// error.
	allowed := 0.0
	if s.dense != nil {
		allowed = 1 + theirs*1.04/math.Sqrt(float64(len(s.dense)))
	}
	if ours := float64(s.Estimate()); math.Abs(ours-theirs) > allowed {
		t.Errorf("%s: estimate %v, the library's %v", in, ours, theirs)
	}
}

// TestMerge_Orders checks that the order and the division of merges do not affect the
// registers.
func TestMerge_Orders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 2000), 0, 3000).Draw(t, "values")
		sp := rapid.SampledFrom([]int{0, 10, 15, 25}).Draw(t, "sp")
		parts := rapid.IntRange(1, 4).Draw(t, "parts")
		whole := &Sketch{valueType: Int64, p: 10, sp: sp}
		pieces := make([]*Sketch, parts)
		for i := range pieces {
			pieces[i] = &Sketch{valueType: Int64, p: 10, sp: sp}
		}
		for i, v := range values {
			if whole.AddInt64(v) != nil || pieces[i%parts].AddInt64(v) != nil {
				t.Fatal("not added")
			}
		}
		var merged *Sketch
		for i, j := range rapid.Permutation([]int{0, 1, 2, 3}[:parts]).Draw(t, "order") {
			o, err := Unmarshal(pieces[j].Marshal())
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				merged = o
			} else if err := merged.Merge(o); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := whole.Marshal(), merged.Marshal(); string(a) != string(b) {
			t.Fatalf("%x\nbut merged\n%x", a, b)
		}
	})
}

func TestSketch_WrongTypes(t *testing.T) {
	t.Parallel()
	numbers, strs := New(Int64), New(Bytes)
	for _, err := range []error{numbers.AddBytes(nil), strs.AddInt64(1), numbers.Merge(strs)} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("error %v, want %v", err, ErrInvalid)
		}
	}
	if numbers.Estimate() != 0 || strs.Estimate() != 0 {
		t.Error("an error left something behind")
	}
}

func TestUnmarshal_Invalid(t *testing.T) {
	t.Parallel()
	dense := func(change func(b []byte) []byte) string {
		s := &Sketch{valueType: Int64, p: 10}
		s.add(1)
		return string(change(s.Marshal()))
	}
	for name, in := range map[string]string{
		"empty":                 "",
		"text":                  "not a sketch",
		"cut":                   "\x08\x70\x10",
		"another aggregator":    "\x08\x64\x10\x00\x18\x02\x20\x08",
		"another version":       "\x08\x70\x10\x00\x18\x01\x20\x08\x82\x07\x06\x18\x0f\x20\x14\x32\x00",
		"another type":          "\x08\x70\x10\x00\x18\x02\x20\x04\x82\x07\x06\x18\x0f\x20\x14\x32\x00",
		"no state":              "\x08\x70\x10\x00\x18\x02\x20\x08",
		"precision 9":           "\x08\x70\x10\x00\x18\x02\x20\x08\x82\x07\x06\x18\x09\x20\x14\x32\x00",
		"precision 25":          "\x08\x70\x10\x00\x18\x02\x20\x08\x82\x07\x06\x18\x19\x20\x19\x32\x00",
		"sparse 14":             "\x08\x70\x10\x00\x18\x02\x20\x08\x82\x07\x06\x18\x0f\x20\x0e\x32\x00",
		"sparse 26":             "\x08\x70\x10\x00\x18\x02\x20\x08\x82\x07\x06\x18\x0f\x20\x1a\x32\x00",
		"size without data":     "\x08\x70\x10\x00\x18\x02\x20\x08\x82\x07\x08\x10\x01\x18\x0f\x20\x14\x32\x00",
		"another size":          "\x08\x70\x10\x01\x18\x02\x20\x08\x82\x07\x0b\x10\x02\x18\x0f\x20\x14\x32\x03\xa2\xa7\x21",
		"value out of range":    "\x08\x70\x10\x01\x18\x02\x20\x08\x82\x07\x0c\x10\x01\x18\x0f\x20\x14\x32\x04\x82\x80\x80\x02",
		"rho 0":                 "\x08\x70\x10\x01\x18\x02\x20\x08\x82\x07\x0c\x10\x01\x18\x0f\x20\x14\x32\x04\x80\x80\x80\x01",
		"one value twice":       "\x08\x70\x10\x01\x18\x02\x20\x08\x82\x07\x0c\x10\x02\x18\x0f\x20\x14\x32\x04\xa2\xa7\x21\x00",
		"one index twice":       "\x08\x70\x10\x01\x18\x02\x20\x08\x82\x07\x0d\x10\x02\x18\x0f\x20\x14\x32\x05\x81\x80\x80\x01\x01",
		"group":                 "\x08\x70\x13\x14",
		"too few registers":     dense(func(b []byte) []byte { b[len(b)-1027]--; return b[:len(b)-1] }),
		"register out of range": dense(func(b []byte) []byte { b[len(b)-1] = 56; return b }),
	} {
		if s, err := Unmarshal([]byte(in)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, error %v", name, s, err)
		}
	}
}

// FuzzUnmarshal checks that accepted input is canonical after one round trip, and can be
// merged.
func FuzzUnmarshal(f *testing.F) {
	for _, spec := range []int{0, 1, 100} {
		s := New(Int64)
		for i := range spec {
			s.add(uint64(i) * 0x9E3779B97F4A7C15)
		}
		f.Add(s.Marshal())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Unmarshal(b)
		if err != nil {
			return
		}
		first := s.Marshal()
		again, err := Unmarshal(first)
		if err != nil {
			t.Fatalf("%x: %v", first, err)
		}
		if second := again.Marshal(); string(first) != string(second) {
			t.Fatalf("%x becomes %x", first, second)
		}
		s.Estimate()
		if err := New(s.Type()).Merge(s); err != nil && !s.isSparse() {
			t.Fatal(err)
		}
	})
}

// TestNewPrecise has a sketch of GoogleSQL's documentation: one value twice, with precision 10.
func TestNewPrecise(t *testing.T) {
	t.Parallel()
	s, err := NewPrecise(Bytes, 10, 15)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.AddBytes([]byte("customer_id_2")); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.Marshal(), "\010p\020\002\030\002 \013\202\007\013\020\001\030\n \0172\003\371\344\001"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, p := range [][2]int{{9, 14}, {25, 25}, {15, 14}, {15, 26}} {
		if _, err := NewPrecise(Int64, p[0], p[1]); err == nil {
			t.Errorf("precision %d with %d is accepted", p[0], p[1])
		}
	}
	if _, err := NewPrecise(Int64, 10, 0); err != nil {
		t.Error(err)
	}
}
