// Package source reads DynamoDB data from exports and files. [Open] recognizes an input
// by its content, and CSV by its name. The supported inputs are:
//
//   - an export to S3, with the incremental exports or the change records (of DynamoDB
//     Streams or Kinesis) that follow it;
//   - JSON lines, or other consecutive JSON items;
//   - Ion text;
//   - the items of a Hive export;
//   - a BatchWriteItem request file;
//   - pages of a Scan;
//   - a NoSQL Workbench model;
//   - CSV;
//   - a folder of pages or part files.
//
// A folder of an export or of part files may have the description of its table in schema.json.
//
// Files may be uncompressed, gzip or zstd. Options.Plain reads JSON without type tags.
//
// If an input is damaged, the functions return an [Error] with the position and the
// expectation. Items are streamed, any number of times, in memory bounded by one item.
// The counts and checksums of an input are checked. Network sources and binary Ion are
// rejected with a hint.
//
// [Increments] is a folder into which incremental exports arrive one after the other.
//
// [Open], [OpenFS] and their results are stable. Everything else is exported for other
// packages of migrate, without a promise of stability.
package source
