// Requests: both doors, live, with the calls of Bigtable that a DynamoDB request became.
import { h, fill, shown, plain, virtual, button, copier, save, errorBox, size, number } from './dom.js';
import { bytesShown, textOf } from './bytes.js';
import { get, events, query } from './api.js';

const kept = 5000; // as many as the server keeps

/** matcher makes a test of a filter such as "door:ddb op:Query status:!ok table:orders >10ms". */
export function matcher(text) {
  const tests = text.trim().split(/\s+/).filter(Boolean).map((word) => {
    const time = word.match(/^([<>])([\d.]+)(ms|s)$/);
    if (time) {
      const ms = Number(time[2]) * (time[3] === 's' ? 1000 : 1);
      return (r) => time[1] === '>' ? r.millis > ms : r.millis < ms;
    }
    const [, name, not, value] = word.match(/^(?:(door|op|status|table|test|key):)?(!?)(.*)$/s);
    const want = value.toLowerCase();
    const of = {
      door: (r) => want === 'ddb' || want === 'dynamodb' ? r.door === 'dynamodb' : want === 'bt' || want === 'bigtable' ? r.door === 'bigtable' : false,
      op: (r) => r.operation.toLowerCase() === want,
      status: (r) => r.status.toLowerCase() === want,
      table: (r) => tableOf(r).toLowerCase() === want || (r.table ?? '').toLowerCase() === want,
      test: (r) => (r.test ?? '').toLowerCase().includes(want),
      key: (r) => !!r.key && textOf(r.key).toLowerCase().includes(want),
      undefined: (r) => [r.operation, r.table, r.status, r.test].some((s) => s?.toLowerCase().includes(want)),
    }[name];
    return not ? (r) => !of(r) : of;
  });
  return (r) => tests.every((t) => t(r));
}

const tableOf = (r) => r.table?.slice(r.table.lastIndexOf('/') + 1) ?? '';
const pretty = (value) => JSON.stringify(value, null, 2);

/** callShown is an element with a call of Bigtable: what was asked for. */
export function callShown(c) {
  return h('details', { class: 'call' }, h('summary', {}, h('b', { class: 'mono' }, plain(c.operation)), ' ', h('span', { class: 'mono' }, plain(tableOf(c))), ' ',
    c.key && bytesShown(c.key, 80), ' ', h('span', { class: c.status === 'OK' ? 'ok' : 'bad' }, plain(c.status)), ` ${c.millis} ms`, c.rows > 0 && `, ${c.rows} rows`),
  h('pre', { class: 'data' }, plain(c.request ? '' : c.cut ? 'too large to be kept' : ''), c.request && shown(pretty(c.request), 20000)));
}

function replayable(r, info) {
  if (r.door !== 'dynamodb' || !r.request || !info.dynamodb) return null;
  const quoted = (s) => "'" + s.replaceAll("'", "'\\''") + "'";
  const body = JSON.stringify(r.request);
  const kebab = r.operation.replace(/([a-z])([A-Z])/g, '$1-$2').toLowerCase();
  return h('span', { class: 'bar' },
    copier('Copy as aws', `aws dynamodb ${kebab} --endpoint-url ${info.dynamodb} --region us-east-1 --cli-input-json ${quoted(body)}`),
    copier('Copy as curl', `curl -s ${info.dynamodb} -H 'Content-Type: application/x-amz-json-1.0' -H 'X-Amz-Target: DynamoDB_20120810.${r.operation}' -H 'Authorization: AWS4-HMAC-SHA256 Credential=local/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0' --data ${quoted(body)}`),
    h('a', { href: '/query' + query({ op: r.operation, request: body.length < 4000 ? body : '' }) }, 'Open in Query'));
}

