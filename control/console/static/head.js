// The head of the pages of a table: its name, a menu of the other tables, and tabs.
import { h, plain } from './dom.js';
import { part } from './api.js';
import { go } from './app.js';
import { keysPath, rowsPath, streamsPath, tablePath, tabs } from './paths.js';

const most = 300; // tables in the menu

/** placesOf returns the page like this one of each table: [label, path]. Internal tables come last. */
export function placesOf(here, tables, info) {
  if (here === 'Items') return tables.dynamodb.map((name) => [name, '/d/' + part(name)]);
  const path = { Rows: rowsPath, Table: tablePath, Keys: keysPath, Streams: (t) => streamsPath(t, info, t.dynamodb?.[0]) }[here];
  const label = (t) => (t.instance === info.instance ? '' : t.instance + ' / ') + t.table + (t.dynamodb?.length ? ` (${t.dynamodb.join(', ')})` : '');
  return tables.bigtable.filter((t) => !t.own).sort((a, b) => a.table.startsWith('_') - b.table.startsWith('_')).map((t) => [label(t), path(t, info)]);
}

/** switcher returns a menu that opens the page like this one of another table. */
function switcher(here, tables, info) {
  const places = placesOf(here, tables, info);
  if (places.length < 2) return null;
  const menu = h('select', { 'aria-label': 'Switch table', onchange: () => go(menu.value) }, h('option', { value: '', selected: true, hidden: true }, 'Switch table…'),
    places.slice(0, most).map(([label, path]) => h('option', { value: path }, plain(label))), places.length > most && h('option', { value: '/' }, 'All tables…'));
  return menu;
}

/** headOf returns the head of a page of a Bigtable table, t, or of a DynamoDB table. dynamodb are the names of the DynamoDB tables in its rows. */
export const headOf = (here, { name, about, t, dynamodb = [], tables, info }) => [
  h('div', { class: 'title' }, h('h1', {}, plain(name), h('small', {}, about)), switcher(here, tables, info)), tabs(here, t, info, dynamodb)];
