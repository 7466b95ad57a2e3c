// The tab of Query for Bigtable's SQL.
import { h, exactShown, fill, jsonText, plain, shown, button, copier, number, counted } from './dom.js';
import { post, query } from './api.js';
import { shellOf } from './code.js';
import { codeField } from './field.js';

const types = ['STRING', 'BYTES', 'INT64', 'FLOAT64', 'BOOL', 'DATE', 'TIMESTAMP', 'ARRAY<STRING>', 'ARRAY<BYTES>', 'ARRAY<INT64>'];

/** placeOf returns the line and the column in the text of an error of a query. */
function placeOf(err) {
  const m = err.message.match(/\[at (\d+):(\d+)\]/);
  return m && { line: Number(m[1]), column: Number(m[2]) };
}

// columnOf returns a column of a line by that of GoogleSQL, which counts characters, and the columns that a tab fills.
function columnOf(line, column) {
  let at = 1, n = 0;
  for (const c of line) {
    if (at >= column) break;
    at += c === '\t' ? 8 - (at - 1) % 8 : 1;
    n += c.length;
  }
  return n + 1;
}

function cellShown(v) {
  if (v === null) return h('span', { class: 'soft' }, 'NULL');
  return typeof v === 'string' ? exactShown(v) : shown(typeof v === 'object' ? jsonText(v) : String(v));
}

function answered({ columns, rows, more, request }, asJSON) {
  const of = (row) => Object.fromEntries(columns.map((c, i) => [c.name, row[i]]));
  return [
    h('p', { class: 'soft' }, counted(rows.length, 'row'), more ? ', and more' : '', request && [`, ${counted(request.rowsRead ?? 0, 'row')} of tables read · `, h('a', { href: '/requests' + query({ id: request.id }) }, 'Request')]),
    asJSON ? h('pre', {}, shown(rows.map((row) => jsonText(of(row)) + '\n').join(''), 100000))
      : h('div', { class: 'scroll' }, h('table', { class: 'plan' }, h('thead', {}, h('tr', {}, columns.map((c) => h('th', { scope: 'col' }, plain(c.name), ' ', h('small', {}, plain(c.type)))))),
        h('tbody', {}, rows.map((row) => h('tr', {}, row.map((v) => h('td', {}, cellShown(v)))))))),
  ];
}

/** sqlTab returns the tab; run(act) returns a function that shows the result of act, or its error. asked, the parameters of the page, may have the query and its instance. */
export function sqlTab({ info, tables, run, asked }) {
  const own = tables.filter((t) => t.name.startsWith(`projects/${info.project}/`));
  const instances = [...new Set([info.instance, ...own.map((t) => t.instance)])];
  const instance = h('select', { 'aria-label': 'Instance' }, instances.map((i) => h('option', { value: i, selected: i === asked.get('instance') }, plain(i))));
  const first = own.find((t) => t.instance === info.instance && !t.own && !t.table.startsWith('_'))?.table ?? 'orders';
  const text = h('textarea', { rows: 5, 'aria-label': 'The SQL query', value: asked.get('sql') ?? `SELECT * FROM \`${first}\` LIMIT 25` });
  const field = codeField(text, 'sql');
  text.addEventListener('input', () => field.mark([]));
  const params = h('div', { class: 'bar' });
  const add = () => {
    const name = h('input', { class: 'mono', size: 8, placeholder: 'Name', 'aria-label': 'Name of a parameter' });
    const type = h('select', { 'aria-label': 'Type of a parameter' }, types.map((t) => h('option', { value: t }, t)));
    const value = h('input', { class: 'mono', placeholder: 'Value', 'aria-label': 'Value of a parameter' });
    const line = h('span', { class: 'bar' }, '@', name, type, value, button('Remove', () => line.remove()));
    line.param = () => `${name.value}:${type.value}=${value.value}`;
    params.append(line);
    name.focus();
  };
  const given = () => [...params.children].map((line) => line.param());
  const json = h('input', { type: 'checkbox' });
  const result = h('div');
  let last;
  const draw = () => { if (last) fill(result, answered(last, json.checked)); };
  json.addEventListener('change', draw);
  const ask = async () => {
    field.mark([]);
    last = undefined;
    try {
      last = await post('sql', { query: text.value, instance: instance.value, params: given() });
    } catch (err) {
      const place = placeOf(err);
      if (place) field.mark([{ line: place.line, column: columnOf(text.value.split('\n')[place.line - 1] ?? '', place.column), level: 'error', text: err.message }]);
      throw err;
    }
    draw();
    return result;
  };
  return h('div', {}, h('div', { class: 'bar' }, instances.length > 1 && instance, button('Add parameter', add)), params, field.el,
    h('div', { class: 'bar' }, button('Run', run(ask), { class: 'primary' }), h('label', {}, json, 'Show as JSON'),
      copier('Copy for tabletop sql', () => ['tabletop sql', shellOf(text.value), ...given().map((p) => '--param ' + shellOf(p)), `--target ${info.bigtable} --project ${shellOf(info.project)} --instance ${shellOf(instance.value)}`].join(' '))));
}
