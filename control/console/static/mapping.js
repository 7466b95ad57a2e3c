// The mapping of a table: its file in a fixture, the treatment of each attribute, and the findings of lint.
import { h, fill, plain, shown, button, errorBox, number } from './dom.js';
import { get, post, part, query } from './api.js';
import { ruleLink } from './paths.js';

/** targetOf returns the table of a mapping text; "" if the text has none. */
export function targetOf(text) {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => /^target:/.test(line));
  if (at < 0) return '';
  let end = at + 1;
  while (end < lines.length && !/^[^\s#]/.test(lines[end])) end++;
  const m = lines.slice(at, end).join('\n').match(/[\s{,]table:\s*(?:"([^"]*)"|'([^']*)'|([^\s,}#]+))/);
  return m ? m[1] ?? m[2] ?? m[3] : '';
}

/** mappingShown returns an element that finds the fixture of a table on request. */
export function mappingShown(table) {
  const out = h('div', { 'aria-live': 'polite', 'data-mapping': '' });
  const all = h('div');
  const find = button('Show mapping and lint findings', async () => {
    fill(out, h('p', { class: 'soft' }, 'Loading…'));
    try {
      const { fixtures } = await get('migrate');
      const texts = await Promise.all(fixtures.map((name) => get('migrate/' + part(name)).then((a) => [name, a.mapping], () => [name, ''])));
      const found = texts.filter(([, text]) => targetOf(text) === table);
      fill(out, found.length ? await Promise.all(found.map(([name, text]) => fixtureShown(name, text)))
        : h('div', { class: 'note' }, `None of the ${number(fixtures.length)} fixtures has a mapping for the table ${plain(table)}.`));
    } catch (err) { fill(out, errorBox(err)); }
    all.scrollIntoView(); // the button is often at the lower edge of the window
  });
  return fill(all, h('h2', {}, 'Mapping'), h('p', { class: 'soft' }, 'The mapping file of the fixture for this table, and how it stores each attribute.'), h('div', { class: 'bar' }, find), out);
}

const kind = { lossless: 'ok', lossy: 'bad' };

async function fixtureShown(name, text) {
  const [plan, judged] = await Promise.all([post('migrate/plan', { fixture: name }), post('migrate/preview', { fixture: name })]);
  const fidelity = (plan.tables ?? []).flatMap((t) => t.fidelity ?? []);
  return h('section', { class: 'card' }, h('h2', {}, h('a', { href: '/migration' + query({ fixture: name }) }, plain(name))),
    judged.problems.map((f) => h('div', { class: 'note error' }, shown(f.text, 2000))), judged.unjudged && h('div', { class: 'note' }, shown(judged.unjudged, 1000)),
    judged.findings?.map((f) => h('div', { class: 'note ' + (f.level === 'error' ? 'error' : f.level === 'warn' ? 'warn' : ''), 'data-finding': f.rule }, ruleLink(f.rule, f.name), ' ', shown(f.message, 1000), f.fix && h('small', {}, ' · ', plain(f.fix)))),
    !judged.findings?.length && !judged.unjudged && h('p', { class: 'soft' }, 'No lint findings.'),
    fidelity.length > 0 && h('table', {}, h('thead', {}, h('tr', {}, ['Rule', 'Attribute', 'Fidelity', 'Items', 'Reason'].map((t) => h('th', { scope: 'col' }, t)))), h('tbody', {}, fidelity.map((f) =>
      h('tr', { 'data-fidelity': f.class }, h('td', {}, plain(f.rule)), h('td', { class: 'mono' }, plain(f.attribute)), h('td', { class: kind[f.class] ?? '' }, plain(f.class)), h('td', {}, f.items ? number(f.items) : ''), h('td', { class: 'soft' }, shown(f.why ?? '', 400)))))),
    h('details', {}, h('summary', {}, 'mapping.yaml'), h('pre', { class: 'data' }, text)));
}
