/**
 * An error response of the API, with its HTTP status. The status is 0 if no API responds, with the code
 * 'unreachable', and if a server does not start, with the code 'not_started'.
 */
export class ControlError extends Error {
	readonly status: number
	readonly code: string
	readonly text: string
	readonly remedy: string
}

/** Returns the entries of items(), rows(), records() or changes() as an array. */
export function all<T>(entries: AsyncIterable<T>): Promise<T[]>

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
export interface Counts { reads: number; writes: number; rows: number; bytes: number; errors: number }
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
/** The clock; after a move, expired is the number of items that the move deleted. */
export interface Clock { now: string; frozen: boolean; expired?: number }
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
interface AttributeTypes {
	S: string; N: string; B: Uint8Array; BOOL: boolean; NULL: boolean
	SS: string[]; NS: string[]; BS: Uint8Array[]
	L: AttributeValue[]; M: Record<string, AttributeValue>
}
/** A value in DynamoDB's JSON, as the AWS SDK has it: { S: 'a' }, { N: '42' }, { B: new Uint8Array([1]) }. */
export type AttributeValue = {
	[T in keyof AttributeTypes]: Pick<AttributeTypes, T> & { [Other in Exclude<keyof AttributeTypes, T>]?: never }
}[keyof AttributeTypes]
/** An item in DynamoDB's JSON: { id: { S: 'a' } }. */
export type Item = Record<string, AttributeValue>
/** A logical or materialized view. reads has the ids of tables, hidden the time of the oldest change that its reads do not show. */
export interface View {
	name: string
	instance: string
	view: string
	kind: 'logical' | 'materialized'
	query: string
	reads: string[]
	columns: { name: string; type: string }[]
	state?: 'complete' | 'filling' | 'refill'
	hidden?: string
}
/** A record of DynamoDB Streams. */
export interface StreamRecord {
	eventID: string
	eventName: 'INSERT' | 'MODIFY' | 'REMOVE'
	eventVersion: string
	eventSource: string
	awsRegion: string
	dynamodb: {
		ApproximateCreationDateTime: number
		Keys: Item
		NewImage?: Item
		OldImage?: Item
		SequenceNumber: string
		SizeBytes: number
		StreamViewType: string
	}
	userIdentity?: { Type: string; PrincipalId: string }
}
/** A length of time: a text such as '25h', or a number of milliseconds. */
export type Duration = string | number

