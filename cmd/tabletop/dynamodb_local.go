package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// dynamoDBLocalCommand serves DynamoDB with the command line of DynamoDB Local, AWS's emulator.
// Variables of the environment configure serve, and not a program that scripts start by its flags.
type dynamoDBLocalCommand struct {
	Port        uint16   `help:"Port of the endpoint; 0 selects a free one. Default: ${default}." default:"8000" placeholder:"N" env:"-" group:"Flags of DynamoDB Local:"`
	InMemory    bool     `name:"inMemory" help:"Keep the data in memory." env:"-" group:"Flags of DynamoDB Local:"`
	DBPath      string   `name:"dbPath" help:"Store the data below this folder, which must exist. Default: the working directory." placeholder:"DIR" env:"-" group:"Flags of DynamoDB Local:"`
	SharedDB    bool     `name:"sharedDb" help:"Share the tables between all access keys and regions. Default: each pair of an access key and a region has separate tables." env:"-" group:"Flags of DynamoDB Local:"`
	CORS        []string `name:"cors" help:"Origins whose pages may use the endpoint, separated by commas. Default: ${default}, all." default:"*" sep:"," placeholder:"ORIGIN" env:"-" group:"Flags of DynamoDB Local:"`
	Delay       bool     `name:"delayTransientStatuses" help:"Keep indexes that UpdateTable adds or deletes in CREATING or DELETING for 2 seconds." env:"-" group:"Flags of DynamoDB Local:"`
	Optimize    bool     `name:"optimizeDbBeforeStartup" help:"Accepted together with --dbPath, without effect: the store compacts itself." env:"-" group:"Flags of DynamoDB Local:"`
	NoTelemetry bool     `name:"disableTelemetry" help:"Accepted without effect: Tabletop sends no telemetry." env:"-" group:"Flags of DynamoDB Local:"`
	Public      bool     `help:"Listen on all interfaces, as DynamoDB Local does. Default: 127.0.0.1 alone." env:"-" group:"Flags of Tabletop:"`
}

// The stores of dynamodb-local below its folder: with and without --sharedDb it has other tables.
const (
	sharedStore   = "shared-local-instance.tabletop"
	separateStore = "local-instances.tabletop"
)

// indexDelay is the time of --delayTransientStatuses for each status.
const indexDelay = 2 * time.Second

// Help is the long help of the command.
func (*dynamoDBLocalCommand) Help() string {
	return `Starts in place of "java -jar DynamoDBLocal.jar". Its flags may have one dash, as there: -inMemory, -port 8000. GET / answers 400, as tools that wait for DynamoDB Local expect.

The data is in folders of its own: ` + sharedStore + ` with --sharedDb, otherwise ` + separateStore + `. Files of DynamoDB Local are not read. "tabletop serve" has more flags.`
}

func (*dynamoDBLocalCommand) examples() []example {
	return []example{
		{"Serve without files, with the same tables for all clients", "tabletop dynamodb-local -inMemory -sharedDb"},
		{"Keep the data below the working directory", "tabletop dynamodb-local -sharedDb -dbPath . -port 8001"},
	}
}

// arrangedLocal doubles the dash of flags of dynamodb-local, which is the word at a position.
func arrangedLocal(args []string, at int) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if i > at && len(arg) > 2 && arg[0] == '-' && arg[1] != '-' {
			args[i] = "-" + arg
		}
	}
	return args
}

// validate checks the flags and their combinations.
func (c *dynamoDBLocalCommand) validate(*kong.Context) error {
	switch {
	case c.InMemory && c.DBPath != "":
		return errors.New("--inMemory and --dbPath cannot be combined: data in memory has no folder")
	case c.Optimize && c.DBPath == "":
		return errors.New("--optimizeDbBeforeStartup needs --dbPath")
	}
	if info, err := os.Stat(c.DBPath); c.DBPath != "" && (err != nil || !info.IsDir()) {
		return fmt.Errorf("--dbPath: %q is not an existing folder", c.DBPath)
	}
	web := webFlags{CORS: c.CORS}
	return web.check()
}

// Run serves until ctx ends, then stops cleanly.
func (c *dynamoDBLocalCommand) Run(ctx context.Context, p *program) error {
	return c.server().replace(ctx, p, "--port", c.announce)
}

// replace serves in place of another program, whose flag names the address.
func (c *serveCommand) replace(ctx context.Context, p *program, flag string, announce func(*serving)) error {
	err := c.serve(ctx, p, beginning{announce: announce})
	failed, ok := errors.AsType[*net.OpError](err)
	switch {
	case !ok || failed.Op != "listen":
		return err
	case inUse(failed): // the error of serve has its own flag
		return fmt.Errorf("%s: %w: %s", flag, failed, freePort(listenAddress(failed.Addr.String())))
	}
	return fmt.Errorf("%s: %w", flag, failed)
}

// server returns the command serve with the settings of c.
func (c *dynamoDBLocalCommand) server() *serveCommand {
	s := plainServer()
	s.Bigtable = off
	s.DynamoDB = listenAddress(fmt.Sprintf("127.0.0.1:%d", c.Port))
	if c.Public {
		s.DynamoDB = listenAddress(fmt.Sprintf("0.0.0.0:%d", c.Port))
	}
	s.Web = webFlags{CORS: c.CORS, Like: likeDynamoDBLocal}
	s.Dynamo.Namespaced = !c.SharedDB
	if c.Delay {
		s.Dynamo.IndexDelay = indexDelay
	}
	if c.InMemory {
		return s
	}
	s.Data = filepath.Join(c.DBPath, separateStore)
	if c.SharedDB {
		s.Data = filepath.Join(c.DBPath, sharedStore)
	}
	return s
}

// plainServer returns the command serve with the defaults of its flags.
func plainServer() *serveCommand {
	return &serveCommand{Project: "tabletop", Instance: "tabletop", TTLInterval: time.Minute, Grace: 5 * time.Second}
}

// announce prints the lines of DynamoDB Local, which programs await, and an empty one.
func (c *dynamoDBLocalCommand) announce(s *serving) {
	path := c.DBPath
	if path == "" {
		path = "null"
	}
	_, port, _ := net.SplitHostPort(s.dynamoDBAddr.String()) // of a listener
	_, _ = fmt.Fprintf(s.program.stdout, "Initializing DynamoDB Local with the following configuration:\nPort:\t%s\nInMemory:\t%t\nVersion:\t%s\nDbPath:\t%s\nSharedDb:\t%t\nshouldDelayTransientStatuses:\t%t\nCorsParams:\t%s\n\n",
		port, c.InMemory, version(), path, c.SharedDB, c.Delay, strings.Join(c.CORS, ","))
}
