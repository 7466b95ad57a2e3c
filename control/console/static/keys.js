// Keys: the load on keys over time, from the counters of ListHotTablets.
import { h, fill, plain, number, counted, size, errorBox, button } from './dom.js';
import { bytesShown, textOf } from './bytes.js';
import { get, part, query } from './api.js';
import { rowsPath } from './paths.js';

const metrics = {
  operations: (c) => c.reads + c.writes, reads: (c) => c.reads, writes: (c) => c.writes, bytes: (c) => c.bytes, errors: (c) => c.errors,
};
const spans = { '15 minutes': ['15m', '1s', 1], 'an hour': ['1h', '1m', 60], '24 hours': ['24h', '1m', 60] };

/** findings returns the anomalies: [text, rule, bucket]. */
export function findings(map) {
  const out = map.large.map((row) => [
    `A row holds ${row.more ? 'more than 256 MB, which it must not' : `${size(row.bytes)}, and should be below 100 MB`}`, 'L41 row-too-large',
    map.keys.findIndex((k) => k.first.base64 === row.key.base64),
  ]);
  const sums = map.keys.map((k) => k.reads + k.writes);
  const all = sums.reduce((a, b) => a + b, 0);
  if (all < 100) return out;
  // With few keys each has a large share: a key is hot if it has several times the average of the others.
  const fair = (i) => (all - sums[i]) / (map.keys.length - 1);
  for (const [i, k] of map.keys.entries()) {
    if (map.keys.length === 1 || sums[i] <= 0.2 * all || sums[i] < 3 * fair(i)) continue;
    const where = k.first.base64 === k.last.base64 ? 'row' : 'range of keys';
    out.push([`${Math.round(100 * sums[i] / all)} % of the operations are at one ${where}`, 'L26 hot-key-range', i]);
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

export async function show(main, { args: [instance, id], info, params, signal }) {
  const project = params.get('project');
  const t = await get(`tables/${part(instance)}/${part(id)}` + query({ project }));
  const choose = (label, choices, value, act) => h('select', { 'aria-label': label, onchange: act }, choices.map((c) => h('option', { selected: c === value }, c)));
  const metric = choose('Metric', Object.keys(metrics), params.get('metric') ?? 'operations', () => draw());
  const span = choose('Time', Object.keys(spans), params.get('span') ?? '15 minutes', () => load());
  const bright = h('input', { type: 'range', min: 1, max: 100, value: 50, 'aria-label': 'Brightness', oninput: () => draw() });
  const canvas = h('canvas', { role: 'img', tabindex: 0, 'aria-label': 'Heat map: time from left to right, keys from top to bottom' });
  const tip = h('p', { class: 'soft', 'aria-live': 'polite' }, 'Point at a place of the map, or drag over a range of keys to see only these; with the keyboard arrows point, with Shift over a range, Enter shows only that, and Escape all.');
  // Beside the map is the sum of each range, below it that of each moment.
  const ofKeys = h('canvas', { class: 'of-keys', 'aria-hidden': true }), ofTimes = h('canvas', { class: 'of-times', 'aria-hidden': true });
  const beside = h('div', { class: 'beside' }), begins = h('span'), ends = h('span');
  const picture = h('div', { class: 'heat' }, canvas, ofKeys, beside, ofTimes, h('div', { class: 'times soft mono' }, begins, ends));
  const marks = h('div'), sums = h('div');
  let map, window_ = null, bounds = null, frozen = false;

  async function load() {
    try {
      const [last, step] = spans[span.value];
      map = await get(`heat/${part(instance)}/${part(id)}` + query({ project, last, step, limit: 256 }));
      if (!signal.aborted) { window_ = null; draw(); }
    } catch (err) { fill(marks, errorBox(err)); }
  }

  // The colour of a share of the maximum, from dark to light, on a background of its own in both schemes.
  function colour(share) {
    const x = Math.pow(share, 1.05 - bright.value / 100);
    return [Math.round(255 * Math.min(1, x * 1.6)), Math.round(255 * Math.max(0, x * 1.5 - 0.4)), Math.round(60 + 120 * Math.sin(Math.PI * Math.min(1, x * 1.2)))];
  }

  function draw() {
    const value = metrics[metric.value];
    if (!map.keys.length) {
      picture.hidden = true;
      fill(sums);
      fill(marks, h('div', { class: 'note' }, 'Nothing was counted in this time. Each read and write of a client counts at its first key; write some rows and load again.'));
      return;
    }
    picture.hidden = false;
    const [first, last] = window_ ?? [0, map.keys.length - 1];
    const [, , seconds] = spans[span.value];
    const start = new Date(map.columns[0].start) / 1000;
    const end = new Date(map.columns.at(-1).start) / 1000;
    // There are columns only for moments with counts: the moments between them are empty.
    const width = Math.max(1, Math.round((end - start) / seconds) + 1), height = last - first + 1;
    bounds = { start, seconds, width, height, first };
    canvas.width = width;
    canvas.height = height;
    const g = canvas.getContext('2d');
    const image = g.createImageData(width, height);
    let most = 0;
    for (const c of map.columns) for (let i = first; i <= last; i++) most = Math.max(most, value(c.cells[i]));
    for (let i = 0; i < image.data.length; i += 4) image.data.set([12, 14, 30, 255], i);
    for (const c of map.columns) {
      const x = Math.min(width - 1, Math.round((new Date(c.start) / 1000 - start) / seconds));
      for (let y = 0; y < height; y++) {
        const n = value(c.cells[first + y]);
        if (n) image.data.set([...colour(n / most), 255], 4 * (y * width + x));
      }
    }
    g.putImageData(image, 0, 0);
    const columns = new Array(width).fill(0);
    for (const c of map.columns) columns[Math.min(width - 1, Math.round((new Date(c.start) / 1000 - start) / seconds))] += c.cells.slice(first, last + 1).reduce((sum, cell) => sum + value(cell), 0);
    bars(ofKeys, map.keys.slice(first, last + 1).map(value), true);
    bars(ofTimes, columns, false);
    begins.textContent = clockOf(start);
    ends.textContent = clockOf(end + seconds);
    const found = findings(map);
    fill(beside, found.filter(([, , at]) => at >= first && at <= last).map(([text, rule, at]) => {
      const mark = h('a', { href: rowsAt(at), title: text, 'aria-label': `${text}: rows`, class: 'mono' }, '◀ ' + ids(rule));
      mark.style.top = `${100 * (at - first + 0.5) / height}%`;
      return mark;
    }), found.filter(([, , at]) => at < 0).map(([text, rule]) => h('span', { title: text, class: 'mono' }, '⤡ ' + ids(rule))));
    const total = map.keys.reduce((sum, k) => sum + value(k), 0);
    fill(marks, found.map(([text, rule, at]) => h('div', { class: 'note warn' }, text, at >= 0 && [': ', bytesShown(map.keys[at].first, 80)], `. See rule ${rule} of tabletop migrate lint.`)));
    const busiest = map.keys.map((k, i) => [k, i]).filter(([k]) => value(k) > 0).sort(([a], [b]) => value(b) - value(a)).slice(0, 12);
    fill(sums, h('h2', {}, `${metric.value === 'bytes' ? size(total) : number(total)} ${metric.value === 'bytes' ? '' : metric.value} in ${number(map.keys.length)} ranges of keys${total ? '; the busiest' : ''}`), h('table', {}, h('tbody', {}, busiest.map(([k, i]) => h('tr', {},
      h('td', {}, bytesShown(k.first, 80)), h('td', { class: 'num' }, number(value(k))), h('td', { class: 'num soft' }, total ? `${(100 * value(k) / total).toFixed(1)} %` : ''),
      h('td', {}, h('a', { href: rowsAt(i) }, 'rows')))))));
  }

  // bars draws sums as lines, in proportion to the greatest.
  function bars(on, values, across) {
    const long = 48, most = Math.max(1, ...values);
    on.width = across ? long : values.length;
    on.height = across ? values.length : long;
    const g = on.getContext('2d');
    g.fillStyle = getComputedStyle(on).color;
    values.forEach((n, i) => {
      const share = Math.ceil(long * n / most);
      if (across) g.fillRect(0, i, share, 1);
      else g.fillRect(i, long - share, 1, share);
    });
  }

  const ids = (rule) => rule.match(/L\d\d/g).join(' ');
  const clockOf = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19) + 'Z';

  const rowsAt = (i) => rowsPath(t, info) + (rowsPath(t, info).includes('?') ? '&' : '?') + query({ start: textOf(map.keys[i].first, 4096), end: map.keys[i + 1] && textOf(map.keys[i + 1].first, 4096) }).slice(1);

  function at(e) {
    const box = canvas.getBoundingClientRect();
    const clamp = (n, most) => Math.max(0, Math.min(most, Math.floor(n)));
    return { x: clamp((e.clientX - box.left) / box.width * bounds.width, bounds.width - 1), y: bounds.first + clamp((e.clientY - box.top) / box.height * bounds.height, bounds.height - 1) };
  }
  let from = null;
  function point({ x, y }) {
    const column = map.columns.find((c) => Math.round((new Date(c.start) / 1000 - bounds.start) / bounds.seconds) === x);
    const c = column?.cells[y] ?? { reads: 0, writes: 0, bytes: 0, errors: 0 };
    fill(tip, `${clockOf(bounds.start + x * bounds.seconds)} · `, bytesShown(map.keys[y].first, 80), map.keys[y + 1] && [' to ', bytesShown(map.keys[y + 1].first, 80)], ` · ${counted(c.reads, 'read')}, ${counted(c.writes, 'write')}, ${size(c.bytes)}, ${counted(c.errors, 'error')}`);
  }
  canvas.addEventListener('pointermove', (e) => { if (bounds) point(at(e)); });
  canvas.addEventListener('pointerdown', (e) => { from = at(e).y; });
  canvas.addEventListener('pointerup', (e) => {
    const to = at(e).y;
    if (from !== null && Math.abs(to - from) > 0) { window_ = [Math.min(from, to), Math.max(from, to)]; draw(); }
    from = null;
  });

  // The keyboard: a place, and the range from the place at which Shift was pressed.
  const cursor = h('span', { hidden: true });
  let spot = null;
  function mark() {
    const height = map?.keys.length ? bounds.height : 0;
    cursor.hidden = !spot || !height || spot.y < bounds.first || spot.y >= bounds.first + height;
    if (cursor.hidden) return;
    const low = Math.max(bounds.first, Math.min(spot.y, spot.from)), high = Math.min(bounds.first + height - 1, Math.max(spot.y, spot.from));
    const wide = spot.y === spot.from;
    cursor.style.left = wide ? `${100 * spot.x / bounds.width}%` : '0';
    cursor.style.width = wide ? `${100 / bounds.width}%` : '100%';
    cursor.style.top = `${100 * (low - bounds.first) / height}%`;
    cursor.style.height = `${100 * (high - low + 1) / height}%`;
  }
  canvas.addEventListener('keydown', (e) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-Infinity, 0], End: [Infinity, 0], PageUp: [0, -10], PageDown: [0, 10] }[e.key];
    if (!bounds || !map.keys.length || !by && e.key !== 'Enter' && e.key !== 'Escape') return;
    e.preventDefault();
    if (by) {
      const clamp = (n, least, most) => Math.max(least, Math.min(most, n));
      const was = spot ?? { x: bounds.width - 1, y: bounds.first - 1, from: bounds.first };
      const y = clamp(was.y + by[1], bounds.first, bounds.first + bounds.height - 1);
      spot = { x: clamp(was.x + by[0], 0, bounds.width - 1), y, from: e.shiftKey && by[1] ? was.from : y };
      point(spot);
    } else {
      if (e.key === 'Escape') window_ = null;
      else if (spot && Math.max(spot.y, spot.from) < map.keys.length) window_ = [Math.min(spot.y, spot.from), Math.max(spot.y, spot.from)];
      if (spot) spot.from = spot.y;
      draw();
    }
    mark();
  });
  canvas.addEventListener('focus', mark);
  canvas.addEventListener('blur', () => { cursor.hidden = true; });
  picture.append(h('div', { class: 'over' }, cursor));

  const freeze = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => { frozen = !frozen; freeze.setAttribute('aria-pressed', String(frozen)); } }, 'Freeze');
  main.append(h('h1', {}, 'Keys of ', plain(`${instance} / ${id}`)), h('div', { class: 'bar' }, h('label', {}, 'show', metric), h('label', {}, 'of the last', span), h('label', {}, 'brightness', bright),
    button('All keys', () => { window_ = null; draw(); }), button('Load again', load), freeze,
    button('Save as PNG', () => { h('a', { href: canvas.toDataURL('image/png'), download: `${id}-keys.png` }).click(); }), h('a', { href: rowsPath(t, info) }, 'Rows')), marks, picture, tip, sums);
  await load();
  const every = setInterval(() => { if (!frozen && !window_ && !document.hidden) load(); }, 5000);
  signal.addEventListener('abort', () => clearInterval(every));
}
