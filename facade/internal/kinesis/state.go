package kinesis

import (
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Temporary statuses of destinations, in DynamoDB's words. Package tabledef has the final
// statuses.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_KinesisDataStreamDestination.html
const (
	Enabling  = tabledef.KinesisEnabling
	Disabling = "DISABLING"
	Updating  = "UPDATING"
)

// Precisions of the times in records. Default: Millisecond.
const (
	Millisecond = "MILLISECOND"
	Microsecond = "MICROSECOND"
)

// MinARNChars and MaxARNChars are the limits of the length of a StreamArn.
const (
	MinARNChars = 37
	MaxARNChars = 1024
)

// Changes changes the destinations of a table.
type Changes struct {
	Now    time.Time
	Delay  time.Duration // time for which a change appears to be in progress
	Region string        // region of the tables and their streams
	// Sought means that a destination becomes ACTIVE only after its stream is found.
	Sought bool
}

// Status returns the status that a destination appears to have at a time.
func Status(d *tabledef.KinesisDestination, now time.Time) string {
	switch {
	case d.Transition.Lasts(now):
		return d.Transition.Status
	case d.Live() && d.Unseen:
		return Enabling
	}
	return d.State
}

// Description explains a status, or returns "" if DynamoDB does not explain it.
func Description(status string) string {
	if status == tabledef.KinesisFailed {
		return awserr.MsgKinesisNoPermission
	}
	return ""
}

// Enable adds a destination for the changes of a table. It does not check whether the
// stream exists: if the stream is missing, the destination fails later.
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

// Disable ends the delivery to a stream. It may be called again while that is in
// progress.
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

// Update changes the precision of the times in a destination's records.
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

// Found records whether the stream exists for the destination that was enabled at a
// sequence number. It returns false if that destination no longer needs it.
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

// CheckDisable rejects a request to disable a destination that has settings.
func CheckDisable(configured bool) error {
	if configured {
		return awserr.Validation(awserr.MsgKinesisDisableWith)
	}
	return nil
}

// CheckUpdate rejects an update that has no settings.
func CheckUpdate(precision *string) error {
	if precision == nil {
		return awserr.Validation(awserr.MsgKinesisUpdateWithout)
	}
	return nil
}

// maxNameChars limits the name of a stream.
const maxNameChars = 128

// StreamName returns the name of the stream in an ARN. ok is false if the ARN has another
// region or names another resource.
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
