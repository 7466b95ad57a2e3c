package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/days"
	"github.com/tabletop-emu/tabletop/internal/exchange"
	"github.com/tabletop-emu/tabletop/internal/fastserver"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/internal/quicknet"
)

const (
	// maxMessageBytes is the largest message that Bigtable accepts or sends.
	maxMessageBytes = 256 << 20
	// maxDynamoDBHeaderBytes is the largest request line with headers that DynamoDB accepts. The
	// servers of the endpoints accept up to 4 KB more.
	maxDynamoDBHeaderBytes = 16 << 10
	// headTime is the time that a client has for a request line with headers.
	headTime = time.Minute
	// targetConcurrency is the number of concurrent calls of an operation on a --target.
	targetConcurrency = 100
	// stopNotice is the time after which a waiting stop prints a notice.
	stopNotice = time.Second
)

// decodeDuration reads a duration, optionally in days.
func decodeDuration(ctx *kong.DecodeContext, target reflect.Value) error {
	text, err := durationText(ctx)
	if err != nil {
		return err
	}
	d, err := days.Parse(text)
	if err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}

func durationText(ctx *kong.DecodeContext) (string, error) {
	token, err := ctx.Scan.PopValue("DURATION")
	if err != nil {
		return "", err
	}
	return fmt.Sprint(token.Value), nil // not a string in a configuration file
}

// viewLag is a lag, or emu.ManualViews.
type viewLag time.Duration

// Decode implements kong.MapperValue.
func (v *viewLag) Decode(ctx *kong.DecodeContext) error {
	text, err := durationText(ctx)
	if err != nil {
		return err
	}
	if text == "manual" {
		*v = viewLag(emu.ManualViews)
		return nil
	}
	d, err := days.Parse(text)
	if err != nil {
		return err
	}
	if d == emu.ManualViews {
		return fmt.Errorf("%v must not be negative", d)
	}
	*v = viewLag(d)
	return nil
}

