// Streams: the records of DynamoDB Streams and of Bigtable's change stream about one write, side by side.
import { h, button, counted, exact, fill, jsonText, shown, plain, virtual, errorBox, notify, number, size } from './dom.js';
import { bytesShown, textOf, timeOf } from './bytes.js';
import { dynamo as operate, get, live, part, post, projectOf, query } from './api.js';
import { keyShown } from './changes.js';
import { headOf } from './head.js';
import { valueShown } from './items.js';
import { itemPath, rowsPath } from './paths.js';

const kept = 5000; // lines
const spans = { 'Last 15 minutes': 900, 'Last hour': 3600, 'Last 24 hours': 86400, 'All records': 0 };
const events = { INSERT: 'ok', MODIFY: '', REMOVE: 'bad' };

/** enabler returns a button that turns on the streams of a table: bigtable is its path in the API, dynamodb a name; without one its stream is left alone. */
const enabler = (bigtable, dynamodb, then) => button(bigtable && dynamodb ? 'Enable both streams' : 'Enable the stream', async () => {
  if (dynamodb) await operate('UpdateTable', { TableName: dynamodb, StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' } });
  if (bigtable) await post(bigtable);
  await then();
}, { class: 'primary' });

const changesAt = (instance, table, project) => `tables/${part(instance)}/${part(table)}/changes` + query({ project });

/** of returns the page of a stream. */
const of = (places) => '/streams' + query(places);

const microsOf = (sequence) => BigInt(sequence.slice(1, 21)) / 1000n;
/** microsAt returns the microseconds of a time in RFC 3339. */
export const microsAt = (time) => {
  const [, seconds, rest] = time.match(/^(.*?)(?:\.(\d+))?Z$/);
  return BigInt(Date.parse(seconds + 'Z')) * 1000n + BigInt((rest ?? '').padEnd(6, '0').slice(0, 6));
};

/** joined returns writes, the newest first, with the records of both endpoints about each. */
export function joined(records, changes) {
  const writes = [], by = new Map();
  for (const change of changes) {
    const write = { at: microsAt(change.time), change };
    writes.push(write);
    if (change.record) by.set(change.record, write);
  }
  for (const record of records) {
    const write = by.get(record.dynamodb.SequenceNumber);
    if (write) write.record = record;
    else writes.push({ at: microsOf(record.dynamodb.SequenceNumber), record });
  }
  return writes.sort((a, b) => a.at < b.at ? 1 : a.at > b.at ? -1 : 0);
}

const valueText = (v) => jsonText(Object.values(v ?? {})[0]);
const keysText = (keys) => Object.entries(keys).map(([name, v]) => `${exact(name)}=${valueText(v)}`).join(' ');

/** entriesText counts the mutations of a change. */
export function entriesText(entries) {
  const set = entries.filter((e) => e.kind !== 'DeleteCells' && e.kind !== 'DeleteFamily').length;
  return [set && `${set} set`, entries.length - set && `${entries.length - set} deleted`].filter(Boolean).join(', ');
}

const signs = { SetCell: '+', AddToCell: '+=', MergeToCell: '+=', DeleteCells: '−', DeleteFamily: '−' };

function entryShown(e) {
  const gone = e.kind === 'DeleteCells' || e.kind === 'DeleteFamily';
  const [start, end] = [e.start ?? 0, e.end ?? 0];
  const span = !start && !end ? '' : end - start === 1 ? timeOf(start) : `from ${timeOf(start)}${end ? ` to ${timeOf(end)}` : ' on'}`;
  return h('tr', { class: gone ? 'gone' : 'new', 'data-entry': e.kind }, h('td', { title: e.kind }, signs[e.kind]), h('td', { class: 'mono' }, plain(e.family), e.qualifier && [':', bytesShown(e.qualifier, 80)]),
    h('td', { class: 'mono soft' }, gone ? (e.kind === 'DeleteFamily' ? 'all cells' : span || 'all versions') : timeOf(e.timestamp ?? 0)),
    h('td', {}, e.value && bytesShown(e.value, 300), e.bytes && h('small', {}, ` … ${size(e.bytes)}`), e.kind === 'AddToCell' && number(e.input ?? 0)));
}

function imagesShown(d) {
  const names = [...new Set([...Object.keys(d.OldImage ?? {}), ...Object.keys(d.NewImage ?? {})])].sort();
  if (!names.length) return h('p', { class: 'soft' }, `The stream view ${d.StreamViewType} has only the key.`);
  return h('table', {}, h('thead', {}, h('tr', {}, ['Attribute', 'Before', 'After'].map((x) => h('th', { scope: 'col' }, x)))), h('tbody', {}, names.map((n) => {
    const same = JSON.stringify(d.OldImage?.[n]) === JSON.stringify(d.NewImage?.[n]);
    return h('tr', { class: same ? 'soft' : '', 'data-attribute': n }, h('th', { scope: 'row' }, exact(n)), h('td', { class: same ? '' : 'gone' }, d.OldImage?.[n] && valueShown(d.OldImage[n])), h('td', {}, d.NewImage?.[n] && valueShown(d.NewImage[n])));
  })));
}

const fact = (what, value) => value && h('tr', {}, h('th', { scope: 'row' }, what), h('td', {}, value instanceof Node ? value : shown(String(value))));

/** recordShown returns an element with a record of DynamoDB Streams, of a table. */
export function recordShown(r, table) {
  if (!r) return h('p', { class: 'soft' }, 'No record: a Bigtable client or garbage collection made the change, or the DynamoDB table had no stream at that time.');
  return [h('table', {}, h('tbody', {}, fact('Event', r.eventName + (r.userIdentity ? ', by time to live' : '')), fact('Sequence', r.dynamodb.SequenceNumber), fact('Key', keysText(r.dynamodb.Keys)), fact('Size', size(r.dynamodb.SizeBytes)))),
    table && r.eventName !== 'REMOVE' && h('div', { class: 'bar' }, h('a', { href: itemPath(table, r.dynamodb.Keys) }, 'Current item')), imagesShown(r.dynamodb)];
}

/** changeShown returns an element with a record of a change stream. */
export function changeShown(c, t, info) {
  if (!c) return h('p', { class: 'soft' }, 'No record: the Bigtable table had no change stream at that time, or the record has expired.');
  return [h('table', {}, h('tbody', {}, fact('Row', keyShown(c)), fact('Committed', c.time.replace('T', ' ')), c.gc ? fact('Cause', 'garbage collection') : fact('Cluster', c.cluster))),
    h('div', { class: 'bar' }, t && h('a', { href: rowsPath(t, info, c.key) }, 'Current row')),
    h('table', { class: 'entries' }, h('tbody', {}, c.entries.map(entryShown)))];
}

/** sorted returns an item's key as JSON, its attributes in order. */
const sorted = (keys) => JSON.stringify(Object.entries(keys).sort(([a], [b]) => a < b ? -1 : 1));

/** listed shows all streams for selection, including new ones. */
async function listed(main, { info, signal, go }) {
  let asked = 0;
  const draw = async () => {
    const mine = ++asked, [all, tables] = await Promise.all([get('streams'), get('tables')]);
    if (mine === asked && !signal.aborted) listOf(fill(main, h('h1', {}, 'Streams')), all, tables, info, go);
  };
  live.addEventListener('tables', () => draw().catch(notify), { signal });
  await draw();
}

/** silent returns the tables that lack a stream, those of DynamoDB first: label, name of the DynamoDB table, under as the Bigtable table, and lacks with the same members for the sides without a stream. */
function silent(all, tables) {
  const streamed = new Set([...all.bigtable.map((b) => b.name), ...all.dynamodb.filter((d) => d.status !== 'DISABLED').map((d) => d.table)]);
  const mapped = tables.dynamodb.map((name) => ({ label: name, name, under: tables.bigtable.find((b) => b.dynamodb?.includes(name)) }));
  const known = new Set(mapped.map((t) => t.under));
  return [...mapped, ...tables.bigtable.filter((b) => !b.own && !known.has(b)).map((b) => ({ label: `${b.instance} / ${b.table}`, under: b }))]
    .map((t) => ({ ...t, lacks: { name: !streamed.has(t.name) && t.name, under: t.under && !streamed.has(t.under.name) && t.under } })).filter(({ lacks }) => lacks.name || lacks.under);
}

function listOf(main, all, tables, info, go) {
  const place = (t) => ({ project: projectOf(t.name) === info.project ? '' : projectOf(t.name), bigtable: `${t.instance}/${t.table}` });
  const choices = silent(all, tables), act = h('span');
  const choice = h('select', { 'aria-label': 'Table without a stream' }, choices.map((t, i) => h('option', { value: i }, plain(t.label))));
  const choose = () => {
    const { name, under, lacks } = choices[choice.value];
    fill(act, enabler(lacks.under && changesAt(under.instance, under.table, place(under).project), lacks.name, () => go(of({ ...(under && place(under)), dynamodb: name }))));
  };
  const start = choices.length > 0 && h('div', { class: 'bar', 'data-enable': '' }, choice, act);
  if (start) choose();
  choice.addEventListener('change', choose);
  if (!all.bigtable.length && !all.dynamodb.length) {
    main.append(h('div', { class: 'note' }, h('p', {}, 'No table has a stream yet. A DynamoDB stream records each item that changes, and a Bigtable change stream each mutation of a row, through either endpoint.'),
      start || h('p', {}, 'There are no tables yet: ', h('a', { href: '/' }, 'Home'), ' creates one.')));
    return;
  }
  const head = (...names) => h('thead', {}, h('tr', {}, names.map((x) => h('th', { scope: 'col' }, x))));
  main.append(h('p', { class: 'soft' }, 'Each page shows the DynamoDB and Bigtable records of the same write side by side.'));
  main.append(h('h2', {}, 'DynamoDB Streams'));
  if (all.dynamodb.length) main.append(h('table', {}, head('Table', 'Created', 'View type', 'Status', 'Bigtable table'), h('tbody', {}, all.dynamodb.map((d) => h('tr', {},
    h('td', {}, h('a', { href: of({ bigtable: d.over && `${d.instance}/${d.over}`, dynamodb: d.table, arn: d.latest ? '' : d.arn }) }, plain(d.table))), h('td', { class: 'mono' }, plain(d.label)),
    h('td', {}, plain(d.view)), h('td', {}, plain(d.status)), h('td', { class: 'mono' }, d.over && plain(d.over)))))));
  else main.append(h('p', { class: 'soft' }, 'None.'));
  main.append(h('h2', {}, 'Bigtable change streams'));
  if (all.bigtable.length) main.append(h('table', {}, head('Table', 'Retention', 'DynamoDB tables'), h('tbody', {}, all.bigtable.map((b) => h('tr', {},
    h('td', {}, h('a', { href: of({ ...place(b), dynamodb: b.dynamodb?.find((name) => all.dynamodb.some((d) => d.table === name)) }) }, plain(`${b.instance} / ${b.table}`))),
    h('td', {}, plain(b.retention.replace(/0m0s$/, ''))), h('td', {}, plain((b.dynamodb ?? []).join(', '))))))));
  else main.append(h('p', { class: 'soft' }, 'None.'));
  if (start) main.append(h('h2', {}, 'Tables without a stream'), start);
  if (all.more) main.append(h('p', { class: 'soft' }, 'Not all streams are listed.'));
}

export async function show(main, { info, params, signal, go }) {
  const project = params.get('project'), arn = params.get('arn'), dynamo = params.get('dynamodb');
  const [instance, table] = (params.get('bigtable') ?? '').split('/');
  if (!table && !dynamo) return listed(main, { info, signal, go });
  main.classList.add('full');
  const sides = { // for each, its source and its position
    records: dynamo && { path: `streams/${part(dynamo)}/records`, asks: { arn }, found: [] },
    changes: table && { path: changesAt(instance, table), asks: { project }, found: [] },
  };
  const t = table && { instance, table, name: `projects/${project ?? info.project}/instances/${instance}/tables/${table}` };
  // A link from an item or a row names both, since a write may have one record.
  const row = params.get('row'), key = params.get('key') && sorted(JSON.parse(params.get('key')));
  const wanted = ({ record, change }) => !row && !key || row && change && textOf(change.key, 4096) === row || key && record && sorted(record.dynamodb.Keys) === key;
  let writes = [], chosen, reading = false, noted;

  const side = (write) => fill(beside, h('h2', {}, h('span', {}, write ? timeOf(write.at) : 'Write')), h('div', { class: 'scroll' }, write
    ? [h('h2', {}, 'DynamoDB Streams'), recordShown(write.record, dynamo), h('h2', {}, 'Bigtable change stream'), changeShown(write.change, t, info)]
    : h('p', { class: 'soft' }, 'Select a write.')));
  const beside = h('section', { class: 'detail' });
  const list = virtual({
    label: 'Writes, the newest first', count: () => writes.length,
    line: (i) => {
      const { at, record, change } = writes[i];
      return h('div', { 'data-write': record && change ? 'both' : record ? 'dynamodb' : 'bigtable' }, h('span', { class: 'w120 soft mono' }, timeOf(at).slice(11, 23)),
        h('span', { class: 'half' }, record ? [h('b', { class: events[record.eventName] }, plain(record.eventName)), ' ', h('span', { class: 'mono' }, plain(keysText(record.dynamodb.Keys)))] : h('span', { class: 'soft' }, '—')),
        h('span', { class: 'half' }, change ? [keyShown(change), ' ', h('span', { class: 'soft' }, change.gc && 'gc: ', entriesText(change.entries))] : h('span', { class: 'soft' }, '—')));
    },
    pick: (i) => side(chosen = writes[i]),
  });

  const span = h('select', { 'aria-label': 'Time', onchange: () => begin() }, Object.keys(spans).map((s) => h('option', { selected: s === params.get('span') }, s)));
  const since = h('input', { type: 'search', class: 'mono', size: 22, value: params.get('from') ?? '', placeholder: info.clock.now.slice(0, 19) + 'Z', 'aria-label': 'Start time', onchange: () => begin() });
  const follow = h('button', { type: 'button', 'aria-pressed': 'true', onclick: () => follow.setAttribute('aria-pressed', String(follow.getAttribute('aria-pressed') !== 'true')) }, 'Follow');
  const count = h('small', { 'aria-live': 'polite' }), notes = h('div');
  // An empty range leads to all records.
  const none = h('div', { class: 'note', hidden: true }, h('span', {}, 'No records in this time range. '), button('Show all records', () => {
    since.value = '';
    span.value = Object.keys(spans).at(-1);
    return begin();
  }));

  function draw() {
    const { records, changes } = sides;
    const top = writes[0]?.at;
    writes = joined(records?.found ?? [], changes?.found ?? []).filter(wanted);
    count.textContent = [dynamo && `${counted(records.found.length, 'DynamoDB record')}`, table && `${counted(changes.found.length, 'Bigtable record')}`].filter(Boolean).join(', ') + ([records, changes].some((s) => s?.cut) ? `, the newest ${number(kept)}` : '');
    if (chosen && writes[0]?.at !== top) list.chosen = writes.findIndex((w) => w.at === chosen.at);
    none.hidden = writes.length > 0 || span.value === Object.keys(spans).at(-1) && !since.value || !Object.values(sides).some((s) => s?.there);
    list.redraw();
  }

  // more continues a stream while it has records.
  async function more(name) {
    const s = sides[name];
    if (!s) return;
    do {
      const page = await get(s.path + query({ ...s.asks, limit: 1000, ...(s.next ? { cursor: s.next } : { from: s.from }) }));
      if (signal.aborted) return;
      s.next = page.next || s.next;
      s.found.push(...page[name]);
      if (s.found.length > kept) { s.cut = true; s.found = s.found.slice(-kept); }
      s.again = page.cursor;
    } while (s.again);
  }

  // look finds new streams.
  async function look() {
    if (Object.values(sides).every((s) => !s || s.there)) return;
    const all = await get('streams');
    if (sides.records) sides.records.there = all.dynamodb.some((d) => d.table === dynamo && (arn ? d.arn === arn : d.latest));
    if (sides.changes) sides.changes.there = all.bigtable.some((b) => b.name === t.name);
  }
  // absent offers to enable the missing streams.
  function absent() {
    const [records, changes] = ['records', 'changes'].map((name) => sides[name] && !sides[name].there);
    return (records || changes) && h('div', { class: 'note', 'data-none': '' }, h('p', {}, records && changes ? 'The table has no streams.' : records ? 'The DynamoDB table has no stream.' : 'The Bigtable table has no change stream.'),
      h('div', { class: 'bar' }, enabler(changes && changesAt(instance, table, project), records && dynamo, read)));
  }

  async function read() {
    if (reading) return;
    reading = true;
    const failed = [];
    const keep = (err) => failed.push(errorBox(err));
    await look().catch(keep);
    // A write is in its change stream first: reading records before changes finds both.
    for (const name of ['records', 'changes']) if (sides[name]?.there) await more(name).catch(keep);
    reading = false;
    if (signal.aborted) return;
    // A note that stays is not replaced: its button may have the focus.
    const now = Object.values(sides).map((s) => s && !s.there).join();
    if (failed.length || now !== noted) fill(notes, failed, absent());
    noted = failed.length ? undefined : now;
    draw();
  }

  async function begin() {
    let from = since.value.trim();
    if (!from && spans[span.value]) from = new Date(new Date(info.clock.now) - 1000 * spans[span.value]).toISOString();
    for (const s of Object.values(sides)) if (s) Object.assign(s, { found: [], from, next: '', cut: false });
    history.replaceState(null, '', of({ project, bigtable: params.get('bigtable'), dynamodb: dynamo, arn, row, key: params.get('key'), span: span.value === 'Last 15 minutes' ? '' : span.value, from: since.value.trim() }));
    chosen = undefined;
    side();
    await read();
  }

  const all = of({ project, bigtable: params.get('bigtable'), dynamodb: dynamo, arn });
  main.append(...headOf('Streams', { name: [dynamo, table && table !== dynamo && table].filter(Boolean).join(' and '), about: 'streams', t, dynamodb: [dynamo].filter(Boolean), tables: await get('tables'), info }),
    row || key ? h('p', { class: 'soft', 'data-only': '' }, 'Showing writes to ', row ? ['the row ', h('code', { class: 'data' }, plain(row))] : ['the item ', h('code', { class: 'data' }, keysText(JSON.parse(params.get('key'))))], '. ', h('a', { href: all }, 'Show all writes')) : '',
    h('div', { class: 'bar' }, h('label', {}, 'Time range', span), h('label', {}, 'From', since), follow, count, h('a', { href: '/streams', class: 'end' }, 'All streams')), notes, none,
    h('div', { class: 'split' }, h('section', { class: 'wider' }, h('div', { class: 'line-head' }, h('span', { class: 'w120' }, 'Time'), h('span', { class: 'half' }, 'DynamoDB Streams'), h('span', { class: 'half' }, 'Bigtable change stream')), list.el), beside));
  await begin();
  const every = setInterval(() => { if (follow.getAttribute('aria-pressed') === 'true' && !document.hidden) read(); }, 2000);
  signal.addEventListener('abort', () => clearInterval(every));
}
