package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
)

// mostListed is the greatest limit that the API accepts for a list.
const mostListed = "1000"

// all prints all pages as one document. It prints each page as it arrives, so that memory holds
// only one.
func (s ctlServer) all(ctx context.Context, p *program, what asked) error {
	if !what.query.Has("limit") {
		what.query.Set("limit", mostListed)
	}
	out := listing{to: p.stdout, name: s.verb.list}
	name, value := "", ""
	for {
		page, some, err := s.page(ctx, what)
		if err != nil {
			return out.cut(err, name, value)
		}
		if name, value = next(page); name == "" {
			delete(page, s.verb.list)
			out.end(some, page)
			return nil
		}
		if !out.add(some) {
			return nil
		}
		what.query.Set(name, value)
	}
}

// page returns an answer, and its list.
func (s ctlServer) page(ctx context.Context, what asked) (page map[string]json.RawMessage, some []json.RawMessage, err error) {
	text, err := s.answer(ctx, http.MethodGet, what.path, what.query, nil)
	if err != nil {
		return nil, nil, err
	}
	if err = json.Unmarshal(text, &page); err == nil {
		err = json.Unmarshal(page[s.verb.list], &some)
	}
	if err != nil {
		return nil, nil, unreadable(err)
	}
	return page, some, nil
}

// unreadable returns the error for an answer that is not from the API.
func unreadable(err error) error { return fmt.Errorf("ctl: cannot read the response: %w", err) }

// listing prints an object with a list, without holding the list.
type listing struct {
	to    io.Writer
	name  string // of the list
	begun bool
	n     int // printed elements
}

// add prints elements, and reports whether that succeeded.
func (l *listing) add(some []json.RawMessage) bool {
	var out bytes.Buffer
	l.write(&out, some)
	_, err := l.to.Write(out.Bytes()) // the program reports the error
	return err == nil
}

func (l *listing) write(out *bytes.Buffer, some []json.RawMessage) {
	if !l.begun {
		l.begun = true
		_, _ = fmt.Fprintf(out, "{\n  %q: [", l.name)
	}
	for _, each := range some {
		if l.n > 0 {
			out.WriteByte(',')
		}
		l.n++
		out.WriteString("\n    ")
		_ = json.Indent(out, each, "    ", "  ") // already parsed
	}
}

// end prints the last elements, and the other members of the object.
func (l *listing) end(some []json.RawMessage, members map[string]json.RawMessage) {
	var out bytes.Buffer
	l.write(&out, some)
	if l.n > 0 {
		out.WriteString("\n  ")
	}
	out.WriteByte(']')
	for _, name := range slices.Sorted(maps.Keys(members)) {
		_, _ = fmt.Fprintf(&out, ",\n  %q: ", name)
		_ = json.Indent(&out, members[name], "  ", "  ")
	}
	out.WriteString("\n}\n")
	_, _ = l.to.Write(out.Bytes())
}

// cut returns the error of a page, with a hint to continue if others were printed. The printed
// object stays unclosed, so that it is not mistaken for a complete one.
func (l *listing) cut(err error, name, value string) error {
	if !l.begun {
		return err
	}
	_, _ = io.WriteString(l.to, "\n")
	return &unfinished{err, fmt.Sprintf("the output ends after %d %s: continue with --all %s=%s", l.n, l.name, name, value)}
}
