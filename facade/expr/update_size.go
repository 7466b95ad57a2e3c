package expr

import "strconv"

// These are the bytes that DynamoDB counts for an update, in addition to its names and values.
// They were measured on the service in 2026.
const (
	updateBytes      = 3
	writeBytes       = 19 // a clause of SET or ADD
	clearBytes       = 1  // a clause of REMOVE or DELETE
	stepBytes        = 4  // a step of a target after its first
	readBytes        = 1  // a path in an operand
	readStepBytes    = 14 // each of its steps
	ifNotExistsBytes = 39
	listAppendBytes  = 37
	additionBytes    = 34
	subtractionBytes = 37
)

// Size returns the size of the update itself, in bytes. It is the size of the names and
// values plus a cost for each action, and does not depend on the item.
func (u *Update) Size() int {
	size := updateBytes
	for _, c := range u.clauses {
		size += c.target.path.targetSize()
		switch c.section {
		case sectionSet, sectionAdd:
			size += writeBytes + c.value.size()
		case sectionRemove, sectionDelete:
			size += clearBytes
		}
	}
	return size
}

func (o *operand) size() int {
	switch o.form {
	case valueOperand:
		return o.value.Size()
	case pathOperand:
		size := readBytes
		for _, s := range o.path {
			size += readStepBytes + s.size()
		}
		return size
	case callOperand:
	}
	size := callBytes[o.text]
	for _, arg := range o.args {
		size += arg.size()
	}
	return size
}

// callBytes holds the cost of each function and operator of updates.
var callBytes = map[string]int{
	fnIfNotExists: ifNotExistsBytes, fnListAppend: listAppendBytes, fnPlus: additionBytes, fnMinus: subtractionBytes,
}

func (p Path) targetSize() int {
	size := p[0].size()
	for _, s := range p[1:] {
		size += stepBytes + s.size()
	}
	return size
}

func (s Step) size() int {
	if s.IsIndex {
		return len(strconv.Itoa(s.Index))
	}
	return len(s.Name)
}
