#!/usr/bin/env node
// Tests the AWS SDK for JavaScript, unchanged, against a running `tabletop serve`.
//
//     run.mjs PATH-TO-TABLETOP
//
// Starts the binary on a free loopback port, configures the SDK with the
// lines that it prints for export, and runs each case. Exits 0 when all pass.
// The cases and their operations are listed in ../README.md.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  BatchExecuteStatementCommand,
  CancelBulkOperationCommand,
  CreateBackupCommand,
  CreateGlobalTableCommand,
  CreateTableCommand,
  DeleteBackupCommand,
  DeleteResourcePolicyCommand,
  DeleteTableCommand,
  DescribeBackupCommand,
  DescribeBulkOperationCommand,
  DescribeContinuousBackupsCommand,
  DescribeContributorInsightsCommand,
  DescribeEndpointsCommand,
  DescribeExportCommand,
  DescribeGlobalTableCommand,
  DescribeGlobalTableSettingsCommand,
  DescribeImportCommand,
  DescribeKinesisStreamingDestinationCommand,
  DescribeLimitsCommand,
  DescribeTableCommand,
  DescribeTableReplicaAutoScalingCommand,
  DescribeTimeToLiveCommand,
  DisableKinesisStreamingDestinationCommand,
  DynamoDBClient,
  EnableKinesisStreamingDestinationCommand,
  ExecuteStatementCommand,
  ExecuteTransactionCommand,
  ExportTableToPointInTimeCommand,
  GetItemCommand,
  GetResourcePolicyCommand,
  ImportTableCommand,
  ListBackupsCommand,
  ListBulkOperationsCommand,
  ListContributorInsightsCommand,
  ListExportsCommand,
  ListGlobalTablesCommand,
  ListImportsCommand,
  ListTablesCommand,
  ListTagsOfResourceCommand,
  PutItemCommand,
  PutResourcePolicyCommand,
  RestoreTableFromBackupCommand,
  RestoreTableToPointInTimeCommand,
  SearchVectorsCommand,
  StartBulkPutItemsCommand,
  TagResourceCommand,
  UntagResourceCommand,
  UpdateContinuousBackupsCommand,
  UpdateContributorInsightsCommand,
  UpdateGlobalTableCommand,
  UpdateGlobalTableSettingsCommand,
  UpdateKinesisStreamingDestinationCommand,
  UpdateTableCommand,
  UpdateTableReplicaAutoScalingCommand,
  UpdateTimeToLiveCommand,
  waitUntilTableExists,
  waitUntilTableNotExists,
} from '@aws-sdk/client-dynamodb'
import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  ListStreamsCommand,
} from '@aws-sdk/client-dynamodb-streams'
import {
  BatchGetCommand,
  BatchWriteCommand,
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  NumberValue,
  PutCommand,
  QueryCommand,
  ScanCommand,
  TransactGetCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb'
import { Control } from '../../clients/javascript/tabletop.mjs'

const wanted = ['AWS_ENDPOINT_URL_DYNAMODB', 'AWS_ENDPOINT_URL_DYNAMODB_STREAMS', 'AWS_REGION', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'TABLETOP_CONSOLE_URL', 'TABLETOP_CONSOLE_TOKEN']

const cases = []
const test = (name, run) => cases.push({ name, run })

let client // of the API itself
let items // the same API, with items as plain values

// Of ../README.md: the operations of each case, and those with which every
// case creates its table.
const table = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const listed = new Map(Array.from(table.matchAll(/^\| ([a-z ]+) \| ([A-Z]\w+(?: [A-Z]\w+)*) \|/gm), ([, name, row]) => [name, row.split(' ')]))
const prelude = new Set(['CreateTable', 'DescribeTable'])
const called = new Set()

// record is a middleware that records the operation of each request.
const record = (next) => (args) => {
  called.add(args.request.headers['x-amz-target'].split('.')[1])
  return next(args)
}

const shown = (operations) => [...operations].filter((name) => !prelude.has(name)).sort()

const refused = (promise, name) => assert.rejects(promise, { name })

async function newTable(name, { more = [], ...extra } = {}) {
  await client.send(
    new CreateTableCommand({
      TableName: name,
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }, { AttributeName: 'sk', AttributeType: 'N' }, ...more],
      BillingMode: 'PAY_PER_REQUEST',
      ...extra,
    }),
  )
  await waitUntilTableExists({ client, maxWaitTime: 30 }, { TableName: name })
  return name
}

test('tables', async () => {
  const name = await newTable('js-tables')
  const { Table } = await client.send(new DescribeTableCommand({ TableName: name }))
  assert.equal(Table.TableStatus, 'ACTIVE')
  assert.ok(Table.CreationDateTime instanceof Date)
  const { TableNames } = await client.send(new ListTablesCommand({}))
  assert.ok(TableNames.includes(name))
  await refused(newTable(name), 'ResourceInUseException')
  await client.send(new DeleteTableCommand({ TableName: name }))
  await waitUntilTableNotExists({ client, maxWaitTime: 30 }, { TableName: name })
  await refused(client.send(new DescribeTableCommand({ TableName: name })), 'ResourceNotFoundException')
})

