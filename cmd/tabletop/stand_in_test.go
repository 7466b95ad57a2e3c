package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
)

// runStandIn runs a command line with its own name, and returns its exit code and its errors.
func runStandIn(t *testing.T, words ...string) (int, string) {
	t.Helper()
	var stderr strings.Builder
	p := &program{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &stderr}
	return p.runAs(t.Context(), words), stderr.String()
}

// startStandIn runs a command line until the end of the test, and returns its outputs.
func startStandIn(t *testing.T, words ...string) (stdout, stderr *bufio.Scanner) {
	t.Helper()
	outRead, outWrite := io.Pipe()
	errRead, errWrite := io.Pipe()
	beside(t, words, func(ctx context.Context) int {
		p := &program{stdin: strings.NewReader(""), stdout: outWrite, stderr: errWrite}
		code := p.runAs(ctx, words)
		_, _ = outWrite.Close(), errWrite.Close()
		return code
	})
	t.Cleanup(func() {
		go func() { _, _ = io.Copy(io.Discard, outRead) }()
		go func() { _, _ = io.Copy(io.Discard, errRead) }()
	})
	return bufio.NewScanner(outRead), bufio.NewScanner(errRead)
}

// TestStandIn_Gcloud: the commands of Testcontainers modules start a Bigtable, and print the line
// that they await, on standard error.
func TestStandIn_Gcloud(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{
		{"stand-in", "/bin/sh", "-c", "gcloud beta emulators bigtable start --host-port 127.0.0.1:0 --project=test-project"}, // Go
		{"stand-in", "/bin/sh", "-c", "gcloud beta emulators bigtable start --host-port 127.0.0.1:0"},                        // Java
		{"gcloud", "beta", "emulators", "bigtable", "start", "--host-port", "127.0.0.1:0"},                                   // .NET
		{"/bin/sh", "-c", "exec gcloud --quiet emulators bigtable start --host-port=127.0.0.1:0"},
	} {
		_, stderr := startStandIn(t, words...)
		const want = "[bigtable] Cloud Bigtable emulator running on "
		if !stderr.Scan() || !strings.HasPrefix(stderr.Text(), want) {
			t.Fatalf("%q prints %q", words, stderr.Text())
		}
		conn, err := dialBigtable(strings.TrimPrefix(stderr.Text(), want), "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = btapb.NewBigtableTableAdminClient(conn).CreateTable(t.Context(), &btapb.CreateTableRequest{
			Parent: "projects/test-project/instances/i", TableId: "t", Table: &btapb.Table{},
		})
		if err != nil {
			t.Errorf("%q: %v", words, err)
		}
		_ = conn.Close()
	}
}

// TestStandIn_Java: the commands for the image of DynamoDB Local start the endpoint.
func TestStandIn_Java(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{
		{"stand-in", "-jar", "DynamoDBLocal.jar", "-inMemory", "-port", "0"},
		{"java", "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar", "-sharedDb", "-inMemory", "-port", "0"}, // Go
		{"/bin/sh", "-c", "java -Xmx256m -jar /home/dynamodblocal/DynamoDBLocal.jar -sharedDb -inMemory -port 0"},
	} {
		stdout, _ := startStandIn(t, words...)
		var port string
		for stdout.Scan() && stdout.Text() != "" {
			if value, ok := strings.CutPrefix(stdout.Text(), "Port:\t"); ok {
				port = value
			}
		}
		l := &local{settings: map[string]string{"Port": port}}
		if err := createBooks(t, l.client("one", "us-east-1")); err != nil {
			t.Errorf("%q: %v", words, err)
		}
	}
}

