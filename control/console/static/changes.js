// The changes since a snapshot: tables, rows with their cells, and DynamoDB items.
import { h, exact, plain, number } from './dom.js';
import { bytesShown, textOf, timeOf } from './bytes.js';
import { part, projectOf, query } from './api.js';
import { cellValueShown, numbersOf, valueShown } from './items.js';
import { partsShown } from './parts.js';

const marks = { added: '+', removed: '−', changed: '±' };

const countsSaid = (what, c) => ['added', 'removed', 'changed'].filter((how) => c[how]).map((how) => `${number(c[how])} ${how}`).join(', ').replace(/^(.+)$/, `${what}: $1`);

const cellRows = (list, mark, cls, numbers) => list?.map((c) => h('tr', { class: cls, 'data-edited': `${mark}${plain(c.family)}:${textOf(c.qualifier, 200)}` }, h('td', {}, mark), h('td', { class: 'mono' }, plain(c.family) + ':', bytesShown(c.qualifier, 80)), h('td', { class: 'mono soft' }, c.timestamp < 0 ? 'when it is written' : timeOf(c.timestamp)), h('td', {}, cellValueShown(c.value, 200, numbers))));

/** cellsShown returns the lines of a table: the removed cells, and the added ones. numbers are those of the items before and after. */
export const cellsShown = (row, numbers) => [cellRows(row.before, '−', 'gone', numbers), cellRows(row.after, '+', 'new', numbers)];

function itemShown(i) {
  const names = [...new Set([...Object.keys(i.before ?? {}), ...Object.keys(i.after ?? {})])].sort();
  return h('div', {}, h('b', {}, `${marks[i.change]} item of `, plain(i.table)), h('table', {}, h('tbody', {}, names.filter((n) => JSON.stringify(i.before?.[n]) !== JSON.stringify(i.after?.[n])).map((n) =>
    h('tr', {}, h('th', { scope: 'row' }, exact(n)), h('td', { class: 'gone' }, i.before?.[n] && valueShown(i.before[n])), h('td', {}, i.after?.[n] && valueShown(i.after[n])))))));
}

/** changesShown returns an element with the answer of snapshots/{name}/changes. */
export function changesShown(answer, info) {
  const to = answer.to ? `“${plain(answer.to)}”` : 'now';
  if (!answer.tables.length) return h('div', { class: 'note' }, `From “${plain(answer.from)}” to ${to} nothing changed${answer.cut ? ' in the compared rows' : ''}.`);
  return h('section', { class: 'card', 'data-changes': answer.from }, h('h2', {}, `From “${plain(answer.from)}” to ${to}`),
    answer.cut && h('div', { class: 'note warn' }, 'Only some of the rows were compared.'),
    answer.tables.map((t) => h('details', { open: answer.tables.length < 4, 'data-table': t.table }, h('summary', {}, h('b', {}, plain(t.table)), ' ', t.change !== 'changed' && `${t.change}, `, [countsSaid('rows', t.rows), countsSaid('items', t.items)].filter(Boolean).join('; ')),
      t.shown.map((row) => h('div', { class: 'item', 'data-row': row.change }, h('p', {}, marks[row.change], ' ',
        row.change === 'removed' || answer.to ? keyShown(row) : h('a', { href: `/t/${part(t.instance)}/${part(t.table)}/rows` + query({ project: projectOf(t.name) === info.project ? '' : projectOf(t.name), prefix: textOf(row.key, 4096) }) }, keyShown(row))),
      h('table', {}, h('tbody', {}, cellsShown(row, numbersOf(...(row.items ?? []).flatMap((i) => [i.before, i.after]))))), row.items?.map(itemShown), row.more > 0 && h('p', { class: 'soft' }, `and ${number(row.more)} more cells and items`))),
      t.shown.length < t.rows.added + t.rows.removed + t.rows.changed && h('p', { class: 'soft' }, `${number(t.rows.added + t.rows.removed + t.rows.changed - t.shown.length)} more rows are not shown.`))));
}

/** keyShown returns the key of a row, in its parts if they are known. */
export const keyShown = (row) => row.parts ? partsShown(row.parts) : bytesShown(row.key, 120);
