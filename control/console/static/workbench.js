// The workbench: a mapping as text, the resulting rows of items while it is typed, and the findings of lint.
import { h, counted, exact, fill, plain, shown, button, copier, errorBox, number, save } from './dom.js';
import { bytesShown, timeOf } from './bytes.js';
import { get, post, part } from './api.js';
import { codeField } from './field.js';
import { cellValueShown, numbersOf, valueShown } from './items.js';
import { partsShown } from './parts.js';
import { ruleLink } from './paths.js';

const pause = 100; // ms after the last key

const draftName = (fixture) => 'mapping of ' + fixture;

/** draftOf returns the changed mapping of a fixture, which this tab keeps until it is discarded; null if the text is unchanged. */
export const draftOf = (fixture) => sessionStorage.getItem(draftName(fixture));

const nameOf = (c) => `${c.family}:${c.qualifier.base64}@${c.timestamp}=${c.value.base64}`;

function cellLine(c, i, mark, numbers) {
  return h('tr', { class: mark, 'data-cell': i }, h('td', { class: 'mono' }, plain(c.family) + ':', bytesShown(c.qualifier, 80), h('small', {}, timeOf(c.timestamp))), h('td', {}, cellValueShown(c.value, 400, numbers)));
}

/** rowShown returns the cells of an item; new cells are marked, and cells only of the previous mapping are struck through. */
function rowShown(item) {
  const was = new Set(item.was?.cells.map(nameOf));
  const is = new Set(item.row?.cells.map(nameOf));
  const numbers = numbersOf(item.item);
  const moved = item.was && item.row && item.was.key.base64 !== item.row.key.base64;
  return [
    item.row && h('p', {}, h('small', {}, 'Row '), item.parts?.length ? partsShown(item.parts) : bytesShown(item.row.key, 200)),
    (moved || item.was && !item.row) && h('p', { class: 'gone' }, h('small', {}, 'Row '), bytesShown(item.was.key, 200)),
    h('table', {}, h('tbody', {}, item.row?.cells.map((c, i) => cellLine(c, i, item.was && (moved || !was.has(nameOf(c))) ? 'new' : '', numbers)),
      item.was?.cells.filter((c) => moved || !is.has(nameOf(c))).map((c) => cellLine(c, undefined, 'gone', numbers)))),
  ];
}

function itemShown(item) {
  const lost = new Map(item.lost?.map((l) => [l.attribute, l.why]));
  const el = h('section', { class: 'card preview', 'data-item': item.key, 'data-changed': item.changed ? 'true' : undefined });
  const light = (cells, on) => { for (const c of el.querySelectorAll('[data-cell]')) c.classList.toggle('lit', on && cells.includes(Number(c.dataset.cell))); };
  const attributes = new Map(item.attributes?.map((a) => [a.name, a]));
  return fill(el, h('h2', {}, shown(item.key, 200), item.rule && h('small', {}, ' rule ', plain(item.rule)), item.changed && h('span', { class: 'badge' }, 'changed'), lost.size > 0 && h('span', { class: 'badge bad' }, 'loses ' + plain([...lost.keys()].join(', ')))),
    item.refused && h('div', { class: 'note error' }, shown(item.refused, 2000)),
    item.large && h('p', { class: 'soft' }, `The item has ${number(item.large)} bytes. Only the first bytes of its cells are shown.`),
    h('div', { class: 'halves' }, item.item && h('table', {}, h('tbody', {}, Object.entries(item.item).map(([name, v]) => {
      const a = attributes.get(name);
      return h('tr', { tabindex: 0, 'data-attribute': name, onmouseenter: () => light(a?.cells ?? [], true), onmouseleave: () => light([], false), onfocus: () => light(a?.cells ?? [], true), onblur: () => light([], false) },
        h('th', { scope: 'row', class: lost.has(name) ? 'bad' : '', title: lost.get(name) && plain(lost.get(name)) }, exact(name), lost.has(name) && h('small', { class: 'bad' }, ' lost'), a?.key && h('small', {}, ' key')), h('td', {}, valueShown(v)));
    }))), h('div', {}, rowShown(item))));
}

/**
 * workbench edits the mapping of a fixture. It also runs plan, lint and verify on the text, by run(verb, text, out, item);
 * item(key) shows an item first.
 */