test('items', async () => {
  const TableName = await newTable('js-items')
  const item = {
    pk: 'a',
    sk: NumberValue.from('1'),
    s: 'text',
    n: NumberValue.from('12345678901234567890123456789012345678'),
    small: NumberValue.from('-0.00000000000000000001'),
    b: new Uint8Array([0, 255]),
    t: true,
    none: null,
    ss: new Set(['x', 'y']),
    ns: new Set([NumberValue.from('1.5'), NumberValue.from('-2')]),
    bs: new Set([new Uint8Array([1]), new Uint8Array([2])]),
    l: ['a', NumberValue.from('1'), [null]],
    m: { k: { deep: false } },
    empty: '',
  }
  await items.send(new PutCommand({ TableName, Item: item }))
  const { Item } = await items.send(new GetCommand({ TableName, Key: { pk: 'a', sk: 1 }, ConsistentRead: true }))
  assert.deepEqual(normal(Item), normal(item))
  assert.equal((await items.send(new GetCommand({ TableName, Key: { pk: 'a', sk: 2 } }))).Item, undefined)
})

// normal converts equal values to one form: numbers as text, binary values as hex,
// sets in order.
function normal(value) {
  if (value instanceof NumberValue) return `number ${value.toString()}`
  if (value instanceof Uint8Array) return `binary ${Buffer.from(value).toString('hex')}`
  if (value instanceof Set) return { set: [...value].map(normal).sort() }
  if (Array.isArray(value)) return value.map(normal)
  if (value !== null && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, normal(v)]))
  return value
}

test('updates', async () => {
  const TableName = await newTable('js-updates')
  const Key = { pk: 'a', sk: 1 }
  const put = (Item) => items.send(new PutCommand({ TableName, Item, ConditionExpression: 'attribute_not_exists(pk)' }))
  await put({ ...Key, n: 1, gone: 1, left: new Set(['x', 'y']) })
  await refused(put(Key), 'ConditionalCheckFailedException')
  const { Attributes } = await items.send(
    new UpdateCommand({
      TableName,
      Key,
      UpdateExpression: 'SET n = n + :one, #l = list_append(if_not_exists(#l, :none), :x) REMOVE gone ADD tags :t DELETE #left :x_set',
      ExpressionAttributeNames: { '#l': 'list', '#left': 'left' },
      ExpressionAttributeValues: { ':one': 1, ':none': [], ':x': ['x'], ':t': new Set(['t1']), ':x_set': new Set(['x']) },
      ReturnValues: 'ALL_NEW',
    }),
  )
  const want = { pk: 'a', sk: NumberValue.from('1'), n: NumberValue.from('2'), list: ['x'], tags: new Set(['t1']), left: new Set(['y']) }
  assert.deepEqual(normal(Attributes), normal(want))
  const old = await items.send(new DeleteCommand({ TableName, Key, ReturnValues: 'ALL_OLD' }))
  assert.equal(old.Attributes.n.toString(), '2')
})

test('reads', async () => {
  const TableName = await newTable('js-reads')
  const all = Array.from({ length: 60 }, (_, i) => ({ pk: `p${i % 2}`, sk: i, even: i % 4 === 0, pad: 'x'.repeat(100) }))
  for (let i = 0; i < all.length; i += 25) {
    const writes = all.slice(i, i + 25).map((Item) => ({ PutRequest: { Item } }))
    const { UnprocessedItems } = await items.send(new BatchWriteCommand({ RequestItems: { [TableName]: writes } }))
    assert.deepEqual(UnprocessedItems, {})
  }
  const query = async (request) => sortKeys((await items.send(new QueryCommand({ TableName, ...request }))).Items)
  assert.deepEqual(
    await query({
      KeyConditionExpression: 'pk = :p AND sk BETWEEN :a AND :b',
      ExpressionAttributeValues: { ':p': 'p0', ':a': 10, ':b': 20 },
    }),
    [10, 12, 14, 16, 18, 20],
  )
  assert.deepEqual(
    await query({ KeyConditionExpression: 'pk = :p', ExpressionAttributeValues: { ':p': 'p0' }, ScanIndexForward: false, Limit: 2 }),
    [58, 56],
  )
  let seen = 0
  let ExclusiveStartKey
  do {
    const page = await items.send(
      new ScanCommand({ TableName, Limit: 7, ExclusiveStartKey, FilterExpression: 'even = :t', ExpressionAttributeValues: { ':t': true } }),
    )
    seen += page.Items.length
    ExclusiveStartKey = page.LastEvaluatedKey
  } while (ExclusiveStartKey)
  assert.equal(seen, 15)
  const parts = await Promise.all([0, 1, 2, 3].map((Segment) => items.send(new ScanCommand({ TableName, Segment, TotalSegments: 4 }))))
  assert.equal(parts.reduce((sum, part) => sum + part.Count, 0), 60)
})

