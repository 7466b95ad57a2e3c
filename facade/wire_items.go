package facade

import (
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/tabletop-emu/tabletop/facade/attr"
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

// itemJSONBytes is about the size of an item's JSON.
func itemJSONBytes(item attr.Item) int {
	const overhead = 16 // of an attribute, besides its name and value
	return item.Size() + overhead*(1+len(item))
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
		w.reserve(itemJSONBytes(out.Item.Item))
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
	if out.Items != nil {
		size := 0
		for i := range out.Items {
			size += itemJSONBytes(out.Items[i].Item)
		}
		w.reserve(size)
		w.member("Items")
		w.json = append(w.json, '[')
		for i := range out.Items {
			if i > 0 {
				w.json = append(w.json, ',')
			}
			w.json = attr.AppendItemJSON(w.json, out.Items[i].Item)
		}
		w.json = append(w.json, ']')
	}
	w.number("Count", out.Count)
	w.number("ScannedCount", out.ScannedCount)
	w.item("LastEvaluatedKey", out.LastEvaluatedKey)
	other(w, "ConsumedCapacity", out.ConsumedCapacity)
}
