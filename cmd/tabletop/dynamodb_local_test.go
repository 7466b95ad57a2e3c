package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// local is a process of `tabletop dynamodb-local`.
type local struct {
	server
	settings map[string]string // the lines that it prints
}

// startLocal starts a server on a free port, in a working directory, and waits for the end of its lines.
func startLocal(t *testing.T, dir string, args ...string) *local {
	t.Helper()
	l := &local{server: server{stderr: &strings.Builder{}}, settings: map[string]string{}}
	l.cmd = exec.CommandContext(t.Context(), "tabletop", append([]string{"dynamodb-local", "-port", "0"}, args...)...)
	l.cmd.Stderr, l.cmd.Dir = l.stderr, dir
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.launch(t)
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "Initializing DynamoDB Local with the following configuration:" {
		t.Fatalf("its first line is %q: %s", lines.Text(), l.stderr)
	}
	for lines.Scan() && lines.Text() != "" {
		name, value, _ := strings.Cut(lines.Text(), ":\t")
		l.settings[name] = value
	}
	return l
}

func (l *local) url() string { return "http://127.0.0.1:" + l.settings["Port"] }

// client returns a client with an access key, in a region.
func (l *local) client(key, region string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(l.url()), Region: region,
		Credentials: credentials.NewStaticCredentialsProvider(key, "secret", ""),
	})
}

// createBooks creates a table for items with the key id.
func createBooks(t *testing.T, c *dynamodb.Client) error {
	t.Helper()
	_, err := c.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("books"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	return err
}

// tableNames returns the tables of a client.
func tableNames(t *testing.T, c *dynamodb.Client) string {
	t.Helper()
	out, err := c.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out.TableNames, " ")
}

// TestDynamoDBLocal: tables are apart by access key and region, unless -sharedDb is given.
func TestDynamoDBLocal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		flags  []string
		shared bool
	}{
		{[]string{"-inMemory"}, false},
		{[]string{"-inMemory", "-sharedDb", "-disableTelemetry"}, true},
		{[]string{"--inMemory", "--sharedDb"}, true},
	} {
		t.Run(strings.Join(tc.flags, " "), func(t *testing.T) {
			t.Parallel()
			l := startLocal(t, t.TempDir(), tc.flags...)
			if err := createBooks(t, l.client("one", "us-east-1")); err != nil {
				t.Fatal(err)
			}
			for _, other := range []*dynamodb.Client{l.client("two", "us-east-1"), l.client("one", "eu-west-1")} {
				if got := tableNames(t, other); (got == "books") != tc.shared {
					t.Errorf("another client sees %q", got)
				}
			}
			want := map[string]string{
				"Port": l.settings["Port"], "InMemory": "true", "Version": version(), "DbPath": "null", "SharedDb": fmt.Sprint(tc.shared),
				"shouldDelayTransientStatuses": "false", "CorsParams": "*",
			}
			if fmt.Sprint(l.settings) != fmt.Sprint(want) {
				t.Errorf("it prints %v, want %v", l.settings, want)
			}
			if code := l.end(t, syscall.SIGTERM); code != exitEqual {
				t.Errorf("it ends with %d: %s", code, l.stderr)
			}
		})
	}
}

// TestDynamoDBLocal_Data: the data is below -dbPath or the working directory, with other tables for -sharedDb.
func TestDynamoDBLocal_Data(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(want string, args ...string) {
		t.Helper()
		l := startLocal(t, dir, args...)
		c := l.client("one", "us-east-1")
		if got := tableNames(t, c); got != want {
			t.Errorf("with %v the tables are %q, want %q", args, got, want)
		}
		if want == "" {
			if err := createBooks(t, c); err != nil {
				t.Fatal(err)
			}
		}
		if code := l.end(t, syscall.SIGTERM); code != exitEqual {
			t.Errorf("it ends with %d: %s", code, l.stderr)
		}
	}
	at("", "-sharedDb")
	at("books", "-sharedDb", "-dbPath", dir, "-optimizeDbBeforeStartup")
	at("")
	at("books", "-dbPath", ".")
}

// TestDynamoDBLocal_Web: GET / answers 400, and -cors admits origins.
func TestDynamoDBLocal_Web(t *testing.T) {
	t.Parallel()
	all, one := startLocal(t, t.TempDir(), "-inMemory"), startLocal(t, t.TempDir(), "-inMemory", "-cors", "http://a.example,http://b.example:81")
	for _, tc := range []struct {
		l              *local
		method, origin string
		status         int
	}{
		{all, http.MethodGet, "", http.StatusBadRequest},
		{all, http.MethodOptions, "http://c.example", http.StatusOK},
		{one, http.MethodOptions, "http://b.example:81", http.StatusOK},
		{one, http.MethodOptions, "http://c.example", http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, tc.l.url(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
			r.Header.Set("Access-Control-Request-Method", http.MethodPost)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != tc.status {
			t.Errorf("%s from %q with %v: %d, %v", tc.method, tc.origin, tc.l.cmd.Args, resp.StatusCode, err)
		}
	}
}

// TestDynamoDBLocal_Settings checks the effect of flags that a client sees only with time.
func TestDynamoDBLocal_Settings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		flags  []string
		listen listenAddress
		delays bool
	}{
		{nil, "127.0.0.1:8000", false},
		{[]string{"-port", "8123", "-delayTransientStatuses"}, "127.0.0.1:8123", true},
		{[]string{"-port=8123", "-public"}, "0.0.0.0:8123", false},
	} {
		app, err := newParser("dynamodb-local")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (&program{}).parse(app, arranged(append([]string{"dynamodb-local"}, tc.flags...))); err != nil {
			t.Fatal(err)
		}
		c := app.Model.Leaves(true)[0].Target.Addr().Interface().(*dynamoDBLocalCommand)
		s := c.server()
		o, err := (&serving{command: s, program: &program{}}).dynamoDBOptions(nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.DynamoDB != tc.listen || (o.StatusDelays.IndexCreate > 0) != tc.delays || (o.StatusDelays.IndexDelete > 0) != tc.delays || o.StatusDelays.Create > 0 {
			t.Errorf("%v: %s, %+v", tc.flags, s.DynamoDB, o.StatusDelays)
		}
	}
}

// TestArranged: the first word that names a command decides how its arguments are read.
func TestArranged(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"dynamodb-local -port 1 -h":               "dynamodb-local --port 1 -h",
		"--config f dynamodb-local -inMemory":     "--config f dynamodb-local --inMemory",
		"--config f ctl rows dynamodb-local -1":   "--config f ctl rows dynamodb-local  -1",
		"help dynamodb-local":                     "help dynamodb-local",
		"migrate lint dynamodb-local -x":          "migrate lint dynamodb-local -x",
		"dynamodb-local -dbPath ctl --sharedDb":   "dynamodb-local --dbPath ctl --sharedDb",
		"--config=f dynamodb-local -cors=* -port": "--config=f dynamodb-local --cors=* --port",
	} {
		if got := strings.Join(arranged(strings.Fields(args)), " "); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

// TestDynamoDBLocal_Port: the error of a port in use names the flag, and advises.
func TestDynamoDBLocal_Port(t *testing.T) {
	t.Parallel()
	lis := listen(t)
	_, port, err := net.SplitHostPort(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	out, code := tabletop(t, "dynamodb-local", "-inMemory", "-port", port)
	if code != exitEnvironment || !strings.Contains(out, "--port: listen tcp 127.0.0.1:"+port) || !strings.Contains(out, "which uses the port, or choose another\n") {
		t.Errorf("it exits %d: %s", code, out)
	}
}
