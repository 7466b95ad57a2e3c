// Go code that repeats the actions of a page. It throws an error for what it cannot express: code that does something else is worse than none.
import { bytesOf, unescaped } from './bytes.js';
import { goBytes, goText } from './code.js';

/** bytesIn decodes base64 of either alphabet. */
const bytesIn = (base64) => bytesOf({ base64: base64.replaceAll('-', '+').replaceAll('_', '/') });

const units = [['h', 'time.Hour', 3600_000_000_000n], ['m', 'time.Minute', 60_000_000_000n], ['s', 'time.Second', 1_000_000_000n], ['ms', 'time.Millisecond', 1_000_000n], ['us', 'time.Microsecond', 1000n], ['ns', 'time.Nanosecond', 1n]];
const lengths = new Map([['d', 86400_000_000_000n], ...units.map(([name, , ns]) => [name, ns])]);

/** duration returns the Go expression of a duration such as 1.5h, or 1d12h. */
export function duration(text) {
  const given = text.trim().replaceAll(/[µμ]s/g, 'us');
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:[dhms]|[mun]s))+$/.test(given)) throw new Error(`“${text}” is not a duration; write 90s, 25h or 3d`);
  let left = 0n;
  for (const [, whole, rest = '', unit] of given.matchAll(/(\d*)\.?(\d*)([mun]s|[dhms])/g)) {
    left += BigInt(whole + rest || 0) * lengths.get(unit) / 10n ** BigInt(rest.length);
  }
  const out = [];
  for (const [, name, ns] of units) {
    if (left / ns) out.push(`${left / ns}*${name}`);
    left %= ns;
  }
  return out.join(' + ') || '0';
}

/** code returns the name in package codes of a gRPC status. */
function code(name) {
  if (/[a-z]/.test(name)) return 'codes.' + name;
  if (name === 'CANCELLED') return 'codes.Canceled';
  return 'codes.' + name.split('_').map((w) => w[0] + w.slice(1).toLowerCase()).join('');
}

function keyValue(name, value) {
  const [[type, v] = [], ...more] = Object.entries(value);
  if (more.length || !['S', 'N', 'B'].includes(type)) throw new Error(`testkit.OnItem accepts strings, numbers and bytes; “${name}” has another type`);
  return `${goText(name)}: &types.AttributeValueMember${type}{Value: ${type === 'B' ? `[]byte(${goBytes(bytesIn(v))})` : goText(String(v))}}`;
}

/** faultCode returns the Go test code that arms a fault, given in the API's form. */
export function faultCode(f) {
  const options = [];
  if (f.table) options.push(`testkit.OnTable(${goText(f.table)})`);
  if (f.row) options.push(`testkit.OnRow(${f.row.base64 ? goBytes(bytesIn(f.row.base64)) : goText(f.row.text ?? '')})`);
  if (f.item) options.push(`testkit.OnItem(map[string]types.AttributeValue{${Object.entries(f.item).map(([name, v]) => keyValue(name, v)).join(', ')}})`);
  if (f.skip) options.push(`testkit.Skip(${f.skip})`);
  if (f.times) options.push(`testkit.Times(${f.times})`);
  if (f.probability !== undefined) options.push(`testkit.WithProbability(${f.probability})`);
  if (f.applied) options.push('testkit.Applied()');
  if (f.behindDynamoDB) options.push('testkit.BehindDynamoDB()');
  if (f.endpoint === 'dynamodb' && f.message) options.push(`testkit.WithMessage(${goText(f.message)})`);
  if (f.reasons) options.push(`testkit.WithReasons(${f.reasons.map(goText).join(', ')})`);
  const err = () => `status.Error(${code(f.code)}, ${goText(f.message || 'fault of the control API')})`;
  const args = (...first) => [...first, ...options].join(', ');
  switch (`${f.endpoint} ${f.effect}`) {
    case 'dynamodb fail': return `env.FailDynamoDB(${args(goText(f.method), 'testkit.' + f.code.replace(/Exception$/, ''))})`;
    case 'dynamodb delay': return `env.DynamoDBLatency(${args(goText(f.method), duration(f.delay))})`;
    case 'dynamodb unprocessed': return `env.Unprocessed(${args(goText(f.method))})`;
    case 'dynamodb stale': return `env.StaleReads(${args(goText(f.method), 'env.Snapshot()')})`;
    case 'bigtable fail': return `env.Fail(${args(goText(f.method), err())})`;
    case 'bigtable cut': return `env.CutReadRows(${args(f.rows ?? 0, err())})`;
    case 'bigtable delay': return `env.Latency(${args(goText(f.method), duration(f.delay))})`;
    case 'bigtable duplicate': return `env.Duplicate(${args(goText(f.method))})`;
    default: throw new Error(`The endpoint ${f.endpoint} has no fault with the effect ${f.effect}`);
  }
}

