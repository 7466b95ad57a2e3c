package conformance

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

var (
	streamChanges = flag.Int("conformance.changes", 2000, "how many changes consumers of a stream read")
	withPython    = flag.String("conformance.python", "", "a Python that has boto3; then its consumer runs too")
	withNode      = flag.String("conformance.node", "", "a Node beside whose conformance/js are the SDK's packages; then its consumer runs too")
)

const (
	streamWriters = 8
	streamItems   = 40 // of each writer
	streamKills   = 4
)

// TestKill_Streams lets consumers with the SDKs of Go, and of Python and JavaScript where
// they are asked for, follow a stream whose shards rotate each second and split, while
// writers write and the server is killed and started again. Each consumer has each change
// once, those of an item in the order of its writes.
func TestKill_Streams(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), freeAddress(t)
	start := func() *process {
		p, err := serve("--bigtable", "off", "--dynamodb", address, "--data", dir, "--stream-shards", "1,2,4", "--stream-shard-rotation", "1s")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := start()
	t.Cleanup(func() {
		if err := p.kill(); err != nil {
			t.Error(err)
		}
	})
	db := oneShotClient(t, p)
	created, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("followed"), KeySchema: keySchema("id", "")[:1], BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	arn, endpoint := *created.TableDescription.LatestStreamArn, "http://"+address
	ended := make(chan struct{})
	var followers sync.WaitGroup
	var seen []*followed
	follow := func(name string, run func(f *followed) error) {
		f := &followed{name: name, last: map[string]int{}}
		seen = append(seen, f)
		followers.Go(func() {
			if err := run(f); err != nil {
				t.Errorf("the consumer in %s: %v", name, err)
			}
		})
	}
	follow("Go", func(f *followed) error { return followInGo(t.Context(), endpoint, arn, ended, f) })
	for name, command := range map[string][]string{"Python": {*withPython, "python/follow.py"}, "JavaScript": {*withNode, "js/follow.mjs"}} {
		if command[0] != "" {
			follow(name, func(f *followed) error { return followInProgram(ended, f, append(command, endpoint, arn)...) })
		}
	}

	var acknowledged atomic.Int64
	began := time.Now()
	for round := range streamKills + 1 {
		writeUntil(t, db, round, &acknowledged, int64(*streamChanges*(round+1)/(streamKills+1)), func() {
			if round == streamKills {
				return
			}
			if err := p.kill(); err != nil {
				t.Error(err)
			}
		})
		if round < streamKills {
			p = start()
		}
	}
	wrote := time.Since(began)
	close(ended)
	followers.Wait()
	want := map[string]int{}
	for page := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: aws.String("followed")}); page.HasMorePages(); {
		got, err := page.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range got.Items {
			n, _ := strconv.Atoi(it["n"].(*types.AttributeValueMemberN).Value)
			want[it["id"].(*types.AttributeValueMemberS).Value] = n
		}
	}
	for _, f := range seen {
		for id, n := range want {
			if f.last[id] != n {
				t.Errorf("the consumer in %s has item %s up to %d, want %d", f.name, id, f.last[id], n)
			}
		}
		t.Logf("the consumer in %s has %d changes, each once and in order, %v after the last was written in %v; %d kills",
			f.name, f.records, time.Since(began)-wrote, wrote, streamKills)
		if f.records < *streamChanges || f.wrong != "" {
			t.Errorf("the consumer in %s has %d changes, want %d or more; %s", f.name, f.records, *streamChanges, f.wrong)
		}
	}
}

// freeAddress is where nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	return lis.Addr().String()
}

