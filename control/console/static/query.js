// Query: requests of DynamoDB, and PartiQL, with their Bigtable calls; SQL; and ReadRows with bounds and a filter.
import { h, exact, fill, jsonText, plain, shown, button, codeDialog, copier, save, tabbed, errorBox, number, counted } from './dom.js';
import { dynamo, get, part, query } from './api.js';
import { bytesShown, base64Of, escapes, unescaped, timeOf } from './bytes.js';
import { ordered, valueShown } from './items.js';
import { callsShown } from './calls.js';
import { capacityOf } from './requests.js';
import { requestCode } from './dynamocode.js';
import { readCode } from './gocode.js';
import { codeField } from './field.js';
import { sqlTab } from './sql.js';

const operations = ['Query', 'Scan', 'GetItem', 'PutItem', 'UpdateItem', 'DeleteItem', 'BatchGetItem', 'BatchWriteItem', 'TransactGetItems', 'TransactWriteItems', 'CreateTable', 'UpdateTable', 'DeleteTable', 'DescribeTable', 'ListTables', 'UpdateTimeToLive', 'DescribeTimeToLive'];

/** sample returns an example request for a table, with one of its items if it has any. ttl is the attribute of its time to live. */
function sample(operation, t, item, ttl) {
  if (operation === 'CreateTable') return { TableName: 'orders', BillingMode: 'PAY_PER_REQUEST', KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }], AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }] };
  if (!t) return operation === 'ListTables' ? {} : { TableName: 'orders' };
  const type = (name) => t.AttributeDefinitions.find((a) => a.AttributeName === name).AttributeType;
  const value = (name) => item?.[name] ?? { [type(name)]: type(name) === 'N' ? '1' : type(name) === 'B' ? 'YQ==' : 'a' };
  const key = Object.fromEntries(t.KeySchema.map((k) => [k.AttributeName, value(k.AttributeName)]));
  switch (operation) {
    case 'Query': return { TableName: t.TableName, KeyConditionExpression: '#k = :k', ExpressionAttributeNames: { '#k': t.KeySchema[0].AttributeName }, ExpressionAttributeValues: { ':k': value(t.KeySchema[0].AttributeName) }, ReturnConsumedCapacity: 'TOTAL' };
    case 'Scan': return { TableName: t.TableName, Limit: 25, ReturnConsumedCapacity: 'TOTAL' };
    case 'GetItem': case 'DeleteItem': return { TableName: t.TableName, Key: key };
    case 'PutItem': return { TableName: t.TableName, Item: item ?? key };
    case 'UpdateItem': return { TableName: t.TableName, Key: key, UpdateExpression: 'SET #n = :v', ExpressionAttributeNames: { '#n': 'note' }, ExpressionAttributeValues: { ':v': { S: 'x' } } };
    case 'BatchGetItem': return { RequestItems: { [t.TableName]: { Keys: [key] } } };
    case 'BatchWriteItem': return { RequestItems: { [t.TableName]: [{ PutRequest: { Item: item ?? key } }] } };
    case 'TransactGetItems': return { TransactItems: [{ Get: { TableName: t.TableName, Key: key } }] };
    case 'TransactWriteItems': return { TransactItems: [{ Put: { TableName: t.TableName, Item: item ?? key } }] };
    case 'UpdateTimeToLive': return { TableName: t.TableName, TimeToLiveSpecification: { AttributeName: ttl ?? 'expires', Enabled: !ttl } };
    case 'ListTables': return {};
    default: return { TableName: t.TableName };
  }
}

