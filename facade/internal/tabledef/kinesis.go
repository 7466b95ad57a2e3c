package tabledef

import (
	"slices"
	"time"
)

// The final statuses of Kinesis destinations, in DynamoDB's words.
const (
	KinesisEnabling = "ENABLING"
	KinesisActive   = "ACTIVE"
	KinesisDisabled = "DISABLED"
	KinesisFailed   = "ENABLE_FAILED"
)

// KinesisDestination is a current or former Kinesis data stream for the changes of a table.
type KinesisDestination struct {
	StreamARN string `json:"streamARN"`
	// Precision is the precision of times in records; "" if it was never set.
	Precision string `json:"precision,omitempty"`
	State     string `json:"state"` // KinesisActive, …
	// Unseen: whether the stream exists is not known yet.
	Unseen bool `json:"unseen,omitempty"`
	// Transition overrides State for a while.
	Transition Transition `json:"transition,omitzero"`
	// From is the sequence number of the stream's first change, set by the store. Until is
	// the number before which the stream ends, and Ended the time when it ended; both are 0
	// while it is live.
	From  uint64    `json:"from"`
	Until uint64    `json:"until,omitempty"`
	Ended time.Time `json:"ended,omitzero"`
}

// Live reports whether a destination should receive changes.
func (d KinesisDestination) Live() bool { return d.State == KinesisActive }

// KinesisDestination returns the destination for a stream, or nil.
func (t *Table) KinesisDestination(arn string) *KinesisDestination {
	for i := range t.Kinesis {
		if t.Kinesis[i].StreamARN == arn {
			return &t.Kinesis[i]
		}
	}
	return nil
}

// HasLog reports whether the log of a table may still have readers at a time: streams or
// Kinesis destinations.
func (t *Table) HasLog(now time.Time) bool {
	return slices.ContainsFunc(t.Streams, func(s Stream) bool { return !s.IsGone(now) }) ||
		slices.ContainsFunc(t.Kinesis, func(d KinesisDestination) bool {
			return d.Live() || !d.Ended.IsZero() && now.Before(d.Ended.Add(StreamRetention))
		})
}