// writeUntil counts items up until so many changes are acknowledged, and ends with then,
// while writers are still at it.
func writeUntil(t *testing.T, db *dynamodb.Client, round int, acknowledged *atomic.Int64, enough int64, then func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var once sync.Once
	for i := range streamWriters {
		rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
		writers.Go(func() {
			for ctx.Err() == nil {
				id := fmt.Sprintf("w%d-%d", i, rng.IntN(streamItems))
				_, err := db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
					TableName: aws.String("followed"), Key: item{"id": s(id)},
					UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: item{":one": n(1)},
				})
				if err != nil {
					if !isBroken(err) {
						t.Errorf("writing %s: %v", id, err)
					}
					return // it may have happened: the stream knows
				}
				if acknowledged.Add(1) >= enough {
					once.Do(func() {
						then()
						cancel()
					})
					return
				}
			}
		})
	}
	writers.Wait()
	cancel()
}

// followed is what a consumer has seen.
type followed struct {
	name    string
	last    map[string]int // by item
	records int
	wrong   string // the first that is
}

// take takes a change of an item to n.
func (f *followed) take(id, n string) {
	number, err := strconv.Atoi(n)
	if f.records++; (err != nil || number != f.last[id]+1) && f.wrong == "" {
		f.wrong = fmt.Sprintf("item %s: %s follows %d", id, n, f.last[id])
	}
	f.last[id] = number
}

// followInProgram runs a consumer that writes a line for each change: the item and its
// number. It ends, having read what there is, when its input does.
func followInProgram(ended <-chan struct{}, f *followed, command ...string) error {
	c := exec.Command(command[0], command[1:]...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	go func() {
		<-ended
		_ = in.Close()
	}()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		id, n, _ := strings.Cut(lines.Text(), " ")
		f.take(id, n)
	}
	_, _ = io.Copy(io.Discard, out)
	return c.Wait()
}

// followInGo is a consumer with the SDK for Go. It goes on behind what it has when the
// server was away.
func followInGo(ctx context.Context, endpoint, arn string, ended <-chan struct{}, f *followed) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	api := dynamodbstreams.New(dynamodbstreams.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: &http.Client{Transport: transport},
		Credentials: credentials.NewStaticCredentialsProvider("tabletop", "tabletop", ""), Retryer: aws.NopRetryer{},
	})
	behind, closed := map[string]*string{}, map[string]bool{}
	shard := func(id *string) error {
		in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &arn, ShardId: id, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon}
		if last := behind[*id]; last != nil {
			in.ShardIteratorType, in.SequenceNumber = streamtypes.ShardIteratorTypeAfterSequenceNumber, last
		}
		at, err := api.GetShardIterator(ctx, in)
		if err != nil {
			return err
		}
		for next := at.ShardIterator; next != nil; {
			got, err := api.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: next})
			if err != nil {
				return err
			}
			for _, r := range got.Records {
				f.take(r.Dynamodb.Keys["id"].(*streamtypes.AttributeValueMemberS).Value, r.Dynamodb.NewImage["n"].(*streamtypes.AttributeValueMemberN).Value)
				behind[*id] = r.Dynamodb.SequenceNumber
			}
			if next = got.NextShardIterator; next == nil {
				closed[*id] = true
			} else if len(got.Records) == 0 {
				return nil
			}
		}
		return nil
	}
	visit := func() error {
		for in := (&dynamodbstreams.DescribeStreamInput{StreamArn: &arn}); ; {
			page, err := api.DescribeStream(ctx, in)
			if err != nil {
				return err
			}
			for _, sh := range page.StreamDescription.Shards { // parents before their children
				if closed[*sh.ShardId] {
					continue
				}
				if err := shard(sh.ShardId); err != nil {
					return err
				}
			}
			if in.ExclusiveStartShardId = page.StreamDescription.LastEvaluatedShardId; in.ExclusiveStartShardId == nil {
				return nil
			}
		}
	}
	for {
		last := false
		select {
		case <-ended:
			last = true
		case <-time.After(100 * time.Millisecond):
		}
		before := f.records
		switch err := visit(); {
		case ctx.Err() != nil:
			return ctx.Err()
		case isBroken(err): // an answer can be cut off, of which the end of the writes does not tell
		case err != nil:
			return err
		case last && f.records == before:
			return nil
		}
	}
}
