package kinesis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// Endpoint is a client of a server that implements the API of Kinesis Data Streams. It
// signs requests with the access key "tabletop" and the secret "tabletop".
type Endpoint struct {
	url    string
	region string
	client *http.Client
	wall   *clock.Clock
}

// callTimeout limits the wait for an answer.
const callTimeout = 10 * time.Second

// NewEndpoint returns a client of the server at an http or https URL.
func NewEndpoint(rawURL, region string, wall *clock.Clock) (*Endpoint, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not a URL with a host and the scheme http or https", rawURL)
	}
	// It has its own transport, so that Close can close its connections.
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
	return &Endpoint{strings.TrimSuffix(u.String(), "/") + "/", region, client, wall}, nil
}

// limited returns a context that ends after callTimeout on the wall clock.
func (e *Endpoint) limited(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over, stop := e.wall.At(e.wall.Now().Add(callTimeout))
	go func() {
		select {
		case <-over:
			cancel(fmt.Errorf("no answer for %v", callTimeout))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); stop() }
}

// Close closes idle connections.
func (e *Endpoint) Close() error {
	e.client.CloseIdleConnections()
	return nil
}

// Codes of errors of Kinesis.
const (
	codeNotFound        = "ResourceNotFoundException"
	codeInvalidArgument = "InvalidArgumentException"
)

// apiError is an error answer of Kinesis.
type apiError struct {
	status        int
	Type, Message string
}

// Error returns the status, the code and the text.
func (e *apiError) Error() string {
	return fmt.Sprintf("Kinesis returned %d %s: %s", e.status, e.Type, e.Message)
}

// Has implements Sink.
func (e *Endpoint) Has(ctx context.Context, stream string) (bool, error) {
	err := e.call(ctx, "DescribeStreamSummary", struct{ StreamName string }{stream}, &struct{}{})
	var refused *apiError
	if errors.As(err, &refused) && strings.HasSuffix(refused.Type, codeNotFound) {
		return false, nil
	}
	return err == nil, err
}

type putRecord struct {
	Data         []byte
	PartitionKey string
}

type putRecordsInput struct {
	StreamName string
	Records    []putRecord
}

type putRecordsOutput struct {
	FailedRecordCount int
	Records           []struct{ ErrorCode string }
}

// Put implements Sink.
func (e *Endpoint) Put(ctx context.Context, stream string, records []Record) ([]bool, error) {
	in := putRecordsInput{StreamName: stream, Records: make([]putRecord, len(records))}
	for i, r := range records {
		in.Records[i] = putRecord{r.Data, r.PartitionKey}
	}
	var out putRecordsOutput
	err := e.call(ctx, "PutRecords", in, &out)
	var refused *apiError
	if errors.As(err, &refused) && (strings.HasSuffix(refused.Type, awserr.CodeValidation) || strings.HasSuffix(refused.Type, codeInvalidArgument)) {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err != nil {
		return nil, err
	}
	if len(out.Records) != len(records) {
		return nil, fmt.Errorf("the response has %d of %d records", len(out.Records), len(records))
	}
	taken := make([]bool, len(records))
	for i := range taken {
		taken[i] = out.Records[i].ErrorCode == ""
	}
	return taken, nil
}

// maxAnswerBytes limits how much of an answer is read.
const maxAnswerBytes = 1 << 20

// call calls an operation of the API.
func (e *Endpoint) call(ctx context.Context, operation string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, end := e.limited(ctx)
	defer end()
	fail := func(err error) error {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%s at %s: %w", operation, e.url, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return fail(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "Kinesis_20131202."+operation)
	wire.Sign(r, body, e.wall.Now(), wire.Credential{AccessKey: "tabletop", Secret: "tabletop", Region: e.region, Service: "kinesis"})
	answer, err := e.client.Do(r)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes))
	if err != nil {
		return fail(err)
	}
	if answer.StatusCode != http.StatusOK {
		refused := struct {
			Type    string `json:"__type"`
			Message string `json:"message"`
		}{}
		_ = json.Unmarshal(text, &refused) // without JSON, the status alone remains
		return fail(&apiError{answer.StatusCode, refused.Type, refused.Message})
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fail(err)
	}
	return nil
}
