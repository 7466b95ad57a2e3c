package tabledef

import (
	"cmp"
	"slices"
	"time"
)

// Reasons for a table to have a log.
const (
	ReasonStream   = "stream"   // a stream reads the log
	ReasonKinesis  = "kinesis"  // a Kinesis data stream receives the changes
	ReasonRecovery = "recovery" // the table can be restored to any time in a period
	ReasonCopy     = "copy"     // jobs copy a past state of the table
)

// bothImages is the view of a log that has reasons other than a stream.
const bothImages = "NEW_AND_OLD_IMAGES"

// LogReasons returns the reasons for which the table has a log. It also returns the
// images that records need, in the form of a stream view.
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

// Recovery determines the times to which a table can be restored. A nil Recovery means
// that it cannot be restored.
type Recovery struct {
	Since time.Time `json:"since"`
	Days  int       `json:"days"` // length in days of the recovery period, which ends now
}

// MaxRecoveryDays is the maximum length of a recovery period, in days.
const MaxRecoveryDays = 35

// On reports whether the table can be restored.
func (r *Recovery) On() bool { return r != nil }

// Earliest returns the first time to which the table can be restored.
func (r *Recovery) Earliest(now time.Time) time.Time {
	if at := now.AddDate(0, 0, -r.Days); at.After(r.Since) {
		return at
	}
	return r.Since
}

// StreamRetention is the default time for which the records of a stream can be read, and
// for which a stream exists after its end.
const StreamRetention = 24 * time.Hour

// Log is the change log of a table. It is on as long as it has a reason.
type Log struct {
	Table   string   `json:"table"` // id of the Bigtable table
	Reasons []string `json:"reasons,omitempty"`
	Shards  Shards   `json:"shards"`
	// View is the kind of images that are recorded, in the form of a stream view.
	View string `json:"view,omitempty"`
	// Images is the sequence number from which all records have both images. It is 0 if
	// they do not have both.
	Images uint64 `json:"images,omitempty"`
	// MostSlots is the largest number of slots that the log has ever had.
	MostSlots int `json:"mostSlots,omitempty"`
	// Retention is the time for which the log keeps its cells.
	Retention time.Duration `json:"retention,omitempty"`
	// Known is the time from which every process knows all reasons. Before it, a process
	// may record less or nothing. Zero means that the reasons have been known from the
	// beginning.
	Known time.Time `json:"known,omitzero"`
}

// Wait sets Known after adding reasons that other processes may not know yet. Until that
// time, features that depend on these reasons appear to be changing.
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

// HasImages reports whether the records have both images.
func (l *Log) HasImages() bool { return l != nil && l.Images != 0 }

// MaxSlots returns the number of slots that may have records.
func (l *Log) MaxSlots() int { return max(l.MostSlots, 1, slices.Max(l.Shards.Slots)) }

// KnownReasons returns the reasons of the log, or nil if l is nil.
func (l *Log) KnownReasons() []string {
	if l == nil {
		return nil
	}
	return l.Reasons
}

// Adds reports whether l has reasons that was lacks, and for which was does not record enough.
// Processes that do not know them yet record too little.
func (l *Log) Adds(was *Log) bool {
	whole := was.On() && was.View == bothImages
	return slices.ContainsFunc(l.KnownReasons(), func(r string) bool {
		return !slices.Contains(was.KnownReasons(), r) && (r != ReasonCopy || !whole)
	})
}

// On reports whether writes are recorded.
func (l *Log) On() bool { return l != nil && len(l.Reasons) > 0 }

// Shards determines the slot of a record from its partition key. The number of slots can
// change between generations.
type Shards struct {
	Since    uint64        `json:"since"`    // sequence number at which generation 0 begins, in whole milliseconds
	Rotation time.Duration `json:"rotation"` // duration of a generation, in whole milliseconds
	Slots    []int         `json:"slots"`    // number of slots in each generation, each a multiple of the one before; the last one applies to all later generations
}

// Generation returns the generation that a sequence number belongs to.
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
	View   string `json:"view"` // value of StreamViewType
	Shards Shards `json:"shards"`
	// Retention is the time for which records can be read, and for which the stream
	// exists after its end. Zero means StreamRetention.
	Retention time.Duration `json:"retention,omitzero"`
	// Until is the sequence number before which the stream ends, and Ended is the time at
	// which it ended. Both are zero for an open stream.
	Until uint64    `json:"until,omitempty"`
	Ended time.Time `json:"ended,omitzero"`
}

// Stream returns the stream with the given label, or nil if it does not exist at the
// given time.
func (t *Table) Stream(label string, now time.Time) *Stream {
	for i := range t.Streams {
		if s := &t.Streams[i]; s.Label == label && !s.IsGone(now) {
			return s
		}
	}
	return nil
}

// IsGone reports whether the stream ended so long ago that it no longer exists.
func (s *Stream) IsGone(now time.Time) bool {
	return s.Until != 0 && !now.Before(s.Ended.Add(s.Kept()))
}

// Kept returns the time for which a record of the stream can be read.
func (s *Stream) Kept() time.Duration { return cmp.Or(s.Retention, StreamRetention) }

// StreamLabel returns the label of a stream, which is derived from the time of its start.
func StreamLabel(since uint64) string {
	return time.Unix(0, int64(since)).UTC().Format("2006-01-02T15:04:05.000")
}

// AfterStreams returns the given sequence number, or the first whole millisecond after
// all streams of the given tables if that is later.
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
