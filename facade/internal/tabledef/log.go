package tabledef

import (
	"cmp"
	"slices"
	"time"
)

// The reasons of a log.
const (
	ReasonStream   = "stream"   // a stream reads it
	ReasonKinesis  = "kinesis"  // a Kinesis data stream receives the changes
	ReasonRecovery = "recovery" // the table can be restored to any time of a period
	ReasonCopy     = "copy"     // jobs copy a past state of the table
)

// bothImages is the view of a log with other reasons than a stream.
const bothImages = "NEW_AND_OLD_IMAGES"

// LogReasons returns the table's reasons for a log, and the images that records need, as a
// stream's view.
func (t *Table) LogReasons() (reasons []string, view string) {
	if t.StreamEnabled {
		reasons, view = append(reasons, ReasonStream), t.StreamView
	}
	if slices.ContainsFunc(t.Kinesis, KinesisDestination.Live) {
		reasons, view = append(reasons, ReasonKinesis), bothImages
	}
	if t.Recovery.On() {
		reasons, view = append(reasons, ReasonRecovery), bothImages
	}
	if len(t.Copies) > 0 {
		reasons, view = append(reasons, ReasonCopy), bothImages
	}
	return reasons, view
}

// Recovery has the times to which a table can be restored; nil: none.
type Recovery struct {
	Since time.Time `json:"since"`
	Days  int       `json:"days"` // length of the period before now
}

// MaxRecoveryDays is the maximum recovery period.
const MaxRecoveryDays = 35

// On reports whether a table can be restored.
func (r *Recovery) On() bool { return r != nil }

// Earliest returns the first time to which a table can be restored.
func (r *Recovery) Earliest(now time.Time) time.Time {
	if at := now.AddDate(0, 0, -r.Days); at.After(r.Since) {
		return at
	}
	return r.Since
}

// StreamRetention is how long the records of a stream are readable, and a stream exists after
// its end, unless the stream has its own retention.
const StreamRetention = 24 * time.Hour

// Log is the change log of a table. It is on while it has a reason.
type Log struct {
	Table   string   `json:"table"` // Bigtable table
	Reasons []string `json:"reasons,omitempty"`
	Shards  Shards   `json:"shards"`
	// View is the kind of recorded images, as a stream's view.
	View string `json:"view,omitempty"`
	// Images is the sequence number from which on all records have both images; 0: they do
	// not.
	Images uint64 `json:"images,omitempty"`
	// MostSlots is the largest number of slots ever.
	MostSlots int `json:"mostSlots,omitempty"`
	// Retention is how long the log keeps its cells.
	Retention time.Duration `json:"retention,omitempty"`
	// Known is the time from which every process knows all reasons; before it, a process may
	// record less or nothing. The zero time: from the beginning.
	Known time.Time `json:"known,omitzero"`
}

// Wait sets Known after reasons were added that other processes may not know yet. Until then,
// the features that need them appear as being enabled.
func (t *Table) Wait(was *Table, known time.Time) {
	log := *t.Log
	log.Known = known
	t.Log = &log
	if t.StreamEnabled && !was.StreamEnabled {
		t.Transition = UpdatingUntil(t.Transition, known)
	}
	if t.Recovery.On() && !was.Recovery.On() {
		t.Recovery.Since = known
	}
	for i := range t.Kinesis {
		d := &t.Kinesis[i]
		if before := was.KinesisDestination(d.StreamARN); d.Live() && (before == nil || before.From != d.From) && d.Transition.Until.Before(known) {
			d.Transition = Transition{Status: KinesisEnabling, Until: known}
		}
	}
}

// HasImages reports whether records have both images.
func (l *Log) HasImages() bool { return l != nil && l.Images != 0 }

// MaxSlots returns the number of slots that may have records.
func (l *Log) MaxSlots() int { return max(l.MostSlots, 1, slices.Max(l.Shards.Slots)) }

// KnownReasons returns the reasons of a log; nil if l is nil.
func (l *Log) KnownReasons() []string {
	if l == nil {
		return nil
	}
	return l.Reasons
}

// Adds reports whether a log has new reasons, so that processes that do not know them record
// too little.
func (l *Log) Adds(was *Log) bool {
	whole := was.On() && was.View == bothImages
	return slices.ContainsFunc(l.KnownReasons(), func(r string) bool {
		return !slices.Contains(was.KnownReasons(), r) && (r != ReasonCopy || !whole)
	})
}

// On reports whether writes are recorded.
func (l *Log) On() bool { return l != nil && len(l.Reasons) > 0 }

// Shards determines the slot of a record by its partition key. The number of slots can change
// from one generation to the next.
type Shards struct {
	Since    uint64        `json:"since"`    // sequence number of the start of generation 0: whole milliseconds
	Rotation time.Duration `json:"rotation"` // of a generation: whole milliseconds
	Slots    []int         `json:"slots"`    // of each generation, the last for all later ones; each a multiple of the one before
}

// Generation returns the generation of a sequence number.
func (s Shards) Generation(sequence uint64) uint64 {
	if sequence < s.Since {
		return 0
	}
	return (sequence - s.Since) / uint64(s.Rotation)
}

// Begin returns the first sequence number of a generation.
func (s Shards) Begin(generation uint64) uint64 { return s.Since + generation*uint64(s.Rotation) }

// SlotsOf returns the number of slots in a generation.
func (s Shards) SlotsOf(generation uint64) int {
	return s.Slots[min(generation, uint64(len(s.Slots)-1))]
}

// Stream is a part of a table's log that clients may read.
type Stream struct {
	Label  string `json:"label"`
	View   string `json:"view"` // StreamViewType
	Shards Shards `json:"shards"`
	// Retention is how long records are readable, and how long the stream exists after its
	// end; 0: StreamRetention.
	Retention time.Duration `json:"retention,omitzero"`
	// Until is the sequence number before which the stream ends, and Ended the time when it
	// ended; 0 for an open stream.
	Until uint64    `json:"until,omitempty"`
	Ended time.Time `json:"ended,omitzero"`
}

// Stream returns the stream with a label; nil if it does not exist at a time.
func (t *Table) Stream(label string, now time.Time) *Stream {
	for i := range t.Streams {
		if s := &t.Streams[i]; s.Label == label && !s.IsGone(now) {
			return s
		}
	}
	return nil
}

// IsGone reports whether a stream ended so long ago that it no longer exists.
func (s *Stream) IsGone(now time.Time) bool {
	return s.Until != 0 && !now.Before(s.Ended.Add(s.Kept()))
}

// Kept returns how long a record of the stream is readable.
func (s *Stream) Kept() time.Duration { return cmp.Or(s.Retention, StreamRetention) }

// StreamLabel returns the label of a stream: the time of its start.
func StreamLabel(since uint64) string {
	return time.Unix(0, int64(since)).UTC().Format("2006-01-02T15:04:05.000")
}

// AfterStreams returns a sequence number, or the first whole millisecond after all streams of
// some tables if that is later.
func AfterStreams(at uint64, tables []*Table) uint64 {
	for _, t := range tables {
		for _, s := range t.Streams {
			at = max(at, WholeMilli(s.Until))
		}
	}
	return at
}

// WholeMilli rounds a sequence number up to a whole millisecond.
func WholeMilli(at uint64) uint64 {
	const milli = uint64(time.Millisecond)
	return (at + milli - 1) / milli * milli
}
