// The control API of a running Tabletop: snapshots, clock, faults, requests.
//
//	import { Control } from './tabletop.mjs'
//	const control = await Control.fromPortFile('ports.json')
//	await control.snapshot('base') // once
//	await control.restore('base')  // before each test
//
// It needs only Node 18 or later. docs/control.md describes the API, and
// tabletop.d.mts has the types: copy it too for TypeScript.
import { readFile } from 'node:fs/promises'

/** The error answer of the API; with the code 'unreachable' and the status 0 if it does not answer. */
export class ControlError extends Error {
	constructor(status, { code, text, remedy }, options) {
		super(`${text}: ${remedy}`, options)
		Object.assign(this, { name: 'ControlError', status, code, text, remedy })
	}
}

const unreachable = (text, remedy, cause) => new ControlError(0, { code: 'unreachable', text, remedy }, { cause })

/** A server that runs with --console. By default the environment variables printed by serve locate it. */
export class Control {
	constructor({ url = process.env.TABLETOP_CONSOLE_URL, token = process.env.TABLETOP_CONSOLE_TOKEN } = {}) {
		if (!url || !token) throw new Error('which server? Give url and token, or set TABLETOP_CONSOLE_URL and TABLETOP_CONSOLE_TOKEN')
		if (!/^https?:\/\//.test(url)) throw new Error(`${url} is not a URL; expected one such as http://${url}`)
		this.url = url.replace(/\/$/, '')
		this.token = token
	}

	/** The server that wrote a --port-file. */
	static async fromPortFile(path, { token } = {}) {
		const ports = JSON.parse(await readFile(path, 'utf8').catch(e => {
			throw e.code === 'ENOENT' ? unreachable(`no server runs that writes ${path}`, `start tabletop serve --console --port-file ${path}`, e) : e
		}))
		if (!ports.console) throw new Error(`the server of ${path} was started without --console`)
		return new Control({ url: ports.console, token: token ?? ports.token })
	}

	/** Makes any request of the API; path is the part after /api/v1/. */
	async call(method, path, { body, query = {} } = {}) {
		const given = Object.entries(query).filter(([, value]) => value !== undefined)
		const url = `${this.url}/api/v1/${path}` + (given.length ? `?${new URLSearchParams(given)}` : '')
		const text = body === undefined ? undefined : JSON.stringify(body)
		let answer, said
		try {
			answer = await fetch(url, { method, headers: { Authorization: `Bearer ${this.token}` }, body: text })
			said = await answer.json()
			if (!answer.ok && !said?.error?.code) throw new Error('it says what is wrong otherwise')
		} catch (e) {
			const why = answer ? `something else does, with status ${answer.status}` : e.cause?.code ?? e.cause?.message ?? e.message
			throw unreachable(`no control API answers at ${this.url} (${why})`, 'start tabletop serve --console, or read its port file again', e)
		}
		if (!answer.ok) throw new ControlError(answer.status, said.error)
		return said
	}

	info() { return this.call('GET', 'info') }
	tables() { return this.call('GET', 'tables') }
	/** All rows of a Bigtable table, page by page. */
	rows(table, { instance = 'tabletop', ...query } = {}) { return this.#pages('rows', `tables/${part(instance)}/${part(table)}/rows`, query) }
	/** All items of a DynamoDB table, page by page. */
	items(table, query = {}) { return this.#pages('items', `items/${part(table)}`, query) }

	/** The streams of DynamoDB's tables, and the Bigtable tables that have a change stream. */
	streams() { return this.call('GET', 'streams') }
	/** All records so far of the table's latest stream of DynamoDB Streams, page by page. */
	records(table, query = {}) { return this.#pages('records', `streams/${part(table)}/records`, query) }
	/** All records so far of the change stream of a Bigtable table, page by page. */
	changes(table, { instance = 'tabletop', ...query } = {}) { return this.#pages('changes', `tables/${part(instance)}/${part(table)}/changes`, query) }

	async *#pages(member, path, query) {
		for (let { cursor } = query; ;) {
			const page = await this.call('GET', path, { query: { ...query, cursor } })
			yield* page[member]
			cursor = page.cursor
			if (cursor === undefined) return
		}
	}

	/** Puts items, in DynamoDB's JSON. */
	async putItems(table, items) { return (await this.call('POST', `items/${part(table)}`, { body: { items } })).items }
	/** Writes rows of a Bigtable table: each with a key and cells, or delete: true. Keys, qualifiers and values are strings or Uint8Arrays. */
	async putRows(table, rows, { instance = 'tabletop' } = {}) { return (await this.call('POST', `tables/${part(instance)}/${part(table)}/rows`, { body: { rows: rows.map(row) } })).rows }
	/** Creates, changes and drops column families, such as [{ id: 'f', create: {} }]; returns the table. */
	families(table, modifications, { instance = 'tabletop' } = {}) { return this.call('POST', `tables/${part(instance)}/${part(table)}/families`, { body: { modifications } }) }
	/** Deletes the rows of a Bigtable table whose key begins with prefix, a string or a Uint8Array. */
	async drop(table, prefix, { instance = 'tabletop' } = {}) { await this.call('POST', `tables/${part(instance)}/${part(table)}/drop`, { body: { prefix: bytes(prefix) } }) }
	/** Deletes all rows of a Bigtable table. */
	async empty(table, { instance = 'tabletop' } = {}) { await this.call('POST', `tables/${part(instance)}/${part(table)}/drop`, { body: { all: true } }) }
	/** Deletes a Bigtable table. */
	async deleteTable(table, { instance = 'tabletop' } = {}) { await this.call('DELETE', `tables/${part(instance)}/${part(table)}`) }
	/** The load on the keys of a Bigtable table over time; without a table, the tables with load counts. */
	heat(table, { instance = 'tabletop', ...query } = {}) { return this.call('GET', table ? `heat/${part(instance)}/${part(table)}` : 'heat', { query }) }
	/** Runs a DynamoDB operation; returns its response, and its Bigtable calls. */
	query(operation, request) { return this.call('POST', 'query', { body: { operation, request } }) }
	/** The most used keys of a DynamoDB table, or of an index, while contributor insights are on. */
	insights(table, { index } = {}) { return this.call('GET', `insights/${part(table)}`, { query: { index } }) }
	async reset() { await this.call('POST', 'reset') }
	/** Continues the paused Go test. */
	async resume() { await this.call('POST', 'resume') }
	async snapshots() { return (await this.call('GET', 'snapshots')).snapshots }
	snapshot(name) { return this.call('POST', 'snapshots', { body: { name } }) }
	restore(name) { return this.call('POST', `snapshots/${part(name)}/restore`) }
	async forget(name) { await this.call('DELETE', `snapshots/${part(name)}`) }
	/** The rows and items that have changed since a snapshot: until now, or until the snapshot to. */
	changesSince(name, { to, limit } = {}) { return this.call('GET', `snapshots/${part(name)}/changes`, { query: { to, limit } }) }
	clock() { return this.call('GET', 'clock') }
	/** Advances the clock, by '25h' for example, and runs the work due on the way. */
	advance(duration) { return this.call('POST', 'clock', { body: { advance: duration } }) }
	/** Advances the clock to a time, a Date or RFC 3339, and runs the work due on the way. */
	set(time) { return this.call('POST', 'clock', { body: { set: time } }) }
	freeze() { return this.call('POST', 'clock', { body: { freeze: true } }) }
	run() { return this.call('POST', 'clock', { body: { run: true } }) }
	/** Collects garbage; returns the number of deleted cells. */
	async gc() { return (await this.call('POST', 'gc')).cells }
	/** Deletes expired items; returns their number. */
	async ttl() { return (await this.call('POST', 'ttl')).items }
	/** Arms a fault; docs/control.md lists the members. */
	fault(spec) { return this.call('POST', 'faults', { body: spec }) }
	async faults() { return (await this.call('GET', 'faults')).faults }
	/** Removes a fault, as returned by fault() or faults(), or all. */
	async removeFaults(fault) { await this.call('DELETE', fault ? `faults/${fault.endpoint}/${fault.id}` : 'faults') }
	async dump(table) { return (await this.call('GET', 'dump', { query: { table } })).text }
	/** The last requests of both endpoints, the newest first: 100 of them, or limit. */
	async requests(query = {}) { return (await this.call('GET', 'requests', { query })).requests }
	/** One of the requests, with its bodies and its calls. */
	request(id) { return this.call('GET', `requests/${id}`) }
	/** Runs tabletop migrate plan on a folder of --fixtures; mapping replaces the text of the fixture's own. */
	plan(fixture, { mapping } = {}) { return this.call('POST', 'migrate/plan', { body: { fixture, mapping } }) }
	/** Runs tabletop migrate verify. */
	verify(fixture, { mapping } = {}) { return this.call('POST', 'migrate/verify', { body: { fixture, mapping } }) }
	/** Runs tabletop migrate lint. */
	lint(fixture, { mapping } = {}) { return this.call('POST', 'migrate/lint', { body: { fixture, mapping } }) }
}

const part = encodeURIComponent
/** The API's form of bytes; bytes already in this form stay as they are. */
const bytes = value => typeof value === 'string' ? { text: value } : value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value
const row = ({ key, cells = [], ...rest }) => ({
	...rest, key: bytes(key), cells: cells.map(cell => ({ ...cell, qualifier: bytes(cell.qualifier), value: bytes(cell.value) })),
})
