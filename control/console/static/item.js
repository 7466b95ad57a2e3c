// Items of a DynamoDB table: scan, query and get, and edits with their effects.
import { h, fill, exact, jsonText, shown, marked, plain, errorBox, button, dialog, footer, confirmed, lineShown, save, sentence, tabbed, notify, number, counted } from './dom.js';
import { dynamo, get, part, post, query } from './api.js';
import { escapes, textOf, unescapedText } from './bytes.js';
import { cellsShown, keyShown } from './changes.js';
import { importFile } from './create.js';
import { awsLine, shellOf } from './code.js';
import { codeField } from './field.js';
import { itemForm } from './form.js';
import { grid } from './grid.js';
import { compared, counterOf, isNumber, numbersOf, ordered, typeOf, valueShown, valueText } from './items.js';
import { headOf } from './head.js';
import { callsPath, itemHistoryPath, itemRowPath, streamsPath, tablePath } from './paths.js';
import { callsShown } from './calls.js';

const comparisons = ['=', '<>', '<', '<=', '>', '>=', 'between', 'begins_with', 'contains', 'exists', 'not exists'];
const ofKeys = ['=', '<', '<=', '>', '>=', 'between', 'begins_with'];

/** condition returns one comparison as an expression, with its names and values. */
function condition(n, name, op, type, text, names, values) {
  names['#' + n] = name;
  const value = (x, i) => {
    const v = ':' + n + i;
    values[v] = type === 'BOOL' ? { BOOL: x === 'true' } : type === 'NULL' ? { NULL: true } : { [type]: type === 'S' ? unescapedText(x) : x };
    return v;
  };
  switch (op) {
    case 'exists': return `attribute_exists(#${n})`;
    case 'not exists': return `attribute_not_exists(#${n})`;
    case 'between': {
      const [a, b = ''] = text.split('..');
      return `#${n} BETWEEN ${value(a, 0)} AND ${value(b, 1)}`;
    }
    case 'begins_with': case 'contains': return `${op}(#${n}, ${value(text, 0)})`;
    default: return `#${n} ${op} ${value(text, 0)}`;
  }
}

/** endedCounters returns the columns whose removed cell is a counter, while the added one is not. */
function endedCounters({ before = [], after = [] }, numbers) {
  const column = (c) => `${plain(c.family)}:${textOf(c.qualifier)}`;
  const was = new Set(before.filter((c) => counterOf(c.value, numbers)).map(column));
  return [...new Set(after.filter((c) => !counterOf(c.value, numbers)).map(column))].filter((c) => was.has(c));
}

let editedAs = 'Form'; // the tab of the last edit

const select = (label, choices, value) => h('select', { 'aria-label': label }, choices.map((c) => h('option', { value: c, selected: c === value }, plain(c))));

