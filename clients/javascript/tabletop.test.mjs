// Runs against the server of TABLETOP_CONSOLE_URL: node --test
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Control } from './tabletop.mjs'

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
	const count = async () => {
		let n = 0
		for await (const _ of control.items('orders_js')) n++
		return n
	}
	await control.reset()
	await control.query('CreateTable', table)
	await control.query('UpdateTimeToLive', { TableName: 'orders_js', TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true } })
	const second = Math.floor(Date.parse((await control.info()).clock.now) / 1000)
	const due = String(second + 24 * 3600)
	await control.putItems('orders_js', Array.from({ length: 1000 }, (_, i) => ({ k: { S: `k${i}` }, ttl: { N: due } })))
	assert.equal(await count(), 1000)
	assert.deepEqual((await control.streams()).dynamodb.map(s => s.table), ['orders_js'])
	const keys = []
	for await (const r of control.records('orders_js')) keys.push(r.dynamodb.Keys.k.S)
	assert.deepEqual(keys.sort(), Array.from({ length: 1000 }, (_, i) => `k${i}`).sort())
	const rows = (await control.tables()).bigtable.find(t => t.dynamodb?.includes('orders_js')).table
	await assert.rejects(control.changes(rows).next(), { name: 'ControlError', code: 'no_stream' })
	await control.snapshot('all')
	for (let i = 0; i < 1000; i += 2) await control.query('DeleteItem', { TableName: 'orders_js', Key: { k: { S: `k${i}` } } })
	assert.equal(await count(), 500)
	await control.restore('all')
	assert.equal(await count(), 1000)

	await control.fault({ door: 'dynamodb', method: 'GetItem', effect: 'fail', code: 'InternalServerError', times: 2 })
	assert.deepEqual([await getItem(), await getItem(), await getItem()], [500, 500, 200])
	assert.deepEqual((await control.faults()).map(f => f.hits), [2])
	await control.mend()

	assert.match(await control.dump(), /k0/)
	await control.advance('25h')
	await control.ttl()
	assert.equal(await count(), 0)
	assert.doesNotMatch(await control.dump(), /k0/)
	await assert.rejects(control.restore('none'), { name: 'ControlError', code: 'not_found' })
	await control.forget('all')
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
				assert.ok(e.text.includes(`no control API answers at ${url}`), e.text)
				assert.match(e.remedy, /serve --console/)
				return true
			})
		}
	}
	await assert.rejects(Control.fromPortFile('/none/ports.json'), { name: 'ControlError', code: 'unreachable', text: /\/none\/ports\.json/ })
	for (const url of ['127.0.0.1:8088', 'localhost:8088']) assert.throws(() => new Control({ url, token: 'token' }), new RegExp(`http://${url}`))
})
