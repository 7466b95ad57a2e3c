package store

// Progress is the progress of background work on all items of a table.
type Progress struct {
	Table string // name of the DynamoDB table
	Phase string // such as "filling index GSI1", "filling due times", "comparing with the mapping"
	Items int64  // number of items read so far
	Done  bool   // whether the work has ended
	Err   error  // reason why the work ended early
}

// progressEvery is the number of items between two reports.
const progressEvery = 1000

// Reporter reports the progress of work on a table.
type Reporter struct {
	Progress
	report func(Progress)
}

// NewReporter returns a Reporter for work on a table, and reports that the work starts.
// report may be nil. The caller must call End.
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

// Item counts one item.
func (r *Reporter) Item() {
	if r.Items++; r.Items%progressEvery == 0 {
		r.send()
	}
}

// End reports that the work has ended. Callers defer it, with the address of their error.
func (r *Reporter) End(err *error) {
	r.Done, r.Err = true, *err
	r.send()
}