type serveCommand struct {
	Bigtable     listenAddress `help:"Address of the Bigtable endpoint (gRPC), or off. Default: 127.0.0.1:8086; off with --target." placeholder:"HOST:PORT" group:"Endpoints:"`
	DynamoDB     listenAddress `name:"dynamodb" help:"Address of the DynamoDB endpoint, or off. Default: ${default}." default:"127.0.0.1:8000" placeholder:"HOST:PORT" group:"Endpoints:"`
	BigtableREST listenAddress `name:"bigtable-rest" help:"Address of a second Bigtable endpoint, for gcloud and other clients that speak HTTP with JSON. Default: off." placeholder:"HOST:PORT" group:"Endpoints:" rare:""`
	PortFile     string        `help:"Write the addresses to this file as JSON when ready; docs/serve.md describes the format. The file is removed on exit." placeholder:"FILE" group:"Endpoints:"`

	Data     string   `help:"Store the data in this folder; acknowledged writes survive a crash. Default: in memory." placeholder:"DIR" group:"Data:"`
	Mapping  []string `help:"Lay out a DynamoDB table as this mapping file describes; repeatable." placeholder:"FILE" sep:"none" group:"Data:"`
	Project  string   `help:"Project of the tables, unless --target names it. Default: ${default}." default:"tabletop" placeholder:"ID" group:"Data:"`
	Instance string   `help:"Instance of the tables, unless --target names it. Default: ${default}." default:"tabletop" placeholder:"ID" group:"Data:"`

	Seeds seedFlags `embed:"" group:"Data:"`

	Control consoleFlags `embed:"" group:"Console and control API:"`
	Access  accessFlags  `embed:"" group:"Access:"`
	Web     webFlags     `embed:"" group:"Web pages:"`

	Target   string        `help:"Serve the DynamoDB endpoint over this Bigtable instead of a built-in one: an emulator (plain gRPC, or TLS with --ca) or Cloud Bigtable. Excludes --data, --bigtable, --bigtable-rest, --console and the flags under Bigtable." placeholder:"HOST:PORT|projects/P/instances/I" group:"Another Bigtable:"`
	Check    bool          `help:"Check that the target can be used, print the result, and exit: 0 if it can, 3 if not. Changes nothing." group:"Another Bigtable:"`
	Profile  string        `name:"app-profile" help:"App profile of the target's instance; it must route to a single cluster and allow single-row transactions. Default: the instance's default profile." placeholder:"ID" group:"Another Bigtable:" rare:""`
	Token    string        `name:"target-token-file" help:"Send the token in this file to the target. Default for projects/P/instances/I: application default credentials." placeholder:"FILE" group:"Another Bigtable:" rare:""`
	Endpoint string        `help:"Connect to projects/P/instances/I at this address over TLS, instead of Google's address." placeholder:"HOST:PORT" group:"Another Bigtable:" rare:""`
	CA       string        `name:"ca" help:"Trust these certificates (PEM), and use TLS for the target." placeholder:"FILE" group:"Another Bigtable:" rare:""`
	Compress bool          `help:"Compress requests to the target, and its responses, with gzip. Saves bandwidth, costs CPU." group:"Another Bigtable:" rare:""`
	Timeout  time.Duration `name:"call-timeout" help:"How long the target may take to answer a call. Default: ${default}." default:"10s" placeholder:"DURATION" group:"Another Bigtable:" rare:""`

	Limits      limits         `help:"How to enforce the documented limits: strict (short names are allowed), production (also rejects short ids and display names, unknown zones and long descriptions) or off. Default: strict." placeholder:"strict|production|off" group:"Bigtable:"`
	GC          gcMode         `name:"gc" help:"When expired cells are removed: background (every --gc-interval, as in the service), eager (no read shows them), or manual (never). Default: background." placeholder:"background|eager|manual" group:"Bigtable:"`
	GCInterval  *time.Duration `name:"gc-interval" help:"How often --gc=background and --gc=eager collect garbage. Default: 1m." placeholder:"DURATION" group:"Bigtable:" rare:""`
	AdminDelay  time.Duration  `name:"admin-delay" help:"How long admin operations take; new resources are CREATING meanwhile. Default: 0s." placeholder:"DURATION" group:"Bigtable:"`
	Lag         time.Duration  `name:"replication-lag" help:"How long a write takes to reach the other clusters of its instance. Affects reads, consistency tokens and change streams. Default: 0s." placeholder:"DURATION" group:"Bigtable:" rare:""`
	ViewLag     viewLag        `name:"view-lag" help:"Lag of materialized views; manual waits for ctl refresh. Default: 0s." placeholder:"manual|DURATION" group:"Bigtable:"`
	Churn       float64        `name:"partition-churn" help:"Probability, 0 to 1, that partitions of a Bigtable change stream split or merge after a record is read. Default: 0." placeholder:"P" group:"Bigtable:" rare:""`
	KeepDeleted *int64         `name:"keep-deleted" help:"Keep at most this many MiB of deleted tables for UndeleteTable, for at most 7 days; the oldest are removed first. Default: 128 in memory, all with --data." placeholder:"MIB" group:"Bigtable:" rare:""`
	KeepTables  *int           `name:"keep-deleted-tables" help:"Keep at most this many deleted tables for UndeleteTable, for at most 7 days; the oldest are removed first. Default: 100 in memory, all with --data." placeholder:"N" group:"Bigtable:" rare:""`
	BackupBytes *int64         `name:"backup-bytes" help:"Maximum total size of all backups, in MiB; a backup that would exceed it is rejected. Default: 4096 in memory, unlimited with --data." placeholder:"MIB" group:"Bigtable:" rare:""`
	SQLMemory   *int64         `name:"sql-memory" help:"Maximum memory for the rows that a SQL query sorts, groups or unpacks, in MiB; a query that needs more fails. Default: 64." placeholder:"MIB" group:"Bigtable:" rare:""`

	Dynamo      dynamoDBFlags `embed:"" group:"DynamoDB:"`
	TTLInterval time.Duration `name:"ttl-interval" help:"How often expired DynamoDB items are deleted. Default: ${default}." default:"1m" placeholder:"DURATION" group:"DynamoDB:" rare:""`

	Grace      time.Duration `help:"How long a stop waits for requests in flight; a second Ctrl-C stops at once. Default: ${default}." default:"5s" placeholder:"DURATION" group:"Process:" rare:""`
	UntilStdin bool          `name:"until-stdin-closes" help:"Stop when standard input closes, for example when the parent process exits." group:"Process:" rare:""`
	CPUProfile string        `name:"cpu-profile" help:"Write a CPU profile to this file at the end, for go tool pprof." placeholder:"FILE" group:"Process:" rare:""`
}

