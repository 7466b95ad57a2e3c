// Package btclient reads and writes the rows of a Bigtable over any connection. It is the
// only client that the DynamoDB endpoint, the migration and the tests use.
//
// What it promises:
//   - a read that breaks off continues after its last row, so that each row comes
//     once (see [Client.Read], and [Client.ReadParts] for rows that come in parts);
//   - a call that may be sent twice is retried if that may help, as often and as
//     patiently as [Retry] says; a call that may not (CheckAndMutateRow,
//     ReadModifyWriteRow, changes of tables) is only where it was surely never sent,
//     which a connection made with [TellUnsent] tells;
//   - a wait before a call is sent again is as long as the server asks for, up to the
//     deadline of a call, and else doubles;
//   - while the server says that it has no room, or asks for less, fewer rows are written
//     at a time;
//   - nothing is sent twice at a time to see who answers first;
//   - a server that hangs ends the call with a [*DeadlineError], if there is a
//     deadline ([Options.Deadline]), once it was sent again as often as Retry.Late says;
//   - errors say what was done to which table, and keep the server's status for
//     status.Code.
//
// What it does not do: it does not know what rows mean, holds no latch, and keeps
// nothing but the names of tables.
package btclient

import (
	"context"
	"encoding/base64"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/cells"
)

type (
	// Cell is a cell of a Bigtable, whose data is not this package's own.
	Cell = cells.Cell
	// Row is a row with its cells.
	Row = cells.Row
	// Span is a range of row keys.
	Span = cells.Span
	// Family is a column family.
	Family = cells.Family
	// GC is the garbage collection of a family.
	GC = cells.GC
)

// Options are how patient a Client is. The zero value sends nothing again and
// waits for ever.
type Options struct {
	// AppProfile is the id of the app profile of calls on rows. Default: the instance's
	// own.
	AppProfile string
	// Retry says what is sent again, and when. Default: nothing is.
	Retry Retry
	// Deadline bounds how long a call may go without an answer: until that of a call
	// with one answer, and from message to message of a stream. A call that exceeds it
	// ends with a *DeadlineError, and is sent again as Retry.Late says. Default: none but
	// that of the call's context.
	Deadline time.Duration
}

// Client reads and writes the tables of one instance. It is safe for concurrent
// use.
type Client struct {
	data     btpb.BigtableClient
	admin    btapb.BigtableTableAdminClient
	instance string // full name
	server   string // as errors name it
	o        Options
	throttle *throttle // nil: nothing is bound
	features string    // value of the header that tells what it understands

	targets     sync.Map     // *target by table id
	targetCount atomic.Int64 // of targets, about

	answered atomic.Bool // some call was
}

// New returns a client of an instance.
func New(conn grpc.ClientConnInterface, project, instance string, o Options) *Client {
	c := &Client{
		data:     btpb.NewBigtableClient(conn),
		admin:    btapb.NewBigtableTableAdminClient(conn),
		instance: "projects/" + project + "/instances/" + instance,
		o:        o,
		features: clientFeatures(),
	}
	c.server = c.instance
	if named, ok := conn.(interface{ Target() string }); ok { // a *grpc.ClientConn is
		c.server = named.Target() + ", " + c.instance
	}
	if o.Retry.First > 0 { // what has no room is asked again
		c.throttle, c.features = &throttle{}, patientFeatures()
	}
	c.o.Retry.Reads, c.o.Retry.Writes = min(o.Retry.Reads, maxRetries), min(o.Retry.Writes, maxRetries)
	return c
}

// Instance returns the full name of the instance.
func (c *Client) Instance() string { return c.instance }

// TablePath returns the full name of a table.
func (c *Client) TablePath(table string) string { return c.target(table).path }

// target is a table as calls on it name it.
type target struct {
	path    string      // full name
	headers metadata.MD // of every call on its data; never changed
}

// maxTargets bounds the targets that are kept.
const maxTargets = 4096

// target returns the target of a table id.
func (c *Client) target(table string) *target {
	if t, ok := c.targets.Load(table); ok {
		return t.(*target) //nolint:forcetypeassert // nothing else is stored
	}
	path := c.instance + "/tables/" + table
	routed := route("table_name", path)
	if c.o.AppProfile != "" {
		routed += "&" + route("app_profile_id", c.o.AppProfile)
	}
	t := &target{path: path, headers: metadata.Pairs(featuresHeader, c.features, routingHeader, routed)}
	if c.targetCount.Add(1) > maxTargets {
		c.targets.Clear() // tables come and go
		c.targetCount.Store(1)
	}
	c.targets.Store(table, t)
	return t
}

// outgoing adds the headers of a call on the table's data.
func (t *target) outgoing(ctx context.Context) context.Context {
	headers := t.headers
	if own, ok := metadata.FromOutgoingContext(ctx); ok {
		headers = metadata.Join(own, headers)
	}
	return metadata.NewOutgoingContext(ctx, headers)
}

// featuresHeader tells a Bigtable what its client understands: without it a
// reversed read is refused. Its value is FeatureFlags in URL-safe base64.
const featuresHeader = "bigtable-features"

// routingHeader names what a call is of: Cloud Bigtable finds its place by it, as
// the client libraries expect. Source: AIP-4222, routing headers.
const routingHeader = "x-goog-request-params"

// route is the value of the routing header.
func route(field, name string) string { return field + "=" + url.QueryEscape(name) }

// What clients understand: to marshal what is not used is slow.
var (
	clientFeatures = sync.OnceValue(func() string { return featuresText(&btpb.FeatureFlags{ReverseScans: true}) })
	// Of those that write less when they are asked to. The older flag for it, without the
	// 2, excludes that single rows of a call are sent again.
	patientFeatures = sync.OnceValue(func() string {
		return featuresText(&btpb.FeatureFlags{ReverseScans: true, MutateRowsRateLimit2: true})
	})
)

func featuresText(flags *btpb.FeatureFlags) string {
	b, err := proto.Marshal(flags)
	if err != nil {
		return "" // no message without strings fails
	}
	return base64.URLEncoding.EncodeToString(b)
}
