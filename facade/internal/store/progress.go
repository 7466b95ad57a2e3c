package store

// Progress says how far work is that goes over all items of a table.
type Progress struct {
	Table string // of DynamoDB
	Phase string // "filling index GSI1", "filling due times", "comparing with the mapping"
	Items int64  // that were looked at
	Done  bool   // the work has ended
	Err   error  // and why it has ended before it was done
}

// progressEvery is how many items lie between two calls of Options.Progress.
const progressEvery = 1000

// teller tells of work on a table.
type teller struct {
	Progress
	tell func(Progress)
}

// telling begins to tell of work; end is to follow.
func (in *instance) telling(table, phase string) *teller {
	t := &teller{Progress{Table: table, Phase: phase}, in.o.Progress}
	t.say()
	return t
}

func (t *teller) say() {
	if t.tell != nil {
		t.tell(t.Progress)
	}
}

// item counts one.
func (t *teller) item() {
	if t.Items++; t.Items%progressEvery == 0 {
		t.say()
	}
}

// end is to be deferred, with the address of the error of the work.
func (t *teller) end(err *error) {
	t.Done, t.Err = true, *err
	t.say()
}
