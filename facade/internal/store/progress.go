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

// TellProgress begins to tell of work on a table, if tell is not nil; End is to follow.
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

// Item counts one.
func (t *Teller) Item() {
	if t.Items++; t.Items%progressEvery == 0 {
		t.say()
	}
}

// End is to be deferred, with the address of the error of the work.
func (t *Teller) End(err *error) {
	t.Done, t.Err = true, *err
	t.say()
}
