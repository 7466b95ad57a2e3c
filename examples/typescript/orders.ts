// The orders of a shop, in DynamoDB or in Bigtable. Customers must not contain '#'.
import { ConditionalCheckFailedException, type DynamoDBClient, paginateQuery, PutItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb'
import type { Bigtable, Table } from '@google-cloud/bigtable'

export interface Order { customer: string; id: string; status: 'open' | 'paid'; total: number }

/** An order that exists was placed, or one that is not open was paid. */
export class Refused extends Error {}

export interface Orders {
  place(customer: string, id: string, total: number): Promise<void>
  pay(customer: string, id: string): Promise<void>
  /** Returns the orders of a customer by id. */
  of(customer: string): Promise<Order[]>
}

export class DynamoDBOrders implements Orders {
  constructor(private readonly client: DynamoDBClient) {}

  async place(customer: string, id: string, total: number) {
    await refused(this.client.send(new PutItemCommand({
      TableName: 'Orders', Item: { customer: { S: customer }, id: { S: id }, status: { S: 'open' }, total: { N: `${total}` } },
      ConditionExpression: 'attribute_not_exists(customer)',
    })))
  }

  async pay(customer: string, id: string) {
    await refused(this.client.send(new UpdateItemCommand({
      TableName: 'Orders', Key: { customer: { S: customer }, id: { S: id } },
      UpdateExpression: 'SET #status = :paid', ConditionExpression: '#status = :open',
      ExpressionAttributeNames: { '#status': 'status' }, ExpressionAttributeValues: { ':open': { S: 'open' }, ':paid': { S: 'paid' } },
    })))
  }

  async of(customer: string) {
    const orders: Order[] = []
    const pages = paginateQuery({ client: this.client }, {
      TableName: 'Orders', KeyConditionExpression: 'customer = :c', ExpressionAttributeValues: { ':c': { S: customer } }, ConsistentRead: true,
    })
    for await (const { Items = [] } of pages) {
      for (const { id, status, total } of Items) orders.push({ customer, id: id.S!, status: status.S as Order['status'], total: Number(total.N) })
    }
    return orders
  }
}

async function refused(write: Promise<unknown>) {
  try {
    await write
  } catch (e) {
    throw e instanceof ConditionalCheckFailedException ? new Refused(e.message) : e
  }
}

/** The cells of an order; in the family _f the DynamoDB endpoint keeps its own. */
const order = { family: 'o' }
const latest = { column: { cellLimit: 1 } }

/** The rows are those that mapping.yaml describes: customer#id, with cells of the family o. */
export class BigtableOrders implements Orders {
  private readonly table: Table

  constructor(client: Bigtable, instance: string) {
    this.table = client.instance(instance).table('orders')
  }

  async place(customer: string, id: string, total: number) {
    const create = { method: 'insert', data: { o: { status: 'open', total: `${total}` } } }
    const [exists] = await this.table.row(`${customer}#${id}`).filter([order], { onNoMatch: [create] })
    if (exists) throw new Refused('the order exists already')
  }

  async pay(customer: string, id: string) {
    const pay = { method: 'insert', data: { o: { status: 'paid' } } }
    const [open] = await this.table.row(`${customer}#${id}`).filter([order, { column: 'status' }, latest, { value: 'open' }], { onMatch: [pay] })
    if (!open) throw new Refused('the order does not exist, or is not open')
  }

  async of(customer: string) {
    const [rows] = await this.table.getRows({ prefix: `${customer}#`, filter: [order, latest] })
    return rows.map(({ id, data }): Order => ({
      customer, id: id.slice(customer.length + 1), status: data.o.status[0].value, total: Number(data.o.total[0].value),
    }))
  }
}
