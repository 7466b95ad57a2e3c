package testkit_test

import (
	"context"
	"errors"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit"
)

// A delay passes on the clock for a client in this process.
func TestDynamoDBLatency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		env, db := startItems(t, testkit.WithFrozenClock(start))
		delay := env.DynamoDBLatency("PutItem", 2*time.Hour, testkit.OnTable("a-table"), testkit.Times(2))
		if err := putColor(t.Context(), db, "b-table", "1"); err != nil || delay.Hits() != 0 {
			t.Errorf("another table: %v, %d hits", err, delay.Hits())
		}
		if err := putColor(t.Context(), db, "a-table", "1"); err != nil || !env.Now().Equal(start.Add(2*time.Hour)) {
			t.Errorf("%v, at %v", err, env.Now())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		once := dynamodb.New(db.Options(), func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
		if err := putColor(ctx, once, "a-table", "late"); !errors.Is(err, context.DeadlineExceeded) || delay.Hits() != 2 {
			t.Errorf("before a deadline: %v, %d hits", err, delay.Hits())
		}
		if now := env.Now(); now.Before(start.Add(2*time.Hour)) || now.After(start.Add(3*time.Hour)) {
			t.Errorf("after the deadline it is %v", now)
		}
		if got := getColor(t.Context(), t, db, "late", true); got != "" {
			t.Errorf("the late item is %q", got)
		}
	})
	got := faketb.Failure(t, func(tb testing.TB) {
		tb.Helper()
		testkit.Start(tb).DynamoDBLatency("PutItem", -1)
	})
	if !strings.Contains(got, "negative") {
		t.Errorf("a negative delay: %q", got)
	}
}

// Through a port a delay is real: a client that cannot wait disconnects, and a restore does not
// wait for the call.
func TestDynamoDBLatency_Port(t *testing.T) {
	t.Parallel()
	env, db := startItems(t)
	base, far := env.Snapshot(), oneShot(env)
	short := env.DynamoDBLatency("PutItem", time.Nanosecond)
	if err := putColor(t.Context(), far, "a-table", "1"); err != nil || short.Hits() != 1 {
		t.Errorf("%v, %d hits", err, short.Hits())
	}
	short.Remove()
	env.DynamoDBLatency("PutItem", 1000*time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { cancel() }})
	if err := putColor(ctx, far, "a-table", "late"); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is late: %v", err)
	}
	if got := getColor(t.Context(), t, db, "late", true); got != "" {
		t.Errorf("the late item is %q", got)
	}
	env.Restore(base)
}
