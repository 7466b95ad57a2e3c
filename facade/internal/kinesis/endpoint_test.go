package kinesis

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

// Possible answers of an endpoint, and their results.
func TestEndpoint_Answers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		body    string
		refused bool
		want    string // in the error; "" without one
	}{
		"taken":      {200, `{"FailedRecordCount": 0, "Records": [{"SequenceNumber": "1"}]}`, false, ""},
		"short":      {200, `{"Records": []}`, false, "the response has 0 of 1 records"},
		"no JSON":    {200, `<html>`, false, "PutRecords at"},
		"cut":        {200, `{"Records": [`, false, "PutRecords at"},
		"throttled":  {400, `{"__type": "ProvisionedThroughputExceededException", "message": "slow"}`, false, "ProvisionedThroughputExceededException: slow"},
		"lost":       {400, `{"__type": "com.amazonaws.kinesis.v20131202#ResourceNotFoundException"}`, false, "ResourceNotFoundException"},
		"invalid":    {400, `{"__type": "ValidationException", "message": "too large"}`, true, "too large"},
		"argument":   {400, `{"__type": "InvalidArgumentException"}`, true, "InvalidArgumentException"},
		"no service": {502, `Bad Gateway`, false, "502"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		e, err := NewEndpoint(server.URL, "us-east-1", clock.NewFrozen(time.Unix(1000, 0)))
		if err != nil {
			t.Fatal(err)
		}
		taken, err := e.Put(t.Context(), "changes", []Record{{PartitionKey: "k", Data: []byte("{}")}})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrRefused) != c.refused || err == nil && !taken[0] {
			t.Errorf("%s: %v, %v", name, taken, err)
		}
		if has, err := e.Has(t.Context(), "changes"); name == "lost" && (has || err != nil) {
			t.Errorf("%s: %v, %v", name, has, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	}
	for _, bad := range []string{"", "localhost:4567", "ftp://localhost", "http://", ":"} {
		if _, err := NewEndpoint(bad, "us-east-1", clock.New()); err == nil {
			t.Errorf("%q is taken for the URL of an endpoint", bad)
		}
	}
}

// An endpoint that does not answer is abandoned after ten seconds.
func TestEndpoint_Hangs(t *testing.T) {
	t.Parallel()
	arrived, over := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-over
	}))
	defer server.Close()
	defer close(over)
	wall := clock.NewFrozen(time.Unix(1000, 0))
	e, err := NewEndpoint(server.URL, "us-east-1", wall)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		_, err := e.Put(t.Context(), "changes", []Record{{PartitionKey: "k", Data: []byte("{}")}})
		failed <- err
	}()
	<-arrived
	wall.Advance(callTimeout)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "no answer for 10s") {
		t.Error(err)
	}
}

func TestOpenSink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if sink, err := OpenSink("", "", "us-east-1", clock.New()); sink != nil || err != nil {
		t.Error(sink, err)
	}
	if _, err := OpenSink("http://localhost", dir, "us-east-1", clock.New()); err == nil {
		t.Error("both are taken")
	}
	if _, err := OpenSink("here", "", "us-east-1", clock.New()); err == nil || !strings.Contains(err.Error(), `"here" is not a URL with a host and the scheme http or https`) {
		t.Error(err)
	}
}
