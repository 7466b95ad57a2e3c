package testkit_test

import (
	"fmt"
	"runtime/metrics"
	"strconv"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/testkit"
)

// held returns the used bytes of Go memory: of the heap, and of stacks.
func held() uint64 {
	live := memory.Live()
	stacks := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(stacks)
	return live + stacks[0].Value.Uint64()
}

// TestIsolation runs many concurrent environments that use the same names: each sees its own
// rows, items, time and faults, takes less than a megabyte when idle, and leaves no goroutine.
func TestIsolation(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	memory.Alone(t, func(t *testing.T) {
		const maxBytes = 1 << 20 // limit of an idle environment
		environments := 40
		if long.Enabled() {
			environments = 200
		}
		began := time.Unix(1_700_000_000, 0)
		t.Run("first", func(t *testing.T) { useAlone(t, testkit.Start(t), 0) }) // allocations that are made once per process
		before, running := held(), goleak.IgnoreCurrent()

		t.Run("together", func(t *testing.T) {
			envs := make([]*testkit.Env, environments)
			owners := make([]*faketb.TB, environments)
			together(func(i int) {
				owners[i] = newExampleTB()
				envs[i] = testkit.Start(t, testkit.WithFrozenClock(began))
				useAlone(owners[i], envs[i], i)
				envs[i].Advance(time.Duration(i) * time.Second)
				if i%2 == 1 {
					envs[i].Fail("SampleRowKeys", status.Error(codes.DataLoss, strconv.Itoa(i)))
				}
			}, environments)
			if t.Failed() {
				return
			}
			each := func() int64 { return (int64(held()) - int64(before)) / int64(environments) }
			busy := each()
			for _, o := range owners {
				o.End()
			}
			idle := each()
			t.Logf("%d environments hold %d KiB of Go memory each, with clients connected %d KiB", environments, idle>>10, busy>>10)
			if idle > maxBytes {
				t.Errorf("an idle environment holds %d bytes, at most %d are meant to", idle, maxBytes)
			}
			together(func(i int) { checkAlone(t, envs[i], i, began) }, environments)
		})
		goleak.VerifyNone(t, running)
	})
}

// together runs f(0), f(1) … f(n-1) concurrently.
func together(f func(int), n int) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// useAlone writes through both endpoints, under names that are the same for all n, with
// clients of tb.
func useAlone(tb testing.TB, env *testkit.Env, n int) {
	tb.Helper()
	err := env.BigtableAdmin(tb).CreateTableFromConf(tb.Context(), &bigtable.TableConf{
		TableID: "t", Families: map[string]bigtable.GCPolicy{"f": bigtable.NoGcPolicy()},
	})
	if err != nil {
		tb.Error(err)
		return
	}
	m := bigtable.NewMutation()
	m.Set("f", "q", 1000, []byte(strconv.Itoa(n)))
	if err := env.Bigtable(tb).Open("t").Apply(tb.Context(), "r", m); err != nil {
		tb.Error(err)
	}
	ddb := env.DynamoDB(tb)
	_, err = ddb.CreateTable(tb.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("items"),
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	if err != nil {
		tb.Error(err)
		return
	}
	for _, pk := range []string{"same", "own" + strconv.Itoa(n)} {
		if _, err := ddb.PutItem(tb.Context(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: pk}, "n": &types.AttributeValueMemberN{Value: strconv.Itoa(n)},
		}}); err != nil {
			tb.Error(err)
		}
	}
}

// checkAlone checks that the environment has exactly the data of the n-th useAlone, its time,
// and its own faults.
func checkAlone(t *testing.T, env *testkit.Env, n int, began time.Time) {
	t.Helper()
	if got, want := env.Dump("t"), fmt.Sprintf("r [72]\n  f:q @1000 = \"%d\"\n", n); got != want {
		t.Errorf("environment %d holds\n%swant\n%s", n, got, want)
	}
	got, err := env.DynamoDB(t).Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("items")})
	if err != nil {
		t.Error(err)
		return
	}
	keys := map[string]bool{}
	for _, item := range got.Items {
		if v, ok := item["n"].(*types.AttributeValueMemberN); !ok || v.Value != strconv.Itoa(n) {
			t.Errorf("environment %d: the item %v is of another", n, item)
		}
		if v, ok := item["pk"].(*types.AttributeValueMemberS); ok {
			keys[v.Value] = true
		}
	}
	if len(got.Items) != 2 || !keys["same"] || !keys["own"+strconv.Itoa(n)] {
		t.Errorf("environment %d: items %v", n, keys)
	}
	if got, want := env.Now(), began.Add(time.Duration(n)*time.Second); !got.Equal(want) {
		t.Errorf("environment %d: it is %v, want %v", n, got, want)
	}
	_, err = env.Bigtable(t).Open("t").SampleRowKeys(t.Context())
	switch {
	case n%2 == 0 && err != nil:
		t.Errorf("environment %d: the fault of another: %v", n, err)
	case n%2 == 1 && (status.Code(err) != codes.DataLoss || status.Convert(err).Message() != strconv.Itoa(n)):
		t.Errorf("environment %d: got %v instead of its fault", n, err)
	}
}
