package facade

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

// If clients that share the tables have different keys or regions, the log says so once.
func TestNamespaces_Log(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, region, want string }{
		{"a", "us-east-1", ""},
		{"b", "us-east-1", `level=WARN msg="clients sign with different access keys: they share the tables"`},
		{"a", "eu-west-1", `level=WARN msg="clients sign with different regions: they share the tables" region=us-east-1 otherRegion=eu-west-1`},
		{"b", "eu-west-1", `level=WARN msg="clients sign with different access keys and regions: they share the tables" region=us-east-1 otherRegion=eu-west-1`},
	} {
		var log strings.Builder
		s := newTestServer(t, func(o *Options) {
			o.NoAuth, o.Logger = false, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
		})
		for _, signed := range [][2]string{{"a", "us-east-1"}, {c.key, c.region}, {c.key, c.region}} {
			post(s, "ListTables", "{}", func(r *http.Request) {
				r.Header.Set("X-Amz-Date", "20261120T120000Z")
				r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+signed[0]+"/20261120/"+signed[1]+"/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
			})
		}
		if got := strings.TrimSuffix(log.String(), "\n"); got != c.want {
			t.Errorf("%s/%s: logged %s, want %s", c.key, c.region, got, c.want)
		}
	}
}

// Clients of all access keys and regions share the tables, unless the server keeps the tables of
// each pair apart. Then they are still apart after a restart, and the server continues the due
// work of each pair.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	for _, namespaced := range []bool{false, true} {
		t.Run(fmt.Sprint(namespaced), func(t *testing.T) {
			t.Parallel()
			var opts Options
			now := clock.NewFrozen(testTime)
			s := newTestServer(t, func(o *Options) {
				o.NoAuth, o.Namespaced, o.Now = false, namespaced, now.Now
				opts = *o
			})
			call := func(s *Server, key, region, operation, body string) string {
				return post(s, operation, body, func(r *http.Request) {
					r.Header.Set("X-Amz-Date", "20261120T120000Z")
					r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+key+"/20261120/"+region+"/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
				}).Body.String()
			}
			create := `{"TableName": "plain", "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}`
			put := `{"TableName": "plain", "Item": {"id": {"S": "1"}, "at": {"N": "1795176001"}}}`
			enable := `{"TableName": "plain", "TimeToLiveSpecification": {"AttributeName": "at", "Enabled": true}}`
			call(s, "a", "localhost", "CreateTable", create)
			call(s, "a", "localhost", "PutItem", put)
			call(s, "a", "localhost", "UpdateTimeToLive", enable)
			lists := func(s *Server, want map[string]string) {
				t.Helper()
				for who, tables := range want {
					key, region, _ := strings.Cut(who, "/")
					if got := call(s, key, region, "ListTables", "{}"); got != tables {
						t.Errorf("%s sees %s, want %s", who, got, tables)
					}
				}
			}
			const one, none = `{"TableNames":["plain"]}`, `{"TableNames":[]}`
			want := map[string]string{"a/localhost": one, "a/eu-west-1": one, "b/localhost": one}
			if namespaced {
				want["a/eu-west-1"], want["b/localhost"] = none, none
			}
			lists(s, want)
			if got := must(t, s, "ListTables", "{}"); (got == none) != namespaced {
				t.Errorf("a call without signature sees %s", got)
			}
			region := "us-east-1"
			if namespaced {
				region = "localhost"
				call(s, "b", "localhost", "CreateTable", create)
				call(s, "b", "localhost", "PutItem", put)
			}
			if got := call(s, "a", "localhost", "DescribeTable", `{"TableName": "plain"}`); !strings.Contains(got, `"arn:aws:dynamodb:`+region+`:`) {
				t.Errorf("the table is %s", got)
			}
			again, err := New(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			})
			now.Advance(2 * time.Second)
			if n, err := again.ReapExpired(t.Context()); n != 1 || err != nil {
				t.Errorf("%d items expired, %v, want 1", n, err)
			}
			if namespaced {
				want["b/localhost"] = one
				if got := call(again, "b", "localhost", "GetItem", `{"TableName": "plain", "Key": {"id": {"S": "1"}}}`); !strings.Contains(got, "1795176001") {
					t.Errorf("the other item of that key is %s", got)
				}
			}
			lists(again, want)
		})
	}
}

// The numbers of callers and tables are limited. Callers that exist at the limit continue to work.
func TestNamespaces_Limits(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, func(o *Options) {
		o.NoAuth, o.Namespaced = false, true
		o.maxTables, o.maxNamespaces = 2, 2
	})
	call := func(key, operation, body string) string {
		return post(s, operation, body, func(r *http.Request) {
			r.Header.Set("X-Amz-Date", "20261120T120000Z")
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+key+"/20261120/localhost/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
		}).Body.String()
	}
	for _, c := range []struct{ key, table, want string }{
		{"a", "one", `"ACTIVE"`},
		{"a", "two", `"ACTIVE"`},
		{"a", "three", "LimitExceededException"},
		{"b", "one", `"ACTIVE"`},
		{"c", "one", "LimitExceededException"},
		{"a", "two", "ResourceInUseException"},
		{"b", "two", `"ACTIVE"`},
	} {
		got := call(c.key, "CreateTable", `{"TableName": "`+c.table+`", "BillingMode": "PAY_PER_REQUEST",
			"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}`)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s creates %s: %s, want %s", c.key, c.table, got, c.want)
		}
	}
	call("a", "DeleteTable", `{"TableName": "one"}`)
	if got := call("a", "ListTables", "{}"); got != `{"TableNames":["two"]}` {
		t.Errorf("tables %s", got)
	}
}