const sortKeys = (found) => found.map((item) => Number(item.sk.toString()))

// plain returns an item of small numbers in the form in which it was put.
const plain = (item) => item && Object.fromEntries(Object.entries(item).map(([k, v]) => [k, v instanceof NumberValue ? Number(v.toString()) : v]))

test('batches', async () => {
  const TableName = await newTable('js-batches')
  const write = (writes) => items.send(new BatchWriteCommand({ RequestItems: { [TableName]: writes } }))
  const { UnprocessedItems } = await write([0, 1, 2].map((sk) => ({ PutRequest: { Item: { pk: 'a', sk } } })))
  assert.deepEqual(UnprocessedItems, {})
  const change = [{ DeleteRequest: { Key: { pk: 'a', sk: 0 } } }, { PutRequest: { Item: { pk: 'a', sk: 1, v: 'new' } } }]
  await write(change)
  const Keys = [0, 1, 2, 3].map((sk) => ({ pk: 'a', sk }))
  const { Responses, UnprocessedKeys } = await items.send(new BatchGetCommand({ RequestItems: { [TableName]: { Keys } } }))
  const got = Responses[TableName].map(plain).sort((a, b) => a.sk - b.sk)
  assert.deepEqual(got, [{ pk: 'a', sk: 1, v: 'new' }, { pk: 'a', sk: 2 }])
  assert.deepEqual(UnprocessedKeys, {})
  await refused(write([change[0], change[0]]), 'ValidationException')
})

const colorAndSize = [{ AttributeName: 'color', AttributeType: 'S' }, { AttributeName: 'size', AttributeType: 'N' }]

const index = (IndexName, hash, range, ProjectionType) => ({
  IndexName,
  KeySchema: [{ AttributeName: hash, KeyType: 'HASH' }, { AttributeName: range, KeyType: 'RANGE' }],
  Projection: { ProjectionType },
})

// red returns the sort keys of the red items, from the index by-color.
const red = async (TableName) => {
  const request = { TableName, IndexName: 'by-color', KeyConditionExpression: 'color = :c', ExpressionAttributeValues: { ':c': 'red' } }
  return sortKeys((await items.send(new QueryCommand(request))).Items)
}

test('indexes', async () => {
  const TableName = await newTable('js-indexes', {
    more: colorAndSize,
    GlobalSecondaryIndexes: [index('by-color', 'color', 'size', 'ALL')],
    LocalSecondaryIndexes: [index('by-size', 'pk', 'size', 'KEYS_ONLY')],
  })
  for (let sk = 0; sk < 10; sk++) {
    const color = sk % 2 ? { color: 'red' } : {}
    await items.send(new PutCommand({ TableName, Item: { pk: 'a', sk, size: 100 - sk, pad: 'x', ...color } }))
  }
  assert.deepEqual(await red(TableName), [9, 7, 5, 3, 1])
  const local = await items.send(
    new QueryCommand({
      TableName,
      IndexName: 'by-size',
      KeyConditionExpression: 'pk = :p',
      ExpressionAttributeValues: { ':p': 'a' },
      Limit: 2,
      ConsistentRead: true,
    }),
  )
  assert.deepEqual(local.Items.map(plain), [{ pk: 'a', sk: 9, size: 91 }, { pk: 'a', sk: 8, size: 92 }])
  await items.send(new UpdateCommand({ TableName, Key: { pk: 'a', sk: 9 }, UpdateExpression: 'REMOVE color' }))
  assert.deepEqual(await red(TableName), [7, 5, 3, 1])
})

