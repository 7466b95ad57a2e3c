#!/usr/bin/env node
// The AWS SDK for JavaScript, unchanged, against a running `tabletop serve`.
//
//     run.mjs PATH-TO-TABLETOP
//
// Starts the binary on a free loopback port, points the SDK at it by the very
// lines that it prints for export, and runs each case. Exits 0 when all pass.
// The cases are those of ../python/run.py for boto3.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import {
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  ListGlobalTablesCommand,
  ListTablesCommand,
  waitUntilTableExists,
  waitUntilTableNotExists,
} from '@aws-sdk/client-dynamodb'
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
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb'

const wanted = ['AWS_ENDPOINT_URL_DYNAMODB', 'AWS_REGION', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']

const cases = []
const test = (name, run) => cases.push({ name, run })

let client // of the API itself
let items // of the same, with items as plain values

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

test('items of all types', async () => {
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
  const { Item } = await items.send(new GetCommand({ TableName, Key: { pk: 'a', sk: 1 } }))
  assert.deepEqual(normal(Item), normal(item))
  assert.equal((await items.send(new GetCommand({ TableName, Key: { pk: 'a', sk: 2 } }))).Item, undefined)
})

// normal gives equal values one form: numbers as text, binary values as hex,
// sets in order.
function normal(value) {
  if (value instanceof NumberValue) return `number ${value.toString()}`
  if (value instanceof Uint8Array) return `binary ${Buffer.from(value).toString('hex')}`
  if (value instanceof Set) return { set: [...value].map(normal).sort() }
  if (Array.isArray(value)) return value.map(normal)
  if (value !== null && typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, normal(v)]))
  return value
}

test('conditions and updates', async () => {
  const TableName = await newTable('js-updates')
  const Key = { pk: 'a', sk: 1 }
  const put = (Item) => items.send(new PutCommand({ TableName, Item, ConditionExpression: 'attribute_not_exists(pk)' }))
  await put({ ...Key, n: 1 })
  await refused(put(Key), 'ConditionalCheckFailedException')
  const { Attributes } = await items.send(
    new UpdateCommand({
      TableName,
      Key,
      UpdateExpression: 'SET n = n + :one, #l = list_append(if_not_exists(#l, :none), :x) ADD tags :t',
      ExpressionAttributeNames: { '#l': 'list' },
      ExpressionAttributeValues: { ':one': 1, ':none': [], ':x': ['x'], ':t': new Set(['t1']) },
      ReturnValues: 'ALL_NEW',
    }),
  )
  assert.deepEqual(normal(Attributes), normal({ pk: 'a', sk: NumberValue.from('1'), n: NumberValue.from('2'), list: ['x'], tags: new Set(['t1']) }))
  const old = await items.send(new DeleteCommand({ TableName, Key, ReturnValues: 'ALL_OLD' }))
  assert.equal(old.Attributes.n.toString(), '2')
})

test('query, scan and paging', async () => {
  const TableName = await newTable('js-query')
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
  const Keys = [{ pk: 'p0', sk: 0 }, { pk: 'p1', sk: 1 }, { pk: 'p1', sk: 2 }]
  const { Responses } = await items.send(new BatchGetCommand({ RequestItems: { [TableName]: { Keys } } }))
  assert.equal(Responses[TableName].length, 2)
})

const sortKeys = (found) => found.map((item) => Number(item.sk.toString()))

test('secondary indexes', async () => {
  const TableName = await newTable('js-index', {
    more: [{ AttributeName: 'color', AttributeType: 'S' }, { AttributeName: 'size', AttributeType: 'N' }],
    GlobalSecondaryIndexes: [
      {
        IndexName: 'by-color',
        KeySchema: [{ AttributeName: 'color', KeyType: 'HASH' }, { AttributeName: 'size', KeyType: 'RANGE' }],
        Projection: { ProjectionType: 'ALL' },
      },
    ],
    LocalSecondaryIndexes: [
      {
        IndexName: 'by-size',
        KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }, { AttributeName: 'size', KeyType: 'RANGE' }],
        Projection: { ProjectionType: 'KEYS_ONLY' },
      },
    ],
  })
  for (let i = 0; i < 10; i++) {
    const color = i % 2 ? { color: 'red' } : {}
    await items.send(new PutCommand({ TableName, Item: { pk: 'a', sk: i, size: 100 - i, ...color } }))
  }
  const red = async () => {
    const request = { TableName, IndexName: 'by-color', KeyConditionExpression: 'color = :c', ExpressionAttributeValues: { ':c': 'red' } }
    return sortKeys((await items.send(new QueryCommand(request))).Items)
  }
  assert.deepEqual(await red(), [9, 7, 5, 3, 1])
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
  assert.deepEqual(sortKeys(local.Items), [9, 8])
  await items.send(new UpdateCommand({ TableName, Key: { pk: 'a', sk: 9 }, UpdateExpression: 'REMOVE color' }))
  assert.deepEqual(await red(), [7, 5, 3, 1])
})

test('errors have their types', async () => {
  const TableName = await newTable('js-refused')
  await refused(items.send(new PutCommand({ TableName, Item: { pk: 'a' } })), 'ValidationException')
  await refused(items.send(new GetCommand({ TableName: 'js-nowhere', Key: { pk: 'a' } })), 'ResourceNotFoundException')
  await assert.rejects(client.send(new ListGlobalTablesCommand({})), /ListGlobalTables/)
})

// start starts the server and returns it once it has printed every line to
// export.
async function start(binary) {
  const server = spawn(binary, ['serve', '--bigtable', 'off', '--dynamodb', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] })
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
const server = await start(process.argv[2])
let failed = 0
try {
  client = new DynamoDBClient({})
  items = DynamoDBDocumentClient.from(client, { unmarshallOptions: { wrapNumbers: (text) => NumberValue.from(text) } })
  for (const { name, run } of cases) {
    try {
      await run()
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
