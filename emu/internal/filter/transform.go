package filter

// maxLabelBytes is the maximum length of a label: [a-z0-9\-]{1,15}
// (data.proto). It is part of the grammar, so that it applies without limits
// too.
const maxLabelBytes = 15

// strip implements strip_value_transformer, which empties values.
type strip struct{ leaf }

func (strip) link(_ *linker, next stage) stage { return &stripStage{next: next} }

type stripStage struct {
	next stage
	cell Cell
}

func (s *stripStage) push(r *run, c *Cell) hint {
	s.cell = *c
	s.cell.Value = nil
	return s.next.push(r, &s.cell)
}

// label implements apply_label_transformer.
type label struct {
	leaf
	text string
}

func decodeLabel(text string, at place) (node, error) {
	ok := text != "" && len(text) <= maxLabelBytes
	for i := range len(text) {
		c := text[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	}
	if !ok {
		return nil, at.errorf(`%q is not a label; expected [a-z0-9\-]{1,15}`, text)
	}
	return label{text: text}, nil
}

func (label) hasLabel() bool { return true }

func (n label) link(_ *linker, next stage) stage { return &labelStage{text: n.text, next: next} }

type labelStage struct {
	text string
	next stage
	cell Cell
}

func (s *labelStage) push(r *run, c *Cell) hint {
	s.cell = *c
	s.cell.Label = s.text
	return s.next.push(r, &s.cell)
}
