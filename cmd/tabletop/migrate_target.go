package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/preflight"
)

// targetEmbedded is the target of a load into a temporary store in memory.
const targetEmbedded = "embedded"

// The addresses of Cloud Bigtable, and the scopes of its credentials.
const (
	cloudDataAddress  = "bigtable.googleapis.com:443"
	cloudAdminAddress = "bigtableadmin.googleapis.com:443"
	cloudScope        = "https://www.googleapis.com/auth/cloud-platform"
)

// caAdvice is the advice for a HOST:PORT that uses TLS.
const caAdvice = "name the certificates to trust (--ca FILE)"

// cloudInstance is a target of Cloud Bigtable.
var cloudInstance = regexp.MustCompile(`^projects/([^/]+)/instances/([^/]+)$`)

// connectFlags configure the connection to a target that is not embedded.
type connectFlags struct {
	Project   string `help:"Project of the tables, unless the address names it. Default: ${default}." default:"tabletop" placeholder:"ID" group:"Bigtable:"`
	Instance  string `help:"Instance of the tables, unless the address names it. Default: ${default}." default:"tabletop" placeholder:"ID" group:"Bigtable:"`
	Endpoint  string `help:"Connect to projects/P/instances/I at this address over TLS, instead of Google's address." placeholder:"HOST:PORT" group:"Bigtable:" rare:""`
	CA        string `name:"ca" help:"Trust these certificates (PEM), and use TLS for a HOST:PORT." placeholder:"FILE" group:"Bigtable:" rare:""`
	TokenFile string `name:"token-file" help:"Send the token in this file. Default for projects/P/instances/I: application default credentials." placeholder:"FILE" group:"Bigtable:" rare:""`

	tokenFlag string // name of the flag of TokenFile; "": token-file

	AppProfile  string        `name:"app-profile" help:"App profile of the instance. Default: the instance's default profile." placeholder:"ID" group:"Bigtable:" rare:""`
	Compress    bool          `help:"Compress requests to a remote Bigtable, and its responses, with gzip. Saves bandwidth, costs CPU." group:"Bigtable:" rare:""`
	CallTimeout time.Duration `name:"call-timeout" help:"How long a remote Bigtable may take to answer a call. Default: ${default}." default:"10s" placeholder:"DURATION" group:"Bigtable:" rare:""`
}

// validateConnection checks the flags.
func (f *connectFlags) validateConnection() error {
	if f.CallTimeout <= 0 {
		return fmt.Errorf("--call-timeout: %v must be greater than 0s", f.CallTimeout)
	}
	return checkPlace(f.Project, f.Instance)
}

// checkPlace rejects a project or instance that is part of a longer name.
func checkPlace(project, instance string) error {
	for _, place := range []struct{ flag, name string }{{"--project", project}, {"--instance", instance}} {
		if strings.Contains(place.name, "/") {
			return fmt.Errorf("%s: %q must not contain a slash; --target projects/P/instances/I names both", place.flag, place.name)
		}
	}
	return nil
}

// deadline returns the deadline of calls; a Bigtable inside this process needs none.
func (f *connectFlags) deadline(text string) time.Duration {
	if text == "" || text == targetEmbedded {
		return 0
	}
	return f.CallTimeout
}

// environmentTarget returns the emulator address from the environment.
func environmentTarget() string { return os.Getenv("BIGTABLE_EMULATOR_HOST") }

// target is the Bigtable with the tables.
type target struct {
	conn              grpc.ClientConnInterface
	project, instance string
	close             func() error
}

// checkTarget rejects an invalid target.
func checkTarget(flag, text string) error {
	if cloudInstance.MatchString(text) {
		return nil
	}
	if _, _, found := strings.Cut(text, ":"); !found || strings.Contains(text, "/") {
		return fmt.Errorf("%s: %q must be HOST:PORT or projects/P/instances/I", flag, text)
	}
	return nil
}

