// Package throttle refuses requests that use more than their table was given: what
// DynamoDB calls throttling.
//
// A [Limiter] has a token bucket for the reads and one for the writes of each table
// and each global index. A request is admitted where all buckets that it uses are above
// zero, and takes what it consumes even where that is more than they hold: then they
// are below zero, and nothing is admitted until time has filled them again. Local
// indexes use the buckets of their table.
//
//   - Provisioned: the provisioned units a second, and up to 300 seconds of unused units.
//   - On demand: 12,000 read and 4,000 write units a second, or the warm throughput, or
//     twice the most that was used in a second of the last 30 minutes, whichever is
//     most, up to what the account may use of a table; a second of it at once.
//   - On demand with a maximum: the maximum, a second of it at once.
//   - A partition, where asked for: 3,000 read and 1,000 write units a second for all
//     items with the same partition key, a second of it at once.
//
// A bucket is a level and a time: there are no timers, and what the clock says is all
// that counts. One that is not known yet was never used since its table was created, so
// that after a restart tables have what they have saved by then.
//
// Sources: developer guide, "Burst and adaptive capacity", "On-demand capacity mode",
// "Diagnosing throttling issues". That a request is charged after it was admitted, and
// what happens to the second of on-demand tables, is nowhere documented.
package throttle
