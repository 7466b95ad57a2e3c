// Requests: both endpoints, live, with the Bigtable calls of a DynamoDB request.
import { h, fill, shown, plain, virtual, button, codeDialog, dialog, footer, lineShown, removal, save, errorBox, size, number, counted } from './dom.js';
import { bytesShown, textOf } from './bytes.js';
import { get, events, query, remove } from './api.js';
import { callsShown, millis, spansOf, statusShown, statusText, tableOf, track } from './calls.js';
import { awsLine, shellOf } from './code.js';
import { requestCode } from './dynamocode.js';
import { historyPath, itemHistoryPath, rowsPath, tableNamed, viewPath } from './paths.js';

const kept = 5000; // the server's limit
const short = { dynamodb: 'ddb', bigtable: 'bt' }; // as in a filter

/** matcher returns the test of a filter such as "endpoint:ddb op:Query status:!ok table:orders >10ms". A call has the table and the key too. */
export function matcher(text, callsOf = () => []) {
  const tests = text.trim().split(/\s+/).filter(Boolean).map((word) => {
    const time = word.match(/^([<>])([\d.]+)(ms|s)$/);
    if (time) {
      const ms = Number(time[2]) * (time[3] === 's' ? 1000 : 1);
      return (r) => time[1] === '>' ? r.millis > ms : r.millis < ms;
    }
    const [, name, not, value] = word.match(/^(?:(endpoint|op|status|table|test|key|attempt):)?(!?)(.*)$/s);
    const want = value.toLowerCase();
    const of = {
      endpoint: (r) => want === 'ddb' || want === 'dynamodb' ? r.endpoint === 'dynamodb' : want === 'bt' || want === 'bigtable' ? r.endpoint === 'bigtable' : false,
      op: (r) => r.operation.toLowerCase() === want,
      status: (r) => r.status.toLowerCase() === want || !!r.stopped && ['stopped', 'ok'].includes(want),
      table: (r) => [r, ...callsOf(r)].some((of) => tableOf(of).toLowerCase() === want || (of.table ?? '').toLowerCase() === want),
      test: (r) => (r.test ?? '').toLowerCase().includes(want),
      key: (r) => [r, ...callsOf(r)].some((of) => keyText(of).toLowerCase().includes(want)),
      attempt: (r) => String(r.attempt ?? 1) === want,
      undefined: (r) => [r.operation, r.table, r.status, r.test].some((s) => s?.toLowerCase().includes(want)),
    }[name];
    return not ? (r) => !of(r) : of;
  });
  return (r) => tests.every((t) => t(r));
}

/** itemText returns the key of an item on one line. */
const itemText = (item) => Object.entries(item).map(([name, v]) => `${name}=${JSON.stringify(Object.values(v)[0])}`).join(' ');

// keyText returns the key that a request names: of the row, of the item, or the condition of a Query; or its SQL.
function keyText(r) {
  if (r.key) return textOf(r.key);
  if (r.item) return itemText(r.item) + (r.items > 1 ? ` and ${counted(r.items - 1, 'other')}` : '');
  return r.condition ?? r.statement?.replaceAll(/\s+/g, ' ') ?? '';
}

/** requestLine returns a request in a few words. */
export const requestLine = (r) => [r.operation, keyText(r), statusText(r), r.calls?.length > 0 && `by ${[...new Set(r.calls.map((c) => c.operation))].join(', ')}`].filter(Boolean).map((s) => plain(String(s))).join(' · ');

const attemptText = (r) => r.attempt && `${r.attempt}${r.attempts ? ` of ${r.attempts}` : ''}${r.attempt > 1 ? ', a retry' : ''}`;

const pretty = (value) => JSON.stringify(value, null, 2);

/** capacityOf returns the consumed capacity in an answer of DynamoDB; "" if it was not requested. */
export function capacityOf(operation, response) {
  return [response?.ConsumedCapacity ?? []].flat().map((c) => {
    const kinds = [['ReadCapacityUnits', 'RCU'], ['WriteCapacityUnits', 'WCU']].filter(([name]) => c[name]).map(([name, unit]) => `${c[name]} ${unit}`);
    return `${plain(c.TableName ?? '')} ${kinds.join(', ') || `${c.CapacityUnits} ${/^(Get|Query|Scan|BatchGet|TransactGet)/.test(operation) ? 'RCU' : /Put|Update|Delete|Write/.test(operation) ? 'WCU' : 'units'}`}`.trim();
  }).join('; ');
}