test('transactions', async () => {
  const TableName = await newTable('js-transactions')
  const key = (sk) => ({ TableName, Key: { pk: 'a', sk } })
  const put = (sk, more = {}) => ({ Put: { TableName, Item: { pk: 'a', sk }, ...more } })
  const write = (TransactItems, ClientRequestToken) => items.send(new TransactWriteCommand({ TransactItems, ClientRequestToken }))
  const get = async (...keys) => {
    const { Responses } = await items.send(new TransactGetCommand({ TransactItems: keys.map((sk) => ({ Get: key(sk) })) }))
    return Responses.map(({ Item }) => plain(Item))
  }
  for (let n = 0; n < 3; n++) await items.send(new PutCommand({ TableName, Item: { pk: 'a', sk: n, n } }))
  const actions = [
    { ConditionCheck: { ...key(0), ConditionExpression: 'attribute_exists(n)' } },
    { Update: { ...key(1), UpdateExpression: 'ADD n :by', ExpressionAttributeValues: { ':by': 10 } } },
    { Delete: key(2) },
    put(3),
  ]
  await write(actions, 'once')
  await write(actions, 'once') // its token is known
  await refused(write(actions.slice(0, 1), 'once'), 'IdempotentParameterMismatchException')
  assert.deepEqual(await get(3, 2, 1), [{ pk: 'a', sk: 3 }, undefined, { pk: 'a', sk: 1, n: 11 }])

  const failing = put(1, { ConditionExpression: 'attribute_not_exists(pk)', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' })
  await assert.rejects(write([put(5), failing]), ({ name, CancellationReasons: reasons }) => {
    assert.equal(name, 'TransactionCanceledException')
    assert.deepEqual(reasons.map(({ Code }) => Code), ['None', 'ConditionalCheckFailed'])
    assert.deepEqual(reasons[1].Item, { pk: { S: 'a' }, sk: { N: '1' }, n: { N: '11' } })
    return true
  })
  assert.deepEqual(await get(5), [undefined])
})

test('changes', async () => {
  const TableName = await newTable('js-changes')
  for (let sk = 0; sk < 3; sk++) await items.send(new PutCommand({ TableName, Item: { pk: 'a', sk, color: 'red', size: -sk } }))
  await refused(red(TableName), 'ValidationException')
  const update = async (change) => {
    await client.send(new UpdateTableCommand({ TableName, ...change }))
    for (;;) {
      const { Table } = await client.send(new DescribeTableCommand({ TableName }))
      const indexes = Table.GlobalSecondaryIndexes ?? []
      if ([Table.TableStatus, ...indexes.map((i) => i.IndexStatus)].every((status) => status === 'ACTIVE')) return indexes.map((i) => i.IndexName)
      await sleep(50)
    }
  }
  const create = { Create: index('by-color', 'color', 'size', 'ALL') }
  assert.deepEqual(await update({ AttributeDefinitions: colorAndSize, GlobalSecondaryIndexUpdates: [create] }), ['by-color'])
  assert.deepEqual(await red(TableName), [2, 1, 0])
  assert.deepEqual(await update({ GlobalSecondaryIndexUpdates: [{ Delete: { IndexName: 'by-color' } }] }), [])
  await refused(red(TableName), 'ValidationException')
  const remove = () => client.send(new DeleteTableCommand({ TableName }))
  await update({ DeletionProtectionEnabled: true })
  await refused(remove(), 'ValidationException')
  await update({ DeletionProtectionEnabled: false })
  await remove()
})

test('time to live', async () => {
  const TableName = await newTable('js-ttl')
  const described = async () => (await client.send(new DescribeTimeToLiveCommand({ TableName }))).TimeToLiveDescription
  const TimeToLiveSpecification = { Enabled: true, AttributeName: 'expires' }
  const update = () => client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }))
  assert.deepEqual(await described(), { TimeToLiveStatus: 'DISABLED' })
  assert.deepEqual((await update()).TimeToLiveSpecification, TimeToLiveSpecification)
  assert.deepEqual(await described(), { TimeToLiveStatus: 'ENABLED', AttributeName: 'expires' })
  await refused(update(), 'ValidationException')
})

test('tags', async () => {
  const TableName = await newTable('js-tags', { Tags: [{ Key: 'team', Value: 'red' }] })
  const { TableArn: ResourceArn } = (await client.send(new DescribeTableCommand({ TableName }))).Table
  const tags = async () => {
    const { Tags } = await client.send(new ListTagsOfResourceCommand({ ResourceArn }))
    return Object.fromEntries(Tags.map(({ Key, Value }) => [Key, Value]))
  }
  const more = [{ Key: 'team', Value: 'blue' }, { Key: 'empty', Value: '' }]
  await client.send(new TagResourceCommand({ ResourceArn, Tags: more }))
  assert.deepEqual(await tags(), { team: 'blue', empty: '' })
  await client.send(new UntagResourceCommand({ ResourceArn, TagKeys: ['empty', 'nowhere'] }))
  assert.deepEqual(await tags(), { team: 'blue' })
})

test('statements', async () => {
  await newTable('js-statements')
  const run = (Statement, Parameters) => client.send(new ExecuteStatementCommand({ Statement, Parameters }))
  for (const sk of [0, 1, 2]) {
    await run(`INSERT INTO "js-statements" VALUE {'pk': ?, 'sk': ?, 'color': ?}`, [{ S: 'a' }, { N: `${sk}` }, { S: 'red' }])
  }
  const { Items } = await run(`SELECT sk FROM "js-statements" WHERE pk = 'a' AND sk >= 1`)
  assert.deepEqual(Items, [{ sk: { N: '1' } }, { sk: { N: '2' } }])
  const again = { Statement: `INSERT INTO "js-statements" VALUE {'pk': 'a', 'sk': 1}` }
  const update = { Statement: `UPDATE "js-statements" SET color = 'blue' WHERE pk = 'a' AND sk = 0` }
  const { Responses } = await client.send(new BatchExecuteStatementCommand({ Statements: [update, again] }))
  assert.deepEqual(Responses.map(({ Error }) => Error?.Code), [undefined, 'DuplicateItem'])
  const remove = { Statement: `DELETE FROM "js-statements" WHERE pk = 'a' AND sk = 0` }
  await refused(client.send(new ExecuteTransactionCommand({ TransactStatements: [remove, again] })), 'TransactionCanceledException')
})

