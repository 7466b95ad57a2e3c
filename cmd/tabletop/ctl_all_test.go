package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// printed is a standard output that can be read while a command runs.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
	full bool // writes fail
}

func (p *printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full {
		return 0, errors.New("the disk is full")
	}
	return p.text.Write(text)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// pagesOf serves pages of a list. It first passes each request to at, which may answer it.
func pagesOf(t *testing.T, pages []string, at func(page int, w http.ResponseWriter, r *http.Request) bool) *httptest.Server {
	t.Helper()
	numbers := map[string]int{"": 0}
	for i := range pages {
		numbers[fmt.Sprint("c", i)] = i
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := numbers[r.URL.Query().Get("cursor")]
		if at == nil || !at(page, w, r) {
			_, _ = io.WriteString(w, pages[page])
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// ctlAll runs ctl against a server, in this process.
func ctlAll(ctx context.Context, s *httptest.Server, stdout *printed, args ...string) (stderr string, code int) {
	var errs strings.Builder
	p := &program{stdin: strings.NewReader(""), stdout: stdout, stderr: &errs}
	code = p.run(ctx, append([]string{"ctl", "--console-url", s.URL, "--console-token", "t", "--all"}, args...))
	return errs.String(), code
}

var threePages = []string{
	`{"items":[{"id":{"S":"a"}},{"id":{"S":"<b>"},"l":{"L":[]}}],"cursor":"c1"}`,
	`{"items":[],"cursor":"c2","next":"c2"}`,
	`{"items":[{"id":{"S":"c"}}],"over":{"x":[1,2]},"next":"c3"}`,
}

// TestCtlAll_Flow: each page is printed before the next request, and all pages form one
// document.
func TestCtlAll_Flow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pages []string
		want  string
	}{
		{threePages, `{"items":[{"id":{"S":"a"}},{"id":{"S":"<b>"},"l":{"L":[]}},{"id":{"S":"c"}}],"next":"c3","over":{"x":[1,2]}}`},
		{[]string{`{"items":[]}`}, `{"items":[]}`},
		{[]string{`{"items":null,"next":"n"}`}, `{"items":[],"next":"n"}`},
		{[]string{`{"items":[7]}`}, `{"items":[7]}`},
	} {
		var out printed
		asked := 0
		s := pagesOf(t, c.pages, func(page int, _ http.ResponseWriter, _ *http.Request) bool {
			asked++
			for _, before := range c.pages[:page] {
				var had struct{ Items []json.RawMessage }
				if err := json.Unmarshal([]byte(before), &had); err != nil {
					t.Error(err)
				}
				for _, item := range had.Items {
					var text bytes.Buffer
					if err := json.Indent(&text, item, "    ", "  "); err != nil || !strings.Contains(out.String(), text.String()) {
						t.Errorf("page %d is asked for, and %s is not printed: %q", page, item, out.String())
					}
				}
			}
			return false
		})
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(c.want), "", "  "); err != nil {
			t.Fatal(err)
		}
		if stderr, code := ctlAll(t.Context(), s, &out, "items", "t"); code != exitEqual || stderr != "" || out.String() != want.String()+"\n" || asked != len(c.pages) {
			t.Errorf("it exits %d after %d pages: %s\n%s\nwant\n%s", code, asked, stderr, out.String(), want.String())
		}
	}
}

// TestCtlAll_Cut: when a page fails, the document stays open, and a hint to continue is
// printed.
func TestCtlAll_Cut(t *testing.T) {
	t.Parallel()
	refused := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":{"code":"timeout","text":"too slow","remedy":"ask again"}}`)
	}
	ctx, leave := context.WithCancel(t.Context())
	for _, c := range []struct {
		name   string
		fails  int // the failing page
		answer http.HandlerFunc
		code   int
		stderr string
		items  int // printed
	}{
		{"the first", 0, refused, exitBadInput, "tabletop: ctl items: too slow: ask again\n", 0},
		{"refused", 2, refused, exitBadInput, "tabletop: ctl items: too slow: ask again; the output ends after 2 items: continue with --all cursor=c2\n", 2},
		{"gone", 1, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, exitEnvironment, "; the output ends after 2 items: continue with --all cursor=c1\n", 2},
		{"no page", 1, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"items":{}}`) }, exitEnvironment, "cannot read the response: ", 2},
		{"no JSON", 1, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `<p>`) }, exitEnvironment, "so it is not a control API", 2},
		{"interrupted", 1, func(_ http.ResponseWriter, r *http.Request) {
			leave()
			<-r.Context().Done() // an answer would race with the interruption
		}, exitEnvironment, "tabletop: interrupted; the output ends after 2 items: continue with --all cursor=c1\n", 2},
	} {
		var out printed
		s := pagesOf(t, threePages, func(page int, w http.ResponseWriter, r *http.Request) bool {
			if page == c.fails {
				c.answer(w, r)
			}
			return page == c.fails
		})
		stderr, code := ctlAll(ctx, s, &out, "items", "t")
		text := out.String()
		if code != c.code || !strings.Contains(stderr, c.stderr) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: it exits %d: %s", c.name, code, stderr)
		}
		if strings.Count(text, `"id"`) != c.items || json.Valid([]byte(text)) || text != "" && !strings.HasSuffix(text, "}\n") {
			t.Errorf("%s: it prints %s", c.name, text)
		}
	}
}

// TestCtlAll_Full: after a failed write, no page is requested.
func TestCtlAll_Full(t *testing.T) {
	t.Parallel()
	out := printed{full: true}
	s := pagesOf(t, threePages, func(page int, _ http.ResponseWriter, _ *http.Request) bool {
		if page > 0 {
			t.Errorf("page %d is asked for", page)
		}
		return false
	})
	if stderr, code := ctlAll(t.Context(), s, &out, "items", "t"); code != exitEnvironment || stderr != "tabletop: standard output: the disk is full\n" {
		t.Errorf("it exits %d: %s", code, stderr)
	}
}
