package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The names of the programs whose place this one takes in the compatibility image: links there lead
// to it. Programs that start containers run gcloud and java, often through a shell, and ask the
// shell whether a port is open.
const (
	standInAny    = "stand-in" // the entry point of the image: the arguments are a command line
	standInJava   = "java"
	standInGcloud = "gcloud"
)

var standInShells = []string{"sh", "bash"}

// exitNotFound is the exit code of a shell for an unknown command.
const exitNotFound = 127

// runAs runs a command line whose first word names the program.
func (p *program) runAs(ctx context.Context, words []string) int {
	name, args := path.Base(words[0]), words[1:]
	switch {
	case name == standInAny:
		if len(args) == 0 || strings.HasPrefix(args[0], "-") { // as in the image of DynamoDB Local
			args = append([]string{standInJava}, args...)
		}
		return p.runCommand(ctx, args)
	case slices.Contains(standInShells, name):
		return p.runShell(ctx, name, args)
	case name == standInJava:
		return p.runJava(ctx, args)
	case name == standInGcloud:
		return p.runGcloud(ctx, args)
	}
	return p.run(ctx, args)
}

// runCommand is like runAs, for a command line that another program wrote.
func (p *program) runCommand(ctx context.Context, words []string) int {
	name := path.Base(words[0])
	if name != "tabletop" && name != standInJava && name != standInGcloud && !slices.Contains(standInShells, name) {
		return p.notFound("%s: not found: this image has only tabletop, and stand-ins for java and gcloud", words[0])
	}
	return p.runAs(ctx, words)
}

// notFound reports a command that no stand-in knows.
func (p *program) notFound(format string, args ...any) int {
	_, _ = fmt.Fprintf(p.stderr, "tabletop: "+format+"\n", args...)
	return exitNotFound
}

// runJava runs DynamoDB Local: java OPTIONS -jar DynamoDBLocal.jar FLAGS. Options of the virtual
// machine have no effect.
func (p *program) runJava(ctx context.Context, args []string) int {
	for len(args) > 0 && (strings.HasPrefix(args[0], "-D") || strings.HasPrefix(args[0], "-X")) {
		args = args[1:]
	}
	if len(args) < 2 || args[0] != "-jar" || path.Base(args[1]) != "DynamoDBLocal.jar" {
		return p.notFound("java: %q cannot be run: this image has only -jar DynamoDBLocal.jar", strings.Join(args, " "))
	}
	return p.run(ctx, slices.Concat([]string{"dynamodb-local", "-public"}, args[2:]))
}

// runGcloud runs Google's emulator: gcloud beta emulators bigtable start --host-port=HOST:PORT.
// Flags of gcloud itself have no effect.
func (p *program) runGcloud(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("tabletop: gcloud", flag.ContinueOnError)
	flags.SetOutput(p.stderr)
	address := flags.String("host-port", "127.0.0.1:8086", "the `HOST:PORT` to listen on")
	for _, name := range []string{"project", "verbosity", "account", "configuration"} {
		_ = flags.String(name, "", "without effect")
	}
	for _, name := range []string{"quiet", "q", "user-output-enabled"} {
		_ = flags.Bool(name, false, "without effect")
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitEqual
	} else if err != nil {
		return exitBadInput
	}
	words := flags.Args()
	if len(words) > 0 && (words[0] == "beta" || words[0] == "alpha") {
		words = words[1:]
	}
	if start := []string{"emulators", "bigtable", "start"}; len(words) < 3 || !slices.Equal(words[:3], start) {
		return p.notFound("gcloud: %q cannot be run: this image has only emulators bigtable start", strings.Join(flags.Args(), " "))
	}
	if err := flags.Parse(words[3:]); errors.Is(err, flag.ErrHelp) {
		return exitEqual
	} else if err != nil {
		return exitBadInput
	}
	addr, err := parseListenAddress(*address)
	switch {
	case err != nil || addr == off:
		return p.fail(badInput("gcloud: --host-port: %q must be HOST:PORT", *address))
	case flags.NArg() > 0:
		return p.fail(badInput("gcloud: unexpected argument %q", flags.Arg(0)))
	}
	s := plainServer()
	s.Bigtable, s.DynamoDB = addr, off
	err = s.replace(ctx, p, "gcloud: --host-port", func(s *serving) {
		_, _ = fmt.Fprintf(p.stderr, "[bigtable] Cloud Bigtable emulator running on %s\n", s.bigtableAddr)
	})
	if err != nil {
		return p.fail(err)
	}
	return exitEqual
}

