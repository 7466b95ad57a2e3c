package tabledef

import (
	"slices"
	"time"
)

// What a Kinesis destination comes to, in DynamoDB's words.
const (
	KinesisEnabling = "ENABLING"
	KinesisActive   = "ACTIVE"
	KinesisDisabled = "DISABLED"
	KinesisFailed   = "ENABLE_FAILED"
)

// KinesisDestination is a Kinesis data stream that gets the changes of a table, or got
// them.
type KinesisDestination struct {
	StreamARN string `json:"streamARN"`
	// Precision is that of the records' times, "" where it was never set.
	Precision string `json:"precision,omitempty"`
	State     string `json:"state"` // KinesisActive, …
	// Unseen says that it is still to be found out whether there is such a stream.
	Unseen bool `json:"unseen,omitempty"`
	// Transition is what State looks like for a while.
	Transition Transition `json:"transition,omitzero"`
	// From is the sequence number of the first change that the stream gets, set by the
	// store; Until the one that it ends before, and Ended when that was: 0 while it is
	// live.
	From  uint64    `json:"from"`
	Until uint64    `json:"until,omitempty"`
	Ended time.Time `json:"ended,omitzero"`
}

// Live reports whether a destination is to get changes.
func (d KinesisDestination) Live() bool { return d.State == KinesisActive }

// KinesisDestination returns that of a stream, or nil.
func (t *Table) KinesisDestination(arn string) *KinesisDestination {
	for i := range t.Kinesis {
		if t.Kinesis[i].StreamARN == arn {
			return &t.Kinesis[i]
		}
	}
	return nil
}

// HasLog reports whether anybody may still read the log of a table at a time: its
// streams, or where changes are delivered to.
func (t *Table) HasLog(now time.Time) bool {
	return slices.ContainsFunc(t.Streams, func(s Stream) bool { return !s.IsGone(now) }) ||
		slices.ContainsFunc(t.Kinesis, func(d KinesisDestination) bool {
			return d.Live() || !d.Ended.IsZero() && now.Before(d.Ended.Add(StreamRetention))
		})
}
