// Migration: the live tables that are followed; the fixtures of --fixtures, and the results of plan, verify and lint for them.
import { h, counted, fill, plain, shown, button, errorBox, lineShown, number, save } from './dom.js';
import { get, live, post, part, query } from './api.js';
import { show as followed } from './followed.js';
import { ruleLink } from './paths.js';
import { planShown } from './plan.js';
import { draftOf, workbench } from './workbench.js';

const row = (what, value, cls) => h('tr', {}, h('th', { scope: 'row' }, what), h('td', { class: cls }, value));

function findingShown(f) {
  return h('div', { class: 'note ' + (f.level === 'error' ? 'error' : f.level === 'warn' ? 'warn' : '') }, f.rule ? ruleLink(f.rule, f.name) : h('b', {}, plain(f.name ?? '')), ' ',
    shown([f.message, f.file && (f.line ? `${f.file}:${f.line}` : f.file), f.fix && 'fix: ' + f.fix].filter(Boolean).join(' · '), 2000));
}

/** rowLink returns a link to the row of a difference, if this server has the table: verify runs in a store of its own. */
function rowLink(f, info, tables) {
  if (!f.rowKeyHex || !tables.some((t) => t.table === f.table && t.instance === info.instance)) return null;
  const escaped = f.rowKeyHex.replace(/../g, (n) => '\\x' + n);
  return h('a', { href: `/t/${part(info.instance)}/${part(f.table)}/rows` + query({ prefix: escaped }) }, 'Row');
}

/**
 * reportShown returns an element with a report; link(failure) returns a link to the item of a difference. A report
 * without laid-out items, as of lint, omits rows.
 */
function reportShown(r, laidOut, info, tables, link) {
  return [
    h('table', {}, h('tbody', {}, row('Items', number(r.items ?? 0)), laidOut && row('Rows', number(r.rows ?? 0)), laidOut && row('Differences', number(r.differences ?? 0), r.differences ? 'bad' : 'ok'),
      r.lint && row('Lint', `${counted(r.lint.errors ?? 0, 'error')}, ${counted(r.lint.warnings ?? 0, 'warning')}`))),
    r.failures?.length > 0 && [h('h2', {}, 'Differences'), r.failures.map((f) => h('div', { class: 'note error' }, h('b', {}, plain([f.kind, f.check].filter(Boolean).join(', '))), ' ', rowLink(f, info, tables), ' ', f.itemKey && link(f),
      h('table', {}, h('tbody', {}, Object.entries(f).filter(([name, v]) => typeof v === 'string' && name !== 'kind' && name !== 'check').map(([name, v]) => row(name, shown(v, 2000)))))))],
    r.tables?.length > 0 && [h('h2', {}, 'Tables'), r.tables.map((t) => h('section', { class: 'card' }, h('h2', {}, plain(`${t.name} → ${t.target}`)), h('p', {}, counted(t.items, 'item'), laidOut && ` in ${counted(t.rows, 'row')}, ${counted(t.cells, 'cell')}`),
      t.fidelity?.length > 0 && h('details', {}, h('summary', {}, 'Fidelity of attributes'), h('table', {}, h('tbody', {}, t.fidelity.map((f) => h('tr', {}, h('td', {}, plain(f.rule)), h('td', {}, plain(f.attribute)), h('td', { class: f.class === 'lossy' ? 'bad' : '' }, plain(f.class)), h('td', { class: 'soft' }, plain(f.why ?? ''))))))),
      t.samples?.length > 0 && h('details', {}, h('summary', {}, 'Sample items and their rows'), t.samples.map((s) => h('div', { class: 'split' }, h('pre', {}, shown(s.item, 4000)), h('pre', {}, shown(s.row, 4000)))))))],
    r.patterns?.length > 0 && [h('h2', {}, 'Access patterns'), h('table', {}, h('tbody', {}, r.patterns.map((p) => h('tr', {}, h('td', { class: 'mono' }, plain(p.id)), h('td', {}, plain(p.title ?? '')), h('td', { class: p.differences ? 'bad' : 'ok' }, p.differences ? counted(p.differences, 'difference') : 'equal'), h('td', { class: 'soft' }, plain((p.endpoints ?? []).join(' and ')))))))],
    r.lint?.findings?.length > 0 && [h('h2', {}, 'Lint'), r.lint.findings.map(findingShown)],
  ];
}

