package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
)

const (
	// healthTimeout bounds a check of one endpoint.
	healthTimeout = 3 * time.Second
	// healthPause is the interval of checks with --wait.
	healthPause = 100 * time.Millisecond
	// maxHealthBytes bounds the answer of an endpoint.
	maxHealthBytes = 4 << 10
)

// healthCommand checks whether a server answers. Its flags are those of serve, so the variables
// that configure a server also lead its check to it.
type healthCommand struct {
	Bigtable  listenAddress `help:"Address of the Bigtable endpoint, as in serve, or off." placeholder:"HOST:PORT" group:"Server:"`
	DynamoDB  listenAddress `name:"dynamodb" help:"Address of the DynamoDB endpoint, as in serve, or off." placeholder:"HOST:PORT" group:"Server:"`
	PortFile  string        `help:"Read the addresses from the port file of the server instead." placeholder:"FILE" group:"Server:"`
	TLSCert   string        `name:"tls-cert" help:"File with the certificate (PEM) that the server must present." placeholder:"FILE" group:"Server:"`
	TokenFile string        `name:"token-file" help:"File with the token of the server." placeholder:"FILE" group:"Server:"`
	Wait      time.Duration `help:"How long to wait until the server is healthy. Default: ${default}." default:"0s" placeholder:"DURATION" group:"Check:"`
}

// Help is the long help of the command.
func (*healthCommand) Help() string {
	return `Checks the endpoints of a running server by gRPC's health service and by GET /. It checks the given endpoints; without any, those of $BIGTABLE_EMULATOR_HOST and $AWS_ENDPOINT_URL_DYNAMODB, or else both default addresses of serve.

Exits 0 if all are healthy, 3 if one is not, 2 for a bad flag.`
}

func (*healthCommand) examples() []example {
	return []example{
		{"Check a server with the default addresses", "tabletop healthcheck"},
		{"Wait in a script until a server is ready", "tabletop healthcheck --port-file ports.json --wait 30s"},
		{"Check a server without a DynamoDB endpoint", "tabletop healthcheck --bigtable 127.0.0.1:8086"},
	}
}

// validate checks the flags.
func (c *healthCommand) validate(*kong.Context) error {
	if c.Wait < 0 {
		return fmt.Errorf("--wait: %v must not be negative", c.Wait)
	}
	for _, given := range []struct {
		flag string
		addr listenAddress
	}{{"--bigtable", c.Bigtable}, {"--dynamodb", c.DynamoDB}} {
		if _, port, err := net.SplitHostPort(string(given.addr)); err == nil && port == "0" && c.PortFile == "" {
			return fmt.Errorf("%s: with port 0 the server chooses a port: pass its --port-file", given.flag)
		}
	}
	return nil
}

