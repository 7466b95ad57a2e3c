// History: the requests, versions and records of both streams about one row, on one line of time.
import { h, fill, plain, virtual, button, errorBox, number, counted } from './dom.js';
import { bytesOf, textOf, timeOf, unescaped, base64Of } from './bytes.js';
import { get, part, projectOf, query } from './api.js';
import { keyShown } from './changes.js';
import { callsPath, rowsPath, tableNamed } from './paths.js';
import { requestShown, requestLine } from './requests.js';
import { bookkeeping } from './rules.js';
import { changeShown, entriesText, joined, microsAt, recordShown } from './streams.js';

/** writersOf returns the requests of a history that wrote cells at a time: those that ran then. Cells have times in milliseconds. */
export const writersOf = (history, at) => history.requests.filter((r) => r.write && r.status === 'OK' && microsAt(r.start) / 1000n * 1000n <= at && at <= microsAt(r.start) + BigInt(Math.ceil(r.millis * 1000)));

/** eventsOf returns the events of a history and of the present cells of its row, the newest first: [at, kind, text, of, by]. */
export function eventsOf(history, cells) {
  const out = history.requests.map((r) => ({ at: microsAt(r.start), kind: 'request', text: requestLine(r), of: r }));
  for (const write of joined(history.records, history.changes)) {
    const { record, change } = write;
    out.push({ at: write.at, kind: record && change ? 'both streams' : record ? 'DynamoDB Streams' : 'change stream', of: write,
      text: [record?.eventName, change && (change.gc ? 'garbage collection: ' : '') + entriesText(change.entries)].filter(Boolean).join(', ') });
  }
  const versions = Map.groupBy(cells.filter((c) => !bookkeeping(c)), (c) => String(c.timestamp));
  for (const [at, of] of versions) out.push({ at: BigInt(at), kind: 'cells', of, by: writersOf(history, BigInt(at)), text: `${counted(of.length, 'cell')}: ${of.slice(0, 8).map((c) => `${c.family}:${textOf(c.qualifier, 40)}`).join(', ')}${of.length > 8 ? ', …' : ''}` });
  return out.sort((a, b) => a.at < b.at ? 1 : a.at > b.at ? -1 : 0);
}

export async function show(main, { args, info, params, signal }) {
  main.classList.add('full');
  const own = h('input', { type: 'checkbox', checked: params.get('own') === 'true', onchange: () => load() });
  const writes = h('input', { type: 'checkbox', checked: params.get('writes') === 'true', onchange: () => load() });
  const heading = h('h1', {}, 'History'), links = h('span', { class: 'bar' }), count = h('small', { 'aria-live': 'polite' }), notes = h('div');
  const beside = h('section', {}, h('h2', {}, 'Event'), h('div', { class: 'scroll soft' }, 'Select an event.'));
  let events = [], t, asked = 0;
  const list = virtual({
    label: 'Events, the newest first', count: () => events.length,
    line: (i) => {
      const e = events[i];
      return h('div', { 'data-event': e.kind }, h('span', { class: 'micros soft mono whole' }, timeOf(e.at)), h('span', { class: 'w120 type' }, e.kind, e.of.own && ' ⌂'), h('span', { class: `grow ${e.kind === 'request' && e.of.status !== 'OK' && !e.of.stopped ? 'bad' : ''}`, title: plain(e.text) }, plain(e.text)));
    },
    pick: (i) => detail(events[i]),
  });

  async function detail(e) {
    const mine = ++asked;
    const fillWith = (...children) => fill(beside, h('h2', {}, h('span', {}, timeOf(e.at))), h('div', { class: 'scroll' }, children));
    if (e.kind === 'cells') fillWith(e.by.length > 0 && h('p', {}, e.by.length > 1 ? 'Written by one of ' : 'Written by ', e.by.slice(0, 5).map((r, i) => [i > 0 && ', ',
      h('a', { href: '/requests' + query({ id: r.id, own: r.own && 'true' }), 'data-writer': r.id }, plain(r.operation), e.by.length > 1 && ` at ${plain(r.start.slice(11, 26))}`)]), e.by.length > 5 && ` and ${number(e.by.length - 5)} more`),
    h('ul', {}, e.of.slice(0, 500).map((c) => h('li', { class: 'mono' }, plain(c.family), ':', textOf(c.qualifier, 80), ' = ', textOf(c.value, 120)))), e.of.length > 500 && h('p', { class: 'soft' }, `and ${number(e.of.length - 500)} more`), h('p', {}, h('a', { href: links.querySelector('a').getAttribute('href') }, 'Current row')));
    else if (e.kind !== 'request') fillWith(h('h2', {}, 'DynamoDB Streams'), recordShown(e.of.record), h('h2', {}, 'Bigtable change stream'), changeShown(e.of.change, t, info));
    else try {
      const whole = await get('requests/' + e.of.id);
      if (mine === asked && !signal.aborted) fillWith(h('p', {}, h('a', { href: '/requests' + query({ id: e.of.id, own: e.of.own && 'true' }) }, 'Open in Requests')), requestShown(whole, info));
    } catch (err) { if (mine === asked) fillWith(errorBox(err)); }
  }

  async function load() {
    const boxes = { own: own.checked && 'true', writes: writes.checked && 'true', limit: 1000 };
    try {
      const at = args.length === 2
        ? part(args[0]) + '/' + part(args[1]) + query({ project: params.get('project'), key64: base64Of(unescaped(params.get('key') ?? '')), ...boxes })
        : part(args[0]) + query({ item: params.get('item'), ...boxes });
      const found = await get('history/' + at);
      t = tableNamed(found.table);
      const key = bytesOf(found.key);
      const [row] = (await get(`tables/${part(t.instance)}/${part(t.table)}/rows` + query({ project: projectOf(t.name), start64: found.key.base64, end64: base64Of([...key, 0]), limit: 1 }))).rows;
      if (signal.aborted) return;
      events = eventsOf(found, row?.cells ?? []);
      fill(heading, 'History of ', keyShown(found));
      fill(links, h('a', { href: rowsPath(t, info, found.key) }, row ? 'Row' : 'Rows (this row does not exist)'), h('a', { href: callsPath(t, found.key) }, 'Requests'), h('small', {}, plain(`${t.instance} / ${t.table}`)));
      fill(notes, found.more && h('p', { class: 'soft' }, 'Older events are not shown. Reads are left out before writes.'), !found.streamed && h('p', { class: 'soft' }, 'The table has no change stream', !found.recorded?.length && ', and its DynamoDB tables have no streams', '. ', h('a', { href: '/streams' }, 'Enable a stream')));
      count.textContent = counted(events.length, 'event');
      list.redraw();
    } catch (err) { fill(notes, errorBox(err)); }
  }
  main.append(heading, h('div', { class: 'bar' }, links, button('Refresh', load), h('label', {}, writes, 'Writes only'), h('label', {}, own, 'Console requests'), count), notes,
    h('div', { class: 'split' }, h('section', { class: 'wide' }, h('div', { class: 'line-head' }, h('span', { class: 'micros mono' }, 'Time'), h('span', { class: 'w120' }, 'Source'), h('span', { class: 'grow' }, 'Event')), list.el), beside));
  await load();
}
