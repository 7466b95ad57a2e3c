package conformance

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// clockTick is the unit in which Linux reports the CPU time of a process.
const clockTick = 10 * time.Millisecond

// cpu returns the CPU time of the process, as the kernel reports it.
func (p *process) cpu(b *testing.B) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	if err != nil {
		b.Skipf("this system does not report the time of a process: %v", err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	var ticks int
	for _, f := range fields[11:13] { // utime and stime, counted from the state
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}

// BenchmarkChangeStream measures the CPU cost of a change stream on a server of its own:
// alternating writes of 1 KB to a table with a stream and to one without, and a reader that is
// behind. Run it with -benchtime=1x.
func BenchmarkChangeStream(b *testing.B) {
	const rounds, writes, workers = 6, 4000, 16
	p, err := serve("--bigtable", "127.0.0.1:0", "--dynamodb", "off", "--gc", "manual")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := p.stop(); err != nil {
			b.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:///"+p.exports["BIGTABLE_EMULATOR_HOST"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const parent = "projects/p/instances/i"
	for id, keep := range map[string]time.Duration{"plain": 0, "stream": 24 * time.Hour} {
		table := &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}}
		if keep > 0 {
			table.ChangeStreamConfig = &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(keep)}
		}
		if _, err := btapb.NewBigtableTableAdminClient(conn).CreateTable(b.Context(), &btapb.CreateTableRequest{Parent: parent, TableId: id, Table: table}); err != nil {
			b.Fatal(err)
		}
	}
	c := btpb.NewBigtableClient(conn)
	value := []byte(strings.Repeat("v", 1000))
	write := func(table string, round int) time.Duration {
		before := p.cpu(b)
		var working sync.WaitGroup
		for w := range workers {
			working.Go(func() {
				for i := w; i < writes; i += workers {
					_, err := c.MutateRow(b.Context(), &btpb.MutateRowRequest{
						TableName: parent + "/tables/" + table, RowKey: fmt.Appendf(nil, "%06d", (round*writes+i)*7919%100_000),
						Mutations: []*btpb.Mutation{{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
							FamilyName: "f", ColumnQualifier: []byte("q"), TimestampMicros: -1, Value: value,
						}}}},
					})
					if err != nil {
						b.Error(err)
					}
				}
			})
		}
		working.Wait()
		return p.cpu(b) - before
	}
	began := time.Now().Add(-time.Second)
	write("plain", 0)
	for b.Loop() {
		var plain, stream time.Duration
		for round := range rounds {
			plain += write("plain", round)
			stream += write("stream", round)
		}
		b.ReportMetric(plain.Seconds()*1e6/(rounds*writes), "µs-cpu/write-without")
		b.ReportMetric(stream.Seconds()*1e6/(rounds*writes), "µs-cpu/write-with")
		b.ReportMetric(float64(stream)/float64(plain), "with/without")

		before, records := p.cpu(b), 0
		for range 4 {
			read, err := c.ReadChangeStream(b.Context(), &btpb.ReadChangeStreamRequest{
				TableName: parent + "/tables/stream", StartFrom: &btpb.ReadChangeStreamRequest_StartTime{StartTime: timestamppb.New(began)},
				EndTime: timestamppb.New(time.Now().Add(time.Millisecond)), // the last records have this time
			})
			for err == nil {
				var resp *btpb.ReadChangeStreamResponse
				if resp, err = read.Recv(); resp.GetDataChange() != nil {
					records++
				}
			}
		}
		if records < 4*rounds*writes {
			b.Fatalf("%d records were read of %d, four times", records, rounds*writes)
		}
		b.ReportMetric(float64(records)/(p.cpu(b)-before).Seconds(), "records/s-cpu")
	}
	b.ReportMetric(0, "ns/op")
}
