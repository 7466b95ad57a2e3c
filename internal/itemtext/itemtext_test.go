package itemtext

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
)

// read returns the items of a text as "LINE TEXT", damaged ones with a "!", and the error at
// the end.
func read(text io.Reader, most int) (got []string, end error) {
	r := &Reader{Text: bufio.NewReaderSize(text, 16), MaxBytes: most}
	for {
		var item string
		var bad error
		err := r.Item(func(text []byte) error {
			item, bad = string(text), nil
			if v := jsontext.Value(text); !v.IsValid() || v.Kind() != '{' {
				bad = errors.New("damaged")
			}
			return bad
		})
		switch {
		case bad != nil && errors.Is(err, bad):
			got = append(got, fmt.Sprintf("%d ! %s", r.Line(), item))
		case err != nil:
			return got, err
		default:
			got = append(got, fmt.Sprintf("%d %s", r.Line(), strings.Join(strings.Fields(item), "")))
		}
	}
}

func TestReader_Item(t *testing.T) {
	t.Parallel()
	long := `{"a":"` + strings.Repeat("x", 60) + `"}`
	for _, c := range []struct {
		name, text string
		want       []string
		end        error
	}{
		{"nothing", " \n\n", nil, io.EOF},
		{"lines", "{\"a\":1}\r\n\n  {\"b\":2} \n{}", []string{`1 {"a":1}`, `3 {"b":2}`, `4 {}`}, io.EOF},
		{"objects on a line", "{\"a\":1}{\"b\":\"}{\"} {\"c\":3}\n{}", []string{`1 {"a":1}`, `1 {"b":"}{"}`, `1 {"c":3}`, `2 {}`}, io.EOF},
		{"objects on lines", "{\n \"a\": {\n}}\n{\"b\":\n2}{\"c\"\n:3}", []string{`1 {"a":{}}`, `4 {"b":2}`, `5 {"c":3}`}, io.EOF},
		{"a line longer than a text", strings.Repeat(long, 5), []string{"1 " + long, "1 " + long, "1 " + long, "1 " + long, "1 " + long}, io.EOF},
		{"garbage", "{}\ngarbage {}\n{}", []string{"1 {}", "2 ! garbage {}", "3 {}"}, io.EOF},
		{"garbage behind an object", "{}{}garbage\n{}", []string{"1 {}", "1 {}", "1 ! garbage", "2 {}"}, io.EOF},
		{"an object cut short", "{\"a\":\n{\"b\":1}\n{\"c\":2}", []string{`1 ! {"a":`, `2 {"b":1}`, `3 {"c":2}`}, io.EOF},
		{"a text cut short", "{\"a\":\"x\n{\"b\":1}", []string{`1 ! {"a":"x`, `2 {"b":1}`}, io.EOF},
		{"the end cut short", "{}\n{\"a\":\n", []string{"1 {}", `2 ! {"a":`}, io.EOF},
		{"objects never closed", strings.Repeat(`{"a":`, 9) + "\n{}", []string{"1 ! " + strings.Repeat(`{"a":`, 9), "2 {}"}, io.EOF},
		{"an object too long", "{}\n{\"a\":\"" + strings.Repeat("x", 120), []string{"1 {}"}, ErrTooLong},
		{"a line a little too long", long + strings.Repeat(" ", 101-len(long)) + "\n", []string{"1 " + long}, io.EOF},
		{"an object a little too long", `{"a":"` + strings.Repeat("x", 93) + `"}`, nil, ErrTooLong},
		{"no object too long", strings.Repeat("x", 120), nil, ErrTooLong},
		{"blank lines", "{}" + strings.Repeat("\n", 120), []string{"1 {}"}, ErrBlank},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, text := range []io.Reader{strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text))} {
				got, end := read(text, 100)
				if strings.Join(got, "\n") != strings.Join(c.want, "\n") || !errors.Is(end, c.end) {
					t.Errorf("got\n%s\nand %v, want\n%s\nand %v", strings.Join(got, "\n"), end, strings.Join(c.want, "\n"), c.end)
				}
			}
		})
	}
	broken := errors.New("broken")
	if got, err := read(io.MultiReader(strings.NewReader("{}\n{\"a\":"), iotest.ErrReader(broken)), 100); len(got) != 1 || !errors.Is(err, broken) {
		t.Errorf("%q, error %v, want one item and %v", got, err, broken)
	}
}

func TestReader_Next(t *testing.T) {
	t.Parallel()
	r := &Reader{Text: bufio.NewReader(strings.NewReader("a\n\n b b \r\nc")), MaxBytes: 10}
	var got []string
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(r.Line(), string(line)))
	}
	if want := "1a,3b b,4c"; strings.Join(got, ",") != want {
		t.Errorf("lines %v, want %s", got, want)
	}
}
