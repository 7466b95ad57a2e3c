// Keys: the load on keys over time, from the counters of ListHotTablets.
import { h, fill, plain, number, counted, size, errorBox, button } from './dom.js';
import { at, clockOf, ticksOf } from './axis.js';
import { bytesShown, textOf } from './bytes.js';
import { get, part, query } from './api.js';
import { historyPath, rowsPath, tabs } from './paths.js';

const metrics = {
  operations: (c) => c.reads + c.writes, reads: (c) => c.reads, writes: (c) => c.writes, rows: (c) => c.rows, bytes: (c) => c.bytes, errors: (c) => c.errors,
};
const spans = { '15 minutes': ['15m', '1s', 1], 'an hour': ['1h', '1m', 60], '24 hours': ['24h', '1m', 60] };
const percent = (n, all) => `${(100 * n / all).toFixed(1)} %`;
const nothing = { reads: 0, writes: 0, rows: 0, bytes: 0, errors: 0 };

/** findings returns the anomalies: [text, rule, bucket]. */
export function findings(map) {
  const out = map.large.map((row) => [
    `A row holds ${row.more ? 'more than 256 MB, which it must not' : `${size(row.bytes)}, and should be below 100 MB`}`, 'L41 row-too-large',
    map.keys.findIndex((k) => k.first.base64 === row.key.base64),
  ]);
  // A bulk request is the load of its rows, not of its first key.
  const sums = map.keys.map((k) => k.reads + k.writes + k.rows);
  const all = sums.reduce((a, b) => a + b, 0);
  if (map.keys.reduce((n, k) => n + Math.max(k.reads + k.writes, k.rows), 0) < 100) return out;
  // With few keys each has a large share: a key is hot if it has several times the average of the others.
  const fair = (i) => (all - sums[i]) / (map.keys.length - 1);
  for (const [i, k] of map.keys.entries()) {
    if (map.keys.length === 1 || sums[i] <= 0.2 * all || sums[i] < 3 * fair(i)) continue;
    const where = k.first.base64 === k.last.base64 ? 'row' : 'range of keys';
    out.push([`${percent(sums[i], all)} of the load is at one ${where}`, 'L26 hot-key-range', i]);
  }
  // Writes ascend if the middle of a moment's writes is rarely before that of the previous moment.
  const peaks = map.columns.map((c) => {
    let weight = 0, sum = 0;
    c.cells.forEach((cell, i) => { weight += cell.writes * i; sum += cell.writes; });
    return sum && weight / sum;
  }).filter((p, i) => map.columns[i].cells.some((c) => c.writes));
  const rises = peaks.filter((p, i) => i && p > peaks[i - 1]).length;
  const falls = peaks.filter((p, i) => i && p < peaks[i - 1]).length;
  if (map.keys.length >= 8 && rises >= 8 && falls <= 0.1 * rises) {
    out.push(['Writes move through the keys in order, at one place at a time', 'L03 key-starts-with-time or L04 sequential-ids', -1]);
  }
  return out;
}

const most = 3; // columns of the axis of keys

/** bandsOf cuts the axis of keys: for each segment of the row keys, the ranges whose keys begin alike: [depth, first, last, text]. */
export function bandsOf(keys) {
  if (!keys.some((k) => k.parts?.length)) return keys.map((k, i) => [0, i, i, textOf(k.first, 60)]);
  const cut = keys.map((k) => {
    const segments = [];
    for (const p of k.parts ?? []) if (p.name) (segments[p.segment] ??= []).push(`${p.name} ${p.value ?? textOf(p.bytes, 40)}`);
    return segments.filter(Boolean).map((s) => s.join(', '));
  });
  const out = [];
  for (let depth = 0; depth < most; depth++) {
    for (let i = 0; i < keys.length;) {
      const path = (k) => cut[k].length > depth && cut[k].slice(0, depth + 1).join('\n');
      let last = i;
      while (last + 1 < keys.length && path(i) !== false && path(last + 1) === path(i)) last++;
      if (path(i) !== false) out.push([depth, i, last, cut[i][depth]]);
      i = last + 1;
    }
  }
  return out;
}

const ids = (rule) => rule.match(/L\d\d/g).join(' ');