// shellSigns are the characters that a shell would interpret.
const shellSigns = "\"'`$&|;<>()*?~{}[]\\#!"

// runShell runs a command of sh -c: a simple one without quotes, or a check of ports.
func (p *program) runShell(ctx context.Context, name string, args []string) int {
	if len(args) != 2 || args[0] != "-c" {
		return p.notFound("%s: this image has no shell; -c runs java and gcloud", name)
	}
	words := strings.Fields(args[1])
	if groups, ok := portChecks(strings.Join(words, " ")); ok {
		for _, ports := range groups {
			if !slices.ContainsFunc(ports, func(port uint16) bool { return accepts(ctx, port) }) {
				return exitDifferences
			}
		}
		return exitEqual
	}
	if len(words) > 0 && words[0] == "exec" {
		words = words[1:]
	}
	if len(words) == 0 || strings.ContainsAny(args[1], shellSigns) {
		return p.notFound("%s: %q cannot be run: this image has no shell; -c runs java and gcloud", name, args[1])
	}
	return p.runCommand(ctx, words)
}

// portCheck matches a command by which Testcontainers checks that a port is open. Its groups have
// the port, in hexadecimal digits or as a decimal number.
var portCheck = sync.OnceValue(func() *regexp.Regexp { // large
	return regexp.MustCompile(`^(?:cat /proc/net/tcp\S* \| awk '\{print \$2\}' \| grep -i '?:(?:0\*)?([0-9a-fA-F]+)'?` +
		`|grep -i ':(?:0\*)?([0-9a-fA-F]+)' /proc/net/tcp\*` +
		`|nc -vz -w 1 localhost ([0-9]+)` +
		`|(?:/bin/(?:ba)?sh -c ')?</dev/tcp/localhost/([0-9]+)'?)$`)
})

// portChecks returns the ports of a check. Each group must have an open port. The command has the
// form "true && (A || B) && (C || D)", or is a single check.
func portChecks(command string) (groups [][]uint16, ok bool) {
	for group := range strings.SplitSeq(strings.TrimPrefix(command, "true && "), " && ") {
		if inner, ok := strings.CutPrefix(group, "("); ok {
			group = strings.TrimSuffix(inner, ")")
		}
		var ports []uint16
		for check := range strings.SplitSeq(group, "||") {
			m := portCheck().FindStringSubmatch(strings.TrimSpace(check))
			if m == nil {
				return nil, false
			}
			digits, base := m[3]+m[4], 10
			if digits == "" {
				digits, base = m[1]+m[2], 16
			}
			port, err := strconv.ParseUint(digits, base, 16)
			if err != nil {
				return nil, false
			}
			ports = append(ports, uint16(port))
		}
		groups = append(groups, ports)
	}
	return groups, true
}

// portPatience bounds a check of a port, as the option -w 1 of nc does.
const portPatience = time.Second

// accepts reports whether a port of this machine or container accepts connections.
func accepts(ctx context.Context, port uint16) bool {
	dialer := net.Dialer{Timeout: portPatience}
	for _, host := range []string{"127.0.0.1", "::1"} { // not localhost, which a container may not resolve
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, fmt.Sprint(port)))
		if err == nil {
			_ = conn.Close()
			return true
		}
	}
	return false
}