func (*serveCommand) examples() []example {
	return []example{
		{"Serve both endpoints, with the data in memory", "tabletop serve"},
		{"Keep the data on disk, and show it in the browser", "tabletop serve --data store --console"},
		{"Use free ports for a test suite, which waits for the file", "tabletop serve --bigtable 127.0.0.1:0 --dynamodb 127.0.0.1:0 --port-file ports.json"},
		{"Serve a DynamoDB table whose rows a mapping lays out", "tabletop serve --mapping orders.yaml"},
		{"Serve DynamoDB over Cloud Bigtable", "tabletop serve --target projects/shop/instances/main"},
	}
}

// gcMode selects when expired cells are removed; "" is gcBackground.
type gcMode string

const (
	gcBackground gcMode = "background"
	gcEager      gcMode = "eager"
	gcManual     gcMode = "manual"

	// defaultGCInterval is the time between two collections.
	defaultGCInterval = time.Minute
)

// limits is limitsStrict, limitsProduction or limitsOff; "" is limitsStrict.
type limits string

const (
	limitsStrict     limits = "strict"
	limitsProduction limits = "production"
	limitsOff        limits = "off"
)

// validate checks the flags and their combinations.
func (c *serveCommand) validate(*kong.Context) error {
	if c.CA != "" && c.Target == "" {
		return errors.New("--ca needs --target; for the built-in servers use --tls-cert")
	}
	if c.Target == "" && (c.Endpoint != "" || c.Profile != "" || c.Token != "" || c.Check || c.Compress) {
		return errors.New("--endpoint, --app-profile, --target-token-file, --compress and --check need --target")
	}
	if c.Target != "" {
		if _, _, err := net.SplitHostPort(c.Target); err != nil && !cloudInstance.MatchString(c.Target) {
			return fmt.Errorf("--target: %q must be HOST:PORT or projects/P/instances/I: %w", c.Target, err)
		}
		switch {
		case c.Data != "":
			return errors.New("--target and --data cannot be combined: the target stores the data")
		case c.Bigtable != "" && c.Bigtable != off:
			return errors.New("--target and --bigtable cannot be combined: the target is the Bigtable")
		case c.BigtableREST != "" && c.BigtableREST != off:
			return errors.New("--target and --bigtable-rest cannot be combined: the target is the Bigtable")
		case c.DynamoDB == off:
			return errors.New("--target needs the DynamoDB endpoint, which --dynamodb turns off")
		case c.GC != "" || c.GCInterval != nil || c.KeepDeleted != nil || c.KeepTables != nil || c.BackupBytes != nil || c.SQLMemory != nil || c.Limits != "" || c.AdminDelay != 0 || c.Lag != 0 || c.ViewLag != 0 || c.Churn != 0:
			return errors.New("--target cannot be combined with --gc, --gc-interval, --keep-deleted, --keep-deleted-tables, --backup-bytes, --sql-memory, --admin-delay, --replication-lag, --view-lag, --partition-churn or --limits: the target determines these")
		}
	}
	if c.KeepDeleted != nil && (*c.KeepDeleted < 0 || *c.KeepDeleted > math.MaxInt64>>20) {
		return fmt.Errorf("--keep-deleted: %d must be a number of MiB, 0 or more", *c.KeepDeleted)
	}
	if c.KeepTables != nil && *c.KeepTables < 1 {
		return fmt.Errorf("--keep-deleted-tables: %d must be 1 or more", *c.KeepTables)
	}
	if c.BackupBytes != nil && (*c.BackupBytes < 0 || *c.BackupBytes > math.MaxInt64>>20) {
		return fmt.Errorf("--backup-bytes: %d must be a number of MiB, 0 or more", *c.BackupBytes)
	}
	if c.SQLMemory != nil && (*c.SQLMemory < 1 || *c.SQLMemory > math.MaxInt64>>20) {
		return fmt.Errorf("--sql-memory: %d must be a number of MiB, 1 or more", *c.SQLMemory)
	}
	if !(c.Churn >= 0 && c.Churn <= 1) {
		return fmt.Errorf("--partition-churn: %v must be a probability from 0 to 1", c.Churn)
	}
	if c.Bigtable == off && c.DynamoDB == off {
		return errors.New("--bigtable and --dynamodb are both off: nothing to serve")
	}
	if err := errors.Join(c.Access.check(c.Bigtable, c.BigtableREST, c.DynamoDB), c.Web.check(), c.Control.check(c.Access, c.Target)); err != nil {
		return err
	}
	switch c.GC {
	case "", gcBackground, gcEager:
	case gcManual:
		if c.GCInterval != nil {
			return errors.New("--gc manual and --gc-interval cannot be combined: manual never collects")
		}
	default:
		return fmt.Errorf("--gc: %q must be background, eager or manual", c.GC)
	}
	if c.GCInterval != nil && *c.GCInterval <= 0 {
		return fmt.Errorf("--gc-interval: %v must be greater than 0s; --gc manual never collects", *c.GCInterval)
	}
	if c.TTLInterval <= 0 {
		return fmt.Errorf("--ttl-interval: %v must be greater than 0s", c.TTLInterval)
	}
	if c.Timeout <= 0 {
		return fmt.Errorf("--call-timeout: %v must be greater than 0s", c.Timeout)
	}
	if err := checkPlace(c.Project, c.Instance); err != nil {
		return err
	}
	if c.AdminDelay < 0 {
		return fmt.Errorf("--admin-delay: %v must not be negative", c.AdminDelay)
	}
	if c.Lag < 0 || c.Lag > emu.MaxReplicationLag {
		return fmt.Errorf("--replication-lag: %v must be between 0s and %v", c.Lag, emu.MaxReplicationLag)
	}
	if lag := time.Duration(c.ViewLag); lag != emu.ManualViews && (lag < 0 || lag > emu.MaxViewLag) {
		return fmt.Errorf("--view-lag: %v must be manual, or between 0s and %v", lag, emu.MaxViewLag)
	}
	if c.Grace < 0 {
		return fmt.Errorf("--grace: %v must not be negative", c.Grace)
	}
	switch c.Limits {
	case "", limitsStrict, limitsProduction, limitsOff:
	default:
		return fmt.Errorf("--limits: %q must be strict, production or off", c.Limits)
	}
	return errors.Join(c.Seeds.check(c), c.Dynamo.check(c.Access, len(c.Mapping)))
}