test('streams', async () => {
  const StreamSpecification = { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' }
  const TableName = await newTable('js-streams', { StreamSpecification })
  const Key = { pk: 'a', sk: 1 }
  for (const v of ['1', '2', '2']) await items.send(new PutCommand({ TableName, Item: { ...Key, v } }))
  await items.send(new DeleteCommand({ TableName, Key }))
  const streams = new DynamoDBStreamsClient()
  streams.middlewareStack.add(record, { step: 'finalizeRequest', name: 'record' })
  const got = []
  try {
    const { Streams } = await streams.send(new ListStreamsCommand({ TableName }))
    assert.equal(Streams.length, 1)
    const { StreamArn } = Streams[0]
    const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn }))
    for (const { ShardId } of StreamDescription.Shards) {
      const from = { StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON' }
      const { ShardIterator } = await streams.send(new GetShardIteratorCommand(from))
      const { Records } = await streams.send(new GetRecordsCommand({ ShardIterator }))
      for (const { eventName, dynamodb } of Records) got.push([eventName, dynamodb.OldImage?.v.S, dynamodb.NewImage?.v.S])
    }
  } finally {
    streams.destroy()
  }
  assert.deepEqual(got, [['INSERT', undefined, '1'], ['MODIFY', '1', '2'], ['REMOVE', '2', undefined]])
})

test('policies', async () => {
  const TableName = await newTable('js-policies')
  const { TableArn: ResourceArn } = (await client.send(new DescribeTableCommand({ TableName }))).Table
  const Statement = [{ Resource: ['*'], Action: ['dynamodb:GetItem'], Principal: { AWS: '123456789012' }, Effect: 'Allow' }]
  const Policy = JSON.stringify({ Statement, Version: '2012-10-17' })
  const { RevisionId } = await client.send(new PutResourcePolicyCommand({ ResourceArn, Policy }))
  const got = await client.send(new GetResourcePolicyCommand({ ResourceArn }))
  assert.equal(got.RevisionId, RevisionId)
  assert.equal(JSON.parse(got.Policy).Statement[0].Principal.AWS, 'arn:aws:iam::123456789012:root')
  await refused(client.send(new DeleteResourcePolicyCommand({ ResourceArn, ExpectedRevisionId: '1' })), 'PolicyNotFoundException')
  await client.send(new DeleteResourcePolicyCommand({ ResourceArn }))
  await refused(client.send(new GetResourcePolicyCommand({ ResourceArn })), 'PolicyNotFoundException')
})

test('recovery', async () => {
  const TableName = await newTable('js-recovery')
  const Key = { pk: { S: 'a' }, sk: { N: '1' } }
  await client.send(new PutItemCommand({ TableName, Item: Key }))
  const PointInTimeRecoverySpecification = { PointInTimeRecoveryEnabled: true }
  await client.send(new UpdateContinuousBackupsCommand({ TableName, PointInTimeRecoverySpecification }))
  const { ContinuousBackupsDescription } = await client.send(new DescribeContinuousBackupsCommand({ TableName }))
  assert.equal(ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus, 'ENABLED')
  const { BackupArn } = (await client.send(new CreateBackupCommand({ TableName, BackupName: 'first' }))).BackupDetails
  const status = async () => (await client.send(new DescribeBackupCommand({ BackupArn }))).BackupDescription.BackupDetails.BackupStatus
  while ((await status()) === 'CREATING') await sleep(10)
  const { BackupSummaries } = await client.send(new ListBackupsCommand({ TableName }))
  assert.deepEqual(BackupSummaries.map((b) => b.BackupArn), [BackupArn])
  await client.send(new RestoreTableFromBackupCommand({ BackupArn, TargetTableName: 'js-from-backup' }))
  const latest = { SourceTableName: TableName, TargetTableName: 'js-to-time', UseLatestRestorableTime: true }
  await client.send(new RestoreTableToPointInTimeCommand(latest))
  for (const restored of ['js-from-backup', 'js-to-time']) {
    await waitUntilTableExists({ client, maxWaitTime: 30, minDelay: 1, maxDelay: 1 }, { TableName: restored })
    assert.deepEqual((await client.send(new GetItemCommand({ TableName: restored, Key }))).Item, Key)
  }
  await client.send(new DeleteBackupCommand({ BackupArn }))
  await refused(client.send(new DeleteBackupCommand({ BackupArn })), 'BackupNotFoundException')
})

