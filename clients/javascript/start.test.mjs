// Starts servers from TABLETOP_BINARY: node --test
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { all, Control, ControlError, Tabletop } from './tabletop.mjs'

const table = {
	TableName: 'orders', BillingMode: 'PAY_PER_REQUEST',
	KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
	AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
	StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' },
}
const here = import.meta.dirname ?? new URL('.', import.meta.url).pathname

/** A server that ends with a test. */
async function start(t, options) {
	const server = await Tabletop.start(options)
	t.after(() => server.stop())
	return server
}

async function folderOf(t) {
	const folder = await mkdtemp(join(tmpdir(), 'start-test-'))
	t.after(() => rm(folder, { recursive: true }))
	return folder
}

async function script(folder, text, mode) {
	const path = join(folder, 'script')
	await writeFile(path, text)
	await chmod(path, mode)
	return path
}

/** Asserts that a promise fails with a code and texts in the message. */
const fails = (code, promise, ...parts) => assert.rejects(promise, e => {
	assert.ok(e instanceof ControlError, e)
	assert.equal(e.code, code, e)
	for (const part of parts) assert.ok(e.message.includes(part), `${e.message}\ndoes not have ${part}`)
	return true
})

/** Runs a module in a process of its own, and returns what it prints. */
const run = async (code, env = {}) => (await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], { cwd: here, env: { ...process.env, ...env } })).stdout

test('two servers at once, each with its own addresses; nothing global is set', async t => {
	const before = { ...process.env }
	const first = await start(t)
	const second = await start(t, { args: ['--project', 'p', '--instance', 'i', '--bigtable', 'off'] })
	assert.deepEqual([first.project, first.instance, second.project, second.instance], ['tabletop', 'tabletop', 'p', 'i'])
	const info = await first.info()
	assert.deepEqual([info.bigtable, info.dynamodb], [first.bigtable, first.dynamodb])
	assert.deepEqual(first.env(), {
		BIGTABLE_EMULATOR_HOST: first.bigtable, AWS_ENDPOINT_URL_DYNAMODB: first.dynamodb, AWS_ENDPOINT_URL_DYNAMODB_STREAMS: first.dynamodb,
		AWS_REGION: 'us-east-1', AWS_DEFAULT_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'tabletop', AWS_SECRET_ACCESS_KEY: 'tabletop',
		TABLETOP_CONSOLE_URL: first.url, TABLETOP_CONSOLE_TOKEN: first.token, NO_PROXY: first.env().NO_PROXY, no_proxy: first.env().no_proxy,
	})
	assert.equal(first.dynamodbOptions().endpoint, first.dynamodb)
	assert.deepEqual(first.bigtableOptions(), { apiEndpoint: first.bigtable, projectId: 'tabletop' })
	assert.equal(second.bigtable, null)
	assert.ok(!('BIGTABLE_EMULATOR_HOST' in second.env()))
	assert.deepEqual({ ...process.env }, before)
	await first.stop()
	await first.stop() // again
	await fails('unreachable', first.info(), `${first.url} was stopped`)
})

test('the tables of files exist at the start, and after a reset', async t => {
	const folder = await folderOf(t)
	const file = join(folder, 'model.json')
	await writeFile(file, JSON.stringify({ tables: [table], items: { orders: [{ PutRequest: { Item: { id: { S: 'a' } } } }] } }))
	for (const seed of [folder, [file]]) {
		const server = await start(t, { seed })
		await server.putItems('orders', [{ id: { S: 'b' } }])
		await server.reset()
		assert.deepEqual(await all(server.items('orders')), [{ id: { S: 'a' } }])
	}
})

test('a running server has no file in the folder of temporary files, except its own, and does not keep its process running', async t => {
	const folder = await folderOf(t)
	const code = `
		import { readdirSync } from 'node:fs'
		import { Tabletop } from './tabletop.mjs'
		const server = await Tabletop.start()
		const { dynamodb } = await server.info()
		console.log(JSON.stringify([readdirSync(${JSON.stringify(folder)}), dynamodb === server.dynamodb]))`
	assert.equal(await run(code, { TMPDIR: folder }), '[[],true]\n')
	assert.deepEqual(await readdir(folder), [])
})

