package store

// Progress is the state of work over all items of a table.
type Progress struct {
	Table string // DynamoDB table
	Phase string // "filling index GSI1", "filling due times", "comparing with the mapping"
	Items int64  // examined so far
	Done  bool   // the work has ended
	Err   error  // why it ended early
}

// progressEvery is the number of items between two reports.
const progressEvery = 1000

// Teller reports work on a table.
type Teller struct {
	Progress
	tell func(Progress)
}

// TellProgress starts to report work on a table to tell, which may be nil. The caller calls
// End.
func TellProgress(table, phase string, tell func(Progress)) *Teller {
	t := &Teller{Progress{Table: table, Phase: phase}, tell}
	t.say()
	return t
}

func (t *Teller) say() {
	if t.tell != nil {
		t.tell(t.Progress)
	}
}

// Item counts an item.
func (t *Teller) Item() {
	if t.Items++; t.Items%progressEvery == 0 {
		t.say()
	}
}

// End reports the end of the work. Callers defer it, with the address of their error.
func (t *Teller) End(err *error) {
	t.Done, t.Err = true, *err
	t.say()
}
