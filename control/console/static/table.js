// Table: families with their rules in words, splits, and the DynamoDB table over it.
import { h, shown, plain, errorBox, number } from './dom.js';
import { bytesShown } from './bytes.js';
import { get, dynamo, part, query } from './api.js';
import { inWords } from './rules.js';
import { keysPath, rowsPath } from './paths.js';

const keyText = (schema) => schema.map((k) => `${k.AttributeName} (${k.KeyType === 'HASH' ? 'partition' : 'sort'})`).join(', ');

/** segmentSaid says what a segment of a row key is. */
function segmentSaid(g) {
  if (!g.encoders?.length) return 'always the same';
  return [g.attributes?.length ? 'of ' + g.attributes.join(' and ') : g.encoders.join(' and '), g.time && 'a time', g.reversed && 'greater values first', g.unordered && 'in no order of the values'].filter(Boolean).join(', ');
}

async function dynamoTable(name) {
  const { response: { Table: t } } = await dynamo('DescribeTable', { TableName: name });
  const ttl = await dynamo('DescribeTimeToLive', { TableName: name }).then((a) => a.response.TimeToLiveDescription, () => undefined);
  const row = (what, text) => h('tr', {}, h('th', { scope: 'row' }, what), h('td', {}, shown(text)));
  const indexes = [...(t.GlobalSecondaryIndexes ?? []).map((i) => ['global', i]), ...(t.LocalSecondaryIndexes ?? []).map((i) => ['local', i])];
  return h('section', { class: 'card' }, h('h2', {}, h('a', { href: '/d/' + part(name) }, plain(name))), h('table', {}, h('tbody', {},
    row('key', keyText(t.KeySchema)),
    row('attributes', t.AttributeDefinitions.map((a) => `${a.AttributeName}: ${a.AttributeType}`).join(', ')),
    row('capacity', t.BillingModeSummary?.BillingMode === 'PAY_PER_REQUEST' ? 'on demand' : `${t.ProvisionedThroughput?.ReadCapacityUnits} reads, ${t.ProvisionedThroughput?.WriteCapacityUnits} writes a second`),
    row('time to live', ttl?.AttributeName ? `${ttl.AttributeName} (${ttl.TimeToLiveStatus.toLowerCase()})` : 'none'),
    row('items, last counted', number(t.ItemCount ?? 0)),
    indexes.map(([kind, i]) => row(`${kind} index`, `${i.IndexName}: ${keyText(i.KeySchema)}, ${i.Projection.ProjectionType.toLowerCase()}`)))));
}

export async function show(main, { args: [instance, id], info, params }) {
  const project = params.get('project');
  const at = `tables/${part(instance)}/${part(id)}`;
  const [t, tables] = await Promise.all([get(at + query({ project })), get('tables')]);
  const names = tables.bigtable.find((b) => b.name === t.name)?.dynamodb ?? [];
  main.append(h('h1', {}, plain(`${instance} / ${id}`)),
    h('div', { class: 'bar' }, h('a', { href: rowsPath(t, info) }, 'Rows'), h('a', { href: keysPath(t, info) }, 'Keys'),
      h('a', { href: '/streams' + query({ project, bigtable: `${t.instance}/${t.table}`, dynamodb: names[0] }) }, 'Streams'),
      h('a', { href: '/requests?f=' + part('table:' + id) }, 'Requests')),
    h('p', { class: 'soft mono data' }, plain(t.name)));
  main.append(h('h2', {}, 'Families'));
  if (!t.families.length) main.append(h('div', { class: 'note' }, 'The table has no families, so no cell can be written. A client adds one by ModifyColumnFamilies, or: ', h('code', {}, `cbt createfamily ${plain(id)} f`)));
  else main.append(h('table', {}, h('thead', {}, h('tr', {}, ['family', 'rule', 'in words'].map((x) => h('th', { scope: 'col' }, x)))), h('tbody', {}, t.families.map((f) =>
    h('tr', {}, h('td', { class: 'mono' }, plain(f.name)), h('td', { class: 'mono' }, plain(f.gc)), h('td', {}, plain(inWords(f.gc))))))));
  if (t.splits?.length) main.append(h('h2', {}, `${t.splits.length} initial splits`), h('div', {}, t.splits.slice(0, 200).map((s) => h('div', {}, bytesShown(s)))));
  if (t.keys?.length) main.append(h('h2', {}, 'Row keys'), h('table', {}, h('thead', {}, h('tr', {}, ['rule', 'segments', 'in words'].map((x) => h('th', { scope: 'col' }, x)))), h('tbody', {}, t.keys.map((k) =>
    h('tr', {}, h('td', {}, plain(k.rule), h('small', {}, ' of ', plain(k.table))), h('td', { class: 'mono' }, k.segments.map((g, i) => [i > 0 && h('span', { class: 'soft' }, ' · '), h('span', { class: 'part', title: plain(segmentSaid(g)) }, plain(g.template))])),
      h('td', { class: 'soft' }, plain(k.segments.map(segmentSaid).join('; '))))))));
  main.append(h('h2', {}, 'DynamoDB tables whose items its rows are'));
  if (!names.length) main.append(h('p', { class: 'soft' }, 'None: the rows are asked for by Bigtable clients alone.'));
  for (const name of names) main.append(await dynamoTable(name).catch(errorBox));
}
