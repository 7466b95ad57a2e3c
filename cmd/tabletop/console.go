package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/docs"
)

// consoleFlags are the flags of the control API.
type consoleFlags struct {
	Console     serveConsole `help:"Serve the console for browsers, and the control API for programs and tabletop ctl, at this address. Without HOST:PORT, use a free port on 127.0.0.1. Default: off." placeholder:"HOST:PORT"`
	ConsoleFile string       `name:"console-token-file" help:"Write the control API's token to this file, readable only by its owner. The file is removed on exit." placeholder:"FILE"`
	Fixtures    string       `help:"Folder with the fixtures that the control API may plan, verify and lint." placeholder:"DIR" rare:""`
}

// serveConsole is the listen address of the control API; "" disables it.
type serveConsole listenAddress

// Decode implements kong.MapperValue: --console without a value listens on a free port.
func (c *serveConsole) Decode(ctx *kong.DecodeContext) error {
	if next := ctx.Scan.Peek(); next.IsEOL() || !next.IsValue() {
		*c = anyPort
		return nil
	}
	addr, err := consoleAddress(fmt.Sprint(ctx.Scan.Pop().Value))
	*c = serveConsole(addr)
	return err
}

// on reports whether the control API is enabled.
func (c *consoleFlags) on() bool { return c.Console != "" }

func (c *consoleFlags) check(access accessFlags, target string) error {
	if !c.on() {
		if c.ConsoleFile != "" || c.Fixtures != "" {
			return errors.New("--console-token-file and --fixtures need --console")
		}
		return nil
	}
	if target != "" {
		return errors.New("--console and --target cannot be combined: the API controls the store of this process")
	}
	if !isLoopback(string(c.Console)) && (!access.Public || access.TokenFile == "") {
		return fmt.Errorf("--console %s can be reached from other machines: add --public and --token-file to allow that, or listen on 127.0.0.1", c.Console)
	}
	return nil
}

// openConsole opens the control API. The fixtures of with are the folders for migrate, unless --fixtures
// overrides them.
func (s *serving) openConsole(ctx context.Context, observed *control.Requests, with beginning) error {
	c := &s.command.Control
	if !c.on() {
		return nil
	}
	o := control.Options{Lab: s.lab, Endpoint: s.endpoint, Requests: observed, AllowHosts: s.command.Web.AllowHost, Version: version(), Token: s.token, Fixtures: with.fixtures, Documents: docs.Site{}}
	if s.bigtableAddr != nil {
		o.Bigtable = clientAddr(s.bigtableAddr)
	}
	if s.dynamoDBAddr != nil {
		o.DynamoDB = s.dynamoDBURL()
		// Stored rows would outlive the mappings of the demo.
		o.Demo = s.command.Data == "" && !s.command.Dynamo.Namespaced
	}
	if o.Token == "" {
		o.Token = rand.Text() // does not begin with a sign that a shell or a flag would interpret
		s.consoleToken = o.Token
	}
	if s.command.Data != "" {
		o.ClockMoved = s.keepLead
		s.closers = append(s.closers, s.keepLead) // faults also move it
	}
	if c.Fixtures != "" {
		root, err := os.OpenRoot(c.Fixtures)
		if err != nil {
			return badInput("--fixtures: %w", err)
		}
		s.closers = append(s.closers, root.Close)
		o.Fixtures = root.FS()
	}
	lis, tracked, err := s.listen("--console", listenAddress(c.Console), "http/1.1", 0)
	if err != nil {
		return err
	}
	s.consoleAddr = lis.Addr()
	api := control.New(o)
	if with.load != nil {
		if err := api.PlayDemo(ctx); err != nil {
			return err
		}
	}
	web := s.webServer(api)
	web.ReadHeaderTimeout, web.IdleTimeout = 10*time.Second, 2*time.Minute
	s.serveWeb("--console", web, lis, tracked, api.Close) // Close ends endless requests
	if c.ConsoleFile == "" {
		return nil
	}
	if err := replacePrivateFile(c.ConsoleFile, []byte(o.Token+"\n")); err != nil {
		return fmt.Errorf("--console-token-file: %w", err)
	}
	s.closers = append(s.closers, func() error { return os.Remove(c.ConsoleFile) })
	return nil
}

// webServer returns an HTTP server for an endpoint that listen has opened.
func (s *serving) webServer(h http.Handler) *http.Server {
	handler := arrivals{h}
	return &http.Server{
		Handler:           handler,
		ConnState:         handler.idle,
		ConnContext:       withTrackedConn,
		ReadHeaderTimeout: headTime,
		MaxHeaderBytes:    maxDynamoDBHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
}

// webServer is an http.Server, or another one with the same methods.
type webServer interface {
	Serve(lis net.Listener) error
	Shutdown(ctx context.Context) error
	Close() error
}

// serveWeb serves an endpoint that listen has opened under a flag. At the stop it first calls end,
// which may be nil.
func (s *serving) serveWeb(flag string, web webServer, lis net.Listener, tracked *trackedListener, end func() error) {
	s.closers = append(s.closers, func() (err error) {
		if end != nil {
			err = end()
		}
		s.wait(tracked, func(ctx context.Context) {
			if web.Shutdown(ctx) != nil { // the time is over
				err = errors.Join(err, web.Close())
			}
		})
		return err
	})
	s.background.Go(func() {
		if err := web.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("%s: %w", flag, err)
		}
	})
}

// consoleURL returns the URL of the control API.
func (s *serving) consoleURL() string { return s.url(s.consoleAddr) }
