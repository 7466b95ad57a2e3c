// The paths of the pages of a table, and the links between them.
import { h, plain } from './dom.js';
import { part, projectOf, query } from './api.js';
import { textOf } from './bytes.js';

const elsewhere = (t, info) => projectOf(t.name) === info.project ? '' : projectOf(t.name);

/** tablePath returns the path of a Bigtable table's page. */
export const tablePath = (t, info) => `/t/${part(t.instance)}/${part(t.table)}` + query({ project: elsewhere(t, info) });

/** rowsPath returns the path of its rows, or of those with a prefix. */
export const rowsPath = (t, info, prefix) => `/t/${part(t.instance)}/${part(t.table)}/rows` + query({ project: elsewhere(t, info), prefix: prefix && textOf(prefix, 4096) });

/** itemRowPath returns the path of the row of an item, with its cells marked. */
export const itemRowPath = (t, info, row, table, key) => {
  const path = rowsPath(t, info, row);
  return path + query({ of: table, item: JSON.stringify(key) }).replace('?', path.includes('?') ? '&' : '?');
};

/**
 * indexed returns the table of an index that has a table of its own; undefined for any other table. named are the listed tables by name:
 * that of an index is named after its table, with two underscores and the name of the index.
 */
export function indexed(t, named) {
  for (let i = t.table.lastIndexOf('__'); i > 0; i = t.table.lastIndexOf('__', i - 1)) {
    const base = named.get(t.name.slice(0, t.name.length - t.table.length) + t.table.slice(0, i));
    if (base?.dynamodb && !t.dynamodb) return base;
  }
  return undefined;
}

/** viewPath returns the path of the page of a view. */
export const viewPath = (v, info) => `/v/${part(v.instance)}/${part(v.view)}` + query({ project: elsewhere(v, info) });

/** keysPath returns the path of its heat map. */
export const keysPath = (t, info) => `/keys/${part(t.instance)}/${part(t.table)}` + query({ project: elsewhere(t, info) });

/** tableNamed returns the table with a resource name. */
export const tableNamed = (name) => ({ name, instance: name.split('/')[3], table: name.split('/')[5] });

/** historyPath returns the path of the history of a row. */
export const historyPath = (t, info, key) => `/history/${part(t.instance)}/${part(t.table)}` + query({ project: elsewhere(t, info), key: textOf(key, 4096) });

/** itemHistoryPath returns the path of the history of an item, which is that of its row. */
export const itemHistoryPath = (table, item) => `/history/${part(table.slice(table.lastIndexOf('/') + 1))}` + query({ item: JSON.stringify(item) });

/** itemPath returns the path of an item of a DynamoDB table. */
export const itemPath = (table, key) => `/d/${part(table)}` + query({ key: JSON.stringify(key) });

/** streamsPath returns the path of the streams of a Bigtable table and a DynamoDB table, or of one row and item. */
export const streamsPath = (t, info, dynamodb, row, key) => '/streams' + query({
  project: t && elsewhere(t, info), bigtable: t && `${t.instance}/${t.table}`, dynamodb, row: row && textOf(row, 4096), key: key && JSON.stringify(key),
});

/** callsPath returns the path of the Bigtable calls at a row, with own also of the console's calls. A filter is made of words: one of the key's is enough to find them. */
export const callsPath = (t, row, own) => '/requests' + query({ f: `table:${t.table} key:${textOf(row, 4096).replace(/^!+/, '').split(/\s/).sort((a, b) => b.length - a.length)[0]}`, calls: 'true', own: own && 'true' });

/** ruleLink returns a link to the document of a rule of lint. */
export const ruleLink = (rule, name) => h('a', { href: `/docs/lint#${rule}-${name}`.toLowerCase() }, plain(`${rule} ${name}`));

/** tabs returns the links between the pages of a table, t, with its DynamoDB tables; here is the present page. */
export function tabs(here, t, info, dynamodb = []) {
  const all = [
    ...dynamodb.map((name) => ['/d/' + part(name), dynamodb.length > 1 ? `Items of ${name}` : 'Items']),
    t && [rowsPath(t, info), 'Rows'], t && [tablePath(t, info), 'Table'], t && [keysPath(t, info), 'Keys'],
    [streamsPath(t, info, dynamodb[0]), 'Streams'], ['/requests' + query({ f: 'table:' + (here === 'Items' || !t ? dynamodb[0] : t.table) }), 'Requests'],
  ];
  return h('nav', { class: 'tabs', 'aria-label': 'Pages of the table' }, all.filter(Boolean).map(([href, label]) => h('a', { href, 'aria-current': label === here ? 'page' : undefined }, label)));
}
