package testkit

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/tabletop-emu/tabletop/control"
	labdynamodb "github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/control/lab/fault"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// Env is a private server with a Bigtable endpoint and a DynamoDB endpoint. The embedded
// [btkit.Env] has the methods for Bigtable, the clock, faults, snapshots and rows. All methods are
// safe for concurrent use. Methods that take a testing.TB fail that test; the other methods fail
// the test that was passed to Start, or panic after its end.
type Env struct {
	*btkit.Env

	server    *server.Server
	ddb       *labdynamodb.Endpoint
	observed  *control.Requests // nil without WithConsole
	followers atomic.Int64      // that were started

	mu      sync.Mutex // guards the fields below, which are set on first use
	http    *http.Server
	httpURL string
	serving sync.WaitGroup // of the Serve loop
}

// open starts the DynamoDB endpoint, unless it is open.
func (e *Env) open(tb testing.TB) {
	tb.Helper()
	e.server.Use(tb)
	if err := e.ddb.Open(); err != nil {
		tb.Fatalf("testkit: DynamoDB server: %v", err)
	}
}

// RoundTripper returns the HTTP transport that [Env.DynamoDB] uses, for tests that create their own
// clients. It passes every request, whatever its host, to the DynamoDB server in this process.
func (e *Env) RoundTripper() http.RoundTripper {
	e.server.TB().Helper()
	e.open(e.server.TB())
	return e.ddb
}

// DynamoDB returns a DynamoDB client for the test tb. The client calls the server in this process
// without a port. It retries as often as the SDK's default, but without delay.
func (e *Env) DynamoDB(tb testing.TB) *dynamodb.Client {
	tb.Helper()
	e.open(tb)
	return dynamodb.NewFromConfig(e.clientConfig())
}

// BigtableTable returns the id of the Bigtable table that holds the items of a DynamoDB table,
// for clients of Bigtable.
func (e *Env) BigtableTable(table string) string {
	e.server.TB().Helper()
	e.open(e.server.TB())
	m, err := e.ddb.Mapping(e.server.Context(), table)
	if err != nil {
		names, _ := e.ddb.Tables(e.server.Context())
		e.server.TB().Fatalf("testkit: BigtableTable(%q): %v%s", table, err, fault.Near(table, names))
	}
	return m.TargetTable()
}

// DynamoDBURL returns the loopback URL of the DynamoDB server, for clients that use
// AWS_ENDPOINT_URL_DYNAMODB or AWS_ENDPOINT_URL_DYNAMODB_STREAMS. The first call opens the port.
func (e *Env) DynamoDBURL() string {
	e.server.TB().Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.http == nil {
		e.open(e.server.TB())
		lis := e.server.Listen()
		e.httpURL = "http://" + lis.Addr().String()
		e.http = &http.Server{Handler: e.ddb, ReadHeaderTimeout: time.Minute}
		e.serving.Go(func() {
			if err := e.http.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
				e.server.TB().Errorf("testkit: DynamoDB server: %v", err)
			}
		})
	}
	return e.httpURL
}

// restart closes the store and opens it again; see server.Server.Reopen.
func (e *Env) restart() error { return e.ddb.Restart(e.server.Reopen) }

// close ends the DynamoDB endpoint, before the server behind it.
func (e *Env) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.http != nil {
		if err := e.http.Close(); err != nil {
			e.server.TB().Errorf("testkit: closing the DynamoDB port: %v", err)
		}
		e.serving.Wait()
	}
	if err := e.ddb.Close(); err != nil {
		e.server.TB().Errorf("testkit: closing the DynamoDB server: %v", err)
	}
}
