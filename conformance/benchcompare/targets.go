package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// metric is a figure of a result. Targets compare two results by it.
type metric struct {
	name  string
	value func(result) float64
}

var (
	p50       = metric{"p50", func(r result) float64 { return r.P50us }}
	p99       = metric{"p99", func(r result) float64 { return r.P99us }}
	worst     = metric{"worst", func(r result) float64 { return r.MaxUs }}
	firstRow  = metric{"first row", func(r result) float64 { return r.FirstUs }}
	serverCPU = metric{"server CPU", func(r result) float64 { return r.ServerUs }}
	cpu       = metric{"CPU", func(r result) float64 { return r.ServerUs }}
	memory    = metric{"resident memory", func(r result) float64 { return r.RSSMB }}
	total     = metric{"time", func(r result) float64 { return r.Seconds }}
	rate      = metric{"rate", func(r result) float64 { return max(r.OpsPerS, r.UnitsPS) }}
)

// target is a required ratio.
type target struct {
	group  string
	metric metric
	ours   point
	peer   point // empty: the limit applies to the figure itself
	// limit is the largest ours/peer, or the smallest with atLeast. 0 means no limit: the row
	// is only informative.
	limit   float64
	atLeast bool
}

// targets returns the rows of the report, by group.
func (b *bench) targets() []target {
	var out []target
	beside := func(group, peer string, m metric, limit float64, workloads ...string) {
		for _, w := range workloads {
			out = append(out, target{group: group, metric: m, ours: point{ours, w}, peer: point{peer, w}, limit: limit})
		}
	}
	itself := func(group string, m metric, w, than string, limit float64) {
		out = append(out, target{group: group, metric: m, ours: point{ours, w}, peer: point{ours, than}, limit: limit})
	}
	// about adds a row without a target.
	about := func(group string, m metric, mine, than point) {
		out = append(out, target{group: group, metric: m, ours: mine, peer: than})
	}
	sizes := strings.Split(b.growth, ",")
	least, most := sizes[0], sizes[len(sizes)-1]
	load := fmt.Sprintf("load/%d", b.rows)

	const bt = "Bigtable endpoint"
	beside(bt, cbtemulator, p50, 1.0, "write1k/c1", "write1k/c8", "write1k/c64", "read/c1", "read/c8", "read/c64",
		"checkandmutate", "checkandmutate/c8", "checkandmutate/c64", "rmw/hot/c1", "rmw/hot", "rmw/hot/c64", "rmw/spread/c1", "rmw/spread", "rmw/spread/c64")
	out = append(out, target{group: bt, metric: rate, ours: point{ours, load}, peer: point{cbtemulator, load}, limit: 1.2, atLeast: true})
	beside(bt, cbtemulator, serverCPU, 0.6, "scan10k", "scan10k/reverse", "prefix100", "fullscan", "filter/fam+latest1")
	beside(bt, cbtemulator, firstRow, 0.01, "fullscan")
	beside(bt, cbtemulator, p50, 0.01, "scan/limit1")
	itself(bt, p50, "growth/"+most+"/limit1", "growth/"+least+"/limit1", 2)
	beside(bt, cbtemulator, total, 0.05, "wide/100000/random/write")
	beside(bt, cbtemulator, p50, 0.01, "wide/100000/asc/colrange100")
	itself(bt, rate, "hotrow/slice5", "hotrow/slice0", 0.95)
	out[len(out)-1].atLeast = true
	out = append(out, target{group: bt, metric: p50, ours: point{"last-slice", "go/Versions30k"}, peer: point{"first-slice", "go/Versions30k"}, limit: 1 / 0.95})
	for _, w := range []string{"go/CountedWrite", "go/CountedRead"} {
		out = append(out, target{group: bt, metric: cpu, ours: point{"counted", w}, peer: point{"plain", w}, limit: 1.1})
	}
	for _, w := range []string{"go/ObservedWrite", "go/ObservedRead"} {
		out = append(out, target{group: bt, metric: cpu, ours: point{"observed", w}, peer: point{"plain", w}, limit: 1.05})
	}
	beside(bt, cbtemulator, p50, 0.1, "samplerowkeys", "droprowrange/1000")
	beside(bt, cbtemulator, worst, 0.1, "gc/"+most+"/on")
	itself(bt, p99, "gc/"+most+"/on", "gc/"+most+"/off", 3)
	for _, e := range []struct {
		size  string
		limit float64
	}{{"10000", 1.0}, {"100000", 0.8}, {"1000000", 0.5}} {
		if slices.Contains(sizes, e.size) {
			beside("Memory", cbtemulator, memory, e.limit, "growth/"+e.size+"/load")
		}
	}

	for _, e := range []struct {
		name  string
		limit float64
	}{{"Write", 2.0}, {"RowRead", 1.5}, {"Scan", 1.5}, {"Backup", 2.0}} {
		w := "go/" + e.name
		out = append(out, target{group: "Engine alone", metric: cpu, ours: point{"engine", w}, peer: point{"pebble", w}, limit: e.limit})
	}
	out = append(out, target{group: "Start", metric: p50, ours: point{"testkit", "go/Start"}, peer: point{"bttest", "go/Start"}, limit: 1.0})
	beside("Start", cbtemulator, p50, 1.0, "startup")
	about("Start", p50, point{ours, "startup"}, point{dynoxide, "startup"})

	const ddb = "DynamoDB endpoint"
	batch := fmt.Sprintf("batchwrite/%d", b.items)
	beside(ddb, dynoxide, p50, 0.7, batch, "scan/all", "update/add/spread")
	beside(ddb, dynoxide, p50, 0.8, "query100", "query100/gsi")
	beside(ddb, dynoxide, p50, 0.9, "put1k/c1", "put1k/c8", "put/conditional", "transactwrite10")
	beside(ddb, dynoxide, p50, 1.0, "get/c1", "get/c8", "update/add/hot")
	for _, op := range []string{"Get", "Put"} {
		w := "go/" + op
		out = append(out,
			target{group: ddb, metric: p50, ours: point{"round-tripper", w}, peer: point{"http", w}, limit: 0.8},
			target{group: ddb, metric: p50, ours: point{"direct", w}, peer: point{"http", w}, limit: 0.6})
	}
	// The steadiest measure of the cost of the same request on either side.
	const near = "Near: server CPU a request"
	beside(near, cbtemulator, serverCPU, 1.05, "checkandmutate", "checkandmutate/c8", "checkandmutate/c64", "versions/1000/latest1", "versions/1000/write",
		"write1k/c1", "write1k/c8", "write1k/c64", "read/c1", "read/c8", "read/c64", "rmw/hot/c1", "rmw/hot", "rmw/hot/c64", "rmw/spread/c1", "rmw/spread", "rmw/spread/c64",
		load, "scan/limit1", "samplerowkeys", "droprowrange/1000",
		"wide/100000/asc/write", "wide/100000/random/write", "wide/100000/asc/write1", "wide/100000/asc/latest1", "wide/100000/asc/colrange100")
	beside(near, dynoxide, serverCPU, 1.35, "get/c1")
	beside(near, dynoxide, serverCPU, 1.2, "put1k/c1")
	beside(near, dynoxide, serverCPU, 1.1, "transactwrite10")
	beside(near, dynoxide, serverCPU, 1.0, "get/c8", "put1k/c8", "put/conditional", "update/add/hot", "update/add/spread", batch)
	beside(near, dynoxide, serverCPU, 0.75, "query100", "query100/gsi")
	beside(near, dynoxide, serverCPU, 0.5, "scan/all")
	about("Memory", memory, point{ours, "plain/put/conditional"}, point{dynoxide, "plain/put/conditional"})
	out = append(out, target{group: "Memory", metric: memory, ours: point{ours, "plain/put/conditional"}, limit: 120},
		target{group: "Memory", metric: memory, ours: point{oursOnDisk, "plain/put/conditional"}, limit: 90})

	const recorded = "DynamoDB endpoint: changes and statements"
	itself(recorded, serverCPU, "changes/put", "changes/put/off", 1.5)
	itself(recorded, serverCPU, "changes/update", "changes/update/off", 1.5)
	itself(recorded, serverCPU, "changes/transactwrite10", "changes/transactwrite10/off", 2)
	for _, view := range []string{"keys_only", "new_and_old_images"} {
		out = append(out, target{group: recorded, metric: cpu, ours: point{view, "go/RecordedPut"}, peer: point{"plain", "go/RecordedPut"}, limit: 4})
	}
	itself(recorded, serverCPU, "changes/getrecords1000", "changes/query1000", 1.2)
	itself(recorded, serverCPU, "changes/executestatement", "changes/get", 1.25)
	out = append(out, target{group: recorded, metric: cpu, ours: point{"uncompressed", "go/Export"}, peer: point{"scan", "go/Export"}, limit: 2.5})

	exports := strings.Split(b.migration, ",")
	few, many := "migrate/"+exports[0], "migrate/"+exports[len(exports)-1]
	itself("Migration", rate, many, few, 0.8)
	out[len(out)-1].atLeast = true
	out = append(out, target{group: "Migration", metric: memory, ours: point{ours, many}, limit: 512})

	order := map[string]int{}
	for _, t := range out {
		if _, seen := order[t.group]; !seen {
			order[t.group] = len(order)
		}
	}
	slices.SortStableFunc(out, func(a, b target) int {
		return cmp.Compare(order[a.group], order[b.group])
	})
	return out
}
