package btkit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// partitions returns the start keys of the partitions of the change stream of table t.
func partitions(t *testing.T, env *btkit.Env) (starts []string) {
	t.Helper()
	stream, err := btpb.NewBigtableClient(env.Conn()).GenerateInitialChangeStreamPartitions(t.Context(), &btpb.GenerateInitialChangeStreamPartitionsRequest{
		TableName: "projects/" + env.Project() + "/instances/" + env.Instance() + "/tables/t",
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		resp, err := stream.Recv()
		if err != nil {
			return starts
		}
		starts = append(starts, string(resp.GetPartition().GetRowRange().GetStartKeyClosed()))
	}
}

func TestEnv_SplitPartition(t *testing.T) {
	t.Parallel()
	env := btkit.Start(t)
	err := env.BigtableAdmin(t).CreateTableFromConf(t.Context(), &bigtable.TableConf{TableID: "t", ChangeStreamRetention: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	env.SplitPartition("t", []byte("m"))
	if n := len(partitions(t, env)); n != 2 {
		t.Errorf("%d partitions after a split", n)
	}
	env.MergePartitions("t", []byte("m"))
	if n := len(partitions(t, env)); n != 1 {
		t.Errorf("%d partitions after a merge", n)
	}
}

// Partitions are split and merged, by the seed, and no more often than requested.
func TestWithPartitionChurn(t *testing.T) {
	t.Parallel()
	churned := func(p float64, seed uint64) string {
		env := btkit.Start(t, btkit.WithPartitionChurn(p), btkit.WithSeed(seed))
		table := withStream(t, env, "t")
		for i := range 30 {
			apply(t, table, fmt.Sprint("row", i+10), setF("1"))
		}
		if got := env.Changes(t, "t"); len(got) != 30 {
			t.Errorf("%d records", len(got))
		}
		return fmt.Sprintf("%q", partitions(t, env))
	}
	if got := churned(0, 1); got != `[""]` {
		t.Errorf("without churn the partitions begin at %s", got)
	}
	one, two := churned(1, 1), churned(1, 2)
	// After 30 changes there would be 30 bounds without merges.
	if n := strings.Count(one, "row"); n == 0 || n > 15 || one == two || one != churned(1, 1) {
		t.Errorf("the partitions begin at %s, and with another seed at %s", one, two)
	}
}