test('the log', async t => {
	const binary = await script(await folderOf(t), '#!/bin/sh\nTABLETOP_NONE=1 exec "$TABLETOP_BINARY" "$@"', 0o700)
	const server = await Tabletop.start({ binary })
	await server.stop()
	assert.match(server.log, /TABLETOP_NONE in the environment does not set a flag/)
})

test('a server opens no folder of data that the environment names: a reset would delete the data', async t => {
	const folder = await folderOf(t)
	const [data, config] = ['data', 'tabletop.yaml'].map(name => join(folder, name))
	await writeFile(config, `data: ${data}\n`)
	const code = "import { Tabletop } from './tabletop.mjs'; console.log((await Tabletop.start()).instance)"
	for (const settings of [{ TABLETOP_DATA: data }, { TABLETOP_CONFIG: config }, { TABLETOP_INSTANCE: 'other' }]) {
		assert.equal(await run(code, settings), 'tabletop\n')
		assert.deepEqual(await readdir(folder), ['tabletop.yaml'])
	}
	await start(t, { args: ['--config', config] })
	assert.deepEqual(await readdir(folder), ['data', 'tabletop.yaml'])
})

test('calls use neither a proxy nor a replaced fetch, and env() keeps official clients from a proxy', async () => {
	const code = `
		import { Tabletop } from './tabletop.mjs'
		globalThis.fetch = () => { throw new Error('replaced') }
		const server = await Tabletop.start()
		server.exportEnv()
		const once = server.env()
		console.log(JSON.stringify([once.NO_PROXY, once.no_proxy, process.env.NO_PROXY]))`
	const proxies = Object.fromEntries(['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy'].map(name => [name, 'http://127.0.0.1:1']))
	for (const [given, ...want] of [
		[{}, '127.0.0.1,localhost', '127.0.0.1,localhost'],
		[{ NO_PROXY: 'a.test, localhost' }, 'a.test,localhost,127.0.0.1', 'a.test,localhost,127.0.0.1'],
		[{ NO_PROXY: 'a.test', no_proxy: 'b.test' }, 'a.test,127.0.0.1,localhost', 'b.test,127.0.0.1,localhost'],
		[{ no_proxy: '*' }, '*', '*'],
	]) {
		const env = { NODE_USE_ENV_PROXY: '1', ...proxies, NO_PROXY: '', no_proxy: '', ...given } // Node 24 reads the first
		assert.deepEqual(JSON.parse(await run(code, env)), [...want, want[0]])
	}
})

test('a server that was killed', async t => {
	const folder = await folderOf(t)
	const server = await start(t, { binary: await script(folder, '#!/bin/sh\necho a last word >&2\necho $$ >"$0.pid"\nexec "$TABLETOP_BINARY" "$@"', 0o700) })
	process.kill(Number(await readFile(join(folder, 'script.pid'), 'utf8')), 'SIGKILL')
	let e
	do e = await server.reset().catch(e => e)
	while (!e?.text.includes('ended')) // each call waits a moment for the end
	await server.stop() // waits for the end of its log
	await fails('unreachable', server.reset(), `the server at ${server.url} ended with signal SIGKILL, and printed: a last word`, 'Tabletop.start()')
	const binary = await script(folder, '#!/bin/sh\nkill -9 $$', 0o700)
	await fails('not_started', Tabletop.start({ binary }), 'ended with signal SIGKILL before it was ready')
})

test('exportEnv: clients that are created later use the server, and the credentials in the environment', async () => {
	const code = `
		import { Tabletop } from './tabletop.mjs'
		const server = await Tabletop.start()
		server.exportEnv()
		const { AWS_PROFILE, AWS_SESSION_TOKEN, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS, ...rest } = process.env
		console.log(AWS_PROFILE, AWS_SESSION_TOKEN, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS, Object.entries(server.env()).every(([name, value]) => rest[name] === value))`
	assert.equal(await run(code, { AWS_PROFILE: 'prod', AWS_SESSION_TOKEN: 't', AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: 'true' }), 'undefined undefined undefined true\n')
})

