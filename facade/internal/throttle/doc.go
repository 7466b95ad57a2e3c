// Package throttle rejects requests that exceed the throughput of their table, which
// DynamoDB calls throttling.
//
// A [Limiter] has one token bucket for reads and one for writes of each table and each
// global index. It admits a request if all buckets that the request uses are above zero.
// The request takes everything that it consumes, even if a bucket then falls below zero.
// Nothing else is admitted from that bucket until time has filled it again. Local indexes
// use the buckets of their table.
//
//   - Provisioned: the provisioned units per second, and up to 300 seconds of unused
//     units.
//   - On demand: 12,000 read and 4,000 write units per second, or the warm throughput, or
//     twice the peak of the last 30 minutes, whichever is highest, up to the account's
//     limit for a table; a burst of one second.
//   - On demand with a maximum: the maximum, and a burst of one second.
//   - A partition, if enabled: 3,000 read and 1,000 write units per second for all items
//     with the same partition key, and a burst of one second.
//
// A bucket is a level and a time. There are no timers: only the clock matters. An unknown
// bucket is treated as unused since its table was created, so after a restart tables have
// their saved units.
//
// Sources: developer guide, "Burst and adaptive capacity", "On-demand capacity mode",
// "Diagnosing throttling issues". The guide does not document whether a request is
// charged after its admission, nor what happens in the current second of on-demand
// tables.
package throttle
