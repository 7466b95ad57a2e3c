// The plan of a load, with the parts and the words of the text of tabletop migrate plan.
import { h, counted, number, plain, shown } from './dom.js';
import { internal } from './rules.js';

const classes = ['lossy', 'lossless in domain', 'lossless']; // of fidelity, the greatest losses first
const schemas = { _migration_schema: 'describes how to read all tables' };

const heads = (...names) => h('thead', {}, h('tr', {}, names.map((n) => h('th', { scope: 'col', class: n === 'Items' ? 'num' : '' }, n))));
const lines = (head, rows) => h('div', { class: 'scroll' }, h('table', { class: 'plan' }, head, h('tbody', {}, rows)));

function familiesOf(b) {
  const what = b.index ? `index ${b.index}` : schemas[b.id];
  return b.families.map((f, i) => h('tr', {}, i === 0 && h('th', { scope: 'rowgroup', rowspan: b.families.length }, plain(b.id), what && h('small', {}, plain(what))),
    h('td', { class: 'mono' }, plain(f.name)), h('td', { class: 'mono' }, plain(f.gc)), h('td', { class: 'wraps soft' }, internal(f.name))));
}

function keyOf(r) {
  return h('tr', {}, h('th', { scope: 'row' }, plain(r.index ? `index ${r.index}` : r.rule ?? 'any item')), h('td', { class: 'num' }, number(r.items)),
    h('td', { class: 'wraps' }, r.item && shown(r.item, 400)), h('td', { class: 'wraps' }, r.row !== undefined && [shown(r.row, 400), h('small', { class: 'mono' }, plain(r.rowHex.slice(0, 400)))]));
}

/** fidelityShown returns an element with the attributes that occur. */
function fidelityShown(declared) {
  const all = declared.filter((f) => f.items).toSorted((a, b) => classes.indexOf(a.class) - classes.indexOf(b.class));
  const numbers = classes.map((c) => [all.filter((f) => f.class === c).length, c]).filter(([n]) => n).map((n) => n.join(' '));
  const left = declared.length - all.length;
  return [
    lines(heads('Rule', 'Attribute', 'Fidelity', 'Items', 'Domain or loss'), all.map((f) => h('tr', { 'data-class': f.class }, h('td', {}, plain(f.rule)), h('th', { scope: 'row' }, plain(f.attribute)),
      h('td', { class: f.class === 'lossy' ? 'bad nowrap' : 'nowrap' }, plain(f.class)), h('td', { class: 'num' }, number(f.items)), h('td', { class: 'wraps soft' }, plain(f.why ?? ''))))),
    h('p', { class: 'soft' }, all.length > 0 && `${counted(all.length, 'attribute')}: ${numbers.join(', ')}. `, left > 0 && `${counted(left, 'attribute')} of rules without items are omitted.`),
  ];
}

function refusedShown(x) {
  return h('p', {}, h('b', {}, plain(x.error)), plain([x.rule && ` rule ${x.rule}`, x.attribute && ` attribute ${x.attribute}`].filter(Boolean).join('')), `: ${counted(x.items, 'item')}, e.g. `, shown(x.item, 400), plain(` at ${x.at}: ${x.what}`));
}

function tableShown(t) {
  return h('section', { class: 'card', 'data-plan': t.name }, h('h2', {}, plain(`Table ${t.name}: ${[[t.items, 'item'], [t.rows, 'row'], [t.cells, 'cell']].map(([n, what]) => counted(n, what)).join(', ')}`)),
    t.leftOut > 0 && h('div', { class: 'note error' }, `${counted(t.leftOut, 'item')} that the mapping cannot lay out: a load rejects the source, or writes them as dead letters.`, t.refused.map(refusedShown)),
    t.choices.length > 0 && lines(null, t.choices.map((c) => h('tr', {}, h('th', { scope: 'row' }, plain(c.what)), h('td', { class: 'mono nowrap' }, plain(c.chosen)), h('td', { class: 'wraps soft' }, plain(c.why))))),
    h('h3', {}, 'Bigtable tables'), lines(heads('Table', 'Family', 'Garbage collection', 'Use'), t.bigtable.map(familiesOf)),
    t.views.map((v) => [h('h3', {}, 'Continuous materialized view ', plain(v.name)), h('pre', {}, shown(v.sql.trim(), 20000))]),
    h('h3', {}, 'Row keys'), lines(heads('Rule', 'Items', 'Example', 'Row key, also in hex'), t.rules.map(keyOf)),
    t.fidelity.length > 0 && [h('h3', {}, 'Fidelity'), fidelityShown(t.fidelity)],
    t.notes.length > 0 && [h('h3', {}, 'Other changes'), h('ul', {}, t.notes.map((n) => h('li', {}, plain(n))))],
    h('details', {}, h('summary', {}, 'Mapping'), h('pre', {}, shown(t.mapping, 200000))));
}

/** planShown returns an element with a plan. */
export function planShown(p) {
  return [
    h('p', { class: 'soft' }, plain(`source ${p.source} (${p.format})`)),
    p.warnings.map((w) => h('div', { class: 'note warn' }, h('b', {}, 'warning '), shown(w, 2000))),
    p.tables.map(tableShown),
  ];
}
