// Package btclient reads and writes the rows of a Bigtable over any connection. The DynamoDB
// endpoint, the migration and the tests use no other Bigtable client.
//
// Its guarantees:
//   - An interrupted read continues after its last row, so each row is returned once
//     (see [Client.Read], and [Client.ReadParts] for rows in parts).
//   - An idempotent call is retried after a transient error, as [Retry] configures. Other calls
//     (CheckAndMutateRow, ReadModifyWriteRow, changes of tables) are retried only if they were
//     never sent, which a connection with [ReportUnsent] reports.
//   - The wait before a retry is the time that the server requests, up to the deadline of a call.
//     If the server does not request a time, the wait doubles with each retry.
//   - While the server lacks resources, or requests a lower rate, fewer rows are written at a time.
//   - A retry begins only after the previous attempt has ended.
//   - A server that hangs ends the call with a [*DeadlineError] after [Options.Deadline]
//     and the retries of Retry.Late.
//   - An error names the action and the table, and wraps the server's status, for status.Code.
//
// It does not interpret rows, holds no locks, and keeps only the names of tables.
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

	"github.com/tabletop-emu/tabletop/cells"
)

type (
	// Cell is an alias of [cells.Cell], because package cells defines Bigtable's data types.
	Cell = cells.Cell
	// Row is a row with its cells.
	Row = cells.Row
	// Span is a range of row keys.
	Span = cells.Span
	// Family is a column family.
	Family = cells.Family
	// GC is the garbage-collection rule of a family.
	GC = cells.GC
)

// Options configures the retries and deadlines of a Client. The zero value neither retries calls
// nor sets deadlines.
type Options struct {
	// AppProfile is the id of the app profile for calls on rows. Default: the instance's default
	// profile.
	AppProfile string
	// Retry configures retries. Default: no retries.
	Retry Retry
	// Deadline is the longest time to wait for the response of a unary call, and for the next
	// message of a stream. A call that exceeds it ends with a *DeadlineError, and is retried as
	// Retry.Late configures. Default: only the deadline of the call's context applies.
	Deadline time.Duration
}

// Client reads and writes the tables of one instance. It is safe for concurrent
// use.
type Client struct {
	data      btpb.BigtableClient
	near      nearConn // nil for any other connection
	admin     btapb.BigtableTableAdminClient
	instances btapb.BigtableInstanceAdminClient
	instance  string // full name
	server    string // as errors name it
	o         Options
	throttle  *throttle // nil: no limit
	features  string    // value of featuresHeader

	targets     sync.Map     // *target by table id
	targetCount atomic.Int64 // about the number of entries in targets

	answered atomic.Bool // set by the first answer to any call
}

// New returns a client for an instance.
func New(conn grpc.ClientConnInterface, project, instance string, o Options) *Client {
	c := &Client{
		data:      btpb.NewBigtableClient(conn),
		admin:     btapb.NewBigtableTableAdminClient(conn),
		instances: btapb.NewBigtableInstanceAdminClient(conn),
		instance:  "projects/" + project + "/instances/" + instance,
		o:         o,
		features:  clientFeatures(),
	}
	c.near, _ = conn.(nearConn)
	c.server = c.instance
	if named, ok := conn.(interface{ Target() string }); ok { // a *grpc.ClientConn is
		c.server = named.Target() + ", " + c.instance
	}
	if o.Retry.First > 0 { // rows without room are sent again
		c.throttle, c.features = &throttle{}, patientFeatures()
	}
	c.o.Retry.Reads, c.o.Retry.Writes = min(o.Retry.Reads, maxRetries), min(o.Retry.Writes, maxRetries)
	return c
}

// Instance returns the resource name of the instance.
func (c *Client) Instance() string { return c.instance }

// TablePath returns the resource name of a table.
func (c *Client) TablePath(table string) string { return c.target(table).path }

// target is the name of a table in calls on it.
type target struct {
	path    string      // full name
	headers metadata.MD // for every call on its data; never changed
}

// maxTargets is the largest number of cached targets.
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

// featuresHeader has the features that the client supports: without it a Bigtable
// refuses a reversed read. Its value is FeatureFlags in URL-safe base64.
const featuresHeader = "bigtable-features"

// routingHeader names the resource of a call, by which Cloud Bigtable routes it.
// Source: AIP-4222, routing headers.
const routingHeader = "x-goog-request-params"

// route returns the value of the routing header.
func route(field, name string) string { return field + "=" + url.QueryEscape(name) }

// The features of the client. Marshaling fields without a use is slow.
var (
	clientFeatures = sync.OnceValue(func() string { return featuresText(&btpb.FeatureFlags{ReverseScans: true}) })
	// The client writes at a lower rate on request. The older flag, without the 2, forbids
	// to retry single rows of a call.
	patientFeatures = sync.OnceValue(func() string {
		return featuresText(&btpb.FeatureFlags{ReverseScans: true, MutateRowsRateLimit2: true})
	})
)

func featuresText(flags *btpb.FeatureFlags) string {
	b, err := proto.Marshal(flags)
	if err != nil {
		return "" // marshaling fails only for strings
	}
	return base64.URLEncoding.EncodeToString(b)
}
