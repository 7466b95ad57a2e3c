// A table whose columns can be resized, by dragging and with the arrow keys.
import { h, exact, plain } from './dom.js';

const least = 48, most = 1200, fits = 320; // pixels

/**
 * grid returns a table: columns are [name, label for its head], rows are elements tr with a cell for each column. widths
 * keeps the widths of columns between two grids, by name; text(name) returns the texts of a column, which decide its first width.
 * The first columns, kept in number, stay visible when the table is scrolled. A click on a head calls sort(name);
 * sorted(name) returns 1, -1 or 0.
 */
export function grid(columns, rows, widths, text, { kept, sort, sorted }) {
  const cols = columns.map(() => h('col'));
  const table = h('table', { class: `grid keep${kept}` });
  const canvas = document.createElement('canvas').getContext('2d');
  const fit = (name, limit) => {
    const size = (what, font) => { canvas.font = font; return canvas.measureText(what).width; };
    const widest = Math.max(...text(name).map((s) => size(s, '12.5px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace')), size(exact(name), '600 12px system-ui, sans-serif'));
    return Math.min(limit, Math.max(least, Math.ceil(widest) + 28));
  };
  const apply = (i, width) => {
    const [name] = columns[i];
    widths.set(name, Math.round(Math.min(most, Math.max(least, width))));
    cols[i].style.width = widths.get(name) + 'px';
    grips[i]?.setAttribute('aria-valuenow', widths.get(name));
    table.style.width = columns.reduce((sum, [n]) => sum + widths.get(n), 0) + 'px';
    for (let n = 1; n < kept; n++) table.style.setProperty(`--left${n}`, columns.slice(0, n).reduce((sum, [c]) => sum + (widths.get(c) ?? 0), 0) + 'px');
  };
  const grips = columns.map(([name, label], i) => {
    if (!label) return undefined;
    const grip = h('span', { class: 'grip', role: 'separator', tabindex: 0, 'aria-orientation': 'vertical', 'aria-label': `Width of ${plain(label)}`, 'aria-valuemin': least, 'aria-valuemax': most, title: 'Drag, or use the arrow keys; a double click shows the whole column' });
    grip.addEventListener('pointerdown', (e) => {
      e.preventDefault();
      grip.setPointerCapture(e.pointerId);
      const from = e.clientX, was = cols[i].getBoundingClientRect().width || widths.get(name);
      const move = (to) => apply(i, was + to.clientX - from);
      grip.addEventListener('pointermove', move);
      grip.addEventListener('lostpointercapture', () => grip.removeEventListener('pointermove', move), { once: true });
    });
    grip.addEventListener('dblclick', () => apply(i, fit(name, most)));
    grip.addEventListener('keydown', (e) => {
      const by = { ArrowLeft: -16, ArrowRight: 16 }[e.key];
      if (!by && e.key !== 'Enter') return;
      e.preventDefault();
      apply(i, by ? widths.get(name) + by : fit(name, most));
    });
    return grip;
  });
  for (const [name, label] of columns) if (!widths.has(name)) widths.set(name, label ? fit(name, fits) : 40);
  columns.forEach(([name], i) => apply(i, widths.get(name)));
  table.append(h('colgroup', {}, cols), h('thead', {}, h('tr', {}, columns.map(([name, label], i) => label
    ? h('th', { scope: 'col', title: exact(label), 'aria-sort': { 1: 'ascending', '-1': 'descending' }[sorted(name)] },
      h('button', { type: 'button', class: 'head', title: `${exact(label)}: sort this page`, onclick: () => sort(name) }, exact(label), { 1: ' ▴', '-1': ' ▾' }[sorted(name)]), grips[i]) : h('td')))), h('tbody', {}, rows));
  return table;
}
