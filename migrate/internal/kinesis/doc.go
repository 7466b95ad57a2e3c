// Package kinesis reads the change records that DynamoDB delivers to a Kinesis data stream, from a
// folder of JSON lines to which another program appends them.
//
// [Folder.Run] reads the files in the order of their names, and then the lines that are appended.
// Records count as applied when the follower's function has returned nil for them, and
// [Folder.Checkpoint] covers exactly these.
//
// # Order
//
// Records come at least once, and not in order. The time of a record and its [Record.Tie] order the
// changes of an item, whatever the order of delivery. Changes of one item at one time are put into a
// chain: the one whose OldImage is the NewImage of the other is later. A repeated record has the
// images of the first one, and is left out.
//
// If no chain decides, the record waits for another one until the allowance has passed. Then the
// item is fetched from the source: its state includes all changes of that time.
//
// # The watermark
//
// The watermark is the time of the newest record less the allowance: no record is assumed to be
// delivered later than that. It moves when all files were read to their ends. In a quiet table only
// [DeliveredFile] moves it: no silence proves that the delivery works. A record before the
// watermark is applied like others, and counted: [Status.Late].
package kinesis
