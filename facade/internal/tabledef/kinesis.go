package tabledef

import (
	"slices"
	"time"
)

// Final statuses of Kinesis destinations, in DynamoDB's words.
const (
	KinesisEnabling = "ENABLING"
	KinesisActive   = "ACTIVE"
	KinesisDisabled = "DISABLED"
	KinesisFailed   = "ENABLE_FAILED"
)

// KinesisDestination is a current or former Kinesis data stream for the changes of a table.
type KinesisDestination struct {
	StreamARN string `json:"streamARN"`
	// Precision is the precision of the times in records. It is "" if it was never set.
	Precision string `json:"precision,omitempty"`
	State     string `json:"state"` // KinesisActive, KinesisDisabled or KinesisFailed
	// Unseen means that it is not yet known whether the stream exists.
	Unseen bool `json:"unseen,omitempty"`
	// Transition temporarily overrides State.
	Transition Transition `json:"transition,omitzero"`
	// From is the sequence number of the stream's first change. The store sets it. Until
	// is the number before which the stream ends, and Ended is the time at which it
	// ended; both are zero while the destination is live.
	From  uint64    `json:"from"`
	Until uint64    `json:"until,omitempty"`
	Ended time.Time `json:"ended,omitzero"`
}

// Live reports whether the destination receives changes.
func (d KinesisDestination) Live() bool { return d.State == KinesisActive }

// KinesisDestination returns the destination with the given stream ARN, or nil.
func (t *Table) KinesisDestination(arn string) *KinesisDestination {
	for i := range t.Kinesis {
		if t.Kinesis[i].StreamARN == arn {
			return &t.Kinesis[i]
		}
	}
	return nil
}

// HasLog reports whether streams or Kinesis destinations may still read the log of the
// table at a time.
func (t *Table) HasLog(now time.Time) bool {
	return slices.ContainsFunc(t.Streams, func(s Stream) bool { return !s.IsGone(now) }) ||
		slices.ContainsFunc(t.Kinesis, func(d KinesisDestination) bool {
			return d.Live() || !d.Ended.IsZero() && now.Before(d.Ended.Add(StreamRetention))
		})
}