test('insights', async () => {
  const TableName = await newTable('js-insights')
  const update = async (ContributorInsightsAction) => {
    const command = new UpdateContributorInsightsCommand({ TableName, ContributorInsightsAction })
    return (await client.send(command)).ContributorInsightsStatus
  }
  const listed = async () => (await client.send(new ListContributorInsightsCommand({ TableName }))).ContributorInsightsSummaries.length
  assert.equal(await update('ENABLE'), 'ENABLED')
  const { ContributorInsightsRuleList } = await client.send(new DescribeContributorInsightsCommand({ TableName }))
  assert.equal(ContributorInsightsRuleList.length, 4)
  assert.equal(await listed(), 1)
  assert.equal(await update('DISABLE'), 'DISABLED')
  assert.equal(await listed(), 0)
})

test('kinesis', async () => {
  const TableName = await newTable('js-kinesis')
  const StreamArn = 'arn:aws:kinesis:us-east-1:000000000000:stream/js-kinesis'
  const described = async () => {
    const [one] = (await client.send(new DescribeKinesisStreamingDestinationCommand({ TableName }))).KinesisDataStreamDestinations
    return [one.DestinationStatus, one.ApproximateCreationDateTimePrecision]
  }
  const enabled = await client.send(new EnableKinesisStreamingDestinationCommand({ TableName, StreamArn }))
  assert.equal(enabled.DestinationStatus, 'ENABLING')
  assert.deepEqual(await described(), ['ACTIVE', undefined])
  await refused(client.send(new EnableKinesisStreamingDestinationCommand({ TableName, StreamArn: StreamArn + '-two' })), 'ValidationException')
  const UpdateKinesisStreamingConfiguration = { ApproximateCreationDateTimePrecision: 'MICROSECOND' }
  await client.send(new UpdateKinesisStreamingDestinationCommand({ TableName, StreamArn, UpdateKinesisStreamingConfiguration }))
  assert.deepEqual(await described(), ['ACTIVE', 'MICROSECOND'])
  await client.send(new DisableKinesisStreamingDestinationCommand({ TableName, StreamArn }))
  assert.deepEqual(await described(), ['DISABLED', 'MICROSECOND'])
})

test('global tables', async () => {
  const GlobalTableName = 'js-global'
  assert.deepEqual((await client.send(new ListGlobalTablesCommand({}))).GlobalTables, [])
  const ReplicationGroup = [{ RegionName: 'us-east-1' }]
  await refused(client.send(new CreateGlobalTableCommand({ GlobalTableName, ReplicationGroup })), 'ValidationException')
  for (const command of [
    new UpdateGlobalTableCommand({ GlobalTableName, ReplicaUpdates: [] }),
    new DescribeGlobalTableCommand({ GlobalTableName }),
    new UpdateGlobalTableSettingsCommand({ GlobalTableName }),
    new DescribeGlobalTableSettingsCommand({ GlobalTableName }),
  ]) {
    await refused(client.send(command), 'GlobalTableNotFoundException')
  }
  const TableName = GlobalTableName
  await refused(client.send(new DescribeTableReplicaAutoScalingCommand({ TableName })), 'ResourceNotFoundException')
  await refused(client.send(new UpdateTableReplicaAutoScalingCommand({ TableName })), 'ResourceNotFoundException')
})

test('account', async () => {
  const TableName = await newTable('js-account')
  const { TableArn: ResourceArn } = (await client.send(new DescribeTableCommand({ TableName }))).Table
  assert.equal((await client.send(new DescribeLimitsCommand({}))).TableMaxReadCapacityUnits, 40000)
  assert.equal((await client.send(new DescribeEndpointsCommand({}))).Endpoints.length, 1)
  const { ContinuousBackupsDescription: backups } = await client.send(new DescribeContinuousBackupsCommand({ TableName }))
  assert.equal(backups.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus, 'DISABLED')
  assert.equal((await client.send(new DescribeContributorInsightsCommand({ TableName }))).ContributorInsightsStatus, 'DISABLED')
  const streams = await client.send(new DescribeKinesisStreamingDestinationCommand({ TableName }))
  assert.deepEqual(streams.KinesisDataStreamDestinations, [])
  await refused(client.send(new GetResourcePolicyCommand({ ResourceArn })), 'PolicyNotFoundException')
})

// finished returns the result of describe when its job is no longer in progress.
const finished = async (describe, status) => {
  for (;;) {
    const done = await describe()
    if (done[status] !== 'IN_PROGRESS') return done
    await sleep(10)
  }
}

// imported imports a table like that of newTable, and returns the result.
const imported = async (TableName, source) => {
  const command = new ImportTableCommand({
    ...source,
    TableCreationParameters: {
      TableName,
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }, { AttributeName: 'sk', AttributeType: 'N' }],
      BillingMode: 'PAY_PER_REQUEST',
    },
  })
  const { ImportArn } = (await client.send(command)).ImportTableDescription
  return finished(async () => (await client.send(new DescribeImportCommand({ ImportArn }))).ImportTableDescription, 'ImportStatus')
}

