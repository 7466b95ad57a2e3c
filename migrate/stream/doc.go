// Package stream reads the change records of a DynamoDB table from DynamoDB Streams, for a
// follower that applies them. The stream is the service's or that of Tabletop's own endpoint.
//
// [Open] checks the table and its stream. [Stream.Run] then reads all shards and passes their
// records to the follower, in batches: those of one shard in order and one batch at a time,
// those of several shards at once, a shard only after its parent. Records count as applied when
// the follower's function has returned nil for them. [Stream.Checkpoint] covers exactly the
// applied records, and the next Open continues there: after a crash records come again, but
// none is left out.
//
// Three rules keep an item's records in order and complete:
//
//   - A shard is read when its parent was applied to its end, or was trimmed before it was
//     begun. A shard that was begun and can no longer be read is a [Gap], an error.
//   - Older records are dropped only before the first one to keep of a lineage, which is a
//     shard with its descendants: times are approximate, and a record that is dropped in
//     between would leave an older state.
//   - [Record.Position] grows with each change of an item. Numbers that do not grow from a
//     shard to its child begin an epoch.
//
// # The watermark
//
// All writes that the source acknowledged before the watermark were applied. Each shard has one;
// that of the table is the least of the shards that are open, or whose children are unknown.
// There are two rules, and [Status.Rule] names the one in use:
//
//   - [RuleHeader]: the answers of Tabletop's endpoint name the sequence number below which
//     they left nothing out, and the number contains the time.
//   - [RuleAnswers], for all others: after two consecutive empty answers, the watermark of the
//     shard is the time of the first call less a second; after records, it is the time of the
//     last one less a second. No documentation of the service confirms that these suffice.
//
// Times are those of the source: the Date of its answers corrects the clock of this machine.
package stream
