// Tests in the style of users of clients/javascript/tabletop-setup.mjs, with the official clients, for Jest and for Vitest.
import { writeFile } from 'node:fs/promises'
import { CreateTableCommand, DynamoDBClient, GetItemCommand, ListTablesCommand, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { Bigtable } from '@google-cloud/bigtable'
import { all, Control, Tabletop } from '../../../clients/javascript/tabletop.mjs'

const control = new Control() // it finds the server by the environment
const ddb = new DynamoDBClient({})
const create = client => client.send(new CreateTableCommand({
  TableName: 'orders', BillingMode: 'PAY_PER_REQUEST',
  KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }], AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
}))

beforeAll(() => writeFile(process.env.FOUND, control.url)) // run.mjs checks its end
beforeEach(async () => {
  await control.reset()
  await create(ddb)
})

test('items are those of the SDK', async () => {
  const item = { id: { S: 'a' }, n: { N: '1.5' }, b: { B: new Uint8Array([255]) }, l: { L: [{ M: { b: { B: new Uint8Array([2]) } } }] } }
  await control.putItems('orders', [item])
  expect((await ddb.send(new GetItemCommand({ TableName: 'orders', Key: { id: { S: 'a' } } }))).Item).toEqual(item)
  await ddb.send(new PutItemCommand({ TableName: 'orders', Item: { ...item, id: { S: 'b' } } }))
  expect((await all(control.items('orders'))).map(({ id, ...rest }) => rest)).toEqual([item, item].map(({ id, ...rest }) => rest))
})

test('each test begins without items', async () => {
  expect(await all(control.items('orders'))).toEqual([])
})

test('rows, with the variables of the set-up', async () => {
  await control.putItems('orders', [{ id: { S: 'a' } }])
  expect(process.env.METADATA_SERVER_DETECTION).toBe('none')
  const { instance } = await control.info()
  expect(instance).toBe(process.env.INSTANCE ?? 'tabletop')
  const table = new Bigtable({ projectId: 'tabletop' }).instance(instance).table(await control.bigtableTable('orders'))
  const [rows] = await table.getRows()
  expect(rows.map(row => row.id)).toEqual(['a'])
})

test('a server of its own', async () => {
  const own = await Tabletop.start()
  try {
    const others = new DynamoDBClient(own.dynamodbOptions())
    expect((await others.send(new ListTablesCommand({}))).TableNames).toEqual([])
    await create(others)
    await own.putItems('orders', [{ id: { S: 'own' } }])
    const table = new Bigtable(own.bigtableOptions()).instance(own.instance).table(await own.bigtableTable('orders'))
    const [rows] = await table.getRows()
    expect(rows.map(row => row.id)).toEqual(['own'])
  } finally {
    await own.stop()
  }
})
