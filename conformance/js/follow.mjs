// A consumer of a stream with the AWS SDK for JavaScript: a line for each change, the item
// and its number.
//
//     follow.mjs ENDPOINT STREAM-ARN
//
// It continues after its last change when the server was away. When its input ends, it reads
// the rest and ends. TestKill_Streams of ../kill_stream_test.go starts it.

import { setTimeout as sleep } from 'node:timers/promises'
import { DescribeStreamCommand, DynamoDBStreamsClient, GetRecordsCommand, GetShardIteratorCommand } from '@aws-sdk/client-dynamodb-streams'

const [endpoint, StreamArn] = process.argv.slice(2)
const api = new DynamoDBStreamsClient({
  endpoint, region: 'us-east-1', credentials: { accessKeyId: 'tabletop', secretAccessKey: 'tabletop' }, maxAttempts: 1,
})
let ended = false
process.stdin.resume().on('end', () => { ended = true })
const behind = new Map()
const closed = new Set()
let records = 0

// shard reads the new records of a shard.
async function shard(ShardId) {
  const at = behind.has(ShardId)
    ? { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', SequenceNumber: behind.get(ShardId) }
    : { ShardIteratorType: 'TRIM_HORIZON' }
  let { ShardIterator } = await api.send(new GetShardIteratorCommand({ StreamArn, ShardId, ...at }))
  while (ShardIterator) {
    const got = await api.send(new GetRecordsCommand({ ShardIterator }))
    for (const r of got.Records) {
      process.stdout.write(`${r.dynamodb.Keys.id.S} ${r.dynamodb.NewImage.n.N}\n`)
      behind.set(ShardId, r.dynamodb.SequenceNumber)
      records++
    }
    ShardIterator = got.NextShardIterator
    if (!ShardIterator) closed.add(ShardId)
    else if (got.Records.length === 0) return
  }
}

// visit reads the new records, of parents before their children.
async function visit() {
  let ExclusiveStartShardId
  do {
    const { StreamDescription: d } = await api.send(new DescribeStreamCommand({ StreamArn, ExclusiveStartShardId }))
    for (const each of d.Shards) {
      if (!closed.has(each.ShardId)) await shard(each.ShardId)
    }
    ExclusiveStartShardId = d.LastEvaluatedShardId
  } while (ExclusiveStartShardId)
}

for (;;) {
  const [last, before] = [ended, records]
  try {
    await visit()
  } catch (error) {
    if (last || error.$response) throw error // otherwise the server is away
  }
  if (last && records === before) break
  if (!last) await sleep(100)
}
