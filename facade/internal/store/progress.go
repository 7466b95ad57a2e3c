package store

// Progress is the progress of work on all items of a table.
type Progress struct {
	Table string // DynamoDB table
	Phase string // "filling index GSI1", "filling due times", "comparing with the mapping"
	Items int64  // read so far
	Done  bool   // the work has ended
	Err   error  // why it ended early
}

// progressEvery is the number of items between reports.
const progressEvery = 1000

// Reporter reports the progress of work on a table.
type Reporter struct {
	Progress
	report func(Progress)
}

// NewReporter reports the start of work on a table. report may be nil. The caller calls End.
func NewReporter(table, phase string, report func(Progress)) *Reporter {
	r := &Reporter{Progress{Table: table, Phase: phase}, report}
	r.send()
	return r
}

func (r *Reporter) send() {
	if r.report != nil {
		r.report(r.Progress)
	}
}

// Item counts an item.
func (r *Reporter) Item() {
	if r.Items++; r.Items%progressEvery == 0 {
		r.send()
	}
}

// End reports the end of the work. Callers defer it, with the address of their error.
func (r *Reporter) End(err *error) {
	r.Done, r.Err = true, *err
	r.send()
}