const curlOf = (r, body, info) => `curl -s ${info.dynamodb} -H 'Content-Type: application/x-amz-json-1.0' -H 'X-Amz-Target: DynamoDB_20120810.${r.operation}' -H 'Authorization: AWS4-HMAC-SHA256 Credential=local/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0' --data ${shellOf(body)}`;

// actions returns what can be done with a request of DynamoDB.
function actions(r, info) {
  if (r.endpoint !== 'dynamodb' || !r.request) return null;
  const body = JSON.stringify(r.request);
  return h('div', { class: 'bar' }, info.dynamodb && [
    button('Copy as…', () => codeDialog('Copy the request', [...requestCode(info, r.operation, r.request), ['curl', curlOf(r, body, info)]])),
    h('a', { href: '/query' + query({ op: r.operation, request: body.length < 4000 ? body : '' }) }, 'Open in Query')],
  r.status === 'OK' && button('Save access pattern', async () => {
    const pattern = await get(`requests/${r.id}/pattern`);
    save(pattern.file, pattern.text);
  }, { title: 'A file for the access folder of a fixture; tabletop migrate verify runs it on both endpoints' }));
}

// touchedShown returns links to the rows that a request, or its calls, name.
function touchedShown(whole, info) {
  return h('ul', { class: 'touched' }, whole.touched.map(({ table, key, start, end }) => {
    const t = tableNamed(table);
    const view = table.includes('/materializedViews/'); // it has a page of its rows, and no history
    return h('li', {}, view ? h('a', { href: viewPath({ ...t, view: t.table }, info) }, plain(t.table)) : h('small', {}, plain(t.table)), ' ', key
      ? view ? bytesShown(key, 120) : [h('a', { href: rowsPath(t, info, key) }, bytesShown(key, 120)), ' · ', h('a', { href: historyPath(t, info, key) }, 'History')]
      : ['from ', bytesShown(start, 80), end && [' before ', bytesShown(end, 80)]]);
  }), whole.more > 0 && h('li', { class: 'soft' }, `and ${number(whole.more)} more`));
}

/** requestShown returns the parts of a request: facts, rows, calls and bodies. narrow, if given, adds a word to a filter. */
export function requestShown(whole, info, narrow) {
  const fact = (what, text, long) => text && h('div', { class: long ? 'long' : '' }, h('dt', {}, what), h('dd', {}, text instanceof Node ? text : shown(String(text))));
  // A word of a filter has no spaces.
  const word = (what, name, text, value = text, long = false) => fact(what, narrow && text && !/\s/.test(value) ? h('button', { type: 'button', class: 'word', title: `Filter by ${name}:${plain(value)}`, onclick: () => narrow(`${name}:${value}`) }, shown(text)) : text, long);
  const key = keyText(whole);
  return [
    actions(whole, info),
    whole.text && h('div', { class: 'note ' + (whole.stopped ? '' : 'failed') }, shown(whole.text, 2000)),
    h('dl', { class: 'facts' }, narrow && [word('Operation', 'op', whole.operation), word('Status', 'status', whole.status)], word('Table', 'table', whole.table, tableOf(whole)),
      whole.key && word('Key', 'key', key), whole.item && fact('Item', h('span', {}, narrow && !/\s/.test(key) ? h('button', { type: 'button', class: 'word', title: `Filter by key:${plain(key)}`, onclick: () => narrow(`key:${key}`) }, shown(key)) : shown(key), ' ', h('a', { href: itemHistoryPath(whole.table, whole.item) }, 'History')), true),
      fact('Condition', whole.condition, true), fact('Statement', whole.statement, true), fact('Started', h('time', { class: 'mono', datetime: whole.start, title: whole.start }, whole.start.slice(11, 23))), fact('Duration', millis(whole.millis)), fact('Attempt', attemptText(whole)), fact('Size', whole.bytes && size(whole.bytes)), fact('Rows', whole.rows && number(whole.rows)),
      fact('Rows read', whole.rowsRead && number(whole.rowsRead)), fact('Capacity', capacityOf(whole.operation, whole.response)), fact('Endpoint', whole.endpoint === 'dynamodb' ? 'DynamoDB' : 'Bigtable'), word('Test', 'test', whole.test, whole.test, true), fact('Request ID', whole.requestID, whole.requestID?.length > 16), fact('Sent by', whole.own && 'the console, not counted')),
    whole.fault && h('div', { class: 'note' }, 'A fault caused this response: ', removal(`faults/dynamodb/${whole.fault}`)),
    whole.stopped && h('p', { class: 'soft' }, 'The caller stopped reading: it had enough rows.'),
    whole.cut && h('p', { class: 'soft' }, 'The bodies are longer than 64 KiB and are not kept in full.'),
    whole.calls?.length > 0 && [h('h2', {}, whole.endpoint === 'dynamodb' ? `As Bigtable: ${counted(whole.calls.length, 'call')}` : 'Prepared by'), callsShown(whole.calls, whole.endpoint === 'dynamodb' && whole)],
    whole.touched?.length > 0 && [h('h2', {}, 'Rows'), touchedShown(whole, info)],
    whole.request && [h('h2', {}, 'Request'), h('pre', {}, shown(pretty(whole.request), 60000))],
    whole.response && [h('h2', {}, 'Response'), h('pre', {}, shown(pretty(whole.response), 60000))]];
}