// filters are the filters with a function in the Go client, by their names in JSON.
const filters = {
  chain: (f) => `bigtable.ChainFilters(${(f.filters ?? []).map(filterCode).join(', ')})`,
  interleave: (f) => `bigtable.InterleaveFilters(${(f.filters ?? []).map(filterCode).join(', ')})`,
  condition: (f) => `bigtable.ConditionFilter(${['predicateFilter', 'trueFilter', 'falseFilter'].map((name) => { const sub = member(f, name); return sub ? filterCode(sub) : 'nil'; }).join(', ')})`,
  passAllFilter: () => 'bigtable.PassAllFilter()',
  blockAllFilter: () => 'bigtable.BlockAllFilter()',
  rowKeyRegexFilter: (b) => `bigtable.RowKeyFilter(${goBytes(bytesIn(b))})`,
  rowSampleFilter: (p) => `bigtable.RowSampleFilter(${Number(p)})`,
  familyNameRegexFilter: (text) => `bigtable.FamilyFilter(${goText(text)})`,
  columnQualifierRegexFilter: (b) => `bigtable.ColumnFilter(${goBytes(bytesIn(b))})`,
  columnRangeFilter: (f) => `bigtable.ColumnRangeFilter(${[goText(member(f, 'familyName') ?? ''), ...bounds(f, 'Qualifier').map((b) => goBytes(b ?? []))].join(', ')})`,
  timestampRangeFilter: (f) => `bigtable.TimestampRangeFilterMicros(${['startTimestampMicros', 'endTimestampMicros'].map((name) => BigInt(member(f, name) ?? 0)).join(', ')})`,
  valueRegexFilter: (b) => `bigtable.ValueFilter(${goBytes(bytesIn(b))})`,
  valueRangeFilter: (f) => `bigtable.ValueRangeFilter(${bounds(f, 'Value').map((b) => b ? `[]byte(${goBytes(b)})` : 'nil').join(', ')})`,
  cellsPerRowOffsetFilter: (n) => `bigtable.CellsPerRowOffsetFilter(${Number(n)})`,
  cellsPerRowLimitFilter: (n) => `bigtable.CellsPerRowLimitFilter(${Number(n)})`,
  cellsPerColumnLimitFilter: (n) => `bigtable.LatestNFilter(${Number(n)})`,
  stripValueTransformer: () => 'bigtable.StripValueFilter()',
  applyLabelTransformer: (text) => `bigtable.LabelFilter(${goText(text)})`,
};

const camel = (name) => name.replaceAll(/_(.)/g, (_, c) => c.toUpperCase());

/** member returns a member of a message, whose names may be written in two ways. */
const member = (message, name) => Object.entries(message).find(([n]) => camel(n) === name)?.[1];

/** bounds returns the first element of a range, and the first after it: the client has no others. */
function bounds(f, of) {
  const bound = (closed, open, shift) => {
    const [same, next] = [member(f, closed), member(f, open)];
    const bytes = same !== undefined ? bytesIn(same) : next !== undefined ? [...bytesIn(next), 0] : undefined;
    return shift && bytes ? (same !== undefined ? [...bytes, 0] : bytes.slice(0, -1)) : bytes;
  };
  return [bound(`start${of}Closed`, `start${of}Open`, false), bound(`end${of}Closed`, `end${of}Open`, true)];
}