export async function show(main, { args: [name], info, params, signal, go }) {
  const [{ response: { Table: t } }, tables] = await Promise.all([dynamo('DescribeTable', { TableName: name }), get('tables')]);
  const under = tables.bigtable.find((b) => b.dynamodb?.includes(name));
  const types = Object.fromEntries(t.AttributeDefinitions.map((a) => [a.AttributeName, a.AttributeType]));
  const indexes = [...(t.GlobalSecondaryIndexes ?? []), ...(t.LocalSecondaryIndexes ?? [])];
  const keyNames = t.KeySchema.map((k) => k.AttributeName);
  const keyOf = (item) => Object.fromEntries(keyNames.map((a) => [a, item[a]]));

  const index = h('select', { 'aria-label': 'Table or index' }, h('option', { value: '' }, 'Table'), indexes.map((i) => h('option', { value: i.IndexName }, plain(i.IndexName))));
  const hash = h('input', { class: 'mono', 'aria-label': 'Partition key', title: escapes });
  const sortOp = select('Comparison of the sort key', ofKeys, '=');
  const sort = h('input', { class: 'mono', 'aria-label': 'Sort key', title: escapes });
  const filters = []; // conditions, all of which must hold
  const filterList = h('div');
  function addFilter(given = {}) {
    const attribute = h('input', { class: 'mono', placeholder: 'Attribute', 'aria-label': 'Attribute of the filter', title: escapes, size: 14 });
    const op = select('Comparison of the filter', comparisons, '='), type = select('Type of the filter', ['S', 'N', 'B', 'BOOL', 'NULL'], 'S');
    const value = h('input', { class: 'mono', placeholder: 'Value, a..b for between', 'aria-label': 'Value of the filter', title: escapes, size: 26 });
    filterList.append(h('div', { class: 'bar' }, h('label', {}, filters.length ? 'And' : 'Filter', attribute), op, type, value));
    const filter = { attribute, op, type, value };
    for (const [field, was] of Object.entries(given)) filter[field].value = was;
    filters.push(filter);
  }
  const before = history.state?.read; // of this page, before a click on Back
  for (const given of before?.filters ?? [{}]) addFilter(given);
  const filtered = () => filters.filter((f) => f.attribute.value);
  const limit = h('input', { type: 'number', min: 1, max: 1000, value: 100, 'aria-label': 'Page size' });
  const backward = h('input', { type: 'checkbox', checked: before?.backward ?? false });
  const said = h('small', { 'aria-live': 'polite' });
  const inQuery = h('a', { hidden: true }, 'Open in Query');
  const results = h('div'), calls = h('div'), widths = new Map();
  const turn = (label, act) => h('button', { type: 'button', disabled: true, onclick: () => { act(); remember('pushState', location.pathname); run(); } }, label);
  const firstPage = turn('First page', () => { starts = []; }), previousPage = turn('Previous page', () => { starts.pop(); }), nextPage = turn('Next page', () => { starts.push(next); });
  let items = [], starts = before?.starts ?? [], next, selected = new Set();
  let order; // the column by which this page is sorted, and 1, or -1 for the greatest first

  const schema = () => indexes.find((i) => i.IndexName === index.value)?.KeySchema ?? t.KeySchema;
  const sortOps = h('span', { class: 'bar' }, sortOp, sort);
  function keys() {
    const [p, s] = schema();
    hash.placeholder = `${plain(p.AttributeName)} (${types[p.AttributeName]}), empty to scan`;
    sortOps.hidden = !s;
    if (s) sort.placeholder = `${plain(s.AttributeName)} (${types[s.AttributeName]}), a..b for between`;
  }
  const fields = { index, hash, sortOp, sort, limit };
  for (const [field, was] of Object.entries(before?.fields ?? {})) fields[field].value = was;
  const valuesOf = (inputs) => Object.fromEntries(Object.entries(inputs).map(([field, el]) => [field, el.value]));
  // The history of the browser has each page of items.
  const remember = (how, path) => history[how]({ read: { fields: valuesOf(fields), backward: backward.checked, filters: filters.map(valuesOf), starts } }, '', path);
  index.addEventListener('change', keys);
  keys();

  function request() {
    const names = {}, values = {};
    const r = { TableName: name, IndexName: index.value || undefined, Limit: Number(limit.value) || 100, ReturnConsumedCapacity: 'TOTAL', ExclusiveStartKey: starts.at(-1) };
    if (hash.value) {
      const [p, s] = schema();
      r.KeyConditionExpression = condition('h', p.AttributeName, '=', types[p.AttributeName], hash.value, names, values);
      if (s && sort.value) r.KeyConditionExpression += ' AND ' + condition('s', s.AttributeName, sortOp.value, types[s.AttributeName], sort.value, names, values);
      if (backward.checked) r.ScanIndexForward = false;
    }
    if (filtered().length) r.FilterExpression = filtered().map((f, n) => condition('f' + n + '_', unescapedText(f.attribute.value), f.op.value, f.type.value, f.value.value, names, values)).join(' AND ');
    if (Object.keys(names).length) r.ExpressionAttributeNames = names;
    if (Object.keys(values).length) r.ExpressionAttributeValues = values;
    return r;
  }

  async function run() {
    for (const b of [firstPage, previousPage, nextPage]) b.disabled = true;
    try {
      const operation = hash.value ? 'Query' : 'Scan';
      const asked = request(), answer = await dynamo(operation, asked);
      if (signal.aborted) return;
      items = answer.response.Items;
      next = answer.response.LastEvaluatedKey;
      selected = new Set();
      inQuery.setAttribute('href', '/query' + query({ op: operation, request: JSON.stringify(asked) }));
      inQuery.hidden = false;
      said.textContent = `${operation}: ${counted(answer.response.Count, 'item')} of ${number(answer.response.ScannedCount)} read, ${answer.response.ConsumedCapacity?.CapacityUnits ?? 0} RCU, page ${starts.length + 1}${next ? ', and more' : ''}`;
      fill(calls, answer.calls?.length > 0 && h('details', { class: 'calls' }, h('summary', {}, `As Bigtable: ${counted(answer.calls.length, 'call')}`), callsShown(answer.calls)));
      draw();
    } catch (err) {
      next = undefined;
      fill(results, errorBox(err));
    } finally {
      firstPage.disabled = previousPage.disabled = !starts.length;
      nextPage.disabled = !next;
    }
  }

  // putLine returns a line for a shell that puts an item. A binary value is base64.
  const putLine = () => awsLine(info, `put-item --table-name ${name} --item ${shellOf(JSON.stringify(Object.fromEntries(t.KeySchema.map(({ AttributeName: a }) => [a, { [types[a]]: { S: 'a', N: '1', B: 'YQ==' }[types[a]] }]))))}`);

  function draw() {
    if (!items.length) {
      fill(acts);
      fill(results, h('div', { class: 'note' }, starts.length || hash.value || filtered().length ? 'No item matches on this page. Later pages of a filtered scan may have matches.' : ['The table has no items. Use “New item…”, or from a shell:',
        lineShown(plain(putLine()), putLine())]));
      return;
    }
    // The columns cover all items of the page: the key first.
    const seen = ordered(Object.fromEntries(items.flatMap(Object.entries)), keyNames);
    const most = 60;
    const columns = seen.slice(0, most).map(([a]) => a);
    const bulk = button('Delete selected…', async () => {
      if (!await confirmed(`Delete ${counted(selected.size, 'item')}?`, 'Delete')) return;
      for (const item of selected) await dynamo('DeleteItem', { TableName: name, Key: keyOf(item) });
      notify(`${counted(selected.size, 'item')} deleted.`);
      run();
    }, { class: 'danger' });
    bulk.disabled = true;
    fill(acts, bulk, button('Save as JSON lines', () => save(name + '.jsonl', items.map((i) => JSON.stringify({ Item: i })).join('\n') + '\n')));
    const box = (item) => h('input', { type: 'checkbox', 'aria-label': `Select ${keyText(item)}`, onclick: (e) => e.stopPropagation(), onchange: (e) => {
      if (e.target.checked) selected.add(item); else selected.delete(item);
      bulk.disabled = !selected.size;
    } });
    const cell = (v) => {
      const text = valueText(v), el = h('td', { class: 'data mono', title: text.slice(0, 1000) }, h('span', { class: 'type' }, typeOf(v) + ' '));
      marked(el, text.slice(0, 300));
      return el;
    };
    const by = (a) => (x, y) => !x[a] || !y[a] ? !x[a] - !y[a] : order.sign * compared(x[a], y[a]);
    const listed = order && columns.includes(order.name) ? items.toSorted(by(order.name)) : items;
    const sort = (column) => {
      const name = column.slice(1);
      order = { name, sign: order?.name === name ? -order.sign : 1 };
      draw();
    };
    const sorted = (column) => order?.name === column.slice(1) ? order.sign : 0;
    fill(results, seen.length > most && h('p', {}, h('small', {}, `The first ${most} of ${number(seen.length)} attributes. Open an item to see all.`)),
      h('div', { class: 'scroll' }, grid([['', ''], ...columns.map((c) => [' ' + c, c])], listed.map((item) =>
        h('tr', { tabindex: 0, 'aria-label': `Edit ${keyText(item)}`, onclick: () => edit(item), onkeydown: (e) => { if (e.key === 'Enter' && e.target === e.currentTarget) edit(item); } }, h('td', {}, box(item)),
          columns.map((c) => item[c] ? cell(item[c]) : h('td')))), widths, (c) => items.map((item) => item[c.slice(1)]).filter(Boolean).map((v) => typeOf(v) + ' ' + valueText(v).slice(0, 120)), { kept: 1 + keyNames.length, sort, sorted })));
  }

  const keyText = (item) => Object.values(keyOf(item)).map(valueText).join(' ').slice(0, 200);

  // edit shows an item, or creates one, with the attributes of another item if it is given.
  function edit(item, like) {
    const begin = item ?? like ?? Object.fromEntries(keyNames.map((a) => [a, { [types[a]]: '' }]));
    const area = h('textarea', { rows: 16, 'aria-label': 'The item in the JSON of DynamoDB', value: jsonText(Object.fromEntries(ordered(begin, keyNames)), 2) });
    const field = codeField(area, 'json');
    const form = itemForm(t.KeySchema.map((k) => [k.AttributeName, types[k.AttributeName]]), (made, reason) => {
      if (!made) return invalid(reason);
      field.put(jsonText(made, 2));
      changes();
    });
    const diff = h('div', { 'data-diff': '' }), cells = h('div', { 'data-edit': '' }), wrong = h('div');
    // asked identifies the request of the shown cells: a late answer belongs to another one.
    let asked;
    let now; // the item in the text; undefined if the text is invalid
    let place, previewed; // the key of its row, and the end of the request that finds it
    async function cellsOf(request) {
      const mine = asked = JSON.stringify(request);
      place = undefined;
      try {
        const answer = await post(`items/${part(name)}/preview`, request);
        if (asked !== mine) return;
        if (answer.refused) {
          put.disabled = true;
          // Without a complete key no mapping applies.
          const how = under && !answer.refused.startsWith('E-KEY:') && h('b', {}, 'The ', h('a', { href: tablePath(under, info) }, 'mapping'), ' refuses this item: ');
          fill(cells, h('div', { class: 'note warn', 'data-refused': '' }, how, plain(answer.refused)));
          return;
        }
        place = answer.key;
        const numbers = numbersOf(item, request.put);
        fill(cells, h('p', { class: 'mono' }, keyShown(answer)), answer.before || answer.after ? h('table', {}, h('tbody', {}, cellsShown(answer, numbers))) : h('small', {}, 'No cell changes. '),
          h('small', {}, answer.kept > 0 && `${counted(answer.kept, 'cell is', 'cells are')} unchanged. `, answer.more > 0 && `${number(answer.more)} more are not shown. `),
          endedCounters(answer, numbers).map((column) => h('div', { class: 'note warn' }, h('span', { class: 'mono' }, column), ' stops being a counter: its new value is not a 64-bit integer.')));
      } catch (err) {
        if (asked !== mine) return;
        const [, reason] = err.message.match(/want attributes in DynamoDB's JSON: (.*)/s) ?? [];
        put.disabled ||= Boolean(reason);
        fill(cells, errorBox(reason ? new Error(reason) : err));
      }
    }
    function invalid(reason, item) {
      now = item;
      asked = undefined;
      put.disabled = true;
      fill(cells);
      fill(diff, h('span', { class: 'bad' }, plain(reason)));
    }
    function changes() {
      try { now = JSON.parse(area.value); } catch (err) { return invalid(sentence(err.message)); }
      if (!now || typeof now !== 'object' || Array.isArray(now)) return invalid('An item is a JSON object whose members are attributes.');
      const empty = keyNames.find((a) => now[a] && Object.values(now[a])[0] === '');
      if (empty !== undefined) return invalid(`Enter a value for ${empty}, which is part of the key.`, now);
      const [wordy] = Object.entries(now).find(([, v]) => typeof v?.N === 'string' && !isNumber(v.N)) ?? [];
      if (wordy !== undefined) return invalid(`${wordy}: not a number.`, now);
      if (like && jsonText(keyOf(now)) === jsonText(keyOf(like))) return invalid('Change the key: the table has an item with this key.', now);
      const was = item ?? {};
      const lines = [];
      for (const a of new Set([...Object.keys(was), ...Object.keys(now)])) {
        const [x, y] = [jsonText(was[a]), jsonText(now[a])];
        if (x === y) continue;
        if (x) lines.push(h('div', { class: 'bad mono' }, '- ', exact(a), ': ', shown(x, 300)));
        if (y) lines.push(h('div', { class: 'ok mono' }, '+ ', exact(a), ': ', shown(y, 300)));
      }
      put.disabled = !lines.length;
      fill(diff, lines.length ? lines : h('small', {}, 'No changes.'));
      previewed = cellsOf({ put: now });
    }
    area.addEventListener('input', changes);
    const act = async (what, said, links) => {
      try { await what(); d.close(); run(); notify(said, ...(await links?.() ?? [])); } catch (err) { fill(wrong, errorBox(err)); }
    };
    const put = button('Save', () => act(() => dynamo('PutItem', { TableName: name, Item: now }), 'Saved.', async () => {
      await previewed;
      return under && place ? [h('a', { href: itemRowPath(under, info, place, name, keyOf(now)) }, 'Row'), h('a', { href: callsPath(under, place, true) }, 'Requests')] : [];
    }), { class: 'primary' });
    const past = item && h('a', { href: itemHistoryPath(name, keyOf(item)) }, 'History');
    const places = h('div', { class: 'bar', 'data-places': '' }, past);
    // A delete's preview locates the row, and writes nothing.
    if (item) post(`items/${part(name)}/preview`, { delete: keyOf(item) }).then(({ key }) => key && under && fill(places,
      h('a', { href: itemRowPath(under, info, key, name, keyOf(item)) }, 'Row'), h('a', { href: callsPath(under, key) }, 'Requests'), past, h('a', { href: streamsPath(under, info, name, key, keyOf(item)) }, 'Streams')), () => {});
    const d = dialog(item ? `Item ${plain(keyText(item))}` : 'New item', item && places, item && h('table', {}, h('tbody', {}, ordered(item, keyNames).map(([a, v]) => h('tr', {}, h('th', { scope: 'row' }, exact(a)), h('td', {}, valueShown(v)))))),
      h('details', { open: !item }, h('summary', {}, 'Edit'), ...tabbed('Edit as', { Form: form.el, JSON: field.el }, (name) => {
        editedAs = name;
        changes(); // the form may have had a mistake
        if (name === 'Form') form.put(now);
      }, editedAs), h('h2', {}, 'Attribute changes'), diff, h('h2', {}, 'Cell changes'), cells), wrong, footer(item ? 'Close' : 'Cancel',
        item && button('Duplicate…', () => { d.close(); edit(undefined, item); }),
        item && button('Delete…', async () => { if (await confirmed('Delete this item?', 'Delete')) await act(() => dynamo('DeleteItem', { TableName: name, Key: keyOf(item) }), 'Deleted.'); }, { class: 'danger' }),
        put));
    // Neither Escape nor the button that closes the dialog discards changes without a question.
    const text = area.value;
    const asks = async (e) => {
      if (now && area.value === text || e.defaultPrevented || e.target !== d && e.type === 'cancel') return;
      e.preventDefault();
      if (await confirmed('Discard the changes of this item?', 'Discard')) d.close();
    };
    d.addEventListener('cancel', asks);
    d.addEventListener('keydown', (e) => { if (e.key === 'Escape') asks(e); });
  }

  const first = () => {
    starts = [];
    remember('replaceState');
    return run();
  };
  const acts = h('span', { class: 'bar' });
  const more = h('div', { id: 'options', hidden: true }, filterList, h('div', { class: 'bar' }, button('Add condition', () => addFilter()), h('label', {}, 'Page size', limit), h('label', {}, backward, 'Reverse')));
  const options = h('button', { type: 'button', 'aria-expanded': 'false', 'aria-controls': 'options', onclick: () => {
    more.hidden = !more.hidden;
    options.setAttribute('aria-expanded', String(!more.hidden));
  } });
  // The button counts the options in use, since they may be hidden.
  const used = () => {
    const n = [...filtered(), limit.value !== '100', backward.checked].filter(Boolean).length;
    options.textContent = n ? `Options (${n})` : 'Options';
  };
  more.addEventListener('input', used);
  used();
  main.append(...headOf('Items', { name, about: 'items, DynamoDB', t: under, dynamodb: [name], tables, info }),
    h('form', { onsubmit: (e) => { e.preventDefault(); first(); } }, h('div', { class: 'bar one' }, index, hash, sortOps, options, h('button', { class: 'primary' }, 'Read')), more),
    h('div', { class: 'bar' }, said, inQuery, h('span', { class: 'bar end' }, acts, button('New item…', () => edit()), button('Import…', () => importFile([name], go, name)), firstPage, previousPage, nextPage)),
    calls, results);
  await run();
  const wanted = params.get('key');
  if (params.get('new')) edit();
  else if (wanted) {
    const { response: { Item } } = await dynamo('GetItem', { TableName: name, Key: JSON.parse(wanted) });
    if (Item) edit(Item);
    else notify('The item no longer exists.');
  }
}