// connect opens the connection to a target that is not embedded, without sending anything.
func (f *connectFlags) connect(ctx context.Context, text string) (*target, error) {
	tokenFlag := cmp.Or(f.tokenFlag, "--token-file")
	token, err := readToken(tokenFlag, f.TokenFile)
	if err != nil {
		return nil, err
	}
	t := &target{project: f.Project, instance: f.Instance}
	m := cloudInstance.FindStringSubmatch(text)
	if m == nil && f.CA == "" { // plain gRPC, as emulators use
		shown := f.dialOptions(false)
		if token != "" {
			shown = append(shown, grpc.WithPerRPCCredentials(bearer{token: token}))
		}
		conn, err := dialBigtable(text, caAdvice, shown...)
		if err != nil {
			return nil, err
		}
		t.conn, t.close = conn, conn.Close
		return t, nil
	}
	secured, err := f.tls()
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{btclient.ReportUnsent(), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes))}
	options = append(options, grpc.WithTransportCredentials(secured))
	options = append(options, f.dialOptions(m != nil)...)
	data, admin := text, text
	if m != nil {
		t.project, t.instance, data, admin = m[1], m[2], cloudDataAddress, cloudAdminAddress
		if f.Endpoint != "" {
			data, admin = f.Endpoint, f.Endpoint
		}
	}
	if token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer{token, true}))
	} else if m != nil {
		shown, err := defaultCredentials(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w (gcloud auth application-default login, or %s)", err, tokenFlag)
		}
		options = append(options, grpc.WithPerRPCCredentials(shown))
	}
	pool := &cloudConn{}
	for range cloudChannels {
		conn, err := grpc.NewClient(data, options...)
		if err != nil {
			return nil, errors.Join(err, pool.close())
		}
		pool.data = append(pool.data, conn)
	}
	if pool.admin, err = grpc.NewClient(admin, options...); err != nil {
		return nil, errors.Join(err, pool.close())
	}
	t.conn, t.close = pool, pool.close
	return t, nil
}

// dialOptions returns the options of any connection. With --compress, messages are compressed
// as by a client library with a compressor.
func (f *connectFlags) dialOptions(cloud bool) []grpc.DialOption {
	options := []grpc.DialOption{findDead(cloud, f.CallTimeout)}
	if f.Compress {
		options = append(options, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))
	}
	return options
}

// cloudChannels is the number of connections for data calls, used in turn. One carries about a
// hundred calls at a time; the official Go client has ten.
// https://cloud.google.com/bigtable/docs/configure-connection-pools
const cloudChannels = 10

// tls returns the TLS settings for servers.
func (f *connectFlags) tls() (credentials.TransportCredentials, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, badInput("--ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, badInput("--ca: %s contains no PEM certificate", f.CA)
		}
	}
	return credentials.NewTLS(config), nil
}

// bearer sends a token with each call.
type bearer struct {
	token   string
	secured bool
}

// GetRequestMetadata returns the header.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

// RequireTransportSecurity reports whether the token requires TLS.
func (b bearer) RequireTransportSecurity() bool { return b.secured }

// cloudConn sends admin calls to their own address, and data calls over several connections in
// turn.
type cloudConn struct {
	data  []*grpc.ClientConn
	admin *grpc.ClientConn
	next  atomic.Uint64
}

func (c *cloudConn) of(method string) *grpc.ClientConn {
	if strings.HasPrefix(method, "/google.bigtable.v2.") {
		return c.data[c.next.Add(1)%uint64(len(c.data))]
	}
	return c.admin
}

// Target names the server in errors.
func (c *cloudConn) Target() string { return c.data[0].Target() }

func (c *cloudConn) close() (err error) {
	for _, conn := range c.data {
		err = errors.Join(err, conn.Close())
	}
	if c.admin != nil {
		err = errors.Join(err, c.admin.Close())
	}
	return err
}