export async function workbench(out, fixture, run, first) {
  const own = (await get('migrate/' + part(fixture))).mapping;
  const keep = () => {
    if (edit.value === own) sessionStorage.removeItem(draftName(fixture));
    else sessionStorage.setItem(draftName(fixture), edit.value);
  };
  const draft = draftOf(fixture);
  let item = first, asked = 0, timer;
  const edit = h('textarea', { class: 'code', rows: 26, spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off', wrap: 'off', 'aria-label': 'The mapping, as YAML', value: draft ?? own });
  const text = codeField(edit, 'yaml');
  const said = h('div', { 'aria-live': 'polite' });
  const seen = h('div');
  const ran = h('div', { 'aria-live': 'polite' });

  const place = (line, column) => line > 0 && [button(`line ${line}`, () => text.select(line, column)), ' '];

  function draw(p) {
    const bad = p.problems.length + p.items.filter((i) => i.refused).length;
    fill(said,
      p.problems.map((f) => h('div', { class: 'note error', 'data-problem': f.line ?? '' }, place(f.line, f.column), shown(f.text, 2000))),
      p.unjudged && h('div', { class: 'note' }, shown(p.unjudged, 1000)),
      p.leftOut > 0 && h('div', { class: 'note error' }, `${counted(p.leftOut, 'item')} cannot be laid out: a load rejects the data for this reason.`),
      p.lossy?.map((f) => h('div', { class: 'note warn', 'data-lossy': f.attribute }, h('b', {}, plain(f.attribute)), ' (rule ', plain(f.rule), ') is lossy: ', shown(f.why ?? '', 1000))),
      p.warnings?.map((w) => h('div', { class: 'note warn' }, shown(w, 2000))),
      p.findings?.map((f) => h('div', { class: 'note ' + (f.level === 'error' ? 'error' : f.level === 'warn' ? 'warn' : ''), 'data-finding': f.rule }, f.file === 'mapping.yaml' && place(f.line, f.lineColumn), ruleLink(f.rule, f.name), ' ', shown(f.message, 1000), f.fix && h('small', {}, ' · ', plain(f.fix)))));
    const found = p.findings?.filter((f) => f.file === 'mapping.yaml') ?? [];
    text.mark([...p.problems.map((f) => ({ ...f, level: 'error' })), ...found.map((f) => ({ line: f.line, column: f.lineColumn, level: f.level, text: `${f.rule} ${f.name}: ${f.message}` }))]);
    if (p.problems.length) { // the rows of the previous text stay
      for (const el of seen.querySelectorAll('.preview')) el.classList.add('stale');
    } else {
      fill(seen, p.items.length ? (item ? p.items : p.items.toSorted((a, b) => Boolean(b.changed) - Boolean(a.changed))).map(itemShown) : h('p', { class: 'soft' }, 'The data has no items.'));
    }
    out.dataset.previewed = edit.value === own ? 'own' : bad ? 'bad' : 'other';
  }

  async function refresh() {
    const mine = ++asked;
    try {
      const p = await post('migrate/preview', { fixture, mapping: edit.value, item: item ? JSON.parse(item) : undefined });
      if (mine === asked) draw(p);
    } catch (err) { if (mine === asked) { fill(said, errorBox(err)); fill(seen); } }
  }
  edit.addEventListener('input', () => {
    keep();
    delete out.dataset.previewed;
    clearTimeout(timer);
    timer = setTimeout(refresh, pause);
  });
  const show = async (key) => { item = key; await refresh(); seen.scrollIntoView({ block: 'nearest' }); };
  // The result is below all items.
  const verb = (label) => button(label, async () => {
    const done = run(label.toLowerCase(), edit.value, ran, show);
    ran.scrollIntoView({ block: 'nearest' });
    await done;
    ran.scrollIntoView();
  });
  const again = h('div', { class: 'note', hidden: draft === null }, 'Your changes from before are here again.');
  fill(out, h('div', { class: 'halves workbench' },
    h('div', {}, text.el, h('div', { class: 'bar' }, button('Save mapping.yaml', () => save('mapping.yaml', edit.value), { class: 'primary' }), copier('Copy', () => edit.value),
      verb('Verify'), verb('Lint'), verb('Plan'), button('Discard changes', () => { text.put(own); keep(); again.hidden = true; return refresh(); })), again,
    h('p', { class: 'soft' }, 'The file on disk does not change, and this tab keeps the text. Save downloads this text for ', h('code', {}, 'tabletop migrate plan --mapping'), '. Verify, Lint and Plan use it too.')),
    h('div', {}, h('p', { class: 'soft' }, 'Up to 20 items, some of each rule. Differences from the fixture’s mapping come first, highlighted or struck through.'), said, seen)), ran);
  await refresh();
}
