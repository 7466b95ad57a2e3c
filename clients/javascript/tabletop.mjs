// Starts and stops Tabletop in tests, and calls its control API: snapshots, clock, faults, requests.
//
//	import { Tabletop } from './tabletop.mjs'
//	const tabletop = await Tabletop.start() // on free ports
//	const ddb = new DynamoDBClient(tabletop.dynamodbOptions())
//	await tabletop.snapshot('base')         // once
//	await tabletop.restore('base')          // before each test
//	await tabletop.stop()
//
// A server that is already running has the same methods: await Control.fromPortFile('ports.json').
// tabletop-setup.mjs is a global set-up for Jest and Vitest.
//
// It needs only Node 18 or later. docs/control.md describes the API, and
// tabletop.d.mts has the types: copy it too for TypeScript.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import http from 'node:http'
import https from 'node:https'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'

/**
 * An error response of the API, with its HTTP status. The status is 0 if no API responds, with the code
 * 'unreachable', and if a server does not start, with the code 'not_started'.
 */
export class ControlError extends Error {
	constructor(status, { code, text, remedy }, options) {
		super(`${text}: ${remedy}`, options)
		Object.assign(this, { name: 'ControlError', status, code, text, remedy })
	}
}

const unreachable = (text, remedy, cause) => new ControlError(0, { code: 'unreachable', text, remedy }, { cause })
const notStarted = (text, remedy, cause) => new ControlError(0, { code: 'not_started', text, remedy }, { cause })
const badRequest = (text, remedy) => new ControlError(400, { code: 'bad_request', text, remedy })

/** Returns the entries of items(), rows(), records() or changes() as an array. */
export async function all(entries) {
	const out = []
	for await (const each of entries) out.push(each)
	return out
}

/** A server that runs with --console. By default it is found by the environment variables that serve prints. */
export class Control {
	/** The instance of Bigtable tables, unless a method gets another one. */
	instance = 'tabletop'