// Run serves until ctx ends, then stops cleanly.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	return c.serve(ctx, p, beginning{})
}

// beginning is the initial state of a server, besides its flags.
type beginning struct {
	mappings []*mapping.Mapping
	// load writes the demo to the store, before the DynamoDB endpoint opens. It is nil without a demo.
	load     func(context.Context, *lab.Lab) error
	fixtures fs.FS // in place of --fixtures
	// announce prints the ready lines of another program, which the command replaces. It is nil for serve.
	announce func(*serving)
}

func (c *serveCommand) serve(ctx context.Context, p *program, with beginning) (err error) {
	if c.UntilStdin {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			_, _ = io.Copy(io.Discard, p.stdin) // an error ends it too
			cancel()
		}()
	}
	if p.alone {
		paceHeap()
	}
	if err := removePortFile(c.PortFile); err != nil { // first of all: a waiting client must not see an earlier server's file
		return fmt.Errorf("--port-file: %w", err)
	}
	profiled, err := startCPUProfile(c.CPUProfile)
	if err != nil {
		return fmt.Errorf("--cpu-profile: %w", err)
	}
	defer func() {
		if stopErr := profiled(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("--cpu-profile: %w", stopErr))
		}
	}()
	mappings, err := loadMappings(c.Mapping)
	if err != nil {
		return err
	}
	seeds, mappings, err := c.Seeds.open(append(mappings, with.mappings...))
	if err != nil {
		return err
	}
	secure, err := c.Access.tls()
	if err != nil {
		return err
	}
	token, err := c.Access.token()
	if err != nil {
		return err
	}
	if weak := token != "" && len(token) < leastTokenBytes; weak && (c.Access.Public || c.Control.on()) {
		_, _ = fmt.Fprintf(p.stderr, "tabletop: warning: the token of --token-file has %s, and can be guessed: use at least %d\n", phrase.Counted(int64(len(token)), "character"), leastTokenBytes)
	}
	s := &serving{
		command:  c,
		tls:      secure,
		token:    token,
		program:  p,
		replaces: with.announce != nil,
		clock:    clock.New(),
		logger:   slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		failed:   make(chan error, 3),
	}
	defer func() { err = errors.Join(err, s.stop()) }()

	if c.DynamoDB != off {
		warnOfLeftOut(p.stderr, mappings)
	}
	dynamoDB, err := s.dynamoDBOptions(mappings)
	if err != nil {
		return err
	}
	var observed *control.Requests // nil: requests are not recorded
	if c.Control.on() {
		observed = control.NewRequests()
		dynamoDB.Observe = observed.ObserveDynamoDB
	}
	if c.Target != "" {
		if done, err := s.connect(ctx, &dynamoDB); done || err != nil {
			return err
		}
	} else {
		err = s.openBigtable(dynamoDB, observed)
	}
	if err != nil {
		return err
	}
	if with.load != nil {
		if err := with.load(ctx, s.lab); err != nil {
			return err
		}
	}
	if err := s.fill(ctx, seeds, dynamoDB); err != nil {
		return err
	}
	if err := s.openDynamoDB(ctx, dynamoDB); err != nil {
		return err
	}
	if err := errors.Join(s.openBigtableREST(), s.openConsole(ctx, observed, with)); err != nil {
		return err
	}
	if err := s.writePortFile(); err != nil {
		return fmt.Errorf("--port-file: %w", err)
	}
	if with.announce != nil {
		with.announce(s)
	} else {
		s.announce()
	}
	select {
	case <-ctx.Done():
		s.stopped = true
		return nil
	case err := <-s.failed:
		return err
	}
}