// The checks by which Testcontainers asks a container whether ports are open, with fmt's verbs for
// the port.
var testcontainersChecks = map[string][]string{
	"Go": {"true && (\n\t\t\t\t\tcat /proc/net/tcp* | awk '{print $2}' | grep -i :%04[1]x ||\n\t\t\t\t\tnc -vz -w 1 localhost %[1]d ||\n\t\t\t\t\t/bin/sh -c '</dev/tcp/localhost/%[1]d'\n\t\t\t\t)\n\t\t\t\t"},
	"Java": {
		"true &&  (cat /proc/net/tcp* | awk '{print $2}' | grep -i ':0*%[1]x' || nc -vz -w 1 localhost %[1]d || /bin/bash -c '</dev/tcp/localhost/%[1]d')",
		"true && (cat /proc/net/tcp* | awk '{print $2}' | grep -i ':0*%[1]x' || nc -vz -w 1 localhost %[1]d || /bin/bash -c '</dev/tcp/localhost/%[1]d') && (cat /proc/net/tcp* | awk '{print $2}' | grep -i ':0*%[1]x' || nc -vz -w 1 localhost %[1]d || /bin/bash -c '</dev/tcp/localhost/%[1]d')",
	},
	"Node": {"cat /proc/net/tcp* | awk '{print $2}' | grep -i :%04[1]x", "nc -vz -w 1 localhost %[1]d", "</dev/tcp/localhost/%[1]d"},
	".NET": {"true && (grep -i ':0*%[1]X' /proc/net/tcp* || nc -vz -w 1 localhost %[1]d || /bin/bash -c '</dev/tcp/localhost/%[1]d')"},
}

// TestStandIn_Ports: the shell answers the checks of ports, by an open port and a closed one.
func TestStandIn_Ports(t *testing.T) {
	t.Parallel()
	lis := listen(t)
	open := lis.Addr().(*net.TCPAddr).Port
	const closed = 1 // needs rights that no test has a server for
	for module, checks := range testcontainersChecks {
		for _, check := range checks {
			for port, want := range map[int]int{open: exitEqual, closed: exitDifferences} {
				if code, stderr := runStandIn(t, "/bin/sh", "-c", fmt.Sprintf(check, port)); code != want || stderr != "" {
					t.Errorf("%s: %q of port %d exits %d, want %d: %s", module, check, port, code, want, stderr)
				}
			}
		}
	}
	if groups, ok := portChecks("true && (nc -vz -w 1 localhost 1 || nc -vz -w 1 localhost 2) && (nc -vz -w 1 localhost 3)"); !ok || !slices.EqualFunc(groups, [][]uint16{{1, 2}, {3}}, slices.Equal) {
		t.Errorf("the ports are %v, %t", groups, ok)
	}
}

// TestStandIn_Refused: other commands are refused by their names.
func TestStandIn_Refused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		words []string
		code  int
		want  string
	}{
		{[]string{"stand-in", "ls", "-l"}, exitNotFound, "ls: not found"},
		{[]string{"stand-in"}, exitNotFound, `java: "" cannot be run`},
		{[]string{"stand-in", "-version"}, exitNotFound, `java: "-version" cannot be run`},
		{[]string{"sh"}, exitNotFound, "sh: this image has no shell"},
		{[]string{"/bin/bash", "-c", "curl localhost:8000"}, exitNotFound, "curl: not found"},
		{[]string{"sh", "-c", "gcloud config list && gcloud beta emulators bigtable start"}, exitNotFound, "&& gcloud beta emulators bigtable start\" cannot be run"},
		{[]string{"sh", "-c", "nc -vz -w 1 localhost 70000"}, exitNotFound, "nc: not found"},
		{[]string{"java", "-cp", "x.jar", "Main"}, exitNotFound, `java: "-cp x.jar Main" cannot be run`},
		{[]string{"java", "-jar", "DynamoDBLocal.jar", "-inmemory"}, exitBadInput, "unknown flag --inmemory"},
		{[]string{"gcloud", "beta", "emulators", "pubsub", "start"}, exitNotFound, `gcloud: "beta emulators pubsub start" cannot be run`},
		{[]string{"gcloud", "emulators", "bigtable", "start", "--port", "1"}, exitBadInput, "-port"},
		{[]string{"gcloud", "emulators", "bigtable", "start", "--host-port", "8086"}, exitBadInput, `gcloud: --host-port: "8086" must be HOST:PORT`},
		{[]string{"gcloud", "emulators", "bigtable", "start", "now"}, exitBadInput, `gcloud: unexpected argument "now"`},
		{[]string{"/bin/sh", "-c", "tabletop nonsense"}, exitBadInput, "nonsense"},
	} {
		if code, stderr := runStandIn(t, tc.words...); code != tc.code || !strings.Contains(stderr, tc.want) {
			t.Errorf("%q exits %d, want %d and %q: %s", tc.words, code, tc.code, tc.want, stderr)
		}
	}
}
