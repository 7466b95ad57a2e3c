// Package facade serves the DynamoDB API over any Bigtable.
//
// A [Server] speaks AWS JSON 1.0 over HTTP, or inside the process through its
// [Server.RoundTripper]. It stores its tables as rows of the Bigtable behind Options.Conn,
// and uses only the Bigtable API there. So it also runs on Cloud Bigtable, with an app
// profile with single-cluster routing and single-row transactions. A
// [github.com/tabletop-emu/tabletop/facade/mapping.Mapping], or a default lossless layout,
// determines the cells of an item.
//
// The operation table has every operation of the API, see [Operations]; all are served. Requests
// are checked in DynamoDB's order and refused with its texts.
//
// A write of an item is atomic, together with its condition. Once acknowledged, it is in
// every index of its table. A transaction over several items takes effect as a whole or not
// at all. If its process ends in the middle, the next process that reads one of the items
// completes or reverts it. TransactGetItems sees all of a transaction or nothing; Query,
// Scan, BatchGetItem and native reads may see some items before it and others after it.
// Capacity is counted, and throttled if Options enable it. Signatures are checked for their
// form, and verified if Options has the keys: see [Options].
//
// Package [github.com/tabletop-emu/tabletop/facade/awserr] has the errors and their texts. A
// request passes through these packages below facade/internal, in this order:
//
//   - wire: the encoding of requests and answers: JSON, signatures, errors.
//   - request: checks of requests that need no table, in the wording of a region
//     (request/regions.go).
//   - partiql: the statements of PartiQL.
//   - tabledef, tablespec: table definitions, and checks of requests against them.
//   - policy, insights: resource policies and contributor insights.
//   - vectors: entries of vector indexes, and the nearest of them (vectors/nearest.go).
//   - capacity, throttle: what an operation consumes, and limits on it (throttle/limiter.go).
//   - store: items in rows: catalog, transactions, indexes; write.go tries a write again
//     that another one overtook, reaper.go deletes expired items. Below it, store/lanes runs
//     calls side by side, store/marks finds rows with work left to do, store/segment
//     divides tables for parallel scans, store/history reads a table as it was.
//   - sizes: when tables are counted.
//   - changelog: the log of a table's changes; streams serves it as DynamoDB Streams, and
//     kinesis delivers it to Kinesis.
//   - jobs: work that outlives its request; backups, bucketjobs (exports, imports and
//     bulk operations) and kinesis run as jobs. importfile reads the files of a bucket.
//
// Some have one importer. backups, bucketjobs, insights, kinesis, policy and streams each keep or
// show the state of one feature, and know none of the others. throttle counts tokens and calls no
// store. partiql, importfile and segment have terms of their own: statements, formats of files,
// and cuts.
//
// In package facade, the operation PutItem is in op_put_item.go, and so on; read_page.go reads
// the pages of Query and Scan, and sets LastEvaluatedKey.
package facade