function filterCode(f) {
  const [[name, value] = ['that is empty'], ...more] = Object.entries(f).map(([n, v]) => [camel(n), v]);
  if (more.length || !Object.hasOwn(filters, name)) throw new Error(`The Go client has no function for the filter ${more.length ? 'with ' + [name, ...more.map(([n]) => n)].join(' and ') : name}`);
  return filters[name](value);
}

const less = (a, b) => {
  const i = a.findIndex((n, at) => n !== b[at]);
  return i < 0 ? a.length < b.length : i >= b.length ? false : a[i] < b[i];
};

/** past returns the first key after all that begin with prefix; empty if there are no later keys. */
function past(prefix) {
  const end = prefix.findLastIndex((n) => n < 0xff);
  return end < 0 ? [] : [...prefix.slice(0, end), prefix[end] + 1];
}

/** readCode returns code that reads the rows selected in the form of Query, with keys in their typed form. */
export function readCode({ table, prefix, start, end, match, filter, most, reverse }) {
  let range = `bigtable.PrefixRange(${goBytes(unescaped(prefix))})`;
  if (start || end || !prefix) {
    let [from, before] = [[...unescaped(start)], [...unescaped(end)]];
    const [first, last] = [[...unescaped(prefix)], past([...unescaped(prefix)])];
    if (less(from, first)) from = first;
    if (last.length && (!before.length || less(last, before))) before = last;
    if (before.length && !less(from, before)) throw new Error('No key is in this range.');
    range = `bigtable.NewRange(${goBytes(Uint8Array.from(from))}, ${goBytes(Uint8Array.from(before))})`;
  }
  const of = [match && `bigtable.RowKeyFilter(${goBytes(unescaped(match))})`, filter.trim() && filterCode(JSON.parse(filter))].filter(Boolean);
  const options = [`bigtable.LimitRows(${Number(most)})`, of.length && `bigtable.RowFilter(${of.length > 1 ? `bigtable.ChainFilters(${of.join(', ')})` : of[0]})`, reverse && 'bigtable.ReverseScan()'].filter(Boolean);
  return `err := client.Open(${goText(table)}).ReadRows(ctx, ${range}, func(r bigtable.Row) bool {\n\treturn true\n}, ${options.join(', ')})`;
}

const after = (bytes) => [...bytes, 0];

/** rangeCode returns the code of a range of rows: those from a key, and before another one. */
function rangeCode(r) {
  const start = r.startKeyClosed !== undefined ? bytesIn(r.startKeyClosed) : r.startKeyOpen !== undefined ? after(bytesIn(r.startKeyOpen)) : [];
  const end = r.endKeyOpen !== undefined ? bytesIn(r.endKeyOpen) : r.endKeyClosed !== undefined ? after(bytesIn(r.endKeyClosed)) : [];
  return `bigtable.NewRange(${goBytes(start)}, ${goBytes(end)})`;
}

function rowsCode({ rowKeys = [], rowRanges = [] } = {}) {
  if (!rowRanges.length && rowKeys.length) return rowKeys.length === 1 ? `bigtable.SingleRow(${goBytes(bytesIn(rowKeys[0]))})` : `bigtable.RowList{${rowKeys.map((k) => goBytes(bytesIn(k))).join(', ')}}`;
  const ranges = [...rowKeys.map((k) => rangeCode({ startKeyClosed: k, endKeyClosed: k })), ...rowRanges.map(rangeCode)];
  return ranges.length > 1 ? `bigtable.RowRangeList{${ranges.join(', ')}}` : ranges[0] ?? rangeCode({});
}

const timestamp = (micros = 0) => Number(micros) === -1 ? 'bigtable.ServerTime' : `bigtable.Timestamp(${BigInt(micros)})`;
const column = (m) => `${goText(m.familyName ?? '')}, ${goBytes(bytesIn(m.columnQualifier?.rawValue ?? m.columnQualifier ?? ''))}`;
const bytesCode = (base64 = '') => `[]byte(${goBytes(bytesIn(base64))})`;

