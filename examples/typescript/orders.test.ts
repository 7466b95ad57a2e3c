import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { Bigtable } from '@google-cloud/bigtable'
import { Control } from 'tabletop-emu'
import { beforeEach, describe, expect, test } from 'vitest'
import { BigtableOrders, DynamoDBOrders, type Orders, Refused } from './orders.js'

const tabletop = new Control() // it finds the server by the environment, as the clients do
const { project, instance } = await tabletop.info()
const bigtable = new Bigtable({ projectId: project })
const stores: Record<string, Orders> = { DynamoDB: new DynamoDBOrders(new DynamoDBClient({})), Bigtable: new BigtableOrders(bigtable, instance) }

beforeEach(() => tabletop.reset()) // to the orders of the set-up

describe.each(Object.keys(stores))('%s', name => {
  test('changes orders, and both stores read the result', async () => {
    const orders = stores[name]
    await orders.place('ada', '2024-03', 5)
    await expect(orders.place('ada', '2024-03', 6)).rejects.toThrow(Refused)
    await orders.pay('ada', '2024-01')
    for (const id of ['2024-01', '2024-02', 'none']) await expect(orders.pay('ada', id)).rejects.toThrow(Refused)
    for (const reader of Object.values(stores)) {
      expect(await reader.of('ada')).toEqual([
        { customer: 'ada', id: '2024-01', status: 'paid', total: 42 },
        { customer: 'ada', id: '2024-02', status: 'paid', total: 7 },
        { customer: 'ada', id: '2024-03', status: 'open', total: 5 },
      ])
    }
  })
})

test('the row of an order is what mapping.yaml says', async () => {
  await stores.DynamoDB.place('cy', '1', 5)
  const [row] = await bigtable.instance(instance).table('orders').row('cy#1').get({ filter: [{ family: 'o' }] })
  expect(row.data.o).toMatchObject({ status: [{ value: 'open' }], total: [{ value: '5' }] })
})
