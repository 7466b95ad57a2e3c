// Rows: keys, the cells of one row with all versions, and the DynamoDB items in it.
import { h, exact, fill, jsonText, shown, plain, errorBox, virtual, button, codeDialog, dialog, lineShown, size, number, counted, confirmed, notify } from './dom.js';
import { bytesShown, escapes, textOf, meanings, timeOf, lengthOf, unescaped, base64Of } from './bytes.js';
import { dynamo, get, post, part, query } from './api.js';
import { rowCode } from './code.js';
import { bookkeeping, collected } from './rules.js';
import { counterOf, counterShown, numbersIn, valueShown } from './items.js';
import { partsShown } from './parts.js';
import { headOf } from './head.js';
import { callsPath, historyPath, itemPath, streamsPath } from './paths.js';

export async function show(main, { args: [instance, id], info, params, signal, go }) {
  main.classList.add('full');
  const project = params.get('project');
  const at = `tables/${part(instance)}/${part(id)}`;
  const [t, tables] = await Promise.all([get(at + query({ project })), get('tables')]);
  const names = tables.bigtable.find((b) => b.name === t.name)?.dynamodb ?? [];
  const sums = new Set(t.families.filter((f) => ['sum', 'min', 'max'].includes(f.aggregate)).map((f) => f.name));
  const gc = new Map(t.families.map((f) => [f.name, f.gc]));
  // The item whose cells are marked, if the address names one.
  const wanted = params.get('item') ? Object.entries(JSON.parse(params.get('item'))) : [];
  const isWanted = (item) => wanted.length > 0 && item.table === params.get('of') && wanted.every(([a, v]) => jsonText(item.item[a]) === jsonText(v));
  const input = (name, label, width = 14) => h('input', { class: 'mono', name, size: width, 'aria-label': label, placeholder: label, value: params.get(name) ?? '', title: escapes });
  const prefix = input('prefix', 'Prefix'), start = input('start', 'From'), end = input('end', 'Before'), match = input('match', 'Matching');
  const reverse = h('input', { type: 'checkbox', checked: params.get('reverse') === 'true' });
  const count = h('small', { 'aria-live': 'polite' });
  let rows = [], cursor, loading, done = false, generation = 0;

  const list = virtual({
    label: 'Row keys', count: () => rows.length,
    line: (i) => h('div', {}, h('span', { class: 'grow', title: rows[i].parts && textOf(rows[i].key) }, rows[i].parts ? partsShown(rows[i].parts) : bytesShown(rows[i].key)), h('span', { class: 'soft' }, number(rows[i].cells))),
    key: (i) => rows[i], pick: (i) => open(rows[i].key), end: () => more(),
  });
  const cells = h('section', { class: 'wide' }, h('h2', {}, 'Cells'), h('div', { class: 'scroll soft' }, 'Select a row.'));
  const items = h('section', { class: 'items' }, h('h2', {}, 'Items in this row'), h('div', { class: 'scroll' }));

  async function more() {
    if (loading || done) return;
    const mine = generation;
    loading = true;
    try {
      const bounds = {};
      for (const el of [prefix, start, end, match]) if (el.value) bounds[el.name + '64'] = base64Of(unescaped(el.value));
      const page = await get(at + '/rows' + query({ project, ...bounds, reverse: reverse.checked ? 'true' : '', keys: 'true', limit: rows.length ? 1000 : 100, cursor }));
      if (mine !== generation || signal.aborted) return;
      // Opening a row loads its cells again: a large table would not fit.
      for (const r of page.rows) rows.push({ key: r.key, parts: r.parts, cells: r.count });
      cursor = page.cursor;
      done = !cursor;
      count.textContent = `${counted(rows.length, 'row')}${done ? '' : ', and more'}`;
      if (!rows.length) empty();
      list.redraw();
    } catch (err) {
      done = true;
      fill(cells.lastChild, errorBox(err));
    } finally { if (mine === generation) loading = false; }
  }
  function empty() {
    const bounded = prefix.value || start.value || end.value || match.value;
    // Families of a leading underscore hold bookkeeping: a client never writes them.
    const family = t.families.find((f) => !f.name.startsWith('_'))?.name ?? 'family';
    fill(cells.lastChild, h('div', { class: 'note' }, bounded ? 'No row matches. Keys are compared as bytes; write bytes that are not text as \\x00.' : names.length ? [
      h('p', {}, 'The table has no items yet.'), h('div', { class: 'bar' }, names.map((name) => button(names.length > 1 ? `New item of ${plain(name)}…` : 'New item…', () => go(`/d/${part(name)}?new=true`))))] : [
      'The table has no rows. A row exists once it has a cell:',
      lineShown(`BIGTABLE_EMULATOR_HOST=${info.bigtable} cbt -project ${info.project} -instance ${plain(instance)} set ${plain(id)} row1 ${plain(family)}:column=value`)]));
    fill(items.lastChild);
  }
  async function again() {
    generation++;
    rows = []; cursor = undefined; done = false; loading = false;
    list.chosen = -1;
    list.el.scrollTop = 0;
    fill(cells.lastChild, h('span', { class: 'soft' }, 'Select a row.'));
    await more();
    if (rows.length) list.choose(0);
  }

  let opened = 0;
  async function open(key) {
    const mine = ++opened;
    try {
      const found = await get(at + '/items' + query({ project, key64: key.base64 }));
      if (mine === opened && !signal.aborted) drawRow(found, key);
    } catch (err) {
      if (mine !== opened || signal.aborted) return;
      fill(cells, h('h2', {}, 'Cells'), h('div', { class: 'scroll' }, errorBox(err)));
      fill(items.lastChild);
    }
  }

  const showBookkeeping = h('input', { type: 'checkbox' });
  let last;
  showBookkeeping.addEventListener('change', () => last && drawRow(...last));

  function drawRow(found, key) {
    last = [found, key];
    const now = new Date(info.clock.now) * 1000;
    const versions = new Map();
    const all = found.row.cells.map((c, i) => {
      const column = c.family + ':' + c.qualifier.base64;
      const version = versions.get(column) ?? 0;
      versions.set(column, version + 1);
      return { ...c, at: i, version, gone: collected(gc.get(c.family) ?? 'never', version, c.timestamp, now) };
    });
    const seen = all.filter((c) => showBookkeeping.checked || !bookkeeping(c));
    const lit = new Set(), mine = new Set(found.items.filter(isWanted).flatMap((item) => item.attributes.flatMap((a) => a.cells)));
    const carries = new Map(); // the attributes of a cell
    const numbers = new Map(); // the numbers in them
    for (const item of found.items) for (const a of item.attributes) for (const c of a.cells) {
      (carries.get(c) ?? carries.set(c, []).get(c)).push(exact(a.name));
      numbersIn(item.item[a.name], numbers.get(c) ?? numbers.set(c, new Set()).get(c));
    }
    for (const c of all) c.counter = counterOf(c.value, numbers.get(c.at), sums.has(c.family));
    // Times with microseconds are longer, and those of full seconds shorter.
    const times = seen.map((c) => timeOf(c.timestamp)), full = times.every((at) => at.endsWith('.000Z'));
    const time = 'soft mono whole ' + (full ? 'seconds' : times.some((at) => at.length > 24) ? 'micros' : 'millis');
    const lines = virtual({
      label: 'Cells', height: 28, count: () => seen.length, key: (i) => seen[i],
      update: (line, i) => { line.classList.toggle('lit', lit.has(seen[i].at)); line.classList.toggle('mine', mine.has(seen[i].at)); },
      line: (i) => {
        const c = seen[i];
        return h('div', {
          class: c.version ? 'old' : '', 'data-cell': c.at,
          title: [c.gone && 'Garbage collection would delete it: ' + c.gone, carries.has(c.at) && 'Attributes: ' + carries.get(c.at).slice(0, 20).join(', ')].filter(Boolean).join('. '),
          onmouseenter: () => lightAttributes(c.at, true), onmouseleave: () => lightAttributes(c.at, false),
        }, h('span', { class: 'name-of-cell mono' }, c.version ? h('span', { class: 'soft' }, `  version ${c.version + 1}`) : [plain(c.family) + ':', bytesShown(c.qualifier, 80)]),
        h('span', { class: time, title: String(c.timestamp) }, full ? times[i].replace('.000', '') : times[i]),
        h('span', { class: 'grow' + (c.gone ? ' gone' : ''), 'data-counter': c.counter, title: c.counter && textOf(c.value) }, c.counter ? counterShown(c.counter) : bytesShown(c.value, 160)), h('span', { class: 'soft' }, size(lengthOf(c.value))));
      },
      look: (i) => lightAttributes(seen[i].at, true), pick: (i) => cellDialog(seen[i], key),
    });
    lines.el.addEventListener('focus', () => lines.chosen >= 0 && lightAttributes(seen[lines.chosen].at, true));
    lines.el.addEventListener('blur', () => lightAttributes(-1, false));
    const [only] = found.items;
    const keyOf = (item) => Object.fromEntries(item.attributes.filter((a) => tableKeys.get(item.table)?.includes(a.name)).map((a) => [a.name, item.item[a.name]]));
    fill(cells, h('h2', {}, h('span', { title: textOf(key) }, 'Cells of ', found.row.parts ? partsShown(found.row.parts) : bytesShown(key, 120)), h('small', {}, `${number(seen.length)} in ${counted(new Set(seen.map((c) => c.family + ':' + c.qualifier.base64)).size, 'column')}`, seen.length < all.length && ` · ${counted(all.length - seen.length, 'internal cell')} hidden`)), h('div', { class: 'bar' },
      h('a', { href: historyPath(t, info, key) }, 'History'), h('a', { href: callsPath(t, key) }, 'Requests'), h('a', { href: streamsPath(t, info, only?.table ?? names[0], key, only && keyOf(only)) }, 'Streams'),
      h('span', { class: 'bar end' }, h('label', { title: 'Show cells that only the DynamoDB endpoint or a migration uses' }, showBookkeeping, 'Internal cells'), button('Copy as…', () => codeDialog('Read this row', rowCode(info, instance, id, key))),
        button('Delete…', async () => {
          if (!await confirmed('Delete this row and all its cells?', 'Delete the row')) return;
          await post(at + '/rows' + query({ project }), { rows: [{ key, delete: true }] });
          notify('The row was deleted.');
          again();
        }, { class: 'danger' }))), lines.el);
    const attributes = []; // [cells, element]
    function lightCells(places, on) {
      for (const c of places) if (on) lit.add(c); else lit.delete(c);
      if (on && places.length) {
        const i = seen.findIndex((c) => c.at === places[0]);
        const top = i * 28, view = lines.el;
        if (i >= 0 && (top < view.scrollTop || top + 28 > view.scrollTop + view.clientHeight)) view.scrollTop = top;
      }
      lines.redraw();
    }
    function lightAttributes(cell, on) {
      let first; // may be below the edge
      for (const [places, el] of attributes) if (el.classList.toggle('lit', on && places.includes(cell))) first ??= el;
      first?.scrollIntoView({ block: 'nearest' });
    }
    fill(items, h('h2', {}, 'Items in this row'), h('div', { class: 'scroll' }, found.problems?.map((p) => h('div', { class: 'note error' }, shown(p))),
      found.items.map((item) => h('div', { class: isWanted(item) ? 'item mine' : 'item' },
        h('p', {}, h('a', { href: itemPath(item.table, keyOf(item)) }, 'Item of ', plain(item.table)), item.rule && h('small', {}, ' rule ', plain(item.rule))),
        h('table', {}, h('tbody', {}, item.attributes.map((a) => {
          const tr = h('tr', {
            tabindex: 0, 'data-attribute': a.name, 'data-cells': a.cells.join(' '),
            onmouseenter: () => lightCells(a.cells, true), onmouseleave: () => lightCells(a.cells, false),
            onfocus: () => lightCells(a.cells, true), onblur: () => lightCells(a.cells, false),
          }, h('th', { scope: 'row' }, exact(a.name), a.key && h('small', { title: 'Part of the row key' }, ' key'), !a.key && !a.cells.length && h('small', { title: 'No cell in this row: the mapping’s rule implies it, or the item is a copy' }, ' rule')), h('td', {}, valueShown(item.item[a.name])));
          attributes.push([a.cells, tr]);
          return tr;
        }))))),
      found.more > 0 && h('p', { class: 'soft' }, `and ${counted(found.more, 'more item')}`),
      !found.items.length && !found.problems?.length && h('p', { class: 'soft' }, 'This row has no DynamoDB items. With a mapping for the table (tabletop serve --mapping FILE), its items appear here.')));
    items.querySelector('.item.mine')?.scrollIntoView({ block: 'nearest' });
  }

  function cellDialog(c, key) {
    const edit = h('textarea', { 'aria-label': 'New value', title: escapes, value: textOf(c.value, 64 << 10) });
    const diff = h('pre');
    const small = lengthOf(c.value) <= 64 << 10;
    const draw = () => fill(diff, `- ${c.family}:${textOf(c.qualifier)} @${c.timestamp} = ${textOf(c.value, 2000)}\n+ ${c.family}:${textOf(c.qualifier)} @now = ${textOf({ base64: base64Of(unescaped(edit.value)) }, 2000)}`);
    edit.addEventListener('input', draw);
    draw();
    const d = dialog('Cell', h('table', {}, h('tbody', {},
      [['Family', c.family], ['Qualifier', textOf(c.qualifier, 16 << 10)], c.counter && ['Number', c.counter], ['Timestamp', `${c.timestamp} µs, ${timeOf(c.timestamp)}`], ['Garbage', c.gone ? `yes: ${c.gone}` : 'no'], ...meanings(c.value)].filter(Boolean).map(([what, text]) =>
        h('tr', {}, h('th', { scope: 'row' }, what), h('td', {}, shown(text, 4000)))))),
    small && h('details', {}, h('summary', {}, 'Write a new version'), edit, diff, button('Write', async () => {
      await post(at + '/rows' + query({ project }), { rows: [{ key, cells: [{ family: c.family, qualifier: c.qualifier, value: { base64: base64Of(unescaped(edit.value)) } }] }] });
      d.close();
      notify('The cell was written.');
      open(key);
    }, { class: 'primary' })));
  }

  const tableKeys = new Map(); // the key attributes of a DynamoDB table
  await Promise.all(names.map(async (name) => {
    const { response } = await dynamo('DescribeTable', { TableName: name });
    tableKeys.set(name, response.Table.KeySchema.map((k) => k.AttributeName));
  }));
  main.append(...headOf('Rows', { name: id, about: `rows, Bigtable in ${plain(instance)}`, t, dynamodb: names, tables, info }),
    h('form', { class: 'bar', onsubmit: (e) => {
      e.preventDefault();
      history.replaceState(null, '', location.pathname + query({ project, prefix: prefix.value, start: start.value, end: end.value, match: match.value, reverse: reverse.checked ? 'true' : '' }));
      again();
    } }, prefix, start, end, match, h('label', {}, reverse, 'Reverse'), h('button', {}, 'Read'), count),
    h('div', { class: 'split' }, h('section', {}, h('h2', {}, 'Keys'), list.el), cells, items));
  await again();
}
