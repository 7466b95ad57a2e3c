// Streams, recovery and an export in a test, with the official client, against a server that was started with
//
//     tabletop serve --dynamodb 127.0.0.1:0 --console 127.0.0.1:0 --buckets DIR   # with a folder DIR/exports
import assert from 'node:assert/strict'
import { CreateTableCommand, DescribeExportCommand, DescribeTableCommand, DynamoDBClient, ExportTableToPointInTimeCommand, GetItemCommand,
	PutItemCommand, RestoreTableToPointInTimeCommand, UpdateContinuousBackupsCommand, waitUntilTableExists } from '@aws-sdk/client-dynamodb'
import { Control } from './tabletop.mjs'

const control = new Control() // the addresses printed by serve
await control.reset()
const ddb = new DynamoDBClient()
await ddb.send(new CreateTableCommand({
	TableName: 'orders', BillingMode: 'PAY_PER_REQUEST',
	KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }], AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
	StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' },
}))
await ddb.send(new UpdateContinuousBackupsCommand({ TableName: 'orders', PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true } }))
const put = state => ddb.send(new PutItemCommand({ TableName: 'orders', Item: { id: { S: '0001' }, state: { S: state } } }))

await put('new')
await control.advance('1m') // time passes on command
const before = new Date((await control.info()).clock.now)
await control.advance('1m')
await put('lost')

// The stream. A consumer reads it with new DynamoDBStreamsClient().
const events = []
for await (const record of control.records('orders')) events.push(record.eventName)
assert.deepEqual(events, ['INSERT', 'MODIFY'])

// The earlier state of the table.
await ddb.send(new RestoreTableToPointInTimeCommand({ SourceTableName: 'orders', TargetTableName: 'restored', RestoreDateTime: before }))
await waitUntilTableExists({ client: ddb, minDelay: 1, maxDelay: 1, maxWaitTime: 60 }, { TableName: 'restored' })
const { Item } = await ddb.send(new GetItemCommand({ TableName: 'restored', Key: { id: { S: '0001' } } }))
assert.equal(Item.state.S, 'new')

// An export into the folder exports of --buckets DIR.
const { Table } = await ddb.send(new DescribeTableCommand({ TableName: 'orders' }))
let { ExportDescription: made } = await ddb.send(new ExportTableToPointInTimeCommand({ TableArn: Table.TableArn, S3Bucket: 'exports' }))
while (made.ExportStatus === 'IN_PROGRESS') ({ ExportDescription: made } = await ddb.send(new DescribeExportCommand({ ExportArn: made.ExportArn })))
assert.equal(made.ItemCount, 1)
console.log('ok')
