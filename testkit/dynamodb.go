package testkit

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
)

// dynamoDBDoor is the DynamoDB server, which a restore replaces by a new one:
// what it knows of its tables would be of another time. It answers HTTP and
// in process.
type dynamoDBDoor struct {
	env    *Env
	faults *faults

	mu     sync.RWMutex // held shared by requests
	server *facade.Server

	pastMu sync.Mutex // taken with mu held; guards past
	past   map[*Snapshot]*pastServer
}

var (
	_ http.Handler      = (*dynamoDBDoor)(nil)
	_ http.RoundTripper = (*dynamoDBDoor)(nil)
)

// clientConfig is that of the clients of the server: they call it in this process, and
// try again without delay.
func (d *dynamoDBDoor) clientConfig() aws.Config {
	return aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: aws.String("http://tabletop.invalid"), // the transport looks at no host
		Credentials:  credentials.NewStaticCredentialsProvider("tabletop", "tabletop", ""),
		HTTPClient:   &http.Client{Transport: d},
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
			})
		},
	}
}

// open starts the server if it is not there.
func (d *dynamoDBDoor) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.openLocked()
}

func (d *dynamoDBDoor) openLocked() error {
	if d.server != nil {
		return nil
	}
	// Opening is not an operation of the door, which faults are meant for.
	var err error
	d.server, err = facade.New(probe(d.env.ctx), d.options(d.env.emu.Conn()))
	return err
}

// options are those of a server over conn.
func (d *dynamoDBDoor) options(conn grpc.ClientConnInterface) facade.Options {
	c := d.env.config
	o := c.dynamoDB
	o.Conn, o.Project, o.Instance, o.Mappings, o.Now = conn, c.project, c.instance, c.mappings, c.clock.Now
	if o.Logger == nil {
		o.Logger = c.logger
	}
	return o
}

// restart runs change while no server is there, and starts a new one if there
// was one.
func (d *dynamoDBDoor) restart(change func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return change()
	}
	err := d.server.Close()
	d.server = nil
	return errors.Join(err, change(), d.openLocked())
}

// nextDue returns when the server has something to do next; see
// facade.Server.NextDue.
func (d *dynamoDBDoor) nextDue(ctx context.Context, after, until time.Time) (time.Time, bool, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		return time.Time{}, false, nil
	}
	return d.server.NextDue(ctx, after, until)
}

// reap lets the server delete the items that have expired.
func (d *dynamoDBDoor) reap(ctx context.Context) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		return nil
	}
	_, err := d.server.ReapExpired(ctx)
	return err
}

// close ends the server if it is there.
func (d *dynamoDBDoor) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server == nil {
		return nil
	}
	err := d.server.Close()
	d.server = nil
	for _, p := range d.past {
		err = errors.Join(err, p.close())
	}
	return err
}

// ServeHTTP hands a request to the server of the moment.
func (d *dynamoDBDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		http.Error(w, "the environment has ended", http.StatusServiceUnavailable)
		return
	}
	resp, r, err := d.faulty(r)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case resp == nil:
		d.server.ServeHTTP(w, r)
	default:
		defer func() { _ = resp.Body.Close() }()
		maps.Copy(w.Header(), resp.Header)
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body) // a client that has gone needs no answer
	}
}

// RoundTrip hands a request to the server of the moment, in this process.
func (d *dynamoDBDoor) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.server == nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errors.New("testkit: the environment has ended")
	}
	resp, r, err := d.faulty(r)
	if resp != nil || err != nil {
		return resp, err
	}
	return d.server.RoundTripper().RoundTrip(r)
}