test('exports', async () => {
  const TableName = await newTable('js-exports')
  const { TableArn } = (await client.send(new DescribeTableCommand({ TableName }))).Table
  const toBucket = (more) => client.send(new ExportTableToPointInTimeCommand({ TableArn, S3Bucket: 'conformance', ...more }))
  const exported = async (more) => {
    const { ExportArn } = (await toBucket(more)).ExportDescription
    return finished(async () => (await client.send(new DescribeExportCommand({ ExportArn }))).ExportDescription, 'ExportStatus')
  }
  await refused(toBucket(), 'PointInTimeRecoveryUnavailableException')
  await client.send(new UpdateContinuousBackupsCommand({ TableName, PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true } }))
  const first = { pk: 'a', sk: 1, text: 'one' }
  await items.send(new PutCommand({ TableName, Item: first }))
  const full = await exported()
  assert.deepEqual([full.ExportStatus, full.ItemCount], ['COMPLETED', 1])
  for (const Item of [{ pk: 'a', sk: 1, text: 'changed' }, { pk: 'a', sk: 2 }]) await items.send(new PutCommand({ TableName, Item }))
  await new Control().advance('1h')
  const increment = await exported({
    ExportType: 'INCREMENTAL_EXPORT',
    IncrementalExportSpecification: { ExportFromTime: full.ExportTime },
  })
  assert.deepEqual([increment.ExportStatus, increment.ItemCount], ['COMPLETED', 2])
  const { ExportSummaries } = await client.send(new ListExportsCommand({ TableArn }))
  assert.deepEqual(ExportSummaries.map(({ ExportArn }) => ExportArn), [increment.ExportArn, full.ExportArn])
  const ExportArn = TableArn + '/export/01716790307109-5f9d6aaa'
  await refused(client.send(new DescribeExportCommand({ ExportArn })), 'ExportNotFoundException')
  const done = await imported('js-exports-again', {
    S3BucketSource: { S3Bucket: 'conformance', S3KeyPrefix: full.ExportManifest.replace(/[^/]*$/, 'data/') },
    InputFormat: 'DYNAMODB_JSON',
    InputCompressionType: 'GZIP',
  })
  assert.equal(done.ImportStatus, 'COMPLETED')
  const { Items } = await items.send(new ScanCommand({ TableName: 'js-exports-again' }))
  assert.deepEqual(Items.map(plain), [first])
})

test('imports', async () => {
  const fromBucket = (S3Bucket, TableName) => imported(TableName, { S3BucketSource: { S3Bucket, S3KeyPrefix: 'items' }, InputFormat: 'CSV' })
  const done = await fromBucket('conformance', 'js-imports')
  assert.deepEqual([done.ImportStatus, done.ImportedItemCount], ['COMPLETED', 2])
  const { Items } = await items.send(new ScanCommand({ TableName: 'js-imports' }))
  assert.deepEqual(Items.map(plain), [{ pk: 'a', sk: 1, text: 'one' }, { pk: 'a', sk: 2, text: 'two' }])
  assert.equal((await fromBucket('js-nowhere', 'js-imports-failed')).FailureCode, 'S3NoSuchBucket')
  const { ImportSummaryList } = await client.send(new ListImportsCommand({ TableArn: done.TableArn }))
  assert.equal(ImportSummaryList.length, 1)
})

test('vectors', async () => {
  const TableName = await newTable('js-vectors')
  const update = (change, AttributeDefinitions) => client.send(new UpdateTableCommand({ TableName, AttributeDefinitions, VectorIndexUpdates: [change] }))
  const near = async (...vector) => {
    const { SearchResults } = await client.send(
      new SearchVectorsCommand({
        TableName,
        IndexName: 'near',
        SearchVector: vector.map((x) => ({ N: String(x) })),
        TopK: 2,
        SearchConditionExpression: 'color = :c',
        ExpressionAttributeValues: { ':c': { S: 'red' } },
      }),
    )
    return SearchResults.map(({ Item }) => Number(Item.sk.N))
  }
  const create = {
    IndexName: 'near',
    VectorAttribute: { AttributeName: 'v' },
    Dimensions: 2,
    DistanceFunction: 'EUCLIDEAN',
    Projection: { ProjectionType: 'ALL' },
    SearchSchema: [{ AttributeName: 'color', SearchSchemaElementType: 'INLINE_FILTER' }],
  }
  await update({ Create: create }, [{ AttributeName: 'color', AttributeType: 'S' }])
  for (const Item of [
    { pk: 'a', sk: 1, color: 'red', v: [0, 3] },
    { pk: 'a', sk: 2, color: 'red', v: [0, 1] },
    { pk: 'a', sk: 3, color: 'red', v: [9, 9] },
    { pk: 'a', sk: 4, color: 'blue', v: [0, 0] },
    { pk: 'a', sk: 5, color: 'red' },
  ]) await items.send(new PutCommand({ TableName, Item }))
  assert.deepEqual(await near(0, 0), [2, 1])
  await refused(items.send(new PutCommand({ TableName, Item: { pk: 'a', sk: 6, v: [1] } })), 'ValidationException')
  await update({ Delete: { IndexName: 'near' } })
  await assert.rejects(near(0, 0))
})

