// Package itemtext splits files of DynamoDB items into the texts of their items: objects of
// JSON one after the other, as ImportTable takes them, or lines. Objects may stand on one
// line, and one may have several. Source: developer guide, "S3 import formats for DynamoDB".
//
// What it promises: memory is bounded by the longest text; after a damaged object the items
// on the lines behind its first one are read.
//
// What it does not do: it parses no item.
package itemtext

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Errors of a text that has more than Reader.MaxBytes.
var (
	ErrTooLong = errors.New("the text of an item is too long")
	ErrBlank   = errors.New("too much space before an item")
)

// maxDepth is deeper than any item is nested in JSON: DynamoDB takes 32 levels, of two
// objects each, in an object of a few more.
const maxDepth = 80

// Reader reads the texts of a file. Text and MaxBytes are to be set; it is not safe for
// concurrent use.
type Reader struct {
	Text     *bufio.Reader
	MaxBytes int // of a text, and of the space before one

	buf    []byte // of Text; what comes before at is done with
	at     int
	lines  int  // line ends before at
	line   int  // of the text that was returned last
	inside bool // at is behind an object, on its line
	tokens jsontext.Decoder
}

// Line returns the line on which the last text begins, from 1.
func (r *Reader) Line() int { return r.line }

// Next returns the next line that is not blank, without the space around it; it is good
// until the next call. Errors: io.EOF, ErrTooLong, ErrBlank, those of Text.
func (r *Reader) Next() ([]byte, error) {
	if err := r.skipSpace(); err != nil {
		return nil, err
	}
	end, err := r.lineEnd()
	if err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(r.buf[r.at:end])
	r.consume(end)
	return text, nil
}

// Item parses the next item, by its text: first the line as a whole, and where that fails
// the object that begins it, if that ends elsewhere. The error of parse is returned, and the
// next call continues behind the object, or else on the next line. Other errors are those of
// Next, after which nothing can be read.
func (r *Reader) Item(parse func(text []byte) error) error {
	if err := r.skipSpace(); err != nil {
		return err
	}
	end, tooLong := r.at, error(nil)
	var failed error
	if !r.inside {
		switch end, tooLong = r.lineEnd(); {
		case errors.Is(tooLong, ErrTooLong): // it may have many items
		case tooLong != nil:
			return tooLong
		default:
			if failed = parse(bytes.TrimSpace(r.buf[r.at:end])); failed == nil {
				r.consume(end)
				return nil
			}
		}
	}
	behind, err := r.objectEnd()
	if err != nil {
		return err
	}
	if behind > r.at && (r.inside || tooLong != nil || behind != r.at+len(bytes.TrimRight(r.buf[r.at:end], space))) {
		text := r.buf[r.at:behind]
		r.consume(behind)
		r.inside = true
		return parse(text)
	}
	if r.inside || tooLong != nil { // the rest of the line is no object
		if end, err = r.lineEnd(); err != nil {
			return err
		}
		failed = parse(bytes.TrimSpace(r.buf[r.at:end]))
	}
	r.consume(end)
	return failed
}

// space is what JSON and lines have between texts.
const space = " \t\r\n\v\f"

// skipSpace goes to the next text.
func (r *Reader) skipSpace() error {
	if r.at > cap(r.buf)/2 {
		r.buf = r.buf[:copy(r.buf, r.buf[r.at:])]
		r.at = 0
	}
	for blank := 0; ; {
		rest := r.buf[r.at:]
		n := len(rest) - len(bytes.TrimLeft(rest, space))
		r.consume(r.at + n)
		if blank += n; blank > r.MaxBytes {
			r.line = r.lines + 1
			return ErrBlank
		}
		if n < len(rest) {
			r.line = r.lines + 1
			return nil
		}
		r.buf, r.at = r.buf[:0], 0
		if err := r.fill(); err != nil {
			r.line = r.lines + 1
			return err
		}
	}
}

// consume marks the text before end as done with.
func (r *Reader) consume(end int) {
	if n := bytes.Count(r.buf[r.at:end], []byte{'\n'}); n > 0 {
		r.lines += n
		r.inside = false
	}
	r.at = end
}

// fill reads on, to the end of the line at most.
func (r *Reader) fill() error {
	if len(r.buf)-r.at > r.MaxBytes {
		return ErrTooLong
	}
	part, err := r.Text.ReadSlice('\n')
	r.buf = append(r.buf, part...)
	if errors.Is(err, bufio.ErrBufferFull) || errors.Is(err, io.EOF) && len(part) > 0 {
		return nil
	}
	return err
}

// lineEnd reads the line to its end, and returns where that is in buf.
func (r *Reader) lineEnd() (int, error) {
	for from := r.at; ; {
		if i := bytes.IndexByte(r.buf[from:], '\n'); i >= 0 {
			return r.within(from + i + 1)
		}
		from = len(r.buf)
		switch err := r.fill(); {
		case errors.Is(err, io.EOF):
			return r.within(len(r.buf))
		case err != nil:
			return 0, err
		}
	}
}

// within returns the end of a text in buf. Error: ErrTooLong.
func (r *Reader) within(end int) (int, error) {
	if end-r.at > r.MaxBytes {
		return 0, ErrTooLong
	}
	return end, nil
}

// objectEnd returns where the object at hand ends in buf; 0 if no JSON object that can be of
// an item begins there. It reads on as far as the text is JSON.
func (r *Reader) objectEnd() (int, error) {
	if r.buf[r.at] != '{' {
		return 0, nil
	}
	in := &ahead{r: r, at: r.at}
	r.tokens.Reset(in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		_, err := r.tokens.ReadToken()
		switch {
		case in.failed != nil:
			return 0, in.failed
		case err != nil, r.tokens.StackDepth() > maxDepth:
			return 0, nil //nolint:nilerr // whoever parses the line says what is wrong with it
		case r.tokens.StackDepth() == 0:
			return r.within(r.at + int(r.tokens.InputOffset()))
		}
	}
}

// ahead reads the text from at on, and keeps it.
type ahead struct {
	r      *Reader
	at     int
	failed error // of reading
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	if a.at == len(a.r.buf) {
		if err := a.r.fill(); err != nil {
			if !errors.Is(err, io.EOF) {
				a.failed = err
			}
			return 0, err
		}
	}
	n := copy(p, a.r.buf[a.at:])
	a.at += n
	return n, nil
}
