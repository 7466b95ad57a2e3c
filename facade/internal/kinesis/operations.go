package kinesis

import (
	"context"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/request"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Operations changes the destinations of a table on behalf of one request.
type Operations struct {
	Store     *store.Store
	Worker    *Worker // nil means that nothing is delivered
	Validator request.Validator
	Now       time.Time
	Delay     time.Duration // time for which a change appears to be in progress
	Region    string        // region of the tables
}

// Input is the request of the operations that enable, disable and update a destination.
type Input struct {
	TableName                           *string
	StreamArn                           *string
	EnableKinesisStreamingConfiguration *Configuration
	UpdateKinesisStreamingConfiguration *Configuration
}

// Configuration holds the settings of a destination.
type Configuration struct {
	ApproximateCreationDateTimePrecision *string `json:",omitzero"`
}

func (in *Configuration) precision() *string {
	if in == nil {
		return nil
	}
	return in.ApproximateCreationDateTimePrecision
}

// Output is the response of the operations that enable, disable and update a destination.
type Output struct {
	TableName                           string
	StreamArn                           string
	DestinationStatus                   string
	EnableKinesisStreamingConfiguration *Configuration `json:",omitzero"`
	UpdateKinesisStreamingConfiguration *Configuration `json:",omitzero"`
}

// change checks a request, changes the destinations of its table by fn, and notifies the
// worker.
func (o *Operations) change(ctx context.Context, in *Input, status string, check func() error, fn func(Changes, *tabledef.Table) error) (*Output, error) {
	v := &o.Validator
	name, err := v.ChangedTableName(in.TableName)
	if err != nil {
		return nil, err
	}
	v.Required("StreamArn", in.StreamArn != nil)
	v.Length("StreamArn", in.StreamArn, MinARNChars, MaxARNChars)
	v.Enum("EnableKinesisStreamingConfiguration.ApproximateCreationDateTimePrecision", in.EnableKinesisStreamingConfiguration.precision(), Millisecond, Microsecond)
	v.Enum("UpdateKinesisStreamingConfiguration.ApproximateCreationDateTimePrecision", in.UpdateKinesisStreamingConfiguration.precision(), Millisecond, Microsecond)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	if err := check(); err != nil {
		return nil, err
	}
	c := Changes{Now: o.Now, Delay: o.Delay, Region: o.Region, Sought: o.Worker != nil}
	t, err := o.Store.UpdateTable(ctx, name, func(t *tabledef.Table) error { return fn(c, t) })
	if err != nil {
		return nil, err
	}
	if d := t.KinesisDestination(*in.StreamArn); o.Worker != nil && d.Live() {
		err = o.Worker.Deliver(ctx, t, d, o.Region)
	} else if o.Worker != nil {
		err = o.Worker.Changed(ctx, t, d)
	}
	return &Output{TableName: t.Name, StreamArn: *in.StreamArn, DestinationStatus: status}, err
}

// Enable starts the delivery of a table's changes to a stream.
func (o Operations) Enable(ctx context.Context, in *Input) (*Output, error) {
	precision := in.EnableKinesisStreamingConfiguration.precision()
	out, err := o.change(ctx, in, Enabling, func() error { return nil },
		func(c Changes, t *tabledef.Table) error { return c.Enable(t, *in.StreamArn, precision) })
	if err != nil {
		return nil, err
	}
	out.EnableKinesisStreamingConfiguration = &Configuration{precision}
	return out, nil
}

// Disable ends the delivery to a stream.
func (o Operations) Disable(ctx context.Context, in *Input) (*Output, error) {
	out, err := o.change(ctx, in, Disabling,
		func() error { return CheckDisable(in.EnableKinesisStreamingConfiguration != nil) },
		func(c Changes, t *tabledef.Table) error { return c.Disable(t, *in.StreamArn) })
	if err != nil {
		return nil, err
	}
	out.EnableKinesisStreamingConfiguration = &Configuration{}
	return out, nil
}

// Update changes the precision of the times in a destination's records.
func (o Operations) Update(ctx context.Context, in *Input) (*Output, error) {
	given := in.UpdateKinesisStreamingConfiguration
	out, err := o.change(ctx, in, Updating, func() error { return CheckUpdate(given.precision()) },
		func(c Changes, t *tabledef.Table) error {
			return c.Update(t, *in.StreamArn, *given.precision())
		})
	if err != nil {
		return nil, err
	}
	out.UpdateKinesisStreamingConfiguration = given
	return out, nil
}

// WorkerDescription is the response of DescribeKinesisStreamingDestination.
type WorkerDescription struct {
	TableName                     string
	KinesisDataStreamDestinations []Destination
}

// Destination is a current or former destination of a table's changes.
type Destination struct {
	StreamArn                            string
	DestinationStatus                    string
	DestinationStatusDescription         string `json:",omitzero"`
	ApproximateCreationDateTimePrecision string `json:",omitzero"`
}

// Describe returns the destinations of a table as they appear at a given time.
func Describe(t *tabledef.Table, now time.Time) *WorkerDescription {
	out := &WorkerDescription{TableName: t.Name, KinesisDataStreamDestinations: []Destination{}}
	for i := range t.Kinesis {
		d := &t.Kinesis[i]
		status := Status(d, now)
		out.KinesisDataStreamDestinations = append(out.KinesisDataStreamDestinations,
			Destination{d.StreamARN, status, Description(status), d.Precision})
	}
	return out
}