export async function show(main, { args: [instance, id], info, params, signal }) {
  const project = params.get('project');
  const [t, tables] = await Promise.all([get(`tables/${part(instance)}/${part(id)}` + query({ project })), get('tables')]);
  const names = tables.bigtable.find((b) => b.name === t.name)?.dynamodb ?? [];
  const choose = (label, choices, value, act) => h('select', { 'aria-label': label, onchange: act }, choices.map((c) => h('option', { selected: c === value }, c)));
  const metric = choose('Metric', Object.keys(metrics), params.get('metric') ?? 'operations', () => draw());
  const span = choose('Time', Object.keys(spans), params.get('span') ?? '15 minutes', () => load(true));
  const bright = h('input', { type: 'range', min: 1, max: 100, value: 50, 'aria-label': 'Brightness', oninput: () => draw() });
  const canvas = h('canvas', { role: 'img', tabindex: 0, 'aria-label': 'Load on keys over time: keys from top to bottom, time from left to right' });
  const tip = h('p', { class: 'soft', 'aria-live': 'polite' }, 'Point at a place of the map. Drag over times, keys or both to see only these. With the keyboard arrows point, with Shift over a range, Enter shows only that, and Escape all.');
  // Beside the map is the sum of each range, below it that of each moment.
  const ofKeys = h('canvas', { class: 'of-keys', 'aria-hidden': true }), ofTimes = h('canvas', { class: 'of-times', 'aria-hidden': true });
  const beside = h('div', { class: 'beside' }), times = h('div', { class: 'axis of-time soft mono' }), keys = h('div', { class: 'axis of-key soft mono' });
  const legend = h('figure', { class: 'legend' }), scale = h('canvas', { 'aria-hidden': true, width: 256, height: 1 }), values = h('div', { class: 'axis soft mono' });
  legend.append(scale, values);
  const over = h('div', { class: 'over' }), cursor = h('span', { hidden: true }), brush = h('span', { hidden: true, class: 'brush' });
  over.append(cursor, brush);
  const picture = h('div', { class: 'heat' }, canvas, keys, ofKeys, beside, times, legend, ofTimes, over);
  const marks = h('div'), sums = h('div');
  let map, bounds = null, frozen = false;
  let window_ = null; // the shown part: keys, [first, last], and times in seconds, [start, end); each null for all

  async function load(whole) {
    try {
      const [last, step] = spans[span.value];
      map = await get(`heat/${part(instance)}/${part(id)}` + query({ project, last, step, limit: 256 }));
      if (signal.aborted) return;
      if (whole) window_ = null;
      draw();
    } catch (err) { fill(marks, errorBox(err)); }
  }

  // The colour of a share of the maximum, from dark to light, on a background of its own in both schemes.
  function colour(share) {
    const x = Math.pow(share, 1.05 - bright.value / 100);
    return [Math.round(255 * Math.min(1, x * 1.6)), Math.round(255 * Math.max(0, x * 1.5 - 0.4)), Math.round(60 + 120 * Math.sin(Math.PI * Math.min(1, x * 1.2)))];
  }
  const shadesOf = () => Uint32Array.from({ length: 257 }, (_, i) => {
    const [r, g, b] = i ? colour(i / 256) : [12, 14, 30];
    return new Uint32Array(Uint8ClampedArray.of(r, g, b, 255).buffer)[0];
  });
  const shownValue = (n) => metric.value === 'bytes' ? size(n) : number(n);

  function draw() {
    const value = metrics[metric.value];
    if (!map.keys.length) {
      picture.hidden = true;
      fill(sums);
      fill(marks, h('div', { class: 'note' }, 'Nothing was counted in this time. Each read and write of a client counts at its first key, its rows and bytes at each row; write some rows and load again.'));
      return;
    }
    picture.hidden = false;
    const [first, last] = window_?.keys ?? [0, map.keys.length - 1];
    const [, , seconds] = spans[span.value];
    const whole = [new Date(map.columns[0].start) / 1000, new Date(map.columns.at(-1).start) / 1000 + seconds];
    const [start, end] = window_?.times ?? whole;
    // There are columns only for moments with counts: the moments between them are empty.
    const width = Math.max(1, Math.round((end - start) / seconds)), height = last - first + 1;
    const columns = map.columns.map((c) => ({ x: Math.round((new Date(c.start) / 1000 - start) / seconds), cells: c.cells })).filter((c) => c.x >= 0 && c.x < width);
    bounds = { start, end, seconds, width, height, first, columns, found: findings(map), peak: 0 };
    canvas.width = width;
    canvas.height = height;
    const g = canvas.getContext('2d');
    const image = g.createImageData(width, height), pixels = new Uint32Array(image.data.buffer), shades = shadesOf();
    for (const c of columns) for (let i = first; i <= last; i++) bounds.peak = Math.max(bounds.peak, value(c.cells[i]));
    const { found, peak } = bounds;
    pixels.fill(shades[0]);
    const ofTime = new Array(width).fill(0), ofKey = new Array(height).fill(0);
    for (const { x, cells } of columns) {
      for (let y = 0; y < height; y++) {
        const n = value(cells[first + y]);
        if (!n) continue;
        pixels[y * width + x] = shades[Math.max(1, Math.round(256 * n / peak))];
        ofTime[x] += n;
        ofKey[y] += n;
      }
    }
    g.putImageData(image, 0, 0);
    bars(ofKeys, ofKey, true);
    bars(ofTimes, ofTime, false);
    axes(first, last);
    drawLegend();
    fill(beside, found.filter(([, , i]) => i >= first && i <= last).map(([text, rule, i]) =>
      at(h('a', { href: rowsAt(i), title: text, 'aria-label': `${text}: rows`, class: 'mono' }, '◀ ' + ids(rule)), 'top', (i - first + 0.5) / height)),
    found.filter(([, , i]) => i < 0).map(([text, rule]) => h('span', { title: text, class: 'mono' }, '⤡ ' + ids(rule))));
    fill(marks, found.map(([text, rule, i]) => h('div', { class: 'note warn' }, text, i >= 0 && [': ', bytesShown(map.keys[i].first, 80)], `. See rule ${rule} of tabletop migrate lint.`)));
    const total = ofKey.reduce((a, b) => a + b, 0);
    const busiest = ofKey.map((n, i) => [n, first + i]).filter(([n]) => n > 0).sort(([a], [b]) => b - a).slice(0, 12);
    fill(sums, h('h2', {}, `${shownValue(total)} ${metric.value === 'bytes' ? '' : metric.value} in ${number(height)} ranges of keys${total ? '; the busiest' : ''}`), h('table', {}, h('tbody', {}, busiest.map(([n, i]) => h('tr', {},
      h('td', {}, bytesShown(map.keys[i].first, 80)), h('td', { class: 'num' }, number(n)), h('td', { class: 'num soft' }, percent(n, total)),
      h('td', {}, h('a', { href: rowsAt(i) }, 'rows'), map.keys[i].first.base64 === map.keys[i].last.base64 && map.keys[i].first.base64 && [' · ', h('a', { href: historyPath(t, info, map.keys[i].first) }, 'history')]))))));
    mark();
  }

  // axes labels the times, and the keys where there is room.
  function axes(first, last) {
    const { start, end, height, found } = bounds;
    const room = canvas.clientWidth || 800;
    fill(times, ticksOf(start, end, Math.max(2, Math.floor(room / 90))).map((s) => at(h('span', { class: 'tick' }, clockOf(s, end - start < 7200)), 'left', (s - start) / (end - start))));
    const line = 14 / (canvas.clientHeight || 420) * height; // the ranges of keys that a label covers
    const bands = bandsOf(map.keys.slice(first, last + 1)), deep = Math.max(0, ...bands.map(([depth]) => depth)) + 1;
    const tall = bands.filter(([, from, to]) => to - from + 1 >= line), thin = bands.filter((b) => !tall.includes(b));
    // Thin bands have labels in the lines of some ranges, in all columns alike: first in those with a mark, then beside other labels.
    const marked = new Set(found.map(([, , i]) => i - first)), lines = [];
    for (const row of [...marked, ...tall.map(([, from]) => from), ...thin.map(([, from]) => from).sort((a, b) => a - b)]) {
      const of = thin.filter(([, from, to]) => from <= row && row <= to);
      if (!of.length) continue;
      const cuts = tall.filter(([depth, from]) => from > row && from < row + line && of.some(([d]) => d === depth)).map(([, from]) => from);
      if (cuts.length && !marked.has(row)) continue;
      const top = Math.max(0, Math.min(row, height - line, ...cuts.map((from) => from - line)));
      if (lines.every((l) => Math.abs(l.top - top) >= line)) lines.push({ row, top, of });
    }
    const labels = [...tall.map(([depth, from, to, text]) => [from, to - from + 1, depth, text]),
      ...lines.flatMap(({ row, top, of }) => of.map(([depth, , , text]) => [top, line, depth, text, row]))];
    fill(keys, labels.sort(([a], [b]) => a - b).map(([top, long, depth, text, row]) => {
      const band = h('span', { class: `band${row === undefined ? '' : ' thin'}${marked.has(row) ? ' marked' : ''}`, title: plain(text), 'data-row': row === undefined ? undefined : row + first }, plain(text));
      at(band, 'top', top / height);
      at(band, 'height', long / height);
      at(band, 'left', depth / deep);
      return at(band, 'width', 1 / deep);
    }));
  }

  function drawLegend() {
    const { peak, seconds } = bounds, shades = shadesOf();
    const g = scale.getContext('2d'), image = g.createImageData(256, 1);
    new Uint32Array(image.data.buffer).set(shades.subarray(0, 256));
    g.putImageData(image, 0, 0);
    // Few counts have fewer values than ticks, and long values need room: the last two share one step.
    const steps = [4, 3, 2].find((n) => 2 * n * (7 * shownValue(peak).length + 8) <= (legend.clientWidth || 190) && (metric.value === 'bytes' || peak % n === 0 || peak > 20)) ?? 1;
    fill(values, Array.from({ length: steps + 1 }, (_, i) => at(h('span', { class: 'tick' }, shownValue(Math.round(peak * i / steps))), 'left', i / steps)));
    legend.setAttribute('aria-label', `Colours: from 0 to ${shownValue(peak)}${metric.value === 'bytes' ? '' : ' ' + metric.value} of a range of keys in a ${seconds === 1 ? 'second' : 'minute'}`);
    legend.title = legend.getAttribute('aria-label');
  }

  // bars draws sums as lines, in proportion to the greatest.
  function bars(on, values, across) {
    const long = 48, peak = Math.max(1, ...values);
    on.width = across ? long : values.length;
    on.height = across ? values.length : long;
    const g = on.getContext('2d');
    g.fillStyle = getComputedStyle(on).color;
    values.forEach((n, i) => {
      const share = Math.ceil(long * n / peak);
      if (across) g.fillRect(0, i, share, 1);
      else g.fillRect(i, long - share, 1, share);
    });
  }

  const rowsAt = (i) => rowsPath(t, info) + (rowsPath(t, info).includes('?') ? '&' : '?') + query({ start: textOf(map.keys[i].first, 4096), end: map.keys[i + 1] && textOf(map.keys[i + 1].first, 4096) }).slice(1);
  const clamp = (n, least, most) => Math.max(least, Math.min(most, n));

  // place returns the moment, from the left, and the range of keys under the pointer.
  function place(e) {
    const box = canvas.getBoundingClientRect();
    return { x: clamp(Math.floor((e.clientX - box.left) / box.width * bounds.width), 0, bounds.width - 1), y: bounds.first + clamp(Math.floor((e.clientY - box.top) / box.height * bounds.height), 0, bounds.height - 1) };
  }
  function point({ x, y }) {
    const c = bounds.columns.find((column) => column.x === x)?.cells[y] ?? nothing;
    fill(tip, `${clockOf(bounds.start + x * bounds.seconds)} · `, bytesShown(map.keys[y].first, 80), map.keys[y + 1] && [' to ', bytesShown(map.keys[y + 1].first, 80)], ` · ${counted(c.reads, 'read')}, ${counted(c.writes, 'write')}, ${counted(c.rows, 'row')}, ${size(c.bytes)}, ${counted(c.errors, 'error')}`);
  }

  // frame puts an element around the places from one to another; null for the whole width or height.
  function frame(el, [left, right], [top, bottom]) {
    at(el, 'left', left / bounds.width);
    at(el, 'width', (right - left + 1) / bounds.width);
    at(el, 'top', (top - bounds.first) / bounds.height);
    at(el, 'height', (bottom - top + 1) / bounds.height);
  }
  const sorted = (a, b) => a < b ? [a, b] : [b, a];
  const all = () => ({ x: [0, bounds.width - 1], y: [bounds.first, bounds.first + bounds.height - 1] });

  // zoom shows only some moments and ranges of keys; undefined for those that are shown already.
  function zoom(x, y) {
    window_ = {
      keys: y ?? window_?.keys ?? null,
      times: x ? [bounds.start + x[0] * bounds.seconds, bounds.start + (x[1] + 1) * bounds.seconds] : window_?.times ?? null,
    };
    draw();
  }

  // The brush: a drag along one axis selects along that, a drag across selects along both.
  let from = null;
  function brushed(e) {
    const to = place(e), far = 6;
    const x = Math.abs(e.clientX - from.clientX) >= far && to.x !== from.x ? sorted(from.x, to.x) : undefined;
    const y = Math.abs(e.clientY - from.clientY) >= far && to.y !== from.y ? sorted(from.y, to.y) : undefined;
    return { x, y };
  }
  canvas.addEventListener('pointermove', (e) => {
    if (!bounds) return;
    point(place(e));
    if (!from) return;
    const { x, y } = brushed(e);
    brush.hidden = !x && !y;
    if (!brush.hidden) frame(brush, x ?? all().x, y ?? all().y);
  });
  canvas.addEventListener('pointerdown', (e) => {
    if (!bounds || e.button) return;
    from = { ...place(e), clientX: e.clientX, clientY: e.clientY };
    try { canvas.setPointerCapture(e.pointerId); } catch { /* the pointer is gone */ }
  });
  canvas.addEventListener('pointerup', (e) => {
    if (!from) return;
    const { x, y } = brushed(e);
    from = null;
    brush.hidden = true;
    if (x || y) zoom(x, y);
  });
  canvas.addEventListener('pointercancel', () => { from = null; brush.hidden = true; });

  // The keyboard: a place, and the range from the place at which Shift was pressed.
  let spot = null;
  function mark() {
    cursor.hidden = !spot || document.activeElement !== canvas || !map?.keys.length || spot.y < bounds.first || spot.y >= bounds.first + bounds.height || spot.x >= bounds.width;
    if (cursor.hidden) return;
    const wideX = spot.x !== spot.fromX, wideY = spot.y !== spot.fromY;
    frame(cursor, wideX || !wideY ? sorted(spot.x, spot.fromX) : all().x, wideY || !wideX ? sorted(spot.y, spot.fromY) : all().y);
  }
  canvas.addEventListener('keydown', (e) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-Infinity, 0], End: [Infinity, 0], PageUp: [0, -10], PageDown: [0, 10] }[e.key];
    if (!bounds || !map.keys.length || !by && e.key !== 'Enter' && e.key !== 'Escape') return;
    e.preventDefault();
    const { x: [, right], y: [top, bottom] } = all();
    if (by) {
      const was = spot ?? { x: right, y: top - 1, fromX: right, fromY: top };
      const x = clamp(was.x + by[0], 0, right), y = clamp(was.y + by[1], top, bottom);
      spot = { x, y, fromX: e.shiftKey ? clamp(was.fromX, 0, right) : x, fromY: e.shiftKey ? clamp(was.fromY, top, bottom) : y };
      point(spot);
    } else {
      if (e.key === 'Escape') window_ = null;
      else if (spot && spot.y <= bottom && spot.x <= right) {
        const x = spot.x === spot.fromX ? undefined : sorted(spot.x, spot.fromX);
        zoom(x, spot.y === spot.fromY && x ? undefined : sorted(spot.y, spot.fromY));
        if (x) spot.x = 0;
      }
      if (spot) Object.assign(spot, { fromX: spot.x, fromY: spot.y });
      draw();
    }
    mark();
  });
  canvas.addEventListener('focus', mark);
  canvas.addEventListener('blur', () => { cursor.hidden = true; });

  const freeze = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => { frozen = !frozen; freeze.setAttribute('aria-pressed', String(frozen)); } }, 'Freeze');
  main.append(h('h1', {}, plain(id), h('small', {}, `load on keys of Bigtable in ${plain(instance)}`)), tabs('Keys', t, info, names), h('div', { class: 'bar' }, h('label', {}, 'show', metric), h('label', {}, 'of the last', span), h('label', {}, 'brightness', bright),
    button('All keys', () => { window_ = null; draw(); }, { title: 'Show all keys and times again' }), button('Load again', () => load(true)), freeze,
    button('Save as PNG', () => { h('a', { href: canvas.toDataURL('image/png'), download: `${id}-keys.png` }).click(); })), marks, picture, tip, sums);
  await load();
  const resized = new ResizeObserver(() => { if (!map?.keys.length) return; axes(bounds.first, bounds.first + bounds.height - 1); drawLegend(); });
  resized.observe(canvas);
  const every = setInterval(() => { if (!frozen && !window_ && !from && !document.hidden) load(); }, 5000);
  signal.addEventListener('abort', () => { clearInterval(every); resized.disconnect(); });
}
