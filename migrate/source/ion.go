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

// ionLines reads Ion text, one item a line, as DynamoDB JSON with the same lines. A line
// that is not Ion's text of an item comes as it is, and is no JSON.
type ionLines struct {
	from       *bufio.Reader
	line, json []byte
	left       []byte // of json
}

// Read implements io.Reader. It fails with errTooLong where a line is longer than an item.
func (r *ionLines) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

func (r *ionLines) next() (err error) {
	if r.line, err = appendLine(r.line[:0], r.from); err != nil {
		return err
	}
	r.left = r.line
	if text := bytes.TrimSpace(r.line); len(text) > 0 {
		if out, err := iontext.AppendJSON(r.json[:0], text); err == nil {
			r.json = append(out, '\n')
			r.left = r.json
		}
	}
	return nil
}

// ionError returns what is wrong with a text that is a line of Ion text; nil for another.
func ionError(text []byte) error {
	if !bytes.HasPrefix(text, []byte(ionVersion)) {
		return nil
	}
	_, err := iontext.AppendJSON(nil, text)
	return err
}