function answered(answer, operation, keys) {
  const r = answer.response;
  const items = r.Items ?? (r.Item && [r.Item]) ?? (r.Attributes && [r.Attributes]);
  const capacity = capacityOf(operation, r);
  return [
    capacity && h('p', { class: 'soft' }, capacity, r.ScannedCount !== undefined && `, ${counted(r.ScannedCount, 'item')} read, ${number(r.Count)} returned`),
    answer.calls?.length > 0 && [h('h2', {}, `As Bigtable: ${counted(answer.calls.length, 'call')}`), callsShown(answer.calls)],
    items && [h('h2', {}, counted(items.length, 'item')), items.slice(0, 100).map((item) => h('table', { class: 'card' }, h('tbody', {}, ordered(item, keys).map(([name, v]) => h('tr', {}, h('th', { scope: 'row' }, exact(name)), h('td', {}, valueShown(v)))))))],
    h('details', { open: !items }, h('summary', {}, 'Full response'), h('pre', {}, shown(jsonText(r, 2), 100000))),
  ];
}

export async function show(main, { info, params }) {
  const tables = await get('tables');
  const result = h('div', { 'aria-live': 'polite' });
  const option = (value, label = value) => h('option', { value }, plain(label));
  const run = (act) => async () => {
    fill(result, h('p', { class: 'soft' }, 'Running…'));
    const began = performance.now();
    try {
      const shownAs = await act();
      fill(result, h('p', { class: 'soft' }, `${(performance.now() - began).toFixed(1)} ms, including the browser`), shownAs);
    } catch (err) { fill(result, errorBox(err)); }
  };

  // DynamoDB.
  const table = h('select', { 'aria-label': 'Table' });
  const none = h('div', { class: 'note' }, 'There are no tables yet. Run this request to create one.');
  const list = (names) => {
    fill(table, names.map((t) => option(t)));
    table.hidden = !(none.hidden = names.length > 0);
  };
  list(tables.dynamodb);
  const operation = h('select', { 'aria-label': 'Operation' }, operations.map((o) => option(o)));
  if (!none.hidden) operation.value = 'CreateTable';
  const request = h('textarea', { rows: 12, 'aria-label': 'The request, as JSON' });
  const requestField = codeField(request, 'json');
  let keys; // of the chosen table
  const begin = async () => {
    if (!none.hidden) list((await get('tables')).dynamodb); // one may have been created
    const t = table.value && await dynamo('DescribeTable', { TableName: table.value }).then((a) => a.response.Table, () => undefined);
    keys = t ? t.KeySchema.map((k) => k.AttributeName) : [];
    // The key of the first item, so that the first answer is not empty.
    const item = t && await dynamo('Scan', { TableName: table.value, Limit: 1 }).then((a) => a.response.Items[0], () => undefined);
    const ttl = t && operation.value === 'UpdateTimeToLive' && await dynamo('DescribeTimeToLive', { TableName: table.value }).then((a) => a.response.TimeToLiveDescription?.AttributeName, () => undefined);
    const text = jsonText(sample(operation.value, t, item, ttl || undefined), 2);
    request.rows = Math.max(12, Math.min(30, text.split('\n').length + 1));
    requestField.put(text);
  };
  table.addEventListener('change', begin);
  operation.addEventListener('change', begin);
  const dynamoTab = h('div', {}, none, h('div', { class: 'bar' }, operation, table), requestField.el,
    h('div', { class: 'bar' }, button('Run', run(async () => answered(await dynamo(operation.value, JSON.parse(request.value), true), operation.value, keys)), { class: 'primary' }),
      button('Copy as…', () => codeDialog('Copy the request', requestCode(info, operation.value, JSON.parse(request.value)))),
      button('Save access pattern', async () => {
        // The trace has the last answered request, with its calls.
        const body = JSON.stringify(JSON.parse(request.value));
        const { requests } = await get('requests' + query({ endpoint: 'dynamodb', operation: operation.value, status: 'OK', limit: 100 }));
        for (const r of requests) {
          if (r.table && r.table !== JSON.parse(body).TableName) continue;
          const whole = await get('requests/' + r.id);
          if (JSON.stringify(whole.request) !== body) continue;
          const pattern = await get(`requests/${r.id}/pattern`);
          save(pattern.file, pattern.text);
          return;
        }
        throw new Error('Run this request first: its response becomes part of the pattern.');
      }, { title: 'A file for the access folder of a fixture; tabletop migrate verify runs it on both endpoints. Run the request first.' })));

  // PartiQL.
  const statement = h('textarea', { rows: 5, 'aria-label': 'The statement', value: `SELECT * FROM "${tables.dynamodb[0] ?? 'orders'}"` });
  const partiTab = h('div', {}, statement, h('div', { class: 'bar' }, button('Run', run(async () => answered(await dynamo('ExecuteStatement', { Statement: statement.value, ReturnConsumedCapacity: 'TOTAL' }, true), 'ExecuteStatement')), { class: 'primary' })));

  // ReadRows.
  const native = tables.bigtable.filter((t) => !t.own && t.name.startsWith(`projects/${info.project}/`)).sort((a, b) => a.table.startsWith('_') - b.table.startsWith('_'));
  const at = h('select', { 'aria-label': 'Bigtable table' }, native.map((t, i) => option(i, `${t.instance}/${t.table}`)));
  const field = (name) => h('input', { class: 'mono', placeholder: name, 'aria-label': name, title: escapes });
  const [prefix, start, end] = ['Prefix', 'From', 'Before'].map(field);
  const most = h('input', { type: 'number', min: 1, max: 1000, value: 25, 'aria-label': 'Rows' });
  const reverse = h('input', { type: 'checkbox' });
  const match = field('Matching');
  const filter = h('textarea', { rows: 4, class: 'mono', 'aria-label': 'A filter, as JSON', placeholder: '{"chain": {"filters": [{"familyNameRegexFilter": "f"}, {"cellsPerColumnLimitFilter": 1}]}}' });
  const bound = (el) => el.value ? base64Of(unescaped(el.value)) : '';
  const rowsTab = h('div', {}, !native.length && h('div', { class: 'note' }, 'There are no Bigtable tables yet.'), h('div', { class: 'bar' }, at, prefix, start, end, match, h('label', {}, 'Rows', most), h('label', {}, reverse, 'Reverse')), codeField(filter, 'json').el,
    h('div', { class: 'bar' }, button('Run', run(async () => {
      const t = native[at.value];
      if (!t) throw new Error('Create a table first.');
      const { rows } = await get(`tables/${part(t.instance)}/${part(t.table)}/rows` + query({ prefix64: bound(prefix), start64: bound(start), end64: bound(end), match64: bound(match), filter: filter.value.trim(), limit: most.value, reverse: reverse.checked ? 'true' : '' }));
      return [h('h2', {}, counted(rows.length, 'row')), rows.map((r) => h('details', { open: rows.length < 6 }, h('summary', {}, bytesShown(r.key), h('small', {}, ` ${counted(r.cells.length, 'cell')}`)),
        h('table', {}, h('tbody', {}, r.cells.slice(0, 200).map((c) => h('tr', {}, h('td', { class: 'mono' }, plain(c.family) + ':', bytesShown(c.qualifier, 80)), h('td', { class: 'soft mono' }, timeOf(c.timestamp)), h('td', {}, bytesShown(c.value))))))))];
    }), { class: 'primary' }), copier('Copy as Go', () => readCode({ table: native[at.value]?.table ?? '', prefix: prefix.value, start: start.value, end: end.value, match: match.value, filter: filter.value, most: most.value, reverse: reverse.checked }))));

  const panels = { DynamoDB: dynamoTab, PartiQL: partiTab, SQL: sqlTab({ info, tables: tables.bigtable, run, asked: params }), ReadRows: rowsTab };
  const blank = () => fill(result, h('div', { class: 'blank' }, 'Run a request to see its response and its Bigtable calls.'));
  main.append(h('h1', {}, 'Query'), h('div', { class: 'query' }, h('div', {}, tabbed('Language', panels, blank, params.get('sql') ? 'SQL' : 'DynamoDB')), result));
  await begin();
  if (params.get('op')) {
    if (operations.includes(params.get('op'))) operation.value = params.get('op');
    else operation.append(h('option', { value: params.get('op'), selected: true }, plain(params.get('op'))));
    if (params.get('request')) request.value = jsonText(JSON.parse(params.get('request')), 2);
    else await begin();
  }
}