export interface Fault {
	endpoint: 'bigtable' | 'dynamodb'
	method: string
	effect: 'fail' | 'delay' | 'cut' | 'duplicate' | 'unprocessed' | 'stale'
	code?: string
	message?: string
	reasons?: string[]
	applied?: boolean
	delay?: Duration
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
	/** Of the console itself: only with own=true. */
	own?: boolean
	/** The caller canceled the read after it had enough. */
	stopped?: boolean
	/** The client's attempt, from 1 on, and its maximum. */
	attempt?: number
	attempts?: number
	/** The number of the fault that answered a DynamoDB request. */
	fault?: number
	/** The first key that a DynamoDB request names, the number of its keys, and its key condition. */
	item?: Item
	items?: number
	condition?: string
	/** The rows that a single request, or its calls, name. */
	touched?: { table: string; key?: Bytes; start?: Bytes; end?: Bytes }[]
	more?: number
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

type Query = Record<string, string | number | boolean | Date | undefined>

export class Control {
	constructor(server?: { url?: string; token?: string })
	/** Returns the server that wrote a --port-file. If the file is missing, waits up to the given milliseconds for it. */
	static fromPortFile(path: string, options?: { token?: string; wait?: number }): Promise<Control>
	readonly url: string
	readonly token: string
	/** The instance of Bigtable tables, unless a method gets another one. */
	readonly instance: string
	/** Makes any request to the API. path is the part after /api/v1/. */
	call(method: string, path: string, options?: { body?: unknown; query?: Query }): Promise<any>
	/** Returns information about the server and its endpoints. */
	info(): Promise<Info>
	/** Returns the tables of both endpoints: Bigtable tables with their families, and DynamoDB tables by name. */
	tables(): Promise<{ bigtable: Table[]; dynamodb: string[] }>
	/** Returns the id of the Bigtable table that holds the items of a DynamoDB table. Pass it to rows or to a Bigtable client. */
	bigtableTable(table: string): Promise<string>
	/** Returns all rows of a Bigtable table, reading page by page. */
	rows(table: string, query?: Query & { instance?: string }): AsyncGenerator<Row>
	/** Returns all items of a DynamoDB table in the form of the AWS SDK, reading page by page. */
	items(table: string, query?: Query): AsyncGenerator<Item>
	/** Returns the streams of DynamoDB tables, and the Bigtable tables that have a change stream. */
	streams(): Promise<{ bigtable: ChangeStream[]; dynamodb: Stream[]; more?: boolean }>
	/** Returns all records so far of the table's latest DynamoDB stream, reading page by page. Keys and images are items. */
	records(table: string, query?: Query): AsyncGenerator<StreamRecord>
	/** Returns all records so far of the change stream of a Bigtable table, reading page by page. */
	changes(table: string, query?: Query & { instance?: string }): AsyncGenerator<Change>
	/** Puts items in DynamoDB JSON, where a value of type B is a Uint8Array, and returns their number. */
	putItems(table: string, items: Item[]): Promise<number>
	/** Writes rows to a Bigtable table. Each row has a key and cells, or delete: true. Keys, qualifiers and values are strings or Uint8Arrays. Returns the number of rows. */
	putRows(table: string, rows: NewRow[], options?: { instance?: string }): Promise<number>
	/** Creates, changes and drops column families, such as [{ id: 'f', create: {} }]; returns the table. */
	families(table: string, modifications: unknown[], options?: { instance?: string }): Promise<Table>
	/** Deletes the rows of a Bigtable table whose key begins with prefix, a string or a Uint8Array. */
	drop(table: string, prefix: BytesLike, options?: { instance?: string }): Promise<void>
	/** Deletes all rows of a Bigtable table. */
	empty(table: string, options?: { instance?: string }): Promise<void>
	/** Deletes a Bigtable table. */
	deleteTable(table: string, options?: { instance?: string }): Promise<void>
	/** Returns the load on the keys of a Bigtable table over time or, without a table, the tables with load counts. */
	heat(table?: undefined): Promise<{ places: HeatPlace[] }>
	heat(table: string, query?: Query & { instance?: string }): Promise<Heat>
	/** Runs a DynamoDB operation; returns its response, and its Bigtable calls. */
	query(operation: string, request: unknown): Promise<{ response: any; calls: Request[] }>
	/** Returns the most used keys of a DynamoDB table, or of an index, while contributor insights are on. */
	insights(table: string, options?: { index?: string }): Promise<Partial<Record<'PKC' | 'SKC' | 'PKT' | 'SKT', Used[]>>>
	/** Removes all tables and faults. The clock and the snapshots stay. */
	reset(): Promise<void>
	/** Continues the paused Go test. */
	resume(): Promise<void>
	/** Returns the snapshots, sorted by time. */
	snapshots(): Promise<Snapshot[]>
	/** Takes a snapshot of the tables of both endpoints. It replaces a snapshot with the same name. */
	snapshot(name: string): Promise<Snapshot>
	/** Restores the tables of a snapshot. The clock and the faults stay. */
	restore(name: string): Promise<Snapshot>
	/** Deletes a snapshot. */
	forget(name: string): Promise<void>
	/** Returns the rows and items that changed between a snapshot and now, or between it and the snapshot to. */
	changesSince(name: string, options?: { to?: string; limit?: number }): Promise<Changes>
	/** Returns the server's time, and whether its clock is stopped. */
	clock(): Promise<Clock>
	/** Returns the server's time, from which a time to live is computed. */
	now(): Promise<Date>
	/** Advances the clock, by '25h' or a number of milliseconds, and runs the work that becomes due. */
	advance(by: Duration): Promise<Clock>
	/** Advances the clock to a time, a Date or RFC 3339, and runs the work that becomes due. */
	set(time: Date | string): Promise<Clock>
	/** Stops the clock. */
	freeze(): Promise<Clock>
	/** Starts the clock again. */
	run(): Promise<Clock>
	/** Collects garbage; returns the number of deleted cells. */
	gc(): Promise<number>
	/** Deletes expired items; returns their number. */
	ttl(): Promise<number>
	/** Returns the logical and materialized views with their state. */
	views(): Promise<View[]>
	/** Makes the materialized views reflect all changes, with serve --view-lag. */
	refreshViews(): Promise<void>
	/** Injects a fault. docs/control.md lists the members. delay is a text or a number of milliseconds, item a key in DynamoDB's JSON. */
	fault(spec: Fault): Promise<Fault & { id: number; hits: number }>
	/** Returns the injected faults, with the number of hits of each. */
	faults(): Promise<(Fault & { id: number; hits: number })[]>
	/** Removes a fault that fault() or faults() returned, or all faults. */
	removeFaults(fault?: { endpoint: string; id: number }): Promise<void>
	/** Returns all rows as text, or those of one table. */
	dump(table?: string): Promise<string>
	/** Returns the last requests of both endpoints, newest first: 100 of them, or limit. */
	requests(query?: Query): Promise<Request[]>
	/** Returns one request with its bodies and its Bigtable calls. */
	request(id: number): Promise<Request>
	/** Runs tabletop migrate plan on a folder of --fixtures; mapping is the text of a mapping file that replaces the one of the fixture. */
	plan(fixture: string, options?: { mapping?: string }): Promise<any>
	/** Runs tabletop migrate verify. */
	verify(fixture: string, options?: { mapping?: string }): Promise<any>
	/** Runs tabletop migrate lint. */
	lint(fixture: string, options?: { mapping?: string }): Promise<any>
}

/** Returns the program that Tabletop.start runs by default: that of TABLETOP_BINARY, of npm, on PATH, or of the clone with this file. */
export function program(): string

/**
 * The options of Tabletop.start: the program, further flags of serve, the milliseconds until it must be ready, and
 * the files or folders of the tables that exist at the start and after reset().
 */
export interface StartOptions { binary?: string; args?: string[]; timeout?: number; seed?: string | string[] }

/** A server that a program starts and stops, with the methods of its control API. */
export class Tabletop extends Control {
	/**
	 * Starts tabletop serve on free ports of 127.0.0.1 with further args, and waits until it is ready. binary is
	 * the program, by default that of program(). timeout is in milliseconds. seed is a file or folder, or several,
	 * of the tables that exist at the start and after reset(). Neither the environment of this process nor any client is changed: see env(), dynamodbOptions() and bigtableOptions().
	 *
	 * The server does not inherit TABLETOP_* variables: one such as TABLETOP_DATA would open a folder with data,
	 * which reset() deletes.
	 */
	static start(options?: StartOptions): Promise<Tabletop>
	/** HOST:PORT of the Bigtable endpoint; null with --bigtable off. */
	readonly bigtable: string | null
	/** The URL of the DynamoDB endpoint; null with --dynamodb off. */
	readonly dynamodb: string | null
	/** The project of the DynamoDB tables; instance is theirs too. */
	readonly project: string
	/** Returns the last 64 KiB that the server printed on standard error. */
	readonly log: string
	/** Stops the server as SIGTERM does, and waits until it has ended. Further calls have no effect. */
	stop(): Promise<void>
	/**
	 * Returns the environment variables with which official clients, ctl and new Control() find the server. NO_PROXY is
	 * that of this process, with the addresses of this machine.
	 */
	env(): Record<string, string>
	/** Sets env() in this process, for official clients that are created later, and removes variables that take precedence. */
	exportEnv(): void
	/** The options of new DynamoDBClient and new DynamoDBStreamsClient. */
	dynamodbOptions(): { endpoint: string; region: string; credentials: { accessKeyId: string; secretAccessKey: string } }
	/** The options of new Bigtable. */
	bigtableOptions(): { apiEndpoint: string; projectId: string }
}
