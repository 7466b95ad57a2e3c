package conformance

import (
	"bufio"
	"cmp"
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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/streamwalk"
)

var (
	streamChanges = flag.Int("conformance.changes", 0, "how many changes consumers of a stream read; 0: as many as the tier of the tests asks for")
	withPython    = flag.String("conformance.python", "", "a Python that has boto3; then its consumer runs too")
	withNode      = flag.String("conformance.node", "", "a Node beside whose conformance/js are the SDK's packages; then its consumer runs too")
)

const (
	streamWriters = 8
	streamItems   = 40 // of each writer
	// visitEvery is the number of acknowledged changes between two reads of the consumer in
	// Go.
	visitEvery = 25
)

// TestKill_Streams runs consumers with the SDKs of Go, and of Python and JavaScript if
// requested, on a stream whose shards rotate each second and split, while writers write and
// the server is killed and restarted. Each consumer gets each change once, those of an item in
// the order of its writes.
func TestKill_Streams(t *testing.T) {
	t.Parallel()
	kills, changes := 1, cmp.Or(*streamChanges, 300)
	if long.Enabled() {
		kills, changes = 4, cmp.Or(*streamChanges, 2000)
	}
	dir, address := t.TempDir(), ownAddress()
	start := func() *process {
		p, err := serve("--bigtable", "off", "--dynamodb", address, "--data", dir, "--stream-shards", "1,2,4", "--stream-shard-rotation", "1s")
		if err != nil {
			t.Fatal(err)
		}
		address = strings.TrimPrefix(p.exports["AWS_ENDPOINT_URL_DYNAMODB"], "http://")
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
	ended, written := make(chan struct{}), make(chan struct{}, 1)
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
	follow("Go", func(f *followed) error { return followInGo(t.Context(), endpoint, arn, written, ended, f) })
	for name, command := range map[string][]string{"Python": {*withPython, "python/follow.py"}, "JavaScript": {*withNode, "js/follow.mjs"}} {
		if command[0] != "" {
			follow(name, func(f *followed) error { return followInProgram(ended, f, append(command, endpoint, arn)...) })
		}
	}

	w := &streamWriting{t: t, db: db, written: written}
	for round := range kills + 1 {
		w.until(round, int64(changes*(round+1)/(kills+1)), func() {
			if round == kills {
				return
			}
			if err := p.kill(); err != nil {
				t.Error(err)
			}
		})
		if round < kills {
			p = start()
		}
	}
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
		t.Logf("the consumer in %s has %d changes; %d kills", f.name, f.records, kills)
		if f.records < changes || f.wrong != "" {
			t.Errorf("the consumer in %s has %d changes, want %d or more; %s", f.name, f.records, changes, f.wrong)
		}
	}
}

// ownAddress returns an address, with port 0, that no other program uses: a restarted server
// finds its port free. If 127.0.0.1 is the only loopback address, another program can take the
// port.
func ownAddress() string {
	own := fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(254), rand.N(256), 1+rand.N(254))
	lis, err := net.Listen("tcp", own)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = lis.Close()
	return own
}

// streamWriting increments items.
type streamWriting struct {
	t            *testing.T
	db           *dynamodb.Client
	acknowledged atomic.Int64
	written      chan<- struct{} // receives a value after some changes, unless it has one
}

// until writes until enough changes are acknowledged, and then calls then while writers still
// write.
func (w *streamWriting) until(round int, enough int64, then func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var writers sync.WaitGroup
	var once sync.Once
	for i := range streamWriters {
		rng := rand.New(rand.NewPCG(uint64(round), uint64(i)))
		writers.Go(func() {
			for ctx.Err() == nil {
				id := fmt.Sprintf("w%d-%d", i, rng.IntN(streamItems))
				_, err := w.db.UpdateItem(w.t.Context(), &dynamodb.UpdateItemInput{
					TableName: aws.String("followed"), Key: item{"id": s(id)},
					UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: item{":one": n(1)},
				})
				if err != nil {
					if !isBroken(err) {
						w.t.Errorf("writing %s: %v", id, err)
					}
					return // it may have happened: the stream has it or not
				}
				now := w.acknowledged.Add(1)
				if now%visitEvery == 0 {
					select {
					case w.written <- struct{}{}:
					default:
					}
				}
				if now >= enough {
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

// followed is the state of a consumer.
type followed struct {
	name    string
	last    map[string]int // by item
	records int
	wrong   string // the first error
}

// take processes a change of an item to n.
func (f *followed) take(id, n string) {
	number, err := strconv.Atoi(n)
	if f.records++; (err != nil || number != f.last[id]+1) && f.wrong == "" {
		f.wrong = fmt.Sprintf("item %s: %s follows %d", id, n, f.last[id])
	}
	f.last[id] = number
}

// followInProgram runs a consumer that writes a line for each change: the item and its number.
// When its input ends, it reads the rest and ends.
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

// followInGo reads the stream with the SDK for Go, again after each value of written and until
// ended is closed. After a restart of the server it continues after its last record.
func followInGo(ctx context.Context, endpoint, arn string, written, ended <-chan struct{}, f *followed) error {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	api := dynamodbstreams.New(dynamodbstreams.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: &http.Client{Transport: transport},
		Credentials: credentials.NewStaticCredentialsProvider("tabletop", "tabletop", ""), Retryer: aws.NopRetryer{},
	})
	stream := streamwalk.New(api, &arn)
	take := func(r streamtypes.Record) {
		f.take(r.Dynamodb.Keys["id"].(*streamtypes.AttributeValueMemberS).Value, r.Dynamodb.NewImage["n"].(*streamtypes.AttributeValueMemberN).Value)
	}
	for {
		last := false
		select {
		case <-ended:
			last = true
		case <-written:
		}
		before := f.records
		switch err := stream.Read(ctx, take); {
		case ctx.Err() != nil:
			return ctx.Err()
		case isBroken(err): // an answer can be cut off, regardless of the end of the writes
		case err != nil:
			return err
		case last && f.records == before:
			return nil
		}
	}
}