export async function show(main, { info, params, signal }) {
  main.classList.add('full');
  let all = []; // newest first
  let seen = [];
  const open = new Set(); // requestIDs whose calls are shown
  const filter = h('input', { class: 'mono', type: 'search', size: 44, value: params.get('f') ?? '', 'aria-label': 'Filter', placeholder: 'door:ddb op:Query status:!ok table:orders >10ms' });
  const inner = h('input', { type: 'checkbox', checked: params.get('calls') === 'true' });
  const count = h('small', { 'aria-live': 'polite' });
  const live = h('small');
  let paused = false, waiting = [];

  const list = virtual({
    label: 'Requests, the newest first', count: () => seen.length,
    line: (i) => {
      const r = seen[i];
      const child = r.cause && !inner.checked;
      return h('div', { 'data-request': r.id }, h('span', { class: 'w80 soft mono' }, r.start.slice(11, 19)),
        h('span', { class: 'w80 soft' }, child ? '  └ calls' : r.door),
        h('span', { class: 'w120 mono' }, r.requestID && r.children > 0 ? toggle(r) : '', plain(r.operation)),
        h('span', { class: 'w120 mono', title: plain(tableOf(r)) }, plain(tableOf(r))), h('span', { class: 'grow' }, r.key ? bytesShown(r.key, 80) : ''),
        h('span', { class: 'w60 ' + (r.status === 'OK' ? 'ok' : 'bad'), title: plain(r.status) }, plain(r.status)),
        h('span', { class: 'w80 soft' }, `${r.millis} ms`), h('span', { class: 'w60 soft spare' }, r.bytes ? size(r.bytes) : ''),
        h('span', { class: 'w60 soft spare' }, r.rows ? `${number(r.rows)} rows` : ''), h('span', { class: 'last soft spare', title: r.test && plain(r.test) }, r.test && plain(r.test)));
    },
    pick: (i) => detail(seen[i]),
  });
  function toggle(r) {
    const is = open.has(r.requestID);
    return h('button', { type: 'button', title: 'The calls of Bigtable that it became', 'aria-expanded': String(is), onclick: (e) => {
      e.stopPropagation();
      if (is) open.delete(r.requestID); else open.add(r.requestID);
      select();
    } }, is ? `▾ ${r.children}` : `▸ ${r.children}`);
  }
  const side = h('section', {}, h('h2', {}, 'Request'), h('div', { class: 'scroll soft' }, 'Choose a request.'));

  function select() {
    const is = matcher(filter.value);
    const of = new Map();
    for (const r of all) if (r.cause) (of.get(r.cause) ?? of.set(r.cause, []).get(r.cause)).push(r);
    seen = [];
    for (const r of all) {
      if (r.cause && !inner.checked) continue;
      if (!is(r)) continue;
      r.children = of.get(r.requestID)?.length ?? 0;
      seen.push(r);
      if (open.has(r.requestID) && !inner.checked) seen.push(...of.get(r.requestID)?.slice().reverse() ?? []);
    }
    count.textContent = `${number(seen.length)} of ${number(all.length)}${paused && waiting.length ? `, ${number(waiting.length)} since the pause` : ''}`;
    if (!all.length) fill(side.lastChild, h('div', { class: 'note' }, 'Nothing has been asked yet. Each request of a client is here as soon as it is answered, for example:', h('pre', {}, info.dynamodb
      ? `aws dynamodb list-tables --endpoint-url ${info.dynamodb} --region us-east-1` : `BIGTABLE_EMULATOR_HOST=${info.bigtable} cbt -project ${info.project} -instance ${info.instance} ls`),
    'A client that sends the header x-tabletop-test is shown with the name of its test.'));
    list.redraw();
  }
  let drawing = 0;
  function arrived(r) {
    if (paused) { waiting.push(r); } else { all.unshift(r); if (all.length > kept) all.length = kept; }
    drawing ||= setTimeout(() => { drawing = 0; select(); }, 100);
  }

  let shownID = 0;
  async function detail(r) {
    shownID = r.id;
    history.replaceState(null, '', '/requests' + query({ f: filter.value, calls: inner.checked ? 'true' : '', id: r.id }));
    try {
      const whole = await get('requests/' + r.id);
      if (shownID !== r.id || signal.aborted) return;
      const row = (what, text) => text && h('tr', {}, h('th', { scope: 'row' }, what), h('td', {}, text instanceof Node ? text : shown(String(text))));
      fill(side, h('h2', {}, plain(whole.operation), ' ', h('span', { class: whole.status === 'OK' ? 'ok' : 'bad' }, plain(whole.status))), h('div', { class: 'scroll' },
        replayable(whole, info),
        whole.door === 'dynamodb' && whole.status === 'OK' && h('div', { class: 'bar' }, button('Save as access pattern', async () => {
          const pattern = await get(`requests/${whole.id}/pattern`);
          save(pattern.file, pattern.text);
        }, { title: 'A file for the folder access of a fixture, which tabletop migrate verify asks of both doors' })),
        h('table', {}, h('tbody', {}, row('door', whole.door), row('table', whole.table), row('key', whole.key && bytesShown(whole.key)), row('text', whole.text), row('at', whole.start),
          row('took', whole.millis + ' ms'), row('bytes', whole.bytes && number(whole.bytes)), row('rows', whole.rows && number(whole.rows)), row('test', whole.test), row('request id', whole.requestID))),
        whole.cut && h('p', { class: 'soft' }, 'Its bodies are longer than the 64 KiB that are kept.'),
        whole.calls?.length > 0 && [h('h2', {}, `As Bigtable: ${whole.calls.length} calls`), whole.calls.map(callShown)],
        whole.request && [h('h2', {}, 'Request'), h('pre', {}, shown(pretty(whole.request), 60000))],
        whole.response && [h('h2', {}, 'Answer'), h('pre', {}, shown(pretty(whole.response), 60000))]));
    } catch (err) { fill(side.lastChild, errorBox(err)); }
  }

  const pause = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => {
    paused = !paused;
    pause.setAttribute('aria-pressed', String(paused));
    if (!paused) { all = [...waiting.reverse(), ...all].slice(0, kept); waiting = []; }
    select();
  } }, 'Pause');
  filter.addEventListener('input', () => {
    history.replaceState(null, '', '/requests' + query({ f: filter.value, calls: inner.checked ? 'true' : '' }));
    select();
  });
  inner.addEventListener('change', select);
  main.append(h('h1', {}, 'Requests'), h('div', { class: 'bar' }, filter, h('label', {}, inner, 'calls of the DynamoDB door on lines of their own'), pause,
    button('Save as NDJSON', () => save('requests.ndjson', seen.map((r) => JSON.stringify({ ...r, children: undefined })).join('\n') + '\n')), button('Save as trace', async () => {
      const tables = [...new Set(seen.filter((r) => r.door === 'dynamodb' && r.table).map((r) => r.table))];
      const trace = await get('requests/trace' + query({ table: tables.length === 1 ? tables[0] : '' }));
      save(trace.file, trace.text);
    }, { title: 'The requests of DynamoDB, those of one table if only they are shown, for the folder trace of a fixture: tabletop migrate lint judges them' }), count, live),
  h('div', { class: 'split' }, h('section', { class: 'wider' }, list.el), side));
  let before;
  do {
    const page = (await get('requests' + query({ limit: 1000, before }))).requests;
    all.push(...page);
    before = page.length === 1000 ? page.at(-1).id : undefined;
  } while (before && all.length < kept);
  select();
  if (params.get('id')) await detail({ id: Number(params.get('id')) });
  events(all[0]?.id ?? 0, signal, arrived, (lost) => { live.textContent = lost === undefined ? '● live' : lost ? 'not live: too many pages watch, reload to try again' : 'connecting…'; });
}