test('a program that is missing', async t => {
	const where = ['Tabletop.start({ binary })', 'TABLETOP_BINARY', 'tabletop on PATH', 'go build -o bin/tabletop ./cmd/tabletop']
	await fails('not_started', Tabletop.start({ binary: '/none/tabletop' }), '/none/tabletop', ...where)
	const folder = await folderOf(t)
	// A copy of the client, beside whose place no program is built yet.
	const copy = join(folder, 'clone', 'clients', 'javascript')
	await mkdir(copy, { recursive: true })
	await copyFile(join(here, 'tabletop.mjs'), join(copy, 'tabletop.mjs'))
	const code = `
		import { Tabletop } from ${JSON.stringify(join(copy, 'tabletop.mjs'))}
		await Tabletop.start().then(s => s.stop()).then(() => console.log('started'), e => console.log(e.message))`
	for (const [env, word] of [[{ TABLETOP_BINARY: '/none/other' }, 'the program /none/other of TABLETOP_BINARY'], [{ TABLETOP_BINARY: '', PATH: folder }, 'the program tabletop ']]) {
		const said = await run(code, env)
		for (const part of [word, ...where]) assert.ok(said.includes(part), said)
	}
	// The package of npm, without that of the platform.
	const installed = join(folder, 'node_modules', 'tabletop-emu')
	await mkdir(installed, { recursive: true })
	await copyFile(join(here, 'tabletop.mjs'), join(installed, 'tabletop.mjs'))
	const missing = `@tabletop-emu/${process.platform}-${process.arch}`
	assert.match(await run(code.replaceAll(copy, installed), { TABLETOP_BINARY: '', PATH: folder }), new RegExp(`the package ${missing} is not installed: npm install --save-dev ${missing}`))
	await symlink(resolve(process.env.TABLETOP_BINARY), join(folder, 'tabletop'))
	assert.equal(await run(code, { TABLETOP_BINARY: '', PATH: folder }), 'started\n')
	await mkdir(join(folder, 'clone', 'bin'))
	await rename(join(folder, 'tabletop'), join(folder, 'clone', 'bin', 'tabletop'))
	assert.equal(await run(code, { TABLETOP_BINARY: '', PATH: folder }), 'started\n')
	await rename(await script(folder, '#!/bin/sh\nexit 9', 0o700), join(folder, 'tabletop'))
	assert.match(await run(code, { TABLETOP_BINARY: '', PATH: folder }), /ended with code 9/)
	const binary = await script(folder, '#!/bin/sh', 0o600)
	await fails('not_started', Tabletop.start({ binary }), binary, 'cannot be run', ...where)
})

test('an early end has the words of the server', async t => {
	await fails('bad_request', Tabletop.start({ args: '--gc never' }), "args is '--gc never', want an array")
	await fails('not_started', Tabletop.start({ args: ['--gc', 'never'] }), '--gc never', 'ended with code 2', '"never" must be background')
	const folder = await folderOf(t)
	const binary = await script(folder, '#!/bin/sh\nexec cat >/dev/null', 0o700) // never ready
	await fails('not_started', Tabletop.start({ binary, timeout: 0 }), binary, 'was not ready within 0 ms, and printed: nothing: pass a longer timeout')
	const token = join(folder, 'token')
	await writeFile(token, 'a token of a file')
	await fails('not_started', Tabletop.start({ args: ['--token-file', token] }), '--token-file')
})

test('the server ends with a process that is killed', async () => {
	const code = "import { Tabletop } from './tabletop.mjs'; console.log((await Tabletop.start()).url); process.stdin.resume()"
	const parent = spawn(process.execPath, ['--input-type=module', '-e', code], { cwd: here, stdio: ['pipe', 'pipe', 'inherit'] })
	const [url] = await once(createInterface(parent.stdout), 'line')
	const { hostname, port } = new URL(url)
	const connection = createConnection(Number(port), hostname).on('error', () => {}) // it may be reset
	const closed = new Promise(resolve => connection.resume().on('close', resolve))
	await once(connection, 'connect')
	parent.kill('SIGKILL')
	await closed
})