// Run checks the server until it is healthy or the time is over.
func (c *healthCommand) Run(ctx context.Context, p *program) error {
	check := healthCheck{}
	var err error
	if check.token, err = readToken("--token-file", c.TokenFile); err != nil {
		return err
	}
	if check.tls, err = c.tls(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	for {
		var healthy []string
		if check.bigtable, check.dynamoDB, err = c.addresses(); err == nil {
			healthy, err = check.run(ctx)
		}
		if _, isInput := errors.AsType[*exitError](err); err != nil && isInput {
			return err
		}
		if err == nil {
			_, _ = fmt.Fprintf(p.stdout, "healthy: %s\n", strings.Join(healthy, ", "))
			return nil
		}
		select {
		case <-limited.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(healthPause):
		}
	}
}

// addresses returns the address of the Bigtable endpoint and the URL of the DynamoDB endpoint; ""
// is not checked. If neither a flag nor a variable names one, it sets the flags to the defaults of
// serve.
func (c *healthCommand) addresses() (bigtable, dynamoDB string, err error) {
	if c.PortFile != "" {
		return c.readPorts()
	}
	if c.Bigtable == "" && c.DynamoDB == "" {
		bigtable, dynamoDB = environmentTarget(), os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
		if bigtable != "" || dynamoDB != "" {
			return bigtable, dynamoDB, nil
		}
		c.Bigtable, c.DynamoDB = "127.0.0.1:8086", "127.0.0.1:8000"
	}
	if c.Bigtable != "" && c.Bigtable != off {
		bigtable = reachable(string(c.Bigtable))
	}
	if c.DynamoDB != "" && c.DynamoDB != off {
		dynamoDB = "http://" + reachable(string(c.DynamoDB))
		if c.TLSCert != "" {
			dynamoDB = "https://" + reachable(string(c.DynamoDB))
		}
	}
	if bigtable == "" && dynamoDB == "" {
		return "", "", badInput("healthcheck: no endpoint is left to check")
	}
	return bigtable, dynamoDB, nil
}

// readPorts returns the addresses of the port file. It leaves out a Bigtable that is an instance
// in Cloud Bigtable (projects/...), and returns that of a --target HOST:PORT.
func (c *healthCommand) readPorts() (bigtable, dynamoDB string, err error) {
	text, err := os.ReadFile(c.PortFile)
	if err != nil {
		return "", "", fmt.Errorf("--port-file: %w", err)
	}
	var found ports
	if err := json.Unmarshal(text, &found); err != nil {
		return "", "", badInput("--port-file: %s is not the port file of a server: %w", c.PortFile, err)
	}
	if found.Bigtable != nil && !cloudInstance.MatchString(*found.Bigtable) {
		bigtable = *found.Bigtable
	}
	if found.DynamoDB != nil {
		dynamoDB = *found.DynamoDB
	}
	return bigtable, dynamoDB, nil
}

// reachable returns the address to dial for a listen address; one on all interfaces is dialed on
// the loopback.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}

// tls returns the configuration for --tls-cert, or nil. The server is recognized by its
// certificate instead of its name, since a check uses a loopback address.
func (c *healthCommand) tls() (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.TLSCert)
	if err != nil {
		return nil, badInput("--tls-cert: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, badInput("--tls-cert: %s has no certificate in PEM", c.TLSCert)
	}
	want, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, badInput("--tls-cert: %s: %w", c.TLSCert, err)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection compares the whole certificate
		VerifyConnection: func(state tls.ConnectionState) error {
			if !state.PeerCertificates[0].Equal(want) {
				return fmt.Errorf("the server does not present the certificate in %s", c.TLSCert)
			}
			return nil
		},
	}, nil
}

// healthCheck checks endpoints; an empty address is left out.
type healthCheck struct {
	bigtable, dynamoDB string
	token              string
	tls                *tls.Config
}

// run checks the endpoints that have an address, and returns their names with the addresses.
func (h healthCheck) run(ctx context.Context) (healthy []string, err error) {
	for _, each := range []struct {
		name, address string
		check         func(context.Context) error
	}{{"Bigtable", h.bigtable, h.checkBigtable}, {"DynamoDB", h.dynamoDB, h.checkDynamoDB}} {
		if each.address == "" {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, healthTimeout)
		if e := each.check(limited); e != nil {
			err = errors.Join(err, fmt.Errorf("the %s endpoint at %s is not healthy: %w", each.name, each.address, e))
		}
		cancel()
		healthy = append(healthy, each.name+" "+each.address)
	}
	return healthy, err
}

func (h healthCheck) checkBigtable(ctx context.Context) error {
	var options []grpc.DialOption
	if h.tls != nil {
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(h.tls)))
	}
	conn, err := dialBigtable(h.bigtable, "name its certificate (--tls-cert FILE)", options...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if h.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+h.token)
	}
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err == nil && answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		err = fmt.Errorf("its status is %v", answer.GetStatus())
	}
	return err
}

func (h healthCheck) checkDynamoDB(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(h.dynamoDB, "/")+"/", nil)
	if err != nil {
		return badInput("healthcheck: %w", err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: h.tls, DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxHealthBytes))
	if err != nil {
		return err
	}
	healthy := resp.StatusCode == http.StatusOK && strings.HasPrefix(string(text), "healthy")
	// The answer of --like dynamodb-local.
	healthy = healthy || resp.StatusCode == http.StatusBadRequest && strings.Contains(string(text), "MissingAuthenticationToken")
	if !healthy {
		return fmt.Errorf("it answered %s", resp.Status)
	}
	return nil
}
