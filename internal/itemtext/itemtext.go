// Package itemtext splits files of DynamoDB items into the texts of the items. The texts are
// consecutive JSON objects, as ImportTable accepts them, or lines. A line may contain several
// objects, and an object may span several lines. Source: developer guide, "S3 import formats for
// DynamoDB".
//
// The longest text bounds the memory. After a damaged object, reading continues on the line after
// the object's first line. The package does not parse items.
package itemtext

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// These are the errors for a text of more than Reader.MaxBytes, and for more blank space than
// that before a text.
var (
	ErrTooLong = errors.New("the text of an item is too long")
	ErrBlank   = errors.New("too much space before an item")
)

// maxDepth is more than the nesting of any item in JSON: DynamoDB allows 32 levels of two
// objects each, inside an object with a few more.
const maxDepth = 80

// Reader reads the texts of a file. Text and MaxBytes must be set. It is not safe for concurrent
// use.
type Reader struct {
	Text     *bufio.Reader
	MaxBytes int // maximum size of a text, and of the space before it

	buf    []byte // a piece of Text; the bytes before at are consumed
	at     int
	lines  int  // line ends before at
	line   int  // of the last returned text
	inside bool // at is after an object, on its line
	tokens jsontext.Decoder
}

// Line returns the 1-based number of the line on which the last text begins.
func (r *Reader) Line() int { return r.line }

// Next returns the next line that is not blank, without surrounding space. The result is valid
// until the next call. Errors: io.EOF, ErrTooLong, ErrBlank, and those of Text.
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

// Item passes the text of the next item to parse. It first tries the whole line, and if that fails
// the object at the beginning of the line, unless the object ends with the line. It returns the
// error of parse; the next call then continues after the object or, if none was found, on the next
// line. Other errors are those of Next, after which nothing more can be read.
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
	if r.inside || tooLong != nil { // the rest of the line is not an object
		if end, err = r.lineEnd(); err != nil {
			return err
		}
		failed = parse(bytes.TrimSpace(r.buf[r.at:end]))
	}
	r.consume(end)
	return failed
}

// space has the separators of JSON texts and lines.
const space = " \t\r\n\v\f"

// skipSpace moves to the next text.
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

// consume marks the text before end as consumed.
func (r *Reader) consume(end int) {
	if n := bytes.Count(r.buf[r.at:end], []byte{'\n'}); n > 0 {
		r.lines += n
		r.inside = false
	}
	r.at = end
}

// fill reads more text, at most to the end of the line.
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

// lineEnd reads the line to its end, and returns the end's index in buf.
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

// within returns end, the end of a text in buf, or ErrTooLong if the text exceeds MaxBytes.
func (r *Reader) within(end int) (int, error) {
	if end-r.at > r.MaxBytes {
		return 0, ErrTooLong
	}
	return end, nil
}

// objectEnd returns the end of the current object in buf, or 0 if no JSON object begins there
// that can be an item. It reads more text only while the text is JSON.
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

// ahead reads the text from at on, and keeps it in the buffer.
type ahead struct {
	r      *Reader
	at     int
	failed error // error of the source
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