// Invoke implements grpc.ClientConnInterface.
func (c *cloudConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.of(method).Invoke(ctx, method, args, reply, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (c *cloudConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.of(method).NewStream(ctx, desc, method, opts...)
}

// withTarget runs fn on a target; flag is the flag with its name.
func (f *connectFlags) withTarget(ctx context.Context, flag, text string, fn func(t *target) error) error {
	if text == targetEmbedded {
		return withStore("", func(s *store) error {
			return fn(&target{conn: s.conn(), project: f.Project, instance: f.Instance})
		})
	}
	t, err := f.connect(ctx, text)
	if err == nil {
		err = errors.Join(fn(t), t.close())
	}
	if _, ok := errors.AsType[*exitError](err); ok || err == nil {
		return err
	}
	return fmt.Errorf("%s %s: %w", flag, text, preflight.Explain(err))
}

// look checks a target, as serve does, for faults that make every call fail. reads means that
// rows are only read.
func (f *connectFlags) look(ctx context.Context, text string, t *target, reads bool) error {
	if text == "" || text == targetEmbedded || f.AppProfile == "" && !cloudInstance.MatchString(text) {
		return nil // app profiles do not matter to emulators
	}
	return preflight.Start(ctx, preflight.Options{
		Conn: t.conn, Project: t.project, Instance: t.instance, AppProfile: f.AppProfile,
		ReadOnly: reads, Now: time.Now, Deadline: f.deadline(text),
	})
}

// withStored runs fn on stored rows: in the folder data or, if that is "", at a target, as
// withTarget does.
func (f *connectFlags) withStored(ctx context.Context, flag, text, data string, fn func(t *target) error) error {
	if data == "" {
		return f.withTarget(ctx, flag, text, fn)
	}
	if _, err := os.Stat(data); err != nil { // opening would create it
		return badInput("--data: %w", err)
	}
	return withStore(data, func(s *store) error {
		return fn(&target{conn: s.conn(), project: f.Project, instance: f.Instance})
	})
}

// maxMemorySource is the size of a source, by its files, above which its private store is on
// disk.
const maxMemorySource = 32 << 20

// withPrivateStore runs fn on a private Bigtable for the rows of a source: in memory, or for a
// large source in a temporary folder. Its clock is now; nil means the clock of this machine.
func withPrivateStore(source string, now func() time.Time, fn func(s *store) error) (err error) {
	o := inMemory(now)
	if sourceBytes(source) > maxMemorySource {
		o.FS = nil
		if o.Dir, err = os.MkdirTemp("", "tabletop-verify-*"); err != nil {
			return fmt.Errorf("reserving disk space for the rows of a large source: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	return withEngine(o, fn)
}

// inMemory returns the options of a store in memory that survives a restart. Its clock is now;
// nil means the clock of this machine.
func inMemory(now func() time.Time) engine.Options {
	return engine.Options{
		Dir: "/store", FS: engine.NewMemFS(), Now: now,
		NoSync: true, // a crash discards it anyway
	}
}

// fixtureClock returns the clock of a fixture, or nil for the clock of this machine.
func fixtureClock(fsys fs.FS) (func() time.Time, error) {
	at, err := fixtures.Clock(fsys)
	if err != nil || at.IsZero() {
		return nil, err
	}
	return func() time.Time { return at }, nil
}

// sourceBytes estimates the text size of a source. It returns 0 if the files are unreadable,
// which opening the source reports.
func sourceBytes(source string) (size int64) {
	_ = filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // see above
		}
		if info, err := d.Info(); err == nil {
			factor := int64(1)
			if ext := filepath.Ext(name); ext == ".gz" || ext == ".zst" {
				factor = packedFactor
			}
			size += factor * info.Size()
		}
		return nil
	})
	return size
}

// packedFactor is the assumed compression factor of items.
const packedFactor = 6

// withStore runs fn on a private Bigtable, in the folder dir or, if that is "", in memory.
func withStore(dir string, fn func(s *store) error) error {
	return withEngine(engine.Options{Dir: dir}, fn)
}

// dataError explains why the store of --data cannot be opened. If the folder belongs to another
// program, it blames the flag.
func dataError(err error) error {
	if errors.Is(err, engine.ErrInvalid) {
		return badInput("--data: %w", err)
	}
	return fmt.Errorf("--data: %w", err)
}

func withEngine(o engine.Options, fn func(s *store) error) (err error) {
	s := &store{options: o}
	if err := s.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return fn(s)
}

// store is a Bigtable inside this process.
type store struct {
	options engine.Options
	db      *engine.DB // nil if closed
	server  *emu.Server
}

func (s *store) open() error {
	db, err := engine.Open(s.options)
	if err != nil {
		return dataError(err)
	}
	server, err := emu.New(emu.Options{DB: db}) // its own clock: verify uses only cells, whose times come from the DB
	if err != nil {
		return errors.Join(err, db.Close())
	}
	s.db, s.server = db, server
	return nil
}

func (s *store) close() error {
	if s.db == nil {
		return nil
	}
	err := errors.Join(s.server.Close(), s.db.Close())
	s.db, s.server = nil, nil
	return err
}

// conn returns the connection to it, until it is closed or restarted.
func (s *store) conn() grpc.ClientConnInterface { return s.server.Conn() }

func (s *store) runGC(ctx context.Context) error {
	_, err := s.server.RunGC(ctx)
	return err
}

// restart closes it and opens it again. Without a folder or a file system of its own, it comes
// back empty.
func (s *store) restart(context.Context) (grpc.ClientConnInterface, error) {
	if err := s.close(); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s.conn(), nil
}
