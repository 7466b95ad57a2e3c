package testkit

import "time"

// Delivered returns the records up to a time in the order in which streams delivered
// them.
func (r *ChangeReader) Delivered(until time.Time) ([]Change, error) {
	ctx := probe(r.tb.Context())
	from, err := r.begin(ctx)
	if err != nil {
		return nil, err
	}
	return r.readUntil(ctx, from, until)
}