// serving is a running serve command.
type serving struct {
	command *serveCommand
	program *program
	clock   *clock.Clock
	logger  *slog.Logger
	tls     *tls.Config // nil for plain text
	token   string      // "": not required
	failed  chan error  // receives the error of an endpoint that fails
	// replaces means that the command is a stand-in for another program, without flags for access.
	replaces bool

	lab      *lab.Lab           // nil with --target
	endpoint *dynamodb.Endpoint // of lab
	leads    sync.Mutex         // held while saving the clock's lead

	bigtableAddr, dynamoDBAddr, restAddr, consoleAddr net.Addr // nil for a disabled endpoint
	consoleToken                                      string   // "": same as token
	closers                                           []func() error
	deadline                                          time.Time // of the stop
	background                                        sync.WaitGroup
	stopped                                           bool // on request, after the start
}

// openBigtable opens the store and starts its due work. It starts the Bigtable endpoint, unless that
// is off. dynamoDB holds the options for s.endpoint, which openDynamoDB opens.
func (s *serving) openBigtable(dynamoDB facade.Options, observed *control.Requests) error {
	c := s.command
	options := engine.Options{Dir: c.Data, EagerGC: c.GC == gcEager}
	if c.KeepDeleted != nil {
		options.KeepDeletedBytes = max(1, *c.KeepDeleted<<20) // 0 means the default
	}
	if c.KeepTables != nil {
		options.KeepDeletedTables = *c.KeepTables
	}
	if c.BackupBytes != nil {
		options.BackupBytes = max(1, *c.BackupBytes<<20) // 0 means the default
	}
	o := emu.Options{Token: s.token, AdminDelay: c.AdminDelay, ReplicationLag: c.Lag, ViewLag: time.Duration(c.ViewLag), PartitionChurn: c.Churn}
	if c.SQLMemory != nil {
		o.SQLMemory = *c.SQLMemory << 20
	}
	if observed != nil {
		o.Observe, o.CountLoad = observed.Observe, true
	}
	switch c.Limits {
	case limitsStrict: // the default
	case limitsOff:
		o.Limits = emu.NoLimits
	case limitsProduction:
		o.Limits = emu.ProductionLimits
	}
	setup := lab.Options{
		Clock: s.clock, Logger: s.logger, Project: c.Project, Instance: c.Instance,
		Faultless: observed == nil, Store: options, Bigtable: o,
	}
	switch {
	case c.GC == gcManual:
	case c.GCInterval != nil:
		setup.GCInterval = *c.GCInterval
	default:
		setup.GCInterval = defaultGCInterval
	}
	if c.Data != "" {
		if err := s.takeLead(); err != nil {
			return err
		}
	}
	s.lab = lab.New(setup)
	s.endpoint = dynamodb.New(s.lab, dynamoDB)
	if err := s.lab.Open(); err != nil {
		return dataError(err)
	}
	s.closers = append(s.closers, s.lab.Close)
	srv := s.lab.Bigtable()
	s.every(dueInterval, func(ctx context.Context) {
		if err := srv.RunDue(ctx); err != nil && ctx.Err() == nil {
			s.logger.Error("due work failed, and will be retried", "error", err)
		}
	})
	addr := c.Bigtable
	switch addr {
	case off:
		return nil
	case "":
		addr = "127.0.0.1:8086"
	}
	lis, tracked, err := s.listen("--bigtable", addr, "h2", http2Greeting)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error {
		s.wait(tracked, func(ctx context.Context) {
			end := context.AfterFunc(ctx, func() {
				tracked.cut(true)
				_ = srv.Close()
			})
			defer end()
			srv.GracefulStop()
		})
		return nil
	})
	s.bigtableAddr = lis.Addr()
	s.background.Go(func() {
		if err := srv.Serve(lis); err != nil {
			s.failed <- fmt.Errorf("--bigtable: %w", err)
		}
	})
	return nil
}

