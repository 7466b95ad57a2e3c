package facade

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// itemsAnswer is an answer whose items can be many: it writes its own JSON,
// the same that json.Marshal would make of it, which would check the text of
// each item again and copy it.
type itemsAnswer interface{ writeJSON(w *answerWriter) }

// answerWriter writes the members of an answer, in their order.
type answerWriter struct {
	json []byte
	err  error // of the first member that could not be written
}

// member begins a member.
func (w *answerWriter) member(name string) {
	sep := byte(',')
	if len(w.json) == 0 {
		sep = '{'
	}
	w.json = append(append(append(w.json, sep, '"'), name...), '"', ':')
}

// reserve makes room for an item, or several.
func (w *answerWriter) reserve(bytes int) {
	const rest = 64 // for the other members
	w.json = make([]byte, 0, bytes+rest)
}

// beginList begins a member that is a list of items, written one by one.
func (w *answerWriter) beginList(name string) {
	w.member(name)
	w.json = append(w.json, '[')
}

// element writes an item of a list, and returns its size.
func (w *answerWriter) element(item layout.Stored) (sizeBytes int, err error) {
	if w.json[len(w.json)-1] != '[' {
		w.json = append(w.json, ',')
	}
	w.json, sizeBytes, err = item.AppendJSON(w.json)
	return sizeBytes, err
}

func (w *answerWriter) endList() { w.json = append(w.json, ']') }

// pageMemory is the memory of answers that were written, in which others are
// made: those of a page of items are the largest of what a request takes.
type pageMemory struct{ pool sync.Pool }

// What is kept of answers. Few pages are larger than 1 MB, and those may be much.
const (
	leastPageMemory = 16 << 10
	mostPageMemory  = 2 << 20
)

func (m *pageMemory) take() []byte {
	if b, ok := m.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, leastPageMemory)
}

// detached is an answer that its caller may keep: b, or a copy where the memory
// of b is for other pages.
func (m *pageMemory) detached(b []byte) []byte {
	if cap(b) < leastPageMemory || cap(b) > mostPageMemory {
		return b
	}
	defer m.giveBack(b)
	return bytes.Clone(b)
}

// giveBack takes an answer that nobody has any more.
func (m *pageMemory) giveBack(b []byte) {
	if cap(b) >= leastPageMemory && cap(b) <= mostPageMemory {
		kept := b // not b itself, which would be on the heap for every answer
		m.pool.Put(&kept)
	}
}

// item writes a member that is an item, unless it is absent.
func (w *answerWriter) item(name string, item *wireItem) {
	if item == nil {
		return
	}
	w.member(name)
	w.json = attr.AppendItemJSON(w.json, item.Item)
}

// number writes a member that is a number.
func (w *answerWriter) number(name string, n int) {
	w.member(name)
	w.json = strconv.AppendInt(w.json, int64(n), 10)
}

// other writes any other member, unless it is absent.
func other[T any](w *answerWriter, name string, value *T) {
	if value == nil || w.err != nil {
		return
	}
	text, err := json.Marshal(value, responseOptions)
	if err != nil {
		w.err = err
		return
	}
	w.member(name)
	w.json = append(w.json, text...)
}

// end returns the JSON of the answer.
func (w *answerWriter) end() ([]byte, error) {
	if len(w.json) == 0 {
		w.json = append(w.json, '{')
	}
	return append(w.json, '}'), w.err
}

func (out *getItemOutput) writeJSON(w *answerWriter) {
	if out.Item != nil {
		w.reserve(out.Item.Item.JSONSize())
	}
	w.item("Item", out.Item)
	other(w, "ConsumedCapacity", out.ConsumedCapacity)
}

func (out *writeItemOutput) writeJSON(w *answerWriter) {
	w.item("Attributes", out.Attributes)
	other(w, "ConsumedCapacity", out.ConsumedCapacity)
	other(w, "ItemCollectionMetrics", out.ItemCollectionMetrics)
}

func (out *readOutput) writeJSON(w *answerWriter) {
	*w = out.begun
	w.number("Count", out.Count)
	w.number("ScannedCount", out.ScannedCount)
	w.item("LastEvaluatedKey", out.LastEvaluatedKey)
	other(w, "ConsumedCapacity", out.ConsumedCapacity)
}
