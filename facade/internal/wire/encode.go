package wire

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

// answerOptions make answers reproducible by sorting the members of maps.
var answerOptions = json.JoinOptions(json.Deterministic(true), jsontext.EscapeForHTML(false))

// Encode returns a response, or a part of one, as JSON.
func Encode(out any) ([]byte, error) {
	if items, ok := out.(Answer); ok {
		var w Writer
		items.WriteJSON(&w)
		return w.end()
	}
	return json.Marshal(out, answerOptions)
}

// Answer is a response that may contain many items. It writes its JSON itself. The result
// equals that of json.Marshal, which would validate and copy the text of each item again.
type Answer interface{ WriteJSON(w *Writer) }

// Writer writes the members of a response in order.
type Writer struct {
	json []byte
	err  error // of the first member that failed
}

// member begins a member.
func (w *Writer) member(name string) {
	sep := byte(',')
	if len(w.json) == 0 {
		sep = '{'
	}
	w.json = append(append(append(w.json, sep, '"'), name...), '"', ':')
}

// Begin starts a response in reused memory.
func (w *Writer) Begin(memory []byte) { w.json = memory }

// Reserve starts a response with room for its items, which have about the given number of bytes.
// Call it before any member is written.
func (w *Writer) Reserve(bytes int) {
	const rest = 64 // for the other members
	w.json = make([]byte, 0, bytes+rest)
}

// BeginList starts a member that is a list of items. Element writes the items.
func (w *Writer) BeginList(name string) {
	w.member(name)
	w.json = append(w.json, '[')
}

// Element appends one item to the list by calling appendJSON, and returns the sizes of
// the item.
func (w *Writer) Element(appendJSON func(dst []byte) (json []byte, sizes attr.Sizes, err error)) (sizes attr.Sizes, err error) {
	if w.json[len(w.json)-1] != '[' {
		w.json = append(w.json, ',')
	}
	w.json, sizes, err = appendJSON(w.json)
	return sizes, err
}

// EndList ends the list that BeginList started.
func (w *Writer) EndList() { w.json = append(w.json, ']') }

// Item writes a member that is an item, unless the item is absent.
func (w *Writer) Item(name string, item *Item) {
	if item == nil {
		return
	}
	w.member(name)
	w.json = attr.AppendItemJSON(w.json, item.Item)
}

// Number writes a member that is a number.
func (w *Writer) Number(name string, n int) {
	w.member(name)
	w.json = strconv.AppendInt(w.json, int64(n), 10)
}

// Optional writes a member of any other type, unless it is absent.
func Optional[T any](w *Writer, name string, value *T) {
	if value == nil || w.err != nil {
		return
	}
	text, err := json.Marshal(value, answerOptions)
	if err != nil {
		w.err = err
		return
	}
	w.member(name)
	w.json = append(w.json, text...)
}

// end returns the JSON of the answer.
func (w *Writer) end() ([]byte, error) {
	if len(w.json) == 0 {
		w.json = append(w.json, '{')
	}
	return append(w.json, '}'), w.err
}