	constructor({ url = process.env.TABLETOP_CONSOLE_URL, token = process.env.TABLETOP_CONSOLE_TOKEN } = {}) {
		if (!url || !token) throw new Error("no server is given: in Jest or Vitest set globalSetup: 'tabletop-emu/setup'; else pass url and token, or set TABLETOP_CONSOLE_URL and TABLETOP_CONSOLE_TOKEN")
		if (!/^https?:\/\//.test(url)) throw new Error(`${url} is not a URL; expected one such as http://${url}`)
		this.url = url.replace(/\/$/, '')
		this.token = token
	}

	/** Returns the server that wrote a --port-file. If the file is missing, waits up to the given milliseconds for it. */
	static async fromPortFile(path, { token, wait = 10_000 } = {}) {
		const until = performance.now() + wait
		const ports = await portFile(path, e => {
			if (performance.now() >= until) throw unreachable(`${path} did not appear within ${wait} ms, so the server that writes it is not running`, `start tabletop serve --console --port-file ${path}`, e)
		})
		if (!ports.console) throw new Error(`the server that wrote ${path} was started without --console`)
		return new Control({ url: ports.console, token: token ?? ports.token })
	}

	/** Makes any request to the API. path is the part after /api/v1/. */
	async call(method, path, { body, query = {} } = {}) {
		const given = Object.entries(query).filter(([, value]) => value !== undefined).map(([name, value]) => [name, value?.toISOString?.() ?? value])
		const url = `${this.url}/api/v1/${path}` + (given.length ? `?${new URLSearchParams(given)}` : '')
		const text = body === undefined ? undefined : JSON.stringify(body, sent)
		let answer, said
		try {
			answer = await send(method, url, this.token, text)
			said = JSON.parse(answer.text)
			if (answer.status !== 200 && !said?.error?.code) throw new Error('it says what is wrong otherwise')
		} catch (e) {
			const why = answer ? `something else does, with status ${answer.status}` : e.code ?? e.message
			throw unreachable(`no control API responds at ${this.url} (${why})`, 'start tabletop serve --console, or read its port file again', e)
		}
		if (answer.status !== 200) throw new ControlError(answer.status, { ...said.error, remedy: said.error.remedy.replace(/GET \/api\/v1\/(\w+)(?= )/g, '$1()') })
		return said
	}

	/** Returns information about the server and its endpoints. */
	info() { return this.call('GET', 'info') }
	/** Returns the tables of both endpoints: Bigtable tables with their families, and DynamoDB tables by name. */
	tables() { return this.call('GET', 'tables') }
	/** Returns the id of the Bigtable table that holds the items of a DynamoDB table. Pass it to rows or to a Bigtable client. */
	async bigtableTable(table) {
		const { bigtable: [found] } = await this.call('GET', 'tables', { query: { dynamodb: table } })
		if (!found) throw new ControlError(409, { code: 'not_found', text: `the server does not know where the items of the DynamoDB table ${inspect(table)} are`, remedy: 'start it with the --mapping of the table' })
		return found.table
	}
	/** Returns all rows of a Bigtable table, reading page by page. */
	rows(table, { instance = this.instance, ...query } = {}) { return this.#pages('rows', `tables/${part(instance)}/${part(table)}/rows`, query) }
	/** Returns all items of a DynamoDB table in the form of the AWS SDK, reading page by page: await all(control.items('orders')). */
	items(table, query = {}) { return this.#pages('items', `items/${part(table)}`, query, item) }

	/** Returns the streams of DynamoDB tables, and the Bigtable tables that have a change stream. */
	streams() { return this.call('GET', 'streams') }
	/** Returns all records so far of the table's latest DynamoDB stream, reading page by page. Keys and images are items. */
	records(table, query = {}) { return this.#pages('records', `streams/${part(table)}/records`, query, record) }
	/** Returns all records so far of the change stream of a Bigtable table, reading page by page. */
	changes(table, { instance = this.instance, ...query } = {}) { return this.#pages('changes', `tables/${part(instance)}/${part(table)}/changes`, query) }

	async *#pages(member, path, query, read = each => each) {
		for (let { cursor } = query; ;) {
			const page = await this.call('GET', path, { query: { ...query, cursor } })
			yield* page[member].map(read)
			cursor = page.cursor
			if (cursor === undefined) return
		}
	}

	/** Puts items in DynamoDB JSON, where a value of type B is a Uint8Array, and returns their number. */
	async putItems(table, items) { return (await this.call('POST', `items/${part(table)}`, { body: { items } })).items }
	/** Writes rows to a Bigtable table. Each row has a key and cells, or delete: true. Keys, qualifiers and values are strings or Uint8Arrays. Returns the number of rows. */
	async putRows(table, rows, { instance = this.instance } = {}) { return (await this.call('POST', `tables/${part(instance)}/${part(table)}/rows`, { body: { rows: rows.map(row) } })).rows }
	/** Creates, changes and drops column families, such as [{ id: 'f', create: {} }]; returns the table. */
	families(table, modifications, { instance = this.instance } = {}) { return this.call('POST', `tables/${part(instance)}/${part(table)}/families`, { body: { modifications } }) }
	/** Deletes the rows of a Bigtable table whose key begins with prefix, a string or a Uint8Array. */
	async drop(table, prefix, { instance = this.instance } = {}) { await this.call('POST', `tables/${part(instance)}/${part(table)}/drop`, { body: { prefix: bytes(prefix) } }) }
	/** Deletes all rows of a Bigtable table. */
	async empty(table, { instance = this.instance } = {}) { await this.call('POST', `tables/${part(instance)}/${part(table)}/drop`, { body: { all: true } }) }
	/** Deletes a Bigtable table. */
	async deleteTable(table, { instance = this.instance } = {}) { await this.call('DELETE', `tables/${part(instance)}/${part(table)}`) }
	/** Returns the load on the keys of a Bigtable table over time or, without a table, the tables with load counts. */
	heat(table, { instance = this.instance, ...query } = {}) { return this.call('GET', table ? `heat/${part(instance)}/${part(table)}` : 'heat', { query }) }
	/** Runs a DynamoDB operation; returns its response, and its Bigtable calls. */
	query(operation, request) { return this.call('POST', 'query', { body: { operation, request } }) }
	/** Returns the most used keys of a DynamoDB table, or of an index, while contributor insights are on. */
	insights(table, { index } = {}) { return this.call('GET', `insights/${part(table)}`, { query: { index } }) }
	/** Removes all tables and faults. The clock and the snapshots stay. */
	async reset() { await this.call('POST', 'reset') }
	/** Continues the paused Go test. */
	async resume() { await this.call('POST', 'resume') }
	/** Returns the snapshots, sorted by time. */
	async snapshots() { return (await this.call('GET', 'snapshots')).snapshots }
	/** Takes a snapshot of the tables of both endpoints. It replaces a snapshot with the same name. */
	snapshot(name) { return this.call('POST', 'snapshots', { body: { name } }) }
	/** Restores the tables of a snapshot. The clock and the faults stay. */
	restore(name) { return this.call('POST', `snapshots/${part(name)}/restore`) }
	/** Deletes a snapshot. */
	async forget(name) { await this.call('DELETE', `snapshots/${part(name)}`) }
	/** Returns the rows and items that changed between a snapshot and now, or between it and the snapshot to. */
	changesSince(name, { to, limit } = {}) { return this.call('GET', `snapshots/${part(name)}/changes`, { query: { to, limit } }) }
	/** Returns the server's time, and whether its clock is stopped. */
	clock() { return this.call('GET', 'clock') }
	/** Returns the server's time, from which a time to live is computed. */
	async now() { return new Date((await this.clock()).now) }
	/** Advances the clock, by '25h' or a number of milliseconds, and runs the work that becomes due. */
	async advance(by) { return this.call('POST', 'clock', { body: { advance: duration('advance', by) } }) }
	/** Advances the clock to a time, a Date or RFC 3339, and runs the work that becomes due. */
	async set(time) {
		if (Number.isNaN(time?.getTime?.())) throw badRequest(`set is ${inspect(time)}, want a time`, 'pass a Date, or a text such as 2030-01-01T00:00:00Z')
		return this.call('POST', 'clock', { body: { set: time } })
	}
	/** Stops the clock. */
	freeze() { return this.call('POST', 'clock', { body: { freeze: true } }) }
	/** Starts the clock again. */
	run() { return this.call('POST', 'clock', { body: { run: true } }) }
	/** Collects garbage; returns the number of deleted cells. */
	async gc() { return (await this.call('POST', 'gc')).cells }
	/** Deletes expired items; returns their number. */
	async ttl() { return (await this.call('POST', 'ttl')).items }
	/** Returns the logical and materialized views with their state. */
	async views() { return (await this.call('GET', 'views')).views }
	/** Makes the materialized views reflect all changes, with serve --view-lag. */
	async refreshViews() { await this.call('POST', 'views/refresh') }
	/** Injects a fault. docs/control.md lists the members. delay is a text or a number of milliseconds, item a key in DynamoDB's JSON. */
	async fault(spec) {
		return this.call('POST', 'faults', { body: spec.delay === undefined ? spec : { ...spec, delay: duration('delay', spec.delay) } })
	}
	/** Returns the injected faults, with the number of hits of each. */
	async faults() { return (await this.call('GET', 'faults')).faults }
	/** Removes a fault that fault() or faults() returned, or all faults. */
	async removeFaults(fault) { await this.call('DELETE', fault ? `faults/${fault.endpoint}/${fault.id}` : 'faults') }
	/** Returns all rows as text, or those of one table. */
	async dump(table) { return (await this.call('GET', 'dump', { query: { table } })).text }
	/** Returns the last requests of both endpoints, newest first: 100 of them, or limit. */
	async requests(query = {}) { return (await this.call('GET', 'requests', { query })).requests }
	/** Returns one request with its bodies and its Bigtable calls. */
	request(id) { return this.call('GET', `requests/${id}`) }
	/** Runs tabletop migrate plan on a folder of --fixtures; mapping is the text of a mapping file that replaces the one of the fixture. */
	plan(fixture, { mapping } = {}) { return this.call('POST', 'migrate/plan', { body: { fixture, mapping } }) }
	/** Runs tabletop migrate verify. */
	verify(fixture, { mapping } = {}) { return this.call('POST', 'migrate/verify', { body: { fixture, mapping } }) }
	/** Runs tabletop migrate lint. */
	lint(fixture, { mapping } = {}) { return this.call('POST', 'migrate/lint', { body: { fixture, mapping } }) }
}

const thisMachine = ['127.0.0.1', 'localhost']

/** Sends a request, and returns the status and text of the response. Tests may replace fetch, and no proxy reaches this machine. */
const send = (method, url, token, body) => new Promise((resolve, reject) => {
	const { protocol, hostname } = new URL(url)
	const { request, Agent } = protocol === 'https:' ? https : http
	const local = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
	const sending = request(url, { method, headers: { Authorization: `Bearer ${token}` }, agent: local ? new Agent() : undefined })
	sending.on('error', reject).on('response', answer => {
		let text = ''
		answer.setEncoding('utf8').on('data', piece => { text += piece }).on('end', () => resolve({ status: answer.statusCode, text })).on('error', reject)
	}).end(body)
})

/** Returns both variables that list the addresses without a proxy. Clients read one or the other. */
const noProxy = () => Object.fromEntries([['NO_PROXY', 'no_proxy'], ['no_proxy', 'NO_PROXY']].map(([name, other]) => {
	const hosts = (process.env[name] || process.env[other] || '').split(',').map(host => host.trim()).filter(Boolean)
	return [name, (hosts.join() === '*' ? hosts : [...new Set([...hosts, ...thisMachine])]).join()]
}))

/** Returns the environment of a server: that of this process, without settings of another server. */
const inherited = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^TABLETOP_(?!BINARY$)/i.test(name)))

/** Variables with which official clients would not use those of env(). */
const overriding = ['AWS_PROFILE', 'AWS_DEFAULT_PROFILE', 'AWS_SESSION_TOKEN', 'AWS_SECURITY_TOKEN', 'AWS_IGNORE_CONFIGURED_ENDPOINT_URLS']

const where = 'give Tabletop.start({ binary }) its path, set TABLETOP_BINARY, or put tabletop on PATH; go build -o bin/tabletop ./cmd/tabletop, in a clone of the project, makes it'

const { platform, arch } = process
const platformPackage = `@tabletop-emu/${platform}-${arch}`

/** Returns the program that npm installed for this platform, or undefined. */
function installed() {
	try {
		return createRequire(import.meta.url).resolve(`${platformPackage}/tabletop${platform === 'win32' ? '.exe' : ''}`)
	} catch {
		return undefined
	}
}

/** Returns the program that make build wrote into the clone that contains this file, or undefined if PATH has one, or without it. */
function built() {
	const name = process.platform === 'win32' ? 'tabletop.exe' : 'tabletop'
	const path = fileURLToPath(new URL(`../../bin/${name}`, import.meta.url))
	const onPath = (process.env.PATH ?? '').split(delimiter).some(folder => folder && existsSync(join(folder, name)))
	return onPath || !existsSync(path) ? undefined : path
}

/** Returns the program that Tabletop.start runs by default: that of TABLETOP_BINARY, of npm, on PATH, or of the clone with this file. */
export const program = () => process.env.TABLETOP_BINARY || installed() || built() || 'tabletop'

/** Milliseconds between two checks for a port file. */
const pause = 20

/**
 * A server that a program starts and stops, with the methods of its control API. It stops by stop(), and
 * when this process ends, even by kill -9: the server reads a pipe from this process, and stops when it
 * closes. A running server does not keep this process running.
 */
export class Tabletop extends Control {
	#child
	#ended
	#log
	#stopped = false // it ran until stop()

	/**
	 * Starts tabletop serve on free ports of 127.0.0.1 with further args, and waits until it is ready. binary is
	 * the program, by default that of program(). timeout is in milliseconds. seed is a file or folder, or several,
	 * of the tables that exist at the start and after reset(). Neither the environment of
	 * this process nor any client is changed: see env(), dynamodbOptions() and bigtableOptions().
	 *
	 * The server does not inherit TABLETOP_* variables: one such as TABLETOP_DATA would open a folder with data,
	 * which reset() deletes.
	 */
	static async start({ binary = program(), args = [], timeout = 60_000, seed = [] } = {}) {
		if (!Array.isArray(args)) throw badRequest(`args is ${inspect(args)}, want an array of flags`, "pass one such as ['--mapping', 'orders.yaml']")
		const folder = await mkdtemp(join(tmpdir(), 'tabletop-'))
		const file = join(folder, 'ports.json')
		const command = ['serve', '--bigtable', '127.0.0.1:0', '--dynamodb', '127.0.0.1:0', '--console', '127.0.0.1:0', ...[seed].flat().map(path => `--seed=${path}`), ...args, '--port-file', file, '--until-stdin-closes']
		let log = '', failed, end, child, ended
		try {
			child = spawn(binary, command, { stdio: ['pipe', 'ignore', 'pipe'], env: inherited() })
			child.on('error', e => { failed = e })
			child.stdin.on('error', () => {}) // it ended
			child.stderr.setEncoding('utf8').on('data', piece => { log = (log + piece).slice(-65536) })
			ended = new Promise(resolve => child.on('close', (code, signal) => resolve(end = signal ? `signal ${signal}` : `code ${code}`)))
			for (const each of [child, child.stdin, child.stderr]) each.unref()
			const until = performance.now() + timeout
			const ports = await portFile(file, () => {
				if (failed && binary === 'tabletop' && import.meta.url.includes('/node_modules/')) throw notStarted(`the package ${platformPackage} is not installed`, `npm install --save-dev ${platformPackage}: npm leaves it out with --omit=optional, or after an install on another platform; or ${where}`)
				if (failed) throw notStarted(`the program ${binary}${binary === process.env.TABLETOP_BINARY ? ' of TABLETOP_BINARY' : ''} cannot be run (${failed.message})`, where, failed)
				const why = end ? `ended with ${end} before it was ready` : performance.now() >= until ? `was not ready within ${timeout} ms` : ''
				if (why) throw notStarted(`${[binary, ...command].join(' ')} ${why}, and printed: ${log.trim() || 'nothing'}`, end ? 'correct the args' : 'pass a longer timeout, since the machine may be slow')
			})
			if (!ports.token) throw notStarted('Tabletop.start does not take --token-file', 'start the server without it, or use Control.fromPortFile(path, { token })')
			const self = new Tabletop({ url: ports.console, token: ports.token })
			self.#child = child
			self.#ended = ended
			self.#log = () => log.trim()
			const { project, instance } = await self.info()
			Object.assign(self, { bigtable: ports.bigtable, dynamodb: ports.dynamodb, project, instance })
			return self
		} catch (e) {
			if (ended) await stopped(child, ended)
			throw e
		} finally {
			await rm(folder, { recursive: true, force: true })
		}
	}

	/** Stops the server as SIGTERM does, and waits until it has ended. Further calls have no effect. */
	stop() {
		this.#stopped ||= this.#child.exitCode === null && this.#child.signalCode === null
		return stopped(this.#child, this.#ended)
	}

	/** Returns the last 64 KiB that the server printed on standard error. */
	get log() { return this.#log() }

	/** Makes any request to the API. path is the part after /api/v1/. */
	async call(...request) {
		try {
			return await super.call(...request)
		} catch (e) {
			if (e.code !== 'unreachable') throw e
			const waiting = new AbortController() // a process that closed its connections may need a moment
			const end = await Promise.race([this.#ended, sleep(1000, '', { signal: waiting.signal }).catch(() => {})])
			waiting.abort()
			if (!end) throw e
			throw unreachable(`the server at ${this.url} ${this.#stopped ? 'was stopped' : `ended with ${end}, and printed: ${this.log || 'nothing'}`}`, 'start another with Tabletop.start()')
		}
	}

	/**
	 * Returns the environment variables with which official clients, ctl and new Control() find the server. NO_PROXY is
	 * that of this process, with the addresses of this machine.
	 */
	env() {
		return {
			TABLETOP_CONSOLE_URL: this.url, TABLETOP_CONSOLE_TOKEN: this.token, ...noProxy(),
			...(this.bigtable && { BIGTABLE_EMULATOR_HOST: this.bigtable }),
			...(this.dynamodb && {
				AWS_ENDPOINT_URL_DYNAMODB: this.dynamodb, AWS_ENDPOINT_URL_DYNAMODB_STREAMS: this.dynamodb, AWS_REGION: 'us-east-1',
				AWS_DEFAULT_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'tabletop', AWS_SECRET_ACCESS_KEY: 'tabletop',
			}),
		}
	}

	/** Sets env() in this process, for official clients that are created later, and removes variables that take precedence. */
	exportEnv() {
		for (const name of overriding) delete process.env[name]
		Object.assign(process.env, this.env())
	}

	/** The options of new DynamoDBClient and new DynamoDBStreamsClient. */
	dynamodbOptions() {
		return { endpoint: this.dynamodb, region: 'us-east-1', credentials: { accessKeyId: 'tabletop', secretAccessKey: 'tabletop' } }
	}

	/** The options of new Bigtable. */
	bigtableOptions() { return { apiEndpoint: this.bigtable, projectId: this.project } }
}

/** Stops a server process, and waits for its end. */
async function stopped(child, ended) {
	for (const each of [child, child.stderr]) each.ref() // else this process might end first
	if (process.platform === 'win32') child.stdin.end() // kill('SIGTERM') would kill the process
	else child.kill('SIGTERM')
	const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
	await ended
	clearTimeout(timer)
}

/** The content of a port file, which appears whole; check throws when the wait is over. */
async function portFile(path, check) {
	for (;;) {
		try {
			return JSON.parse(await readFile(path, 'utf8'))
		} catch (e) {
			if (e.code !== 'ENOENT') throw e
			check(e)
		}
		await sleep(pause)
	}
}

const part = encodeURIComponent
/** Returns the API's form of a duration. name is the name of the argument. */
const duration = (name, value) => {
	if (typeof value === 'string') return value
	if (Number.isFinite(value)) return `${value}ms`
	throw badRequest(`${name} is ${inspect(value)}, want a duration`, "pass a number of milliseconds, or a text such as '25h'")
}
const base64 = view => Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString('base64')
/** The JSON of a value: bytes, as in an attribute of the type B, are base64. */
function sent(name, value) { return ArrayBuffer.isView(this[name]) ? base64(this[name]) : value }
/** Returns the API's form of bytes. Bytes that already have this form are unchanged. */
const bytes = value => typeof value === 'string' ? { text: value } : ArrayBuffer.isView(value) ? { base64: base64(value) } : value
const unpacked = text => new Uint8Array(Buffer.from(text, 'base64'))
const attribute = value => {
	const [[type, inner]] = Object.entries(value)
	switch (type) {
		case 'B': return { B: unpacked(inner) }
		case 'BS': return { BS: inner.map(unpacked) }
		case 'L': return { L: inner.map(attribute) }
		case 'M': return { M: item(inner) }
		default: return value
	}
}
/** Returns an item of the API with bytes in place of base64. */
const item = received => Object.fromEntries(Object.entries(received).map(([name, value]) => [name, attribute(value)]))
const record = received => {
	const images = Object.entries(received.dynamodb).map(([name, value]) => [name, ['Keys', 'NewImage', 'OldImage'].includes(name) ? item(value) : value])
	return { ...received, dynamodb: Object.fromEntries(images) }
}
const row = ({ key, cells = [], ...rest }) => ({
	...rest, key: bytes(key), cells: cells.map(cell => ({ ...cell, qualifier: bytes(cell.qualifier), value: bytes(cell.value) })),
})