test('bulk', async () => {
  const TableName = await newTable('js-bulk')
  const { BulkOperationDescription } = await client.send(
    new StartBulkPutItemsCommand({
      TableName,
      InputS3Configuration: { S3Bucket: 'conformance', S3KeyPrefix: 'bulk', InputFormat: 'DYNAMODB_JSON' },
      OutputS3Configuration: { S3Bucket: 'conformance', S3KeyPrefix: 'reports', OutputType: ['CONDITION_CHECK_FAILURE'] },
    }),
  )
  const { BulkOperationArn } = BulkOperationDescription
  let done
  while (!(done = (await client.send(new DescribeBulkOperationCommand({ BulkOperationArn }))).BulkOperationDescription).EndTime) await sleep(10)
  assert.equal(done.ProcessedItemCount, 3)
  const { Items } = await items.send(new ScanCommand({ TableName }))
  assert.deepEqual(Items.map(plain), [{ pk: 'a', sk: 1, text: 'one' }, { pk: 'a', sk: 2 }])
  const { BulkOperationsSummaryList } = await client.send(new ListBulkOperationsCommand({}))
  assert.equal(BulkOperationsSummaryList.length, 1)
  await refused(client.send(new CancelBulkOperationCommand({ BulkOperationArn })), 'ValidationException')
})

test('errors', async () => {
  const TableName = await newTable('js-errors')
  await refused(items.send(new PutCommand({ TableName, Item: { pk: 'a' } })), 'ValidationException')
  await refused(items.send(new GetCommand({ TableName: 'js-nowhere', Key: { pk: 'a' } })), 'ResourceNotFoundException')
})

// start starts the server and returns it after it has printed all lines for
// export.
async function start(binary) {
  const buckets = mkdtempSync(join(tmpdir(), 'tabletop-buckets-'))
  process.on('exit', () => rmSync(buckets, { recursive: true }))
  mkdirSync(join(buckets, 'conformance'))
  writeFileSync(join(buckets, 'conformance', 'items.csv'), 'pk,sk,text\na,1,one\na,2,two\n')
  writeFileSync(
    join(buckets, 'conformance', 'bulk.json'),
    `{"Item": {"pk": {"S": "a"}, "sk": {"N": "1"}, "text": {"S": "one"}}}
{"Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}, "ConditionExpression": "attribute_not_exists(pk)"}
{"Item": {"pk": {"S": "a"}, "sk": {"N": "2"}}}
`,
  )
  const server = spawn(binary, ['serve', '--bigtable', 'off', '--dynamodb', '127.0.0.1:0', '--console', '127.0.0.1:0', '--buckets', buckets], { stdio: ['ignore', 'pipe', 'inherit'] })
  server.ended = new Promise((resolve, reject) => server.on('error', reject).on('exit', resolve))
  server.ended.catch(() => {})
  const missing = new Set(wanted)
  for await (const line of createInterface(server.stdout)) {
    const [, name, value] = line.trim().match(/^export (\w+)=(\S+)$/) ?? []
    if (missing.delete(name)) process.env[name] = value
    if (missing.size === 0) break
  }
  if (missing.size > 0) throw new Error(`the server ended before it was ready; it did not print ${[...missing]}`)
  server.stdout.resume()
  return server
}

if (process.argv.length !== 3) {
  console.error('usage: run.mjs PATH-TO-TABLETOP')
  process.exit(2)
}
assert.deepEqual(cases.map(({ name }) => name).sort(), [...listed.keys()].sort())
const server = await start(process.argv[2])
let failed = 0
try {
  client = new DynamoDBClient({})
  client.middlewareStack.add(record, { step: 'finalizeRequest', name: 'record' })
  items = DynamoDBDocumentClient.from(client, { unmarshallOptions: { wrapNumbers: (text) => NumberValue.from(text) } })
  for (const { name, run } of cases) {
    try {
      called.clear()
      await run()
      assert.deepEqual(shown(called), shown(listed.get(name)))
      console.log(`ok    ${name}`)
    } catch (err) {
      failed++
      console.log(`FAIL  ${name}\n${err.stack}`)
    }
  }
} finally {
  client?.destroy()
  server.kill('SIGTERM')
}
const code = await server.ended
console.log(`${cases.length - failed} passed, ${failed} failed`)
if (code !== 0) console.log(`the server ended with code ${code} on SIGTERM, expected 0`)
process.exit(failed || code !== 0 ? 1 : 0)