// dynamoDBOptions returns the options of the DynamoDB endpoint, except for its Bigtable. It opens
// the folder of the buckets, which s.closers close.
func (s *serving) dynamoDBOptions(mappings []*mapping.Mapping) (facade.Options, error) {
	c := s.command
	o := facade.Options{
		Project: c.Project, Instance: c.Instance, Mappings: mappings, Now: s.clock.Now, Logger: s.logger,
		Progress: (&worker{w: s.program.stderr}).report,
	}
	if c.Target != "" {
		o.Deadline, o.Concurrency = c.Timeout, targetConcurrency
	} else {
		o.Slot = "serve" // the built-in store has one process
	}
	if dir := c.Dynamo.Buckets; dir != "" {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return o, badInput("--buckets: %w", err)
		}
		s.closers = append(s.closers, root.Close)
		o.Buckets = root
	}
	err := c.Dynamo.apply(&o, s.token)
	return o, err
}

// startDynamoDB starts the DynamoDB endpoint. It returns its handler, and a function that
// deletes expired items.
func (s *serving) startDynamoDB(ctx context.Context, o facade.Options) (exchange.Handler, func(context.Context) (int, error), error) {
	if s.lab != nil {
		return s.endpoint.Handler(), s.endpoint.ReapExpired, s.endpoint.Open()
	}
	f, err := facade.New(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	s.closers = append(s.closers, f.Close)
	return f.Handler(), f.ReapExpired, nil
}

func (s *serving) openDynamoDB(ctx context.Context, o facade.Options) error {
	c := s.command
	if c.DynamoDB == off {
		return nil
	}
	s.exportAtStop(o)
	handler, reap, err := s.startDynamoDB(ctx, o)
	if err != nil {
		return c.ofEndpoint(err)
	}
	s.every(c.TTLInterval, func(ctx context.Context) {
		deleted, err := reap(ctx)
		if deleted > 0 { // deletions without a request are logged
			s.logger.Warn("deleted expired items", "items", deleted)
		}
		if err != nil && ctx.Err() == nil {
			s.logger.Error("deleting expired items failed", "error", err)
		}
	})
	lis, tracked, err := s.listen("--dynamodb", c.DynamoDB, "http/1.1", 0)
	if err != nil {
		return err
	}
	s.dynamoDBAddr = lis.Addr()
	s.serveWeb("--dynamodb", fastserver.New(fastserver.Options{
		Handler: guarded{&c.Web, handler}, Logger: s.logger, HeadTime: headTime, MaxHeadBytes: maxDynamoDBHeaderBytes + 4<<10,
		Arrived: func(c net.Conn) { trackedConnOf(c).asked.Store(true) },
		Idle:    func(c net.Conn) { trackedConnOf(c).asked.Store(false) },
	}), lis, tracked, nil)
	return nil
}

// dueInterval is the interval of checks for due work.
const dueInterval = time.Second

// every calls do periodically until stop, which cancels and awaits a running call.
func (s *serving) every(interval time.Duration, do func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.closers = append(s.closers, func() error {
		cancel()
		<-ended
		return nil
	})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				do(ctx)
			}
		}
	}()
}