test('durations', async t => {
	const server = await start(t)
	await server.freeze()
	await server.set('2030-01-01T00:00:00Z')
	assert.equal((await server.advance(25 * 3600_000 + 1.5)).now, '2030-01-02T01:00:00.0015Z')
	assert.equal((await server.advance('1d')).now, '2030-01-03T01:00:00.0015Z')
	assert.equal((await server.set(new Date('2030-02-01'))).now, '2030-02-01T00:00:00Z')
	for (const delay of [200, '200ms']) {
		assert.equal((await server.fault({ endpoint: 'bigtable', method: 'ReadRows', effect: 'delay', delay })).delay, '200ms')
	}
	await fails('bad_request', server.advance(-1000), '"-1000ms"', 'time moves only forward')
	for (const wrong of [NaN, undefined, {}]) await fails('bad_request', server.advance(wrong), `advance is ${wrong === undefined || wrong !== wrong ? wrong : '{}'}, want a duration`, "'25h'")
	await fails('bad_request', server.advance('soon'), '"soon"')
	await fails('bad_request', server.fault({ endpoint: 'bigtable', method: 'ReadRows', effect: 'delay', delay: true }), 'delay is true')
	await fails('bad_request', server.set(new Date('soon')), 'set is Invalid Date')
})

test('items', async t => {
	const server = await start(t)
	await server.query('CreateTable', table)
	const item = {
		id: { S: 'a' }, n: { N: '1.5' }, b: { B: new Uint8Array([255]) }, bs: { BS: [new Uint8Array([0]), new Uint8Array([255])] }, ns: { NS: ['1', '2'] },
		t: { BOOL: true }, z: { NULL: true }, l: { L: [{ B: new Uint8Array([1]) }, { M: { b: { B: new Uint8Array([2]) } } }] }, m: { M: {} },
	}
	assert.equal(await server.putItems('orders', [{ ...item, b: { B: Buffer.from([255]) } }]), 1)
	assert.deepEqual(await all(server.items('orders')), [item])
	const [{ dynamodb }] = await all(server.records('orders'))
	assert.deepEqual([dynamodb.NewImage, dynamodb.Keys], [item, { id: { S: 'a' } }])
	await fails('bad_request', server.putItems('orders', [item, { id: 'a' }]), 'item 1 is {"id":"a"}', '{"id":{"S":"a"}}')
	const fault = { endpoint: 'dynamodb', method: 'PutItem', effect: 'fail', code: 'Throttling', table: 'orders' }
	assert.deepEqual((await server.fault({ ...fault, item: { id: { B: new Uint8Array([255]) } } })).item, { id: { B: '/w==' } })
	await fails('bad_request', server.fault({ ...fault, item: { id: 'a' } }), 'item is {"id":"a"}', '{"id":{"S":"a"}}')
})

test('tables', async t => {
	const server = await start(t, { args: ['--instance', 'i'] })
	for (const TableName of ['orders', 'customers']) await server.query('CreateTable', { ...table, TableName })
	await server.putItems('orders', [{ id: { S: 'a' } }])
	assert.deepEqual((await all(server.rows(await server.bigtableTable('orders')))).map(row => row.key.text), ['a'])
	assert.notEqual(await server.bigtableTable('customers'), await server.bigtableTable('orders'))
	for (const ask of [name => server.bigtableTable(name), name => all(server.items(name)), name => server.putItems(name, [{ id: { S: 'a' } }]), name => server.dump(name)]) {
		await assert.rejects(ask('order'), /order.*nearest name is "orders"; tables\(\) lists the tables/)
	}
	await fails('not_found', server.bigtableTable(''), 'no DynamoDB table ""')
})

test('a client waits for the port file of a server that is still starting', async t => {
	const path = join(await folderOf(t), 'ports.json')
	await fails('unreachable', Control.fromPortFile(path, { wait: 0 }), path, 'within 0 ms')
	const asked = Control.fromPortFile(path, { wait: 600_000 })
	const server = await start(t)
	await writeFile(`${path}.new`, JSON.stringify({ console: server.url, token: server.token }))
	await rename(`${path}.new`, path)
	assert.equal((await (await asked).info()).dynamodb, server.dynamodb)
})