// mutations are the methods of a mutation in the Go client, by their names in JSON.
const mutations = {
  setCell: (m) => `Set(${column(m)}, ${timestamp(m.timestampMicros)}, ${bytesCode(m.value)})`,
  addToCell: (m) => `AddIntToCell(${column(m)}, ${timestamp(m.timestamp?.rawTimestampMicros)}, ${BigInt(m.input?.intValue ?? 0)})`,
  mergeToCell: (m) => `MergeBytesToCell(${column(m)}, ${timestamp(m.timestamp?.rawTimestampMicros)}, ${bytesCode(m.input?.rawValue)})`,
  deleteFromColumn: (m) => m.timeRange ? `DeleteTimestampRange(${column(m)}, ${timestamp(m.timeRange.startTimestampMicros)}, ${timestamp(m.timeRange.endTimestampMicros)})` : `DeleteCellsInColumn(${column(m)})`,
  deleteFromFamily: (m) => `DeleteCellsInFamily(${goText(m.familyName ?? '')})`,
  deleteFromRow: () => 'DeleteRow()',
};

function mutationCode(name, list = []) {
  return [`${name} := bigtable.NewMutation()`, ...list.map((m) => {
    const [[kind, value] = ['that is empty']] = Object.entries(m);
    if (!Object.hasOwn(mutations, kind)) throw new Error(`The Go client has no function for the mutation ${kind}.`);
    return `${name}.${mutations[kind](value)}`;
  })].join('\n');
}

// calls are the operations that the Go client has.
const calls = {
  ReadRows: (t, r) => {
    const options = [Number(r.rowsLimit) > 0 && `bigtable.LimitRows(${BigInt(r.rowsLimit)})`, r.filter && `bigtable.RowFilter(${filterCode(r.filter)})`, r.reversed && 'bigtable.ReverseScan()'].filter(Boolean);
    return `err := ${t}.ReadRows(ctx, ${rowsCode(r.rows)}, func(r bigtable.Row) bool {\n\treturn true\n}${options.map((o) => ', ' + o).join('')})`;
  },
  MutateRow: (t, r) => `${mutationCode('mut', r.mutations)}\nerr := ${t}.Apply(ctx, ${goBytes(bytesIn(r.rowKey))}, mut)`,
  MutateRows: (t, { entries }) => `${entries.map((e, i) => mutationCode('mut' + i, e.mutations)).join('\n')}\nerrs, err := ${t}.ApplyBulk(ctx, []string{${entries.map((e) => goBytes(bytesIn(e.rowKey))).join(', ')}}, []*bigtable.Mutation{${entries.map((_, i) => 'mut' + i).join(', ')}})`,
  CheckAndMutateRow: (t, r) => {
    const sides = [['then', r.trueMutations], ['otherwise', r.falseMutations]];
    return [...sides.filter(([, list]) => list?.length).map(([name, list]) => mutationCode(name, list)),
      `mut := bigtable.NewCondMutation(${r.predicateFilter ? filterCode(r.predicateFilter) : 'bigtable.PassAllFilter()'}, ${sides.map(([name, list]) => list?.length ? name : 'nil').join(', ')})`,
      `var matched bool\nerr := ${t}.Apply(ctx, ${goBytes(bytesIn(r.rowKey))}, mut, bigtable.GetCondMutationResult(&matched))`].join('\n');
  },
  ReadModifyWriteRow: (t, r) => ['rmw := bigtable.NewReadModifyWrite()', ...(r.rules ?? []).map((m) => m.appendValue === undefined ? `rmw.Increment(${column(m)}, ${BigInt(m.incrementAmount ?? 0)})` : `rmw.AppendValue(${column(m)}, ${bytesCode(m.appendValue)})`),
    `row, err := ${t}.ApplyReadModifyWrite(ctx, ${goBytes(bytesIn(r.rowKey))}, rmw)`].join('\n'),
};

/** callCode returns code that makes a call, given its request in the API's form. */
export function callCode(operation, request) {
  const table = request.tableName?.split('/').at(-1);
  if (!Object.hasOwn(calls, operation) || !table) throw new Error(`${operation} of this request has no Go code here.`);
  return calls[operation](`client.Open(${goText(table)})`, request);
}
