// Command cbtemulator serves Bigtable with the command line of Google's Cloud Bigtable
// emulator: it takes the same flags, prints the same ready line, and keeps the
// data in memory. Scripts and containers that start that emulator can start this one.
//
//	cbtemulator -host 127.0.0.1 -port 9000
//
// The differences: Bigtable's limits are enforced, garbage is collected once a
// minute, as in the service, and SIGTERM also stops it cleanly. Further features, such
// as data on disk, are in `tabletop serve`.
//
// It exits 0 after SIGINT or SIGTERM, 1 when it cannot serve, 2 for a bad
// flag.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/quicknet"
)

// The exit codes.
const (
	exitStopped = 0
	exitFailed  = 1
	exitBadFlag = 2
)

// stopTimeout bounds how long a clean stop waits for requests in flight.
const stopTimeout = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run serves until ctx ends and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("cbtemulator", flag.ContinueOnError)
	flags.SetOutput(stderr)
	host := flags.String("host", "127.0.0.1", "the address to listen on; IPv6 with or without brackets")
	port := flags.Uint("port", 9000, "the port to listen on; 0 selects a free one")
	address := flags.String("address", "", "HOST:PORT, or the path of a Unix socket, to listen on; takes precedence over -host and -port")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitStopped
	} else if err != nil {
		return exitBadFlag // already reported
	}
	switch {
	case flags.NArg() > 0:
		_, _ = fmt.Fprintf(stderr, "cbtemulator: unexpected argument %q\n", flags.Arg(0))
		return exitBadFlag
	case *port > 65535:
		_, _ = fmt.Fprintf(stderr, "cbtemulator: -port %d is not a port\n", *port)
		return exitBadFlag
	}
	if *address == "" {
		bare := strings.TrimSuffix(strings.TrimPrefix(*host, "["), "]")
		*address = net.JoinHostPort(bare, strconv.FormatUint(uint64(*port), 10))
	}
	if err := serve(ctx, *address, stdout, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "failed to start emulator: %v\n", err)
		return exitFailed
	}
	return exitStopped
}

// keepDue runs due work once a second until stop is called: automated backups and the deletion
// of expired ones.
func keepDue(srv *emu.Server, logger *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := srv.RunDue(ctx); err != nil && ctx.Err() == nil {
				logger.Error("due work failed, and will be retried", "error", err)
			}
		}
	})
	return func() {
		cancel()
		background.Wait()
	}
}

// serve serves an empty Bigtable at an address until ctx ends.
func serve(ctx context.Context, address string, stdout, stderr io.Writer) (err error) {
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	network := "tcp"
	if strings.Contains(address, "/") {
		network = "unix"
	}
	lis, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	wall := clock.New()
	db, err := engine.Open(engine.Options{Now: wall.Now, Logger: logger})
	if err != nil {
		return errors.Join(err, lis.Close())
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.StartGC(engine.GCSchedule{}); err != nil { // it ends with db
		return errors.Join(err, lis.Close())
	}
	srv, err := emu.New(emu.Options{DB: db, Clock: wall, Logger: logger})
	if err != nil {
		return errors.Join(err, lis.Close())
	}
	stopDue := keepDue(srv, logger)
	defer stopDue()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(quicknet.Listen(lis)) }()
	_, _ = fmt.Fprintf(stdout, "Cloud Bigtable emulator running on %s\n", lis.Addr())

	select {
	case err := <-served:
		return errors.Join(err, srv.Close())
	case <-ctx.Done():
	}
	_, _ = fmt.Fprintf(stdout, "Cloud Bigtable emulator running on %s is now shutting down\n", lis.Addr())
	hurry := time.AfterFunc(stopTimeout, func() { _ = srv.Close() })
	defer hurry.Stop()
	srv.GracefulStop()
	return errors.Join(<-served, srv.Close())
}