/** runShown returns the progress of a run, of this page or of another client. */
function runShown(r) {
  const far = r.phase && `: ${r.phase} ${number(r.items)}${r.total < 0 ? '' : ` of ${number(r.total)}`}`;
  return h('span', { class: 'soft', 'data-run': `${r.verb} ${r.fixture}` }, plain(`${r.verb} of ${r.fixture}`), far, ' ',
    h('progress', { 'aria-label': plain(`${r.verb} of ${r.fixture}`), ...(r.phase && r.total > 0 ? { max: r.total, value: r.items } : {}) }));
}

export async function show(main, { info, params, signal }) {
  const running = h('span', { class: 'runs' });
  live.addEventListener('runs', ({ detail }) => fill(running, detail.runs.map(runShown)), { signal }); // the first one comes at once
  main.append(h('h1', {}, 'Migration'));
  await followed(main, { info, signal });
  main.append(h('h2', {}, 'Fixtures'));
  let names;
  try {
    names = (await get('migrate')).fixtures;
  } catch (err) {
    if (err.code !== 'no_fixtures') throw err;
    main.append(h('div', { class: 'note' }, h('p', {}, 'The server has no folder of fixtures (--fixtures). A fixture is a folder with DynamoDB items, a mapping and access patterns. To use the shipped ones:'),
      lineShown('tabletop demo --write fixtures\ntabletop serve --console 127.0.0.1:8088 --fixtures fixtures')));
    return;
  }
  // Another page leads back to the fixture.
  const chosen = 'fixture', wanted = params.get('fixture') ?? sessionStorage.getItem(chosen);
  const choose = () => {
    sessionStorage.setItem(chosen, which.value);
    history.replaceState(null, '', '/migration' + query({ fixture: which.value }));
    delete out.dataset.previewed;
    if (out.querySelector('.workbench')) edit().catch((err) => fill(out, errorBox(err)));
  };
  const which = h('select', { 'aria-label': 'Fixture', onchange: choose }, names.map((n) => h('option', { value: n, selected: n === wanted }, plain(n))));
  const out = h('div', { 'aria-live': 'polite' }, names.length > 0 && h('p', { class: 'soft' }, 'Verify writes the items to a private store, reads them back, compares the rows with the expected ones, and runs every access pattern on both endpoints.'));
  /** run shows the result of a command for a fixture with a mapping text, by default its own. */
  async function run(fixture, verb, mapping, into, link) {
    fill(into, h('p', { class: 'soft' }, `Running ${verb}…`));
    try {
      const r = await post('migrate/' + verb, { fixture, mapping });
      fill(into, h('div', { class: 'bar', 'data-report': `${verb} ${fixture}` }, h('b', {}, plain(`${verb[0].toUpperCase() + verb.slice(1)} of ${fixture}`)), button('Save as JSON', () => save(`${fixture}-${verb}.json`, JSON.stringify(r, null, 2)))),
        verb === 'plan' ? planShown(r) : reportShown(r, verb === 'verify', info, (await get('tables')).bigtable, link));
    } catch (err) { fill(into, errorBox(err)); }
  }
  const edit = (item) => {
    const fixture = which.value;
    sessionStorage.setItem(chosen, fixture);
    return workbench(out, fixture, (verb, text, into, to) => run(fixture, verb, text, into, (f) => button('Item and row', () => to(f.itemKey))), item);
  };
  const verb = (label, props) => button(label, () => {
    delete out.dataset.previewed;
    return run(which.value, label.toLowerCase(), undefined, out, (f) => h('a', { href: '/migration' + query({ fixture: which.value, item: f.itemKey }) }, 'Item and row'));
  }, props);
  main.append(names.length ? h('div', { class: 'bar' }, which, verb('Verify', { class: 'primary' }), verb('Lint'), verb('Plan'), button('Edit mapping', () => edit()), running)
    : h('div', { class: 'note' }, 'The folder has no fixtures. Each fixture is a folder inside it.'), out);
  if (names.includes(wanted) && (params.has('item') || params.has('edit') || draftOf(wanted) !== null)) await edit(params.get('item')).catch((err) => fill(out, errorBox(err)));
}
