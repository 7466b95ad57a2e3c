// Package facade serves the DynamoDB API over any Bigtable.
//
// A [Server] speaks AWS JSON 1.0 over HTTP, or inside the process through its
// [Server.RoundTripper]. It stores its tables as rows of the Bigtable behind
// Options.Conn, which it uses only through the Bigtable API. It therefore also runs on
// Cloud Bigtable, with an app profile that has single-cluster routing and allows
// single-row transactions. A [github.com/tabletop-emu/tabletop/facade/mapping.Mapping],
// or a lossless default layout, determines the cells of an item.
//
// [Operations] lists the operations of the API; all of them are served. Requests are
// checked in DynamoDB's order, and rejected with its texts.
//
// A write of an item is atomic, including its condition. Once acknowledged, it is visible
// in every index of the table, except those in materialized views, which the Bigtable
// updates later. A transaction over several items takes effect as a whole or not at all.
// If its process ends in the middle, the next process that reads one of the items
// completes or reverts it. TransactGetItems sees all of a transaction or nothing. Query,
// Scan, BatchGetItem and native reads may see some items before the transaction and
// others after it. Consumed capacity is counted, and requests are throttled if [Options]
// enables it. The form of signatures is checked, and they are verified if Options has the
// keys.
//
// Package [github.com/tabletop-emu/tabletop/facade/awserr] has the errors and their
// texts. A request passes through these packages below facade/internal, in this order:
//
//   - wire: encodes requests and responses: JSON, signatures, errors.
//   - request: checks requests without their table, in the wording of a region
//     (request/regions.go).
//   - partiql: parses and plans PartiQL statements.
//   - tabledef, tablespec: hold table definitions, and check requests against them.
//   - policy, insights: implement resource policies and contributor insights.
//   - vectors: keeps the entries of vector indexes, and finds the nearest
//     (vectors/nearest.go).
//   - capacity, throttle: count and limit the consumed capacity (throttle/limiter.go).
//   - store: keeps items in rows, with the catalog, transactions and indexes. write.go
//     retries a write if another one came first, and reaper.go deletes expired items.
//     Below it, store/lanes runs calls concurrently, store/marks finds rows with
//     unfinished work, store/segment divides tables for parallel scans, and store/history
//     reads past contents of a table.
//   - sizes: schedules the counting of tables.
//   - changelog: keeps the log of a table's changes; streams serves the log as DynamoDB
//     Streams, and kinesis delivers it to Kinesis.
//   - jobs: runs work that outlives its request; backups, bucketjobs (exports, imports
//     and bulk operations) and kinesis run as jobs. importfile reads the files of a
//     bucket.
//
// Some of these packages have a single importer. backups, bucketjobs, insights, kinesis, policy
// and streams each keep or show the state of one feature, and know none of the others. throttle
// counts tokens and calls no store. partiql, importfile and segment have terms of their own:
// statements, formats of files, and cuts.
//
// In package facade, each operation has a file: PutItem is in op_put_item.go, for
// example. read_page.go reads the pages of Query and Scan, and sets LastEvaluatedKey.
package facade
