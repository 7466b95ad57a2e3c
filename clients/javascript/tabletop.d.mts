/** The error answer of the API; with the code 'unreachable' and the status 0 if it does not answer. */
export class ControlError extends Error {
	readonly status: number
	readonly code: string
	readonly text: string
	readonly remedy: string
}

/** Bytes, as base64 and, if they are UTF-8, as text. */
export interface Bytes { base64: string; text?: string }
export interface Cell { family: string; qualifier: Bytes; timestamp: number; value: Bytes }
export interface Row { key: Bytes; cells: Cell[] }
/** Bytes to send: a string as UTF-8. */
export type BytesLike = string | Uint8Array | Partial<Bytes>
/** A row to write; delete first removes its present cells. */
export interface NewRow {
	key: BytesLike
	delete?: boolean
	cells?: { family: string; qualifier: BytesLike; value: BytesLike; timestamp?: number }[]
}
/** The load on keys. */
export interface Counts { reads: number; writes: number; bytes: number; errors: number }
/** A place with counted requests. */
export interface HeatPlace { cluster: string; table: string }
/** Ranges of keys, and columns of time with the counts of each range. */
export interface Heat {
	clusters: string[]
	keys: ({ first: Bytes; last: Bytes } & Counts)[]
	columns: { start: string; cells: Counts[] }[]
	large: { key: Bytes; bytes: number; more?: boolean }[]
}
export interface Snapshot { name: string; taken: string; bytes: number }
export interface Clock { now: string; frozen: boolean }
/** The servers and their addresses; paused is the name of the paused Go test, or "". */
export interface Info {
	version: string
	project: string
	instance: string
	bigtable: string
	dynamodb: string
	clock: Clock
	faults: number
	snapshots: number
	paused: string
}
/** A Bigtable table; dynamodb are the tables whose items are in its rows, own means that it is the DynamoDB endpoint's own. */
export interface Table {
	name: string
	instance: string
	table: string
	families: { name: string; gc: string }[]
	splits?: Bytes[]
	dynamodb?: string[]
	own?: boolean
}
/** An item in DynamoDB's JSON. */
export type Item = Record<string, unknown>

export interface Fault {
	endpoint: 'bigtable' | 'dynamodb'
	method: string
	effect: 'fail' | 'delay' | 'cut' | 'duplicate' | 'unprocessed' | 'stale'
	code?: string
	message?: string
	applied?: boolean
	delay?: string
	rows?: number
	snapshot?: string
	behindDynamoDB?: boolean
	table?: string
	row?: Partial<Bytes>
	item?: Item
	skip?: number
	times?: number
	probability?: number
}

export interface Request {
	id: number
	endpoint: 'bigtable' | 'dynamodb'
	operation: string
	table?: string
	key?: Bytes
	status: string
	text?: string
	start: string
	millis: number
	rows?: number
	bytes?: number
	requestID?: string
	cause?: string
	test?: string
	request?: unknown
	response?: unknown
	calls?: Request[]
}

/** A stream of a DynamoDB table, and the Bigtable table with its rows, if it is known. */
export interface Stream { table: string; arn: string; label: string; view: string; status: string; latest: boolean; instance?: string; over?: string }
/** A Bigtable table with a change stream. */
export interface ChangeStream { name: string; instance: string; table: string; retention: string; dynamodb?: string[] }
/** A record of a change stream. Times are in microseconds; record is the sequence number of the record of DynamoDB Streams of the same write. */
export interface Change {
	key: Bytes
	time: string
	gc?: boolean
	cluster?: string
	entries: {
		kind: 'SetCell' | 'DeleteCells' | 'DeleteFamily' | 'AddToCell' | 'MergeToCell'
		family: string
		qualifier?: Bytes
		timestamp?: number
		value?: Bytes
		bytes?: number
		input?: number
		start?: number
		end?: number
	}[]
	record?: string
}

/** Numbers of added, removed and changed rows or items. */
export interface Counted { added: number; removed: number; changed: number }
/** The changes since the snapshot from: until now, or until the snapshot to. shown has the first rows, and cut means that not all were compared. */
export interface Changes {
	from: string
	to?: string
	tables: {
		name: string
		instance: string
		table: string
		change: string
		rows: Counted
		items: Counted
		shown: {
			key: Bytes
			change: string
			before?: Cell[]
			after?: Cell[]
			more?: number
			items?: { table: string; change: string; before?: Item; after?: Item }[]
		}[]
	}[]
	cut?: boolean
}
/** A frequently used key; up to over of count may belong to another key. */
export interface Used { key: Item; count: number; over?: number }

type Query = Record<string, string | number | boolean | undefined>

export class Control {
	constructor(server?: { url?: string; token?: string })
	static fromPortFile(path: string, options?: { token?: string }): Promise<Control>
	call(method: string, path: string, options?: { body?: unknown; query?: Query }): Promise<any>
	info(): Promise<Info>
	tables(): Promise<{ bigtable: Table[]; dynamodb: string[] }>
	rows(table: string, query?: Query & { instance?: string }): AsyncGenerator<Row>
	items(table: string, query?: Query): AsyncGenerator<Item>
	streams(): Promise<{ bigtable: ChangeStream[]; dynamodb: Stream[]; more?: boolean }>
	records(table: string, query?: Query): AsyncGenerator<any>
	changes(table: string, query?: Query & { instance?: string }): AsyncGenerator<Change>
	putItems(table: string, items: Item[]): Promise<number>
	putRows(table: string, rows: NewRow[], options?: { instance?: string }): Promise<number>
	families(table: string, modifications: unknown[], options?: { instance?: string }): Promise<Table>
	drop(table: string, prefix: BytesLike, options?: { instance?: string }): Promise<void>
	empty(table: string, options?: { instance?: string }): Promise<void>
	deleteTable(table: string, options?: { instance?: string }): Promise<void>
	heat(table?: undefined): Promise<{ places: HeatPlace[] }>
	heat(table: string, query?: Query & { instance?: string }): Promise<Heat>
	query(operation: string, request: unknown): Promise<{ response: any; calls: Request[] }>
	insights(table: string, options?: { index?: string }): Promise<Partial<Record<'PKC' | 'SKC' | 'PKT' | 'SKT', Used[]>>>
	reset(): Promise<void>
	resume(): Promise<void>
	snapshots(): Promise<Snapshot[]>
	snapshot(name: string): Promise<Snapshot>
	restore(name: string): Promise<Snapshot>
	forget(name: string): Promise<void>
	changesSince(name: string, options?: { to?: string; limit?: number }): Promise<Changes>
	clock(): Promise<Clock>
	advance(duration: string): Promise<Clock>
	set(time: Date | string): Promise<Clock>
	freeze(): Promise<Clock>
	run(): Promise<Clock>
	gc(): Promise<number>
	ttl(): Promise<number>
	fault(spec: Fault): Promise<Fault & { id: number; hits: number }>
	faults(): Promise<(Fault & { id: number; hits: number })[]>
	removeFaults(fault?: { endpoint: string; id: number }): Promise<void>
	dump(table?: string): Promise<string>
	requests(query?: Query): Promise<Request[]>
	request(id: number): Promise<Request>
	plan(fixture: string, options?: { mapping?: string }): Promise<any>
	verify(fixture: string, options?: { mapping?: string }): Promise<any>
	lint(fixture: string, options?: { mapping?: string }): Promise<any>
}
