package store

// Progress says how far work is that goes over all items of a table.
type Progress struct {
	Table string // of DynamoDB
	Phase string // "filling index GSI1", "filling due times", "comparing with the mapping"
	Items int64  // that were looked at
	Done  bool   // the work has ended
	Err   error  // and why it has ended before it was done
}

// progressEvery is how many items lie between two times that it is told.
const progressEvery = 1000

// Teller tells of work on a table.
type Teller struct {
	Progress
	tell func(Progress)
}

// TellProgress begins to report work on a table to tell, if that is not nil. The caller calls End.
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
