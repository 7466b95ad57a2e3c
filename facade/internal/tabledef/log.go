package tabledef

import (
	"cmp"
	"slices"
	"time"
)

// The reasons of a log.
const (
	ReasonStream   = "stream"   // a stream is read from it
	ReasonKinesis  = "kinesis"  // a Kinesis data stream gets the changes
	ReasonRecovery = "recovery" // the table can be restored to any time of a period
	ReasonCopy     = "copy"     // jobs make copies of the table as it was at a time
)

// bothImages is the view of a log that is not for a stream alone.
const bothImages = "NEW_AND_OLD_IMAGES"

// LogReasons returns what the table is to have a log for, and the images that its records
// are to have, as a stream's view.
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

// Recovery says from when on a table can be restored to any time; nil: it cannot.
type Recovery struct {
	Since time.Time `json:"since"`
	Days  int       `json:"days"` // how far back from now
}

// MaxRecoveryDays is the longest period of a recovery.
const MaxRecoveryDays = 35

// On reports whether a table can be restored.
func (r *Recovery) On() bool { return r != nil }

// Earliest returns the first time that a table can be restored to.
func (r *Recovery) Earliest(now time.Time) time.Time {
	if at := now.AddDate(0, 0, -r.Days); at.After(r.Since) {
		return at
	}
	return r.Since
}

// StreamRetention is how long a record of a stream can be read, and a stream that
// has ended, where the stream says nothing else.
const StreamRetention = 24 * time.Hour

// Log is the change log of a table. It is on while there is a reason for it.
type Log struct {
	Table   string   `json:"table"` // Bigtable table
	Reasons []string `json:"reasons,omitempty"`
	Shards  Shards   `json:"shards"`
	// View is what is kept of items, as a stream's view.
	View string `json:"view,omitempty"`
	// Images is the sequence number from which on all records have both images; 0:
	// they have not.
	Images uint64 `json:"images,omitempty"`
	// MostSlots is the largest number of slots that there ever was.
	MostSlots int `json:"mostSlots,omitempty"`
	// Retention is how long its cells are kept.
	Retention time.Duration `json:"retention,omitempty"`
	// Known is the time from which on every process knows of all reasons; before it
	// one may record nothing, or less. The zero time: from the beginning.
	Known time.Time `json:"known,omitzero"`
}

// Wait notes that the log has got reasons that not every process knows before a time:
// what they are for looks like it is being enabled until then.
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

// MaxSlots returns how many slots may have records.
func (l *Log) MaxSlots() int { return max(l.MostSlots, 1, slices.Max(l.Shards.Slots)) }

// KnownReasons returns the reasons of a log that there may not be.
func (l *Log) KnownReasons() []string {
	if l == nil {
		return nil
	}
	return l.Reasons
}

// Adds reports whether a log has reasons that it had not before, for which who does not
// know of them writes what is not enough.
func (l *Log) Adds(was *Log) bool {
	whole := was.On() && was.View == bothImages
	return slices.ContainsFunc(l.KnownReasons(), func(r string) bool {
		return !slices.Contains(was.KnownReasons(), r) && (r != ReasonCopy || !whole)
	})
}

// On reports whether writes are recorded.
func (l *Log) On() bool { return l != nil && len(l.Reasons) > 0 }

// Shards says where records lie: in slots, by their partition key. The number of slots
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
	// Retention is how long a record can be read, and the stream once it has ended; 0:
	// StreamRetention.
	Retention time.Duration `json:"retention,omitzero"`
	// Until is the sequence number that the stream ends before, and Ended when that
	// was; 0 for an open stream.
	Until uint64    `json:"until,omitempty"`
	Ended time.Time `json:"ended,omitzero"`
}

// Stream returns the stream of a label, or nil if it is unknown at a time.
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
	return s.Until != 0 && !now.Before(s.Ended.Add(s.Kept()))
}

// Kept is how long a record of the stream can be read.
func (s *Stream) Kept() time.Duration { return cmp.Or(s.Retention, StreamRetention) }

// StreamLabel is the time of a stream's beginning as its label.
func StreamLabel(since uint64) string {
	return time.Unix(0, int64(since)).UTC().Format("2006-01-02T15:04:05.000")
}

// AfterStreams returns a sequence number, or the first whole millisecond after all
// streams of some tables if that is later.
func AfterStreams(at uint64, tables []*Table) uint64 {
	for _, t := range tables {
		for _, s := range t.Streams {
			at = max(at, WholeMilli(s.Until))
		}
	}
	return at
}

// WholeMilli is a sequence number, or the next whole millisecond.
func WholeMilli(at uint64) uint64 {
	const milli = uint64(time.Millisecond)
	return (at + milli - 1) / milli * milli
}
