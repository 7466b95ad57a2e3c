package attr

// ItemWriter writes the JSON of an item one attribute at a time. If the attributes are added
// in ascending order of their names, the result is that of AppendItemJSON. The zero
// ItemWriter begins an item. To append to existing bytes, set JSON first.
type ItemWriter struct {
	JSON []byte
	// Sizes are the sizes of an item with the attributes added so far.
	Sizes Sizes

	begun bool
}

// Add adds an attribute to the item.
func (w *ItemWriter) Add(name string, v Value) {
	addName(w, name)
	w.JSON = AppendJSON(w.JSON, v)
	w.Sizes.add(len(name), v.Size(), v.Type, len(v.Set))
}

// AddCell adds an attribute of type S or B with the given bytes. The bytes of an S must
// be UTF-8.
func (w *ItemWriter) AddCell(name []byte, t Type, content []byte) {
	addName(w, name)
	w.JSON = append(append(append(w.JSON, '{', '"'), t.String()...), '"', ':')
	w.JSON = append(appendMember(w.JSON, t, content), '}')
	w.Sizes.add(len(name), len(content), t, 0)
}

func addName[T text](w *ItemWriter, name T) {
	sep := byte(',')
	if !w.begun {
		sep, w.begun = '{', true
	}
	w.JSON = append(appendText(append(w.JSON, sep), name), ':')
}

// End completes the JSON of the item.
func (w *ItemWriter) End() {
	if !w.begun {
		w.JSON = append(w.JSON, '{')
	}
	w.JSON = append(w.JSON, '}')
}
