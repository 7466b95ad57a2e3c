package source

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
)

// openJSONLines opens a file of consecutive items, one per line or not, plain or as in the data
// files of an export to S3.
func openJSONLines(t tree, name string, s shape) *Source {
	reading := new(atomic.Pointer[input])
	return &Source{Format: "json-lines", Tables: []*Table{{
		Name:     tableNameOf(name),
		Declared: -1,
		reading:  reading,
		entries: func(yield func(Entry, error) bool) {
			in, err := t.open(name)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			defer in.close()
			reading.Store(in)
			defer reading.Store(nil)
			l := in.lines()
			for {
				e, err := l.entry(s)
				if errors.Is(err, io.EOF) || !yield(e, err) || err != nil && !OfItem(err) {
					return
				}
			}
		},
	}}}
}

// entry reads the next item; io.EOF after the last.
func (l *lines) entry(s shape) (e Entry, err error) {
	var bad error
	err = l.texts.Item(func(text []byte) error {
		e, bad = parseEntry(text, s, l.at())
		return bad
	})
	if bad != nil && errors.Is(err, bad) {
		return e, err
	}
	return e, l.failed(err)
}

// openJSONItems opens a file with all items in one JSON text.
func openJSONItems(t tree, name string, found fileLayout, s shape) *Source {
	table := &Table{Name: tableNameOf(name), Declared: -1, reading: new(atomic.Pointer[input])}
	table.entries = func(yield func(Entry, error) bool) {
		all := table.pages
		if all == nil {
			all = &pages{}
		}
		err := readJSONItems(t, name, found, s, all, table.reading, yield)
		if err == nil && table.pages == nil {
			err = all.end()
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(Entry{}, err)
		}
	}
	return &Source{Format: "json-items", Tables: []*Table{table}}
}

// errStopped means that the consumer of entries stopped.
var errStopped = errors.New("stopped")

func readJSONItems(t tree, name string, found fileLayout, s shape, all *pages, reading *atomic.Pointer[input], yield func(Entry, error) bool) error {
	in, err := t.open(name)
	if err != nil {
		return err
	}
	defer in.close()
	reading.Store(in)
	defer reading.Store(nil)
	d := newDocument(in)
	one := func() error { return d.yieldEntry(s, yield) }
	if found == itemArray {
		if err := d.array(one); err != nil {
			return err
		}
		return d.end()
	}
	for { // consecutive pages
		all.n++
		err := d.object(func(name string) error {
			switch name {
			case "Items":
				return d.array(one)
			case "LastEvaluatedKey", "NextToken":
				return d.lastPage(name, all)
			}
			return d.skip()
		})
		if err != nil {
			return err
		}
		if d.PeekKind() != '{' {
			return d.end()
		}
	}
}

// lastPage reads the member of a Scan or Query answer that announces another page. Unless the member
// is empty, it counts the page in all.followed; all.first is then the error to return if the last
// page is missing.
func (d *document) lastPage(member string, all *pages) error {
	text, at, err := d.value()
	if err != nil {
		return err
	}
	if text.Kind() == 'n' || string(bytes.Join(bytes.Fields(text), nil)) == "{}" {
		return nil
	}
	if all.followed++; all.followed > 1 {
		return nil
	}
	all.first = Damaged(Unsupported, at, nil, "the response is one page of several (%s), and the items of the other pages are missing: let the AWS CLI read all pages (no --max-items, no --no-paginate), or remove the member if these are all the items", member)
	return nil
}

// yieldEntry reads the next value as an item and yields it.
func (d *document) yieldEntry(s shape, yield func(Entry, error) bool) error {
	text, at, err := d.value()
	if err != nil {
		return err
	}
	e, err := parseEntry(text, s, at)
	if err != nil && !OfItem(err) {
		return err
	}
	if !yield(e, err) {
		return errStopped
	}
	return nil
}

// end checks that nothing follows, and reads to the end, to notice a damaged tail of a
// compressed file.
func (d *document) end() error {
	_, err := d.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return d.failed(err)
	}
	return Damaged(NotJSON, d.at(1), nil, "not JSON: more text follows the end")
}
