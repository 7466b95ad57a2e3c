// View: the statement of a view, and the rows of a materialized one.
import { h, exact, fill, plain, shown, dialog, errorBox, virtual, number, counted, size } from './dom.js';
import { base64Of, bytesOf, bytesShown, escapes, int64Of, lengthOf, meanings, textOf, timeOf, unescaped } from './bytes.js';
import { get, part, projectOf, query } from './api.js';
import { tablePath, viewPath } from './paths.js';
import { refresh, stateShown } from './views.js';

export async function show(main, { args: [instance, id], info, params, signal, again }) {
  const project = params.get('project');
  const { views, lag } = await get('views');
  const here = views.filter((v) => v.instance === instance && projectOf(v.name) === (project ?? info.project));
  const v = here.find((x) => x.view === id);
  if (!v) throw new Error(`There is no view ${plain(id)}. Home lists the views.`);
  const named = (name) => here.find((x) => x.view === name);
  const source = (name) => h('a', { href: named(name) ? viewPath(named(name), info) : tablePath({ name: v.name, instance, table: name }, info) }, plain(name));
  const row = (what, ...text) => h('tr', {}, h('th', { scope: 'row' }, what), h('td', {}, text));
  main.append(h('h1', {}, plain(id), h('small', {}, `${v.kind} view in ${plain(instance)}`)), h('pre', { class: 'data' }, shown(v.query, 100000)),
    h('table', {}, h('tbody', {}, row('Reads', v.reads.length ? v.reads.map((name, i) => [i > 0 && ', ', source(name)]) : 'a table that does not exist'),
      row('Columns', v.columns.map((c, i) => [i > 0 && ', ', h('span', { class: 'nowrap' }, h('code', {}, exact(c.name)), ' ', h('span', { class: 'type' }, plain(c.type)))])), row('State', stateShown(v, lag)))));
  const sql = '/query' + query({ sql: `SELECT * FROM \`${id}\` LIMIT 25`, instance });
  main.append(h('div', { class: 'bar' }, h('a', { href: sql }, 'Open in Query'), v.kind === 'materialized' && lag !== '0s' && refresh(again)));
  if (v.kind === 'materialized') await rowsShown(main, v, project, signal);
}

/** rowsShown appends the rows of a view, which can only be read. */
async function rowsShown(main, v, project, signal) {
  main.classList.add('full');
  // Numbers are eight bytes in a cell that is named after its column.
  const numbers = new Set(v.columns.filter((c) => c.type === 'INT64').map((c) => c.name.includes('.') ? c.name.replace('.', ':') : 'default:' + c.name));
  const numberIn = (c) => numbers.has(`${c.family}:${c.qualifier.text}`) && lengthOf(c.value) === 8 ? int64Of(bytesOf(c.value)) : undefined;
  const prefix = h('input', { class: 'mono', size: 14, 'aria-label': 'Prefix', placeholder: 'Prefix', title: escapes });
  const count = h('small', { 'aria-live': 'polite' });
  let rows = [], cursor, loading, done = false, generation = 0;
  const list = virtual({
    label: 'Row keys', count: () => rows.length, key: (i) => rows[i], pick: (i) => draw(rows[i]), end: () => more(),
    line: (i) => h('div', {}, h('span', { class: 'grow' }, bytesShown(rows[i].key)), h('span', { class: 'soft' }, number(rows[i].cells.length))),
  });
  const cells = h('section', { class: 'wide' }, h('h2', {}, 'Cells'), h('div', { class: 'scroll soft' }, 'Select a row.'));
  async function more() {
    if (loading || done) return;
    const mine = generation;
    loading = true;
    try {
      const page = await get(`views/${part(v.instance)}/${part(v.view)}/rows` + query({ project, prefix64: prefix.value && base64Of(unescaped(prefix.value)), cursor }));
      if (mine !== generation || signal.aborted) return;
      rows.push(...page.rows);
      cursor = page.cursor;
      done = !cursor;
      count.textContent = `${counted(rows.length, 'row')}${done ? '' : ', and more'}`;
      list.redraw();
    } catch (err) {
      done = true;
      fill(cells.lastChild, errorBox(err));
    } finally { if (mine === generation) loading = false; }
  }
  async function read() {
    generation++;
    rows = []; cursor = undefined; done = false; loading = false;
    list.chosen = -1;
    fill(cells, h('h2', {}, 'Cells'), h('div', { class: 'scroll soft' }, 'Select a row.'));
    await more();
    if (rows.length) list.choose(0);
  }
  function draw({ key, cells: all }) {
    fill(cells, h('h2', {}, h('span', { title: textOf(key) }, 'Cells of ', bytesShown(key, 120))), virtual({
      label: 'Cells', height: 28, count: () => all.length, key: (i) => all[i],
      line: (i) => h('div', {}, h('span', { class: 'w240 mono' }, plain(all[i].family) + ':', all[i].qualifier.base64 && bytesShown(all[i].qualifier, 80)), h('span', { class: 'soft mono whole millis' }, timeOf(all[i].timestamp)),
        h('span', { class: 'grow' }, numberIn(all[i]) ? [h('span', { class: 'mono' }, numberIn(all[i])), h('span', { class: 'type' }, ' int64')] : bytesShown(all[i].value, 160)), h('span', { class: 'soft' }, size(lengthOf(all[i].value)))),
      pick: (i) => dialog('Cell', h('table', {}, h('tbody', {}, [['Family', all[i].family], ['Qualifier', textOf(all[i].qualifier, 16 << 10)], ['Timestamp', `${all[i].timestamp} µs, ${timeOf(all[i].timestamp)}`], ...meanings(all[i].value)].map(([what, text]) =>
        h('tr', {}, h('th', { scope: 'row' }, what), h('td', {}, shown(text, 4000))))))),
    }).el);
  }
  main.append(h('form', { class: 'bar', onsubmit: (e) => { e.preventDefault(); read(); } }, prefix, h('button', {}, 'Read'), count),
    h('div', { class: 'split' }, h('section', {}, h('h2', {}, 'Keys'), list.el), cells));
  await read();
}
