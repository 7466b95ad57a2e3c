// Runs against the servers of TABLETOP_CONSOLE_URL and, with its token, TABLETOP_SECOND_URL: node --test
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { all, Control } from './tabletop.mjs'

const table = {
	TableName: 'orders_js', BillingMode: 'PAY_PER_REQUEST',
	KeySchema: [{ AttributeName: 'k', KeyType: 'HASH' }],
	AttributeDefinitions: [{ AttributeName: 'k', AttributeType: 'S' }],
	StreamSpecification: { StreamEnabled: true, StreamViewType: 'KEYS_ONLY' },
}

async function getItem() {
	const answer = await fetch(process.env.AWS_ENDPOINT_URL_DYNAMODB, {
		method: 'POST', body: '{"TableName":"orders_js","Key":{"k":{"S":"k1"}}}',
		headers: {
			'X-Amz-Target': 'DynamoDB_20120810.GetItem', 'Content-Type': 'application/x-amz-json-1.0', 'X-Amz-Date': '20261120T000000Z',
			Authorization: 'AWS4-HMAC-SHA256 Credential=tabletop/20261120/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00',
		},
	})
	await answer.text()
	return answer.status
}

test('acceptance', async () => {
	const control = new Control()
	const count = async query => {
		let n = 0
		for await (const _ of control.items('orders_js', query)) n++
		return n
	}
	await control.reset()
	await control.query('CreateTable', table)
	await control.query('UpdateTimeToLive', { TableName: 'orders_js', TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true } })
	const second = Math.floor(Date.parse((await control.info()).clock.now) / 1000)
	const due = String(second + 24 * 3600)
	await control.putItems('orders_js', Array.from({ length: 300 }, (_, i) => ({ k: { S: `k${i}` }, ttl: { N: due } })))
	assert.equal(await count(), 300)
	const { cursor } = await control.call('GET', 'items/orders_js')
	assert.equal(await count({ cursor, limit: 70 }), 200)
	assert.deepEqual((await control.streams()).dynamodb.map(s => s.table), ['orders_js'])
	const keys = []
	for await (const r of control.records('orders_js')) keys.push(r.dynamodb.Keys.k.S)
	assert.deepEqual(keys.sort(), Array.from({ length: 300 }, (_, i) => `k${i}`).sort())
	const rows = await control.bigtableTable('orders_js')
	await assert.rejects(control.changes(rows).next(), { name: 'ControlError', code: 'no_stream' })
	await control.snapshot('all')
	for (let i = 0; i < 300; i += 2) await control.query('DeleteItem', { TableName: 'orders_js', Key: { k: { S: `k${i}` } } })
	assert.equal(await count(), 150)
	await control.restore('all')
	assert.equal(await count(), 300)

	await control.fault({ endpoint: 'dynamodb', method: 'GetItem', effect: 'fail', code: 'InternalServerError', times: 2 })
	assert.deepEqual([await getItem(), await getItem(), await getItem()], [500, 500, 200])
	assert.deepEqual((await control.faults()).map(f => f.hits), [2])
	await control.removeFaults()
	await control.fault({ endpoint: 'dynamodb', method: '*', effect: 'fail', code: 'TransactionCanceledException', reasons: ['ConditionalCheckFailed'] })
	await assert.rejects(control.query('TransactWriteItems', { TransactItems: [{ Delete: { TableName: 'orders_js', Key: { k: { S: 'k0' } } } }] }),
		{ code: 'TransactionCanceledException', text: /\[ConditionalCheckFailed\]/ })
	await control.removeFaults()

	assert.match(await control.dump(), /k0/)
	await control.advance('25h')
	await control.ttl()
	assert.equal(await count(), 0)
	assert.doesNotMatch(await control.dump(), /k0/)
	await assert.rejects(control.restore('none'), { name: 'ControlError', code: 'not_found' })
	await control.forget('all')
})