// listen opens a port for a protocol whose connections begin with greeting bytes. It warns if
// other machines can reach the port without credentials. The result is the tracked listener, or
// a TLS listener over it.
func (s *serving) listen(flag string, addr listenAddress, protocol string, greeting int) (net.Listener, *trackedListener, error) {
	lis, err := net.Listen("tcp", string(addr))
	if err != nil {
		return nil, nil, listenError(flag, addr, err)
	}
	tracked := newTrackedListener(quicknet.Listen(lis), greeting)
	if tcp, ok := lis.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && s.token == "" && !s.replaces {
		_, _ = fmt.Fprintf(s.program.stderr,
			"tabletop: warning: %s %s can be reached from other machines without credentials; require a token with --token-file\n", flag, lis.Addr())
	}
	if s.tls == nil {
		return tracked, tracked, nil
	}
	config := s.tls.Clone()
	config.NextProtos = []string{protocol}
	return tls.NewListener(tracked, config), tracked, nil
}

// wait ends an endpoint by stop, which waits for requests in flight until its context ends.
// Incomplete requests do not count.
func (s *serving) wait(tracked *trackedListener, stop func(ctx context.Context)) {
	ctx, cancel := context.WithDeadline(context.Background(), s.deadline)
	defer cancel()
	notice := time.AfterFunc(stopNotice, func() {
		_, _ = fmt.Fprintf(s.program.stderr, "tabletop: waiting for requests in flight, at most %v; Ctrl-C ends them at once\n", s.command.Grace)
	})
	defer notice.Stop()
	tracked.cut(false)
	stop(ctx)
}

// stop closes everything in reverse order: the endpoints, then the store.
func (s *serving) stop() error {
	s.deadline = time.Now().Add(s.command.Grace)
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		if err := s.closers[i](); err != nil {
			errs = append(errs, err)
		}
	}
	s.background.Wait()
	return errors.Join(errs...)
}
