#!/usr/bin/env node
// Tests the control API by its client, and the official clients of both endpoints, unchanged, against a running `tabletop serve`:
// a snapshot, time to live, a fault that a client survives, and SQL.
//
//     control.mjs PATH-TO-TABLETOP
//
// Exits 0 when all that holds.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { CreateTableCommand, DynamoDBClient, UpdateTimeToLiveCommand, paginateScan } from '@aws-sdk/client-dynamodb'
import { BatchWriteCommand, DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { Bigtable, SqlTypes } from '@google-cloud/bigtable'

import { Control } from '../../clients/javascript/tabletop.mjs'

const TableName = 'js-control'

async function run() {
  const control = new Control()
  const dynamodb = new DynamoDBClient({})
  const items = DynamoDBDocumentClient.from(dynamodb)
  const bigtable = new Bigtable({ projectId: 'tabletop' })
  const instance = bigtable.instance('tabletop')

  await dynamodb.send(new CreateTableCommand({
    TableName, BillingMode: 'PAY_PER_REQUEST',
    KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }], AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
  }))
  await dynamodb.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true } }))
  const due = String(Math.floor(Date.parse((await control.info()).clock.now) / 1000) + 24 * 3600)
  const key = i => i ? `k${String(i).padStart(3, '0')}` : 'kept'
  await control.putItems(TableName, Array.from({ length: 1000 }, (_, i) => ({ pk: { S: key(i) }, ...(i && { ttl: { N: due } }) })))
  const under = await control.bigtableTable(TableName)
  const both = async () => {
    let found = 0
    for await (const page of paginateScan({ client: dynamodb }, { TableName })) found += page.Items.length
    const [rows] = await instance.table(under).getRows()
    return [found, rows.length]
  }

  assert.deepEqual(await both(), [1000, 1000])
  await control.snapshot('all')
  for (let i = 0; i < 1000; i += 50) {
    const gone = Array.from({ length: 25 }, (_, n) => ({ DeleteRequest: { Key: { pk: key(i + 2 * n) } } }))
    await items.send(new BatchWriteCommand({ RequestItems: { [TableName]: gone } }))
  }
  assert.deepEqual(await both(), [500, 500])
  await control.restore('all')
  assert.deepEqual(await both(), [1000, 1000])

  await control.advance('25h')
  await control.ttl()
  assert.deepEqual(await both(), [1, 1])
  const dump = await control.dump(under)
  assert.match(dump, /kept/)
  assert.doesNotMatch(dump, /k001/)

  // The official client retries.
  const rows = instance.table('js-faults')
  await rows.create({ families: ['f'] })
  // Its rows are written with MutateRows, its low-level service has MutateRow.
  const timestampMicros = 1_000_000 // set by the client: otherwise it does not retry
  const tableName = 'projects/tabletop/instances/tabletop/tables/js-faults'
  const mutateRow = promisify(bigtable.request).bind(bigtable)
  for (const [method, row, write] of [
    ['MutateRows', 'many', () => rows.row('many').save({ f: { q: { value: 'v', timestamp: timestampMicros } } })],
    ['MutateRow', 'one', () => mutateRow({
      client: 'BigtableClient', method: 'mutateRow',
      reqOpts: { tableName, rowKey: Buffer.from('one'), mutations: [{ setCell: { familyName: 'f', columnQualifier: Buffer.from('q'), timestampMicros, value: Buffer.from('v') } }] },
    })],
  ]) {
    const { id } = await control.fault({ endpoint: 'bigtable', method, effect: 'fail', code: 'UNAVAILABLE', times: 2 })
    await write()
    const [saved] = await rows.row(row).get()
    assert.equal(saved.data.f.q[0].value, 'v')
    assert.deepEqual((await control.faults()).map(f => [f.id, f.hits]), [[id, 2]])
    const asked = await control.requests({ operation: method, internal: 'false', table: 'js-faults' })
    assert.deepEqual(asked.map(r => r.status), ['OK', 'Unavailable', 'Unavailable'])
    await control.removeFaults()
  }
  await sql(instance)
}

