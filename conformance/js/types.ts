// The types of the client for JavaScript, as used in a TypeScript project: tsc compiles this, strictly, and nothing runs it.
import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { DynamoDBStreamsClient } from '@aws-sdk/client-dynamodb-streams'
import { Bigtable } from '@google-cloud/bigtable'
import { all, Control, ControlError, Tabletop, type Change, type Changes, type Clock, type Item } from '../../clients/javascript/tabletop.mjs'

export async function use(): Promise<void> {
	const tabletop: Tabletop = await Tabletop.start({ args: ['--mapping', 'orders.yaml'], timeout: 10_000 })
	const ddb = new DynamoDBClient(tabletop.dynamodbOptions())
	const bigtable = new Bigtable(tabletop.bigtableOptions()).instance(tabletop.instance).table(await tabletop.bigtableTable('orders'))
	console.log(new DynamoDBStreamsClient(tabletop.dynamodbOptions()), bigtable, tabletop.env().AWS_REGION, tabletop.log)
	await tabletop.advance(90_000)
	await tabletop.advance('25h')
	await tabletop.fault({ endpoint: 'bigtable', method: 'ReadRows', effect: 'delay', delay: 200 })
	const typed: Item = { id: { S: 'a' }, raw: { B: new Uint8Array([1]) }, list: { L: [{ M: { n: { N: '1' } } }] } }
	await tabletop.putItems('orders', [typed])
	await ddb.send(new PutItemCommand({ TableName: 'orders', Item: typed }))
	for await (const { id } of tabletop.items('orders')) console.log(id.S?.length)
	for await (const { eventName, dynamodb } of tabletop.records('orders')) console.log(eventName, dynamodb.NewImage?.id.S)
	// @ts-expect-error plain JSON
	await tabletop.putItems('orders', [{ id: 'a' }])
	// @ts-expect-error two types
	await tabletop.putItems('orders', [{ id: { S: 'a', N: '1' } }])
	await tabletop.stop()

	const control: Control = await Control.fromPortFile('ports.json', { token: 'token' })
	const { paused, clock } = await control.info()
	const test: string = paused
	const now: Date = new Date(clock.now)
	console.log(test, now)

	// From a DynamoDB table to its rows.
	const over = (await control.tables()).bigtable.find(t => t.dynamodb?.includes('orders'))
	if (!over) throw new Error('there is no table orders')
	for await (const row of control.rows(over.table, { instance: over.instance, prefix: 'a' })) console.log(row.key.text, row.cells[0]?.value.base64)

	const item: Item = { id: { S: 'a' } }
	const put: number = await control.putItems('orders', [item])
	for await (const found of control.items('orders', { index: 'by-day' })) console.log(put, found.id)
	const changes: Change[] = await all(control.changes(over.table))
	console.log(changes[0]?.entries.map(e => e.kind))

	const fault = await control.fault({ endpoint: 'bigtable', method: 'MutateRow', effect: 'fail', code: 'UNAVAILABLE', times: 2 })
	const hits: number[] = (await control.faults()).filter(f => f.id === fault.id).map(f => f.hits)
	console.log(hits)
	await control.removeFaults(fault)
	// @ts-expect-error unknown endpoint
	await control.fault({ endpoint: 'front', method: 'MutateRow', effect: 'fail' })

	const { now: later }: Clock = await control.set(new Date('2030-01-01'))
	const still: boolean = (await control.clock()).frozen
	const sizes: number[] = (await control.snapshots()).map(s => s.bytes)
	const { to, tables }: Changes = await control.changesSince('base', { to: 'second', limit: 10 })
	const added: number = tables[0].items.added
	console.log(later, still, sizes, to, added, tables[0].shown[0].items?.[0].after?.id)
	const [used] = (await control.insights('orders', { index: 'by-day' })).PKC ?? []
	const [last] = await control.requests({ endpoint: 'dynamodb', failed: true })
	console.log(used.key.id, used.count, (await control.request(last.id)).calls?.map(c => c.operation))
	const { differences } = await control.verify('orders', { mapping: 'rules: []' })
	console.log(differences, await control.plan('orders'), await control.lint('orders'))
	await control.resume()

	try {
		await control.restore('base')
	} catch (e) {
		if (e instanceof ControlError && e.code === 'not_found') console.log(e.remedy)
	}
}
