package source

import (
	"bufio"
	"bytes"

	"github.com/tabletop-emu/tabletop/internal/iontext"
)

// ionVersion begins each line of a file in Ion text.
const ionVersion = "$ion_1_0"

// formatIon is the format of a source in Ion text.
const formatIon = "ion-text"

// convertedLines converts a text of one item per line to JSON with the same line numbers. An
// invalid line is passed on unchanged, so that it fails as JSON.
type convertedLines struct {
	from       *bufio.Reader
	convert    func(dst, line []byte) ([]byte, error) // appends the JSON of a line
	line, json []byte
	left       []byte // the unread part of json
}

// Read implements io.Reader. It fails with errTooLong if a line is longer than an item.
func (r *convertedLines) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

func (r *convertedLines) next() (err error) {
	if r.line, err = appendLine(r.line[:0], r.from); err != nil {
		return err
	}
	r.left = r.line
	if text := bytes.TrimSpace(r.line); len(text) > 0 {
		if out, err := r.convert(r.json[:0], text); err == nil {
			r.json = append(out, '\n')
			r.left = r.json
		}
	}
	return nil
}

// ionError returns the parse error of a line that begins with the version marker of Ion. It
// returns nil for valid Ion and for other text.
func ionError(text []byte) error {
	if !bytes.HasPrefix(text, []byte(ionVersion)) {
		return nil
	}
	_, err := iontext.AppendJSON(nil, text)
	return err
}
