package kinesis

import (
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// The temporary statuses of destinations, in DynamoDB's words; tabledef has the final ones.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_KinesisDataStreamDestination.html
const (
	Enabling  = tabledef.KinesisEnabling
	Disabling = "DISABLING"
	Updating  = "UPDATING"
)

// The precisions of times in records. Default: Millisecond.
const (
	Millisecond = "MILLISECOND"
	Microsecond = "MICROSECOND"
)

// MinARNChars and MaxARNChars limit a StreamArn.
const (
	MinARNChars = 37
	MaxARNChars = 1024
)

// Changes changes destinations.
type Changes struct {
	Now    time.Time
	Delay  time.Duration // how long changes appear to take
	Region string        // of the tables and their streams
	// Sought: check that a stream exists before its destination is ACTIVE.
	Sought bool
}

// Status returns the apparent status of a destination at a time.
func Status(d *tabledef.KinesisDestination, now time.Time) string {
	switch {
	case d.Transition.Lasts(now):
		return d.Transition.Status
	case d.Live() && d.Unseen:
		return Enabling
	}
	return d.State
}

// Description returns the description of a status, or "".
func Description(status string) string {
	if status == tabledef.KinesisFailed {
		return awserr.MsgKinesisNoPermission
	}
	return ""
}

// Enable adds a stream for the changes of a table. It does not check whether the stream
// exists: if it cannot, the destination fails later.
func (c Changes) Enable(t *tabledef.Table, arn string, precision *string) error {
	settled := func(d tabledef.KinesisDestination) bool {
		status := Status(&d, c.Now)
		return status == tabledef.KinesisDisabled || status == tabledef.KinesisFailed
	}
	for _, d := range t.Kinesis {
		if !settled(d) {
			return awserr.Validation(awserr.MsgKinesisNotEnabled)
		}
	}
	t.Kinesis = slices.DeleteFunc(slices.Clone(t.Kinesis), func(d tabledef.KinesisDestination) bool { return d.StreamARN == arn })
	d := tabledef.KinesisDestination{StreamARN: arn, State: tabledef.KinesisActive, Transition: tabledef.TransitionAfter(c.Now, Enabling, c.Delay)}
	if precision != nil {
		d.Precision = *precision
	}
	if _, ok := StreamName(arn, c.Region); !ok {
		d.State = tabledef.KinesisFailed
	} else {
		d.Unseen = c.Sought
	}
	t.Kinesis = append(t.Kinesis, d)
	return nil
}

// Disable ends the delivery to a stream. It may be repeated while that is in progress.
func (c Changes) Disable(t *tabledef.Table, arn string) error {
	d := t.KinesisDestination(arn)
	if d == nil {
		return awserr.Validation(awserr.MsgKinesisNotDisabled)
	}
	switch Status(d, c.Now) {
	case Disabling:
		return nil
	case tabledef.KinesisActive:
		d.State, d.Transition = tabledef.KinesisDisabled, tabledef.TransitionAfter(c.Now, Disabling, c.Delay)
		return nil
	}
	return awserr.Validation(awserr.MsgKinesisNotDisabled)
}

// Update changes the precision of times in records.
func (c Changes) Update(t *tabledef.Table, arn, precision string) error {
	d := t.KinesisDestination(arn)
	switch {
	case d == nil:
		return awserr.Validation(awserr.MsgKinesisUnknown, arn, t.Name)
	case Status(d, c.Now) != tabledef.KinesisActive:
		return awserr.Validation(awserr.MsgKinesisNotActive, t.Name, arn)
	case d.Precision == precision, d.Precision == "" && precision == Millisecond:
		return awserr.Validation(awserr.MsgKinesisSamePrecision, precision, t.ID, arn)
	}
	d.Precision, d.Transition = precision, tabledef.TransitionAfter(c.Now, Updating, c.Delay)
	return nil
}

// Found records whether the stream of a destination exists that was enabled at a sequence
// number. It returns false if that is no longer relevant.
func Found(t *tabledef.Table, arn string, from uint64, there bool) bool {
	d := t.KinesisDestination(arn)
	if d == nil || d.From != from || !d.Unseen || !d.Live() {
		return false
	}
	if d.Unseen = false; !there {
		d.State = tabledef.KinesisFailed
	}
	return true
}

// CheckDisable rejects settings in a request to disable.
func CheckDisable(configured bool) error {
	if configured {
		return awserr.Validation(awserr.MsgKinesisDisableWith)
	}
	return nil
}

// CheckUpdate rejects an update without settings.
func CheckUpdate(precision *string) error {
	if precision == nil {
		return awserr.Validation(awserr.MsgKinesisUpdateWithout)
	}
	return nil
}

// maxNameChars limits the name of a stream.
const maxNameChars = 128

// StreamName returns the name in the ARN of a stream; ok is false for another region or
// resource.
func StreamName(arn, region string) (name string, ok bool) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[2] != "kinesis" || parts[3] != region {
		return "", false
	}
	name, ok = strings.CutPrefix(parts[5], "stream/")
	for _, c := range name {
		if c != '_' && c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return "", false
		}
	}
	return name, ok && name != "" && strings.Trim(name, ".") != "" && len(name) <= maxNameChars
}
