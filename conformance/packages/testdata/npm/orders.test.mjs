import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Control, Tabletop } from 'tabletop-emu'
import setup from 'tabletop-emu/setup'

const table = {
	TableName: 'orders', BillingMode: 'PAY_PER_REQUEST',
	KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
	AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
}

async function ordersOf(server) {
	await server.query('CreateTable', table)
	await server.putItems('orders', [{ id: { S: 'a1' } }])
	const out = []
	for await (const item of server.items('orders')) out.push(item.id.S)
	return out
}

test('a server of a test', async () => {
	const server = await Tabletop.start()
	assert.deepEqual(await ordersOf(server), ['a1'])
	await server.stop()
})

test('the global set-up', async () => {
	const teardown = await setup()
	assert.deepEqual(await ordersOf(new Control()), ['a1'])
	await teardown()
})
