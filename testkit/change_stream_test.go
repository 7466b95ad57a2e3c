package testkit_test

import (
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/testkit"
)

func TestEnv_SplitPartition(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	err := env.BigtableAdmin(t).CreateTableFromConf(t.Context(), &bigtable.TableConf{TableID: "t", ChangeStreamRetention: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	partitions := func() (n int) {
		stream, err := btpb.NewBigtableClient(env.Conn()).GenerateInitialChangeStreamPartitions(t.Context(), &btpb.GenerateInitialChangeStreamPartitionsRequest{
			TableName: "projects/" + env.Project() + "/instances/" + env.Instance() + "/tables/t",
		})
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := stream.Recv(); err != nil {
				return n
			}
			n++
		}
	}
	env.SplitPartition("t", []byte("m"))
	if n := partitions(); n != 2 {
		t.Errorf("%d partitions after a split", n)
	}
	env.MergePartitions("t", []byte("m"))
	if n := partitions(); n != 1 {
		t.Errorf("%d partitions after a merge", n)
	}
}