// sql: parameters and results of each type, and errors. The client cannot create logical views.
async function sql(instance) {
  const table = instance.table('js-sql')
  await table.create({ families: ['f'] })
  const cell = (value, timestamp) => ({ value, timestamp })
  const number = n => { const b = Buffer.alloc(8); b.writeBigInt64BE(n); return b }
  await table.insert(['a#1', 'a#2', 'b#1'].map((key, n) => ({ key, data: { f: { n: cell(number(BigInt(n)), 1_000_000), q: cell(`${key}!`, 2_000_000) } } })))
  const ask = async (query, parameters = {}, parameterTypes = {}) => {
    const [statement] = await instance.prepareStatement({ query, parameterTypes })
    const [rows] = await instance.executeQuery({ preparedStatement: statement, parameters })
    return rows
  }

  // The client does not export the classes of these values.
  const [given] = await ask("SELECT TIMESTAMP '2024-02-29 12:00:00.000001+00' AS t, DATE '2024-02-29' AS d")
  assert.equal(given.get('t').toISOString(), '2024-02-29T12:00:00.000001000Z')
  assert.deepEqual({ ...given.get('d') }, { year: 2024, month: 2, day: 29 })
  const values = {
    b: Buffer.from([255, 0]), s: 'é', i: -(2n ** 63n), f: 0.5, g: 0.25, x: true, t: given.get('t'), d: given.get('d'),
    ab: [Buffer.from('a#2'), null, Buffer.from('b#1')], ai: [1n, 2n], none: null,
  }
  const types = {
    b: SqlTypes.Bytes(), s: SqlTypes.String(), i: SqlTypes.Int64(), f: SqlTypes.Float64(), g: SqlTypes.Float32(), x: SqlTypes.Bool(), t: SqlTypes.Timestamp(), d: SqlTypes.Date(),
    ab: SqlTypes.Array(SqlTypes.Bytes()), ai: SqlTypes.Array(SqlTypes.Int64()), none: SqlTypes.String(),
  }
  const [all] = await ask(`SELECT ${Object.keys(values).map(name => `@${name} AS ${name}`).join(', ')}`, values, types)
  for (const [name, value] of Object.entries(values)) assert.deepEqual(all.get(name), value, name)

  const rows = await ask(
    "SELECT _key, f, TO_INT64(f['n']) AS n, STRUCT(f['q'] AS q, [1, NULL] AS a) AS s, f['none'] AS none FROM `js-sql` WHERE _key IN UNNEST(@ab) ORDER BY _key DESC",
    { ab: values.ab }, { ab: types.ab },
  )
  assert.deepEqual(rows.map(row => row.get('_key').toString()), ['b#1', 'a#2'])
  const [, row] = rows
  assert.deepEqual([...row.get('f').values()].map(String), [number(1n), 'a#2!'].map(String))
  assert.deepEqual([row.get('n'), row.get('none'), row.get('s').get('q').toString(), row.get('s').get('a')], [1n, null, 'a#2!', [1n, null]])
  const [old] = await ask("SELECT f['q'][0].timestamp AS written FROM `js-sql`(with_history => TRUE) LIMIT 1")
  assert.equal(old.get('written').toISOString(), '1970-01-01T00:00:02.000000000Z')

  await assert.rejects(ask('SELECT nothing FROM `js-sql`'), /Unrecognized name: nothing/)
  await assert.rejects(ask("SELECT DIV(1, TO_INT64(f['n'])) AS x FROM `js-sql`"), /division by zero/)
}

process.env.METADATA_SERVER_DETECTION = 'none' // there is no metadata server
const server = spawn(process.argv[2], ['serve', '--bigtable', '127.0.0.1:0', '--dynamodb', '127.0.0.1:0', '--console', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] })
const ended = new Promise((resolve, reject) => server.on('error', reject).on('exit', resolve))
ended.catch(() => {})
for await (const line of createInterface(server.stdout)) {
  const [, name, value] = line.trim().match(/^export (\w+)=(\S+)$/) ?? []
  if (name) process.env[name] = value
  if (line.startsWith('# ready')) break
}
let failed = false
try {
  await run()
  console.log('ok    control')
} catch (e) {
  failed = true
  console.error('FAIL  control', e)
}
server.kill('SIGTERM')
const code = await ended
if (code !== 0) console.error(`the server ended with code ${code} on SIGTERM, expected 0`)
process.exit(failed || code !== 0 ? 1 : 0)