export async function show(main, { info, params, signal }) {
  main.classList.add('full');
  let all = []; // newest first
  let seen = [];
  const open = new Set(); // requestIDs with visible calls
  const filter = h('input', { class: 'mono', type: 'search', size: 50, value: params.get('f') ?? '', 'aria-label': 'Filter', placeholder: 'endpoint:ddb op:Query status:!ok table:orders >10ms' });
  const inner = h('input', { type: 'checkbox', checked: params.get('calls') === 'true' });
  const own = h('input', { type: 'checkbox', checked: params.get('own') === 'true' });
  const hidden = (r) => r.own && !own.checked;
  const count = h('small', { 'aria-live': 'polite' });
  const live = h('small');
  const hides = h('div', { 'aria-live': 'polite' });
  let paused = false, waiting = [], missed = 0; // requests during a pause
  let shownID = 0;

  const columns = [['w64', 'Time'], ['w36', ''], ['w150', 'Operation'], ['half', 'Table'], ['twice', 'Key'], ['of-status', 'Status'], ['w80 right spare', 'Duration'], ['w64 right spare of-size', 'Size'], ['w48 right spare of-rows', 'Rows'], ['w64 spare of-test', 'Test']];
  let parents = new Set(); // requestIDs
  // A query that was prepared, and not executed, has no parent.
  const isCall = (r) => r.cause && !inner.checked && (r.operation !== 'PrepareQuery' || parents.has(r.cause));
  const opens = (r) => r.requestID && r.children > 0;
  const list = virtual({
    label: 'Requests, the newest first', count: () => seen.length,
    key: (i) => `${seen[i].id} ${!!seen[i].span} ${opens(seen[i]) && inner.checked}`,
    line: (i) => {
      const r = seen[i];
      return h('div', { 'data-request': r.id }, [
        ['soft mono whole', r.start.slice(11, 19)], ['soft type', [isCall(r) ? '└ ' : '', short[r.endpoint], r.own && h('span', { class: 'own', title: 'Sent by the console' }, ' ⌂')]],
        ['mono', [!isCall(r) && toggle(r), h('span', { title: plain(r.operation) }, plain(r.operation))]], ['mono', plain(tableOf(r)), plain(tableOf(r))],
        ['', r.key ? bytesShown(r.key, 80) : h('span', { class: 'data mono' }, plain(keyText(r).slice(0, 200))), plain(keyText(r).slice(0, 2000))],
        ['', [r.fault && h('span', { class: 'bad' }, 'fault '), statusShown(r), r.attempt > 1 && h('span', { class: 'soft' }, ` ↻${r.attempt}`)], [plain(statusText(r)), r.fault && 'of a fault', attemptText(r) && `attempt ${attemptText(r)}`].filter(Boolean).join(', ')],
        ['soft whole', [millis(r.millis), r.span && track(r.span)]], ['soft', r.bytes ? size(r.bytes) : ''], ['soft', r.rows ? number(r.rows) : ''], ['soft', r.test && plain(r.test), r.test && plain(r.test)],
      ].map(([kind, shows, title], n) => h('span', { class: `${columns[n][0]} ${kind}`, title }, shows)));
    },
    update: (line, i) => {
      const r = seen[i], b = line.querySelector('.toggle');
      if (!b) return;
      b.hidden = !opens(r);
      b.setAttribute('data-open', String(open.has(r.requestID)));
      b.textContent = `${open.has(r.requestID) ? '▾' : '▸'} ${r.children}`;
    },
    turn: (i, on) => { if (opens(seen[i])) turn(seen[i], on); },
    pick: (i) => detail(seen[i]),
  });
  function turn(r, on) {
    if (on) open.add(r.requestID); else open.delete(r.requestID);
    select();
  }
  function toggle(r) {
    return h('span', { class: 'toggle', hidden: true, title: 'Show the Bigtable calls', onclick: (e) => {
      e.stopPropagation();
      turn(r, !open.has(r.requestID));
    } });
  }
  const lines = h('section', { class: 'wider' }, h('div', { class: 'line-head' }, columns.map(([kind, what]) => h('span', { class: kind }, what))), list.el);
  const side = h('section', { class: 'detail' }, h('h2', {}, 'Request'), h('div', { class: 'scroll soft' }, 'Select a request.'));

  function select() {
    for (const [word, b] of toggles) b.setAttribute('aria-pressed', String(has(word)));
    const of = new Map();
    for (const r of all) r.span = undefined;
    for (const r of all) if (r.cause) (of.get(r.cause) ?? of.set(r.cause, []).get(r.cause)).push(r);
    parents = new Set(all.map((r) => r.requestID));
    // A request matches by the rows of its calls while these have no lines of their own.
    const is = matcher(filter.value, (r) => inner.checked || r.endpoint !== 'dynamodb' ? [] : of.get(r.requestID) ?? []);
    seen = [];
    let visible = 0;
    const without = { own: 0, calls: 0, both: 0 }; // matching requests that the boxes hide
    for (const r of all) {
      if (!hidden(r)) visible++;
      if (hidden(r) || isCall(r)) {
        if (is(r)) without[!isCall(r) ? 'own' : hidden(r) ? 'both' : 'calls']++;
        continue;
      }
      if (!is(r)) continue;
      const calls = of.get(r.requestID);
      of.delete(r.requestID); // the last execution of a query has its preparation
      r.children = calls?.length ?? 0;
      seen.push(r);
      if (!calls || !open.has(r.requestID) || inner.checked) continue;
      r.span = [0, 1]; // that of the request, to compare those of its calls with
      const spans = spansOf(calls, r);
      calls.forEach((c, i) => { c.span = spans[i]; });
      seen.push(...calls.reverse());
    }
    for (const name of ['rows', 'test']) lines.classList.toggle('no-' + name, !seen.some((r) => r[name]));
    // The selection stays on its request, wherever that is now.
    list.chosen = seen.findIndex((r) => r.id === shownID);
    count.textContent = `${number(seen.length)} of ${number(visible)}${missed ? `, ${number(missed)} since the pause${missed > waiting.length ? `, ${number(waiting.length)} of them kept` : ''}` : ''}`;
    const note = filter.value.trim() && hiddenShown(without);
    if (hides.textContent !== (note?.textContent ?? '')) fill(hides, note); // a button that stays keeps the focus
    if (!visible) fill(side.lastChild, h('div', { class: 'note' }, 'No requests yet. Send one from any client, for example:', lineShown(info.dynamodb
      ? awsLine(info, 'list-tables') : `BIGTABLE_EMULATOR_HOST=${info.bigtable} cbt -project ${info.project} -instance ${info.instance} ls`),
    'The header x-tabletop-test names the test that sent a request.'));
    list.redraw();
  }
  // hiddenShown says which matches the boxes hide. Calls of a listed request are visible in its lines.
  function hiddenShown({ own: byConsole, calls, both }) {
    const offers = [];
    const offer = (n, what, ...boxes) => n && offers.push([`${counted(n, what)} ${n > 1 ? 'are' : 'is'} hidden: `, h('button', { type: 'button', onclick: () => {
      for (const box of boxes) box.checked = true;
      filtered();
    } }, n > 1 ? 'Show them' : 'Show it')]);
    offer(byConsole, 'console request', own);
    if (!seen.length) offer(calls, 'Bigtable call', inner);
    if (!seen.length && !offers.length) offer(both, 'console call', inner, own);
    if (seen.length && !offers.length) return null;
    return h('p', { class: 'note' }, !seen.length && (offers.length ? '0 requests match; ' : '0 requests match the filter.'), offers.map((o, i) => [i > 0 && '; ', o]));
  }
  let drawing = 0;
  function arrived(r) {
    if (paused) { if (!hidden(r)) missed++; waiting.push(r); if (waiting.length > kept) waiting.shift(); } else { all.unshift(r); if (all.length > kept) all.length = kept; }
    drawing ||= setTimeout(() => { drawing = 0; select(); }, 100);
  }

  const state = () => ({ f: filter.value, calls: inner.checked ? 'true' : '', own: own.checked ? 'true' : '' });

  async function detail(r) {
    shownID = r.id;
    history.replaceState(null, '', '/requests' + query({ ...state(), id: r.id }));
    try {
      const whole = await get('requests/' + r.id);
      if (shownID !== r.id || signal.aborted) return;
      fill(side, h('h2', {}, h('span', {}, plain(whole.operation)), statusShown(whole)), h('div', { class: 'scroll' }, requestShown(whole, info, narrow)));
    } catch (err) { fill(side.lastChild, errorBox(err)); }
  }

  // words adds words to the filter, or removes them if it has all of them already.
  const has = (word) => filter.value.split(/\s+/).includes(word);
  function turnWord(word) {
    const words = filter.value.split(/\s+/).filter((w) => w && w !== word);
    filter.value = (has(word) ? words : [...words, word]).join(' ');
    filtered();
  }
  const narrow = (word) => has(word) || turnWord(word);
  const toggles = [['Errors', 'status:!ok', 'Show failed requests only'], ['Slow', '>10ms', 'Show requests that took more than 10 ms']].map(([label, word, title]) => [word, h('button', { type: 'button', title, onclick: () => turnWord(word) }, label)]);

  const pause = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => {
    paused = !paused;
    pause.setAttribute('aria-pressed', String(paused));
    if (!paused) { all = [...waiting.reverse(), ...all].slice(0, kept); waiting = []; missed = 0; }
    select();
  } }, 'Pause');
  function filtered() {
    history.replaceState(null, '', '/requests' + query(state()));
    select();
  }
  filter.addEventListener('input', filtered);
  for (const box of [inner, own]) box.addEventListener('change', filtered);
  const clear = button('Clear', async () => {
    await remove('requests');
    all = [];
    waiting = [];
    missed = shownID = 0;
    open.clear();
    fill(side, h('h2', {}, 'Request'), h('div', { class: 'scroll soft' }, 'Select a request.'));
    select();
  }, { title: 'Delete all recorded requests' });
  const saves = () => dialog('Save the requests', h('p', {}, 'NDJSON contains the requests that match the filter, one per line. A trace contains the DynamoDB requests of one table, for the trace folder of a fixture; tabletop migrate lint checks it.'),
    footer('Close', button('NDJSON', () => save('requests.ndjson', seen.map((r) => JSON.stringify({ ...r, children: undefined })).join('\n') + '\n')), button('Trace', async () => {
      const tables = [...new Set(seen.filter((r) => r.endpoint === 'dynamodb' && r.table).map((r) => r.table))];
      const trace = await get('requests/trace' + query({ table: tables.length === 1 ? tables[0] : '' }));
      save(trace.file, trace.text);
    })));
  main.append(h('h1', {}, 'Requests'), h('div', { class: 'bar one tools' }, filter, toggles.map(([, b]) => b), h('label', { title: 'List the calls of the DynamoDB endpoint too' }, inner, 'Bigtable calls'), h('label', { title: 'Include requests sent by the console' }, own, 'Console requests'), pause, clear,
    button('Save as…', saves), count, live), hides,
  h('div', { class: 'split' }, lines, side));
  let before;
  do {
    const page = (await get('requests' + query({ limit: 1000, own: 'true', before }))).requests;
    all.push(...page);
    before = page.length === 1000 ? page.at(-1).id : undefined;
  } while (before && all.length < kept);
  select();
  if (params.get('id')) await detail({ id: Number(params.get('id')) });
  events(all[0]?.id ?? 0, signal, arrived, (lost) => { live.textContent = lost === undefined ? '● Live' : lost ? 'Not live: too many pages are open. Reload to try again.' : 'Connecting…'; });
}
