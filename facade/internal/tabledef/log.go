package tabledef

import "time"

// ReasonStream is the reason of a log that a stream is read from.
const ReasonStream = "stream"

// StreamRetention is how long a record of a stream can be read, and a stream that
// has ended.
const StreamRetention = 24 * time.Hour

// Log is the change log of a table. It is on while there is a reason for it.
type Log struct {
	Table   string   `json:"table"` // Bigtable table
	Reasons []string `json:"reasons,omitempty"`
	Shards  Shards   `json:"shards"`
	// View is that of the stream: what is kept of items.
	View string `json:"view,omitempty"`
}

// On reports whether writes are recorded.
func (l *Log) On() bool { return l != nil && len(l.Reasons) > 0 }

// Shards says where records lie: in slots by their partition key, the number of which
// can change from one generation to the next.
type Shards struct {
	Since    uint64        `json:"since"`    // sequence number at which generation 0 begins: whole milliseconds
	Rotation time.Duration `json:"rotation"` // of a generation: whole milliseconds
	Slots    []int         `json:"slots"`    // of each generation, the last for all that follow; each a multiple of the one before
}

// Generation returns that of a sequence number.
func (s Shards) Generation(sequence uint64) uint64 {
	if sequence < s.Since {
		return 0
	}
	return (sequence - s.Since) / uint64(s.Rotation)
}

// Begin returns the first sequence number of a generation.
func (s Shards) Begin(generation uint64) uint64 { return s.Since + generation*uint64(s.Rotation) }

// SlotsOf returns how many slots a generation has.
func (s Shards) SlotsOf(generation uint64) int {
	return s.Slots[min(generation, uint64(len(s.Slots)-1))]
}

// Stream is a part of a table's log that clients may read.
type Stream struct {
	Label  string `json:"label"`
	View   string `json:"view"` // StreamViewType
	Shards Shards `json:"shards"`
	// Until is the sequence number that the stream ends before, and Ended when that
	// was; 0 for one that goes on.
	Until uint64    `json:"until,omitempty"`
	Ended time.Time `json:"ended,omitzero"`
}

// Stream returns the stream of a label, or nil if there is none that is known at a time.
func (t *Table) Stream(label string, now time.Time) *Stream {
	for i := range t.Streams {
		if s := &t.Streams[i]; s.Label == label && !s.IsGone(now) {
			return s
		}
	}
	return nil
}

// IsGone reports whether a stream has ended so long ago that nobody knows it any more.
func (s *Stream) IsGone(now time.Time) bool {
	return s.Until != 0 && !now.Before(s.Ended.Add(StreamRetention))
}

// StreamLabel is the time of a stream's beginning as its label.
func StreamLabel(since uint64) string {
	return time.Unix(0, int64(since)).UTC().Format("2006-01-02T15:04:05.000")
}

// AfterStreams returns a sequence number, or the first whole millisecond after all
// streams of some tables if that is later.
func AfterStreams(at uint64, tables []*Table) uint64 {
	for _, t := range tables {
		for _, s := range t.Streams {
			const milli = uint64(time.Millisecond)
			at = max(at, (s.Until+milli-1)/milli*milli)
		}
	}
	return at
}