test('all of ctl', async () => {
	const control = new Control()
	await control.reset()
	const before = (await control.clock()).now
	assert.equal((await control.freeze()).frozen, true)
	const later = new Date(Date.parse(before) + 3600_000)
	assert.equal(Date.parse((await control.set(later)).now), later.getTime())
	assert.deepEqual(await control.now(), later)
	await assert.rejects(control.set(before), { code: 'bad_request' })
	assert.equal((await control.run()).frozen, false)

	await control.query('CreateTable', table)
	await control.query('UpdateContributorInsights', { TableName: 'orders_js', ContributorInsightsAction: 'ENABLE' })
	await control.snapshot('first')
	await control.putItems('orders_js', [{ k: { S: 'a' } }])
	await control.snapshot('second/of two')
	const names = (await control.snapshots()).map(s => s.name)
	assert.deepEqual(names.filter(n => n === 'first' || n === 'second/of two'), ['first', 'second/of two'])
	for (const to of [undefined, 'second/of two']) {
		const changes = await control.changesSince('first', { to, limit: 1 })
		assert.equal(changes.to, to)
		const items = changes.tables.flatMap(t => t.shown).flatMap(r => r.items ?? [])
		assert.deepEqual(items, [{ table: 'orders_js', change: 'added', after: { k: { S: 'a' } } }])
	}
	await control.forget('first')
	await control.forget('second/of two')

	const over = await control.bigtableTable('orders_js')
	const rows = []
	for await (const row of control.rows(over, { prefix: 'a' })) rows.push(row.key.text)
	assert.deepEqual(rows, ['a'])
	await control.query('GetItem', { TableName: 'orders_js', Key: { k: { S: 'a' } } })
	assert.deepEqual((await control.insights('orders_js')).PKC[0].key, { k: { S: 'a' } })
	const [last] = await control.requests({ operation: 'GetItem', table: 'orders_js', limit: 1 })
	assert.deepEqual((await control.request(last.id)).calls.map(c => c.operation), ['ReadRows'])

	const ended = await control.fault({ endpoint: 'bigtable', method: 'ReadRows', effect: 'fail', code: 'UNAVAILABLE' })
	const left = await control.fault({ endpoint: 'dynamodb', method: 'GetItem', effect: 'fail', code: 'Throttling' })
	await control.removeFaults(ended)
	assert.deepEqual(await control.faults(), [left])
	await control.removeFaults()
	assert.deepEqual(await control.faults(), [])
	assert.equal(await control.gc(), 0)
	assert.deepEqual(await control.views(), [])
	await control.refreshViews()
	await assert.rejects(control.resume(), { code: 'not_paused' })

	const { mapping: own } = await control.call('GET', 'migrate/s7-blob')
	for (const options of [undefined, { mapping: own }]) {
		assert.equal((await control.plan('s7-blob', options)).tables[0].items, 3)
		assert.equal((await control.verify('s7-blob', options)).differences, 0)
		assert.ok((await control.lint('s7-blob', options)).lint)
	}
	await assert.rejects(control.verify('s7-blob', { mapping: 'no mapping' }), { name: 'ControlError' })
})

