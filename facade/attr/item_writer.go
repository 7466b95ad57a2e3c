package attr

// ItemWriter writes the JSON of an item, which is that of AppendItemJSON, attribute
// by attribute in the order of their names. The zero ItemWriter, or one with
// JSON to append to, begins an item.
type ItemWriter struct {
	JSON []byte
	// SizeBytes is Item.Size of what was added.
	SizeBytes int

	begun bool
}

// Add adds an attribute.
func (w *ItemWriter) Add(name string, v Value) {
	addName(w, name)
	w.JSON = AppendJSON(w.JSON, v)
	w.SizeBytes += v.Size()
}

// AddCell adds an attribute of type S, whose text is UTF-8, or of type B.
func (w *ItemWriter) AddCell(name []byte, t Type, content []byte) {
	addName(w, name)
	w.JSON = append(append(append(w.JSON, '{', '"'), t.String()...), '"', ':')
	w.JSON = append(appendMember(w.JSON, t, content), '}')
	w.SizeBytes += len(content)
}

func addName[T text](w *ItemWriter, name T) {
	sep := byte(',')
	if !w.begun {
		sep, w.begun = '{', true
	}
	w.JSON = append(appendText(append(w.JSON, sep), name), ':')
	w.SizeBytes += len(name)
}

// End ends the item.
func (w *ItemWriter) End() {
	if !w.begun {
		w.JSON = append(w.JSON, '{')
	}
	w.JSON = append(w.JSON, '}')
}
