// The types of the client for JavaScript, as a project in TypeScript sees them: tsc compiles this, strictly, and nothing runs it.
import { Control, ControlError, type Change, type Item } from '../../clients/javascript/tabletop.mjs'

export async function use(): Promise<void> {
	const control: Control = await Control.fromPortFile('ports.json', { token: 'token' })
	const { held, clock } = await control.info()
	const test: string = held
	const now: Date = new Date(clock.now)
	console.log(test, now)

	// From a DynamoDB table to its rows.
	const over = (await control.tables()).bigtable.find(t => t.dynamodb?.includes('orders'))
	if (!over) throw new Error('there is no table orders')
	for await (const row of control.rows(over.table, { instance: over.instance, prefix: 'a' })) console.log(row.key.text, row.cells[0]?.value.base64)

	const item: Item = { id: { S: 'a' } }
	const put: number = await control.putItems('orders', [item])
	for await (const found of control.items('orders', { index: 'by-day' })) console.log(put, found.id)
	const changes: Change[] = []
	for await (const change of control.changes(over.table)) changes.push(change)
	console.log(changes[0]?.entries.map(e => e.kind))

	const fault = await control.fault({ door: 'bigtable', method: 'MutateRow', effect: 'fail', code: 'UNAVAILABLE', times: 2 })
	const hits: number[] = (await control.faults()).filter(f => f.id === fault.id).map(f => f.hits)
	console.log(hits)
	// @ts-expect-error there is no such door
	await control.fault({ door: 'front', method: 'MutateRow', effect: 'fail' })

	try {
		await control.restore('base')
	} catch (e) {
		if (e instanceof ControlError && e.code === 'not_found') console.log(e.remedy)
	}
}