test('rows', async () => {
	const control = new Control()
	await control.reset()
	await control.query('CreateTable', table)
	const over = await control.bigtableTable('orders_js')
	const { families } = await control.families(over, [{ id: 'cf', create: { gcRule: { maxNumVersions: 1 } } }])
	assert.equal(families.find(f => f.name === 'cf').gc, 'maxversions=1')
	const cell = { family: 'cf', qualifier: new Uint8Array([0xff]), value: 'v', timestamp: 1000 }
	const written = ['a1', new Uint8Array([0x61, 0xfe]), { text: 'b' }, 'c']
	assert.equal(await control.putRows(over, written.map(key => ({ key, cells: [cell] }))), 4)
	await control.putRows(over, [{ key: 'b', delete: true }])
	const rows = () => all(control.rows(over))
	const keys = async () => (await rows()).map(row => Buffer.from(row.key.base64, 'base64').toString('latin1'))
	assert.deepEqual(await keys(), ['a1', 'a\xfe', 'c'])
	const [{ cells: [got] }] = await rows()
	assert.deepEqual([got.family, got.qualifier.base64, got.value.text, got.timestamp], ['cf', '/w==', 'v', 1000])
	await assert.rejects(control.putRows(over, [{ key: 'a', cells: [{ ...cell, family: 'none' }] }]), e => e.status === 404 && e.code === 'NotFound' && !e.text.includes('rpc error'))

	await control.query('GetItem', { TableName: 'orders_js', Key: { k: { S: 'a1' } } })
	assert.ok((await control.heat()).places.some(p => p.table === over || p.table.endsWith(`/${over}`)))
	assert.equal((await control.heat(over, { last: '1h', step: '1m' })).keys.reduce((n, k) => n + k.reads, 0), 1)

	await control.drop(over, new Uint8Array([0x61, 0xfe]))
	assert.deepEqual(await keys(), ['a1', 'c'])
	await control.drop(over, 'c')
	assert.deepEqual(await keys(), ['a1'])
	await control.empty(over)
	assert.deepEqual(await keys(), [])
	await control.deleteTable(over)
	assert.ok(!(await control.tables()).bigtable.some(t => t.table === over))
	await control.reset()
})

test('parallel workers', async () => {
	const { TABLETOP_SECOND_URL: url, TABLETOP_SECOND_TOKEN: token } = process.env
	const servers = [new Control(), new Control({ url, token })]
	const second = async control => Math.floor(Date.parse((await control.clock()).now) / 1000)
	const before = await Promise.all(servers.map(async control => {
		await control.reset()
		await control.query('CreateTable', table)
		await control.snapshot('base')
		return second(control)
	}))
	for (let n = 0; n < 5; n++) {
		await Promise.all(servers.map(async (control, worker) => {
			await control.restore('base')
			await control.putItems('orders_js', [{ k: { S: `worker${worker}/${n}` } }])
			await control.advance(`${1 + worker}h`)
			await control.fault({ endpoint: 'dynamodb', method: 'GetItem', effect: 'fail', code: 'Throttling', times: 1 + worker })
		}))
		await Promise.all(servers.map(async (control, worker) => {
			const items = []
			for await (const item of control.items('orders_js')) items.push(item.k.S)
			assert.deepEqual(items, [`worker${worker}/${n}`])
			assert.deepEqual((await control.faults()).map(f => f.times), [1 + worker])
			await control.removeFaults()
		}))
	}
	for (const [worker, control] of servers.entries()) {
		assert.equal(Math.floor((await second(control) - before[worker]) / 3600), 5 * (1 + worker))
		await control.forget('base')
	}
})

test('no console', async () => {
	const folder = await mkdtemp(join(tmpdir(), 'tabletop'))
	try {
		const path = join(folder, 'ports.json')
		await writeFile(path, '{"bigtable":"127.0.0.1:1","dynamodb":null}')
		await assert.rejects(Control.fromPortFile(path), /without --console/)
	} finally {
		await rm(folder, { recursive: true })
	}
})

test('unreachable', async () => {
	const { AWS_ENDPOINT_URL_DYNAMODB, BIGTABLE_EMULATOR_HOST } = process.env
	for (const url of ['http://127.0.0.1:65535', AWS_ENDPOINT_URL_DYNAMODB, `http://${BIGTABLE_EMULATOR_HOST}`]) {
		const control = new Control({ url, token: 'token' })
		for (const ask of [() => control.info(), () => control.reset()]) {
			await assert.rejects(ask, e => {
				assert.deepEqual([e.name, e.status, e.code], ['ControlError', 0, 'unreachable'])
				assert.ok(e.text.includes(`no control API responds at ${url}`), e.text)
				assert.match(e.remedy, /serve --console/)
				return true
			})
		}
	}
	await assert.rejects(Control.fromPortFile('/none/ports.json', { wait: 0 }), { name: 'ControlError', code: 'unreachable', text: /\/none\/ports\.json/ })
	for (const url of ['127.0.0.1:8088', 'localhost:8088']) assert.throws(() => new Control({ url, token: 'token' }), new RegExp(`http://${url}`))
})
