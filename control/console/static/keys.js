// Keys: the load on keys over time, from the counters of ListHotTablets.
import { h, fill, plain, number, counted, size, errorBox, button } from './dom.js';
import { at, clockOf, ticksOf } from './axis.js';
import { bytesShown, textOf } from './bytes.js';
import { get, part, query } from './api.js';
import { serverTime } from './app.js';
import { headOf } from './head.js';
import { partName, partsShown } from './parts.js';
import { callsPath, historyPath, rowsPath, ruleLink } from './paths.js';

const metrics = {
  operations: (c) => c.reads + c.writes, reads: (c) => c.reads, writes: (c) => c.writes, rows: (c) => c.rows, bytes: (c) => c.bytes, errors: (c) => c.errors,
};
const spans = { '15 minutes': ['15m', '1s', 1], 'an hour': ['1h', '1m', 60], '24 hours': ['24h', '1m', 60] };
const percent = (n, all) => `${(100 * n / all).toFixed(1)}%`;
const nothing = { reads: 0, writes: 0, rows: 0, bytes: 0, errors: 0 };

/** findings returns the anomalies: [text, rules, bucket, advice], where rules are [id, name]. */
export function findings(map) {
  const out = map.large.map((row) => [
    row.more ? 'A row has more than 256 MB, the limit' : `A row has ${size(row.bytes)}; the guides advise less than 100 MB`, [['L41', 'row-too-large']],
    map.keys.findIndex((k) => k.first.base64 === row.key.base64),
  ]);
  // A bulk request is the load of its rows, not of its first key.
  const sums = map.keys.map((k) => k.reads + k.writes + k.rows);
  const all = sums.reduce((a, b) => a + b, 0);
  if (map.keys.reduce((n, k) => n + Math.max(k.reads + k.writes, k.rows), 0) < 100) return out;
  // With few keys each has a large share: a key is hot if it has several times the average of the others.
  const fair = (i) => (all - sums[i]) / (map.keys.length - 1);
  const operations = (k) => k.reads + k.writes, total = (of) => map.keys.reduce((n, k) => n + of(k), 0);
  for (const [i, k] of map.keys.entries()) {
    if (map.keys.length === 1 || sums[i] <= 0.2 * all || sums[i] < 3 * fair(i)) continue;
    // The share is that of the table below the map: of the operations, or of the rows of bulk requests.
    const [share, what] = [[operations, 'operations'], [metrics.rows, 'rows read and written']].map(([of, name]) => [of(k) / (total(of) || 1), name]).sort(([a], [b]) => b - a)[0];
    const row = k.first.base64 === k.last.base64;
    out.push([`One ${row ? 'row' : 'key range'} takes ${percent(share, 1)} of the ${what}`, [['L26', 'hot-key-range']], i,
      row ? 'Another key moves a single row, and does not spread it. Divide its writes over several rows, or keep it in a cache.' : 'Put a value that spreads the traffic in front of the keys.']);
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
    out.push(['Writes move through the keys in order, at one place at a time', [['L03', 'key-starts-with-time'], ['L04', 'sequential-ids']], -1]);
  }
  return out;
}

const most = 3; // columns of the axis of keys
const fewest = 60; // moments of the whole map

/** bandsOf cuts the axis of keys: for each segment of the row keys, the ranges whose keys begin alike: [depth, first, last, text]. */
export function bandsOf(keys) {
  if (!keys.some((k) => k.parts?.length)) return keys.map((k, i) => [0, i, i, textOf(k.first, 60)]);
  const cut = keys.map((k) => {
    const segments = [];
    for (const p of k.parts ?? []) if (p.name) (segments[p.segment] ??= []).push(`${partName(p)} ${p.value ?? textOf(p.bytes, 40)}`);
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

const ids = (rules) => rules.map(([id]) => id).join(' ');

export async function show(main, { args: [instance, id], info, params, signal }) {
  const project = params.get('project');
  const [t, tables] = await Promise.all([get(`tables/${part(instance)}/${part(id)}` + query({ project })), get('tables')]);
  const names = tables.bigtable.find((b) => b.name === t.name)?.dynamodb ?? [];
  const choose = (label, choices, value, act, said = (c) => c[0].toUpperCase() + c.slice(1)) => h('select', { 'aria-label': label, onchange: act }, choices.map((c) => h('option', { value: c, selected: c === value }, said(c))));
  const metric = choose('Metric', Object.keys(metrics), params.get('metric') ?? 'operations', () => draw());
  const span = choose('Time range', Object.keys(spans), params.get('span') ?? '15 minutes', () => { chosen = true; load(true); }, (c) => 'Last ' + c.replace(/^an /, ''));
  const bright = h('input', { type: 'range', min: 1, max: 100, value: 50, 'aria-label': 'Brightness', oninput: () => draw() });
  const canvas = h('canvas', { role: 'img', tabindex: 0, 'aria-label': 'Load on keys over time: keys from top to bottom, time from left to right' });
  const hint = 'Point at the map for counts, click for links, drag to zoom. Keyboard: arrows move, Shift selects, Enter zooms, Escape resets.';
  const tip = h('p', { class: 'tip soft', 'aria-live': 'polite' }, hint);
  // Beside the map is the sum of each range, below it that of each moment.
  const ofKeys = h('canvas', { class: 'of-keys', 'aria-hidden': true }), ofTimes = h('canvas', { class: 'of-times', 'aria-hidden': true });
  const beside = h('div', { class: 'beside' }), times = h('div', { class: 'axis of-time soft mono' }), keys = h('div', { class: 'axis of-key soft mono' });
  const legend = h('figure', { class: 'legend' }), caption = h('span', { class: 'soft' }), scale = h('canvas', { 'aria-hidden': true, width: 256, height: 1 }), values = h('div', { class: 'axis soft mono' });
  legend.append(caption, scale, values);
  const over = h('div', { class: 'over' }), cursor = h('span', { hidden: true }), brush = h('span', { hidden: true, class: 'brush' });
  over.append(cursor, brush);
  const picture = h('div', { class: 'heat' }, canvas, keys, ofKeys, beside, times, legend, ofTimes, over);
  const marks = h('div'), sums = h('div');
  let map, loaded, bounds = null, paused = false, chosen = params.has('span');
  let window_ = null; // the shown part: keys, [first, last], and times in seconds, [start, end); each null for all

  async function load(whole) {
    try {
      const [last, step] = spans[span.value];
      map = await get(`heat/${part(instance)}/${part(id)}` + query({ project, last, step, limit: 256 }));
      if (signal.aborted) return;
      loaded = serverTime() / 1000;
      // A page that was opened without a time range shows the shortest one that has counts.
      if (!map.keys.length && !chosen) {
        span.selectedIndex = (span.selectedIndex + 1) % span.options.length;
        if (span.selectedIndex) return load(whole);
      }
      chosen = true;
      if (whole) window_ = null;
      draw();
    } catch (err) { renew(marks, String(err), () => errorBox(err)); }
  }

  // The color of a share of the maximum, from dark to light, on a background of its own in both schemes.
  function color(share) {
    const x = Math.pow(share, 1.05 - bright.value / 100);
    return [Math.round(255 * Math.min(1, x * 1.6)), Math.round(255 * Math.max(0, x * 1.5 - 0.4)), Math.round(60 + 120 * Math.sin(Math.PI * Math.min(1, x * 1.2)))];
  }
  const shadesOf = () => Uint32Array.from({ length: 257 }, (_, i) => {
    const [r, g, b] = i ? color(i / 256) : [12, 14, 30];
    return new Uint32Array(Uint8ClampedArray.of(r, g, b, 255).buffer)[0];
  });
  const shownValue = (n) => metric.value === 'bytes' ? size(n) : number(n);

  // renew fills an element if its state is another one: a link that stays keeps the focus.
  const states = new Map();
  function renew(el, state, of) {
    const text = JSON.stringify(state);
    if (states.get(el) !== text) fill(el, of());
    states.set(el, text);
  }

  function draw() {
    const value = metrics[metric.value];
    picture.hidden = tip.hidden = !map.keys.length;
    if (!map.keys.length) {
      renew(sums, [], () => []);
      renew(marks, 'none', () => h('div', { class: 'note' }, 'No reads or writes in this time range. The map counts an operation at its first key, and rows and bytes at each row.'));
      return;
    }
    const [first, last] = window_?.keys ?? [0, map.keys.length - 1];
    const [, , seconds] = spans[span.value];
    // A load of seconds has moments before it: a single column would not look like a map over time.
    // The map ends at the present, also long after the last operation.
    const latest = new Date(map.columns.at(-1).start) / 1000;
    const stop = latest + seconds * Math.max(1, Math.floor((loaded - latest) / seconds));
    const [start, end] = window_?.times ?? [Math.min(new Date(map.columns[0].start) / 1000, stop - fewest * seconds), stop];
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
    // Without counts of the metric the map would be a black field. A selection stays, since other places have counts.
    const none = !peak && !window_;
    picture.hidden = tip.hidden = none;
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
    renew(beside, [found, first, last, map.keys.length], () => [found.filter(([, , i]) => i >= first && i <= last).map(([text, rules, i]) =>
      at(h('a', { href: rowsAt(i), title: text, 'aria-label': `${ids(rules)}: ${text}`, class: 'mono' }, ids(rules)), 'top', (i - first + 0.5) / height)),
    found.filter(([, , i]) => i < 0).map(([text, rules]) => h('span', { title: text, class: 'mono' }, '⤡ ' + ids(rules)))]);
    renew(marks, found, () => found.map(([text, rules, i, advice]) => h('div', { class: 'note warn' }, text, i >= 0 && [': ', bytesShown(map.keys[i].first, 80)], '. ', advice && advice + ' ', 'Lint: ', rules.map(([id, name], n) => [n > 0 && ', ', ruleLink(id, name)]))));
    const total = ofKey.reduce((a, b) => a + b, 0);
    const busiest = ofKey.map((n, i) => [n, first + i]).filter(([n]) => n > 0).sort(([a], [b]) => b - a).slice(0, 12);
    const what = metric.value;
    if (none) renew(sums, ['none', what], () => h('div', { class: 'note' }, `No ${what} in this time range.`));
    else renew(sums, [total, what, height, map.keys.length, !!window_, busiest.map(([n, i]) => [n, map.keys[i].first.base64])], () => [h('h2', {}, `${metric.value === 'bytes' ? size(total) : counted(total, what.slice(0, -1))} in ${counted(height, 'key range')}`), busiest.length > 0 && h('table', { class: 'sums' }, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Busiest key ranges'),
      h('th', { scope: 'col', class: 'num' }, what[0].toUpperCase() + what.slice(1)), h('th', { scope: 'col', class: 'num' }, window_ ? 'Share of the selection' : `Share of ${what}`), h('td'))), h('tbody', {}, busiest.map(([n, i]) => h('tr', {},
      h('td', {}, map.keys[i].parts?.length ? partsShown(map.keys[i].parts) : bytesShown(map.keys[i].first, 80)), h('td', { class: 'num' }, shownValue(n)), h('td', { class: 'num soft' }, percent(n, total)), h('td', { class: 'acts' }, linksOf(i))))))]);
    mark();
  }

  // axes labels the times, and the keys where there is room.
  function axes(first, last) {
    const { start, end, height, found } = bounds;
    const room = canvas.clientWidth || 800;
    fill(times, ticksOf(start, end, Math.max(2, Math.floor(room / 90))).filter((s, i) => !i || (end - s) / (end - start) * room > 64).map((s) => at(h('span', { class: 'tick' }, clockOf(s, end - start < 7200)), 'left', (s - start) / (end - start))));
    const line = 14 / (canvas.clientHeight || 420) * height; // the ranges of keys that a label covers
    const brief = keys.clientWidth < 200 && map.keys.some((k) => k.parts?.length); // without the names of parts
    const bands = bandsOf(map.keys.slice(first, last + 1)), wide = [0];
    // Each depth is as wide as its longest label needs.
    const label = (text) => brief ? text.replace(/^\S+ (?=.)/, '') : text;
    for (const [depth, , , text] of bands) wide[depth] = Math.max(wide[depth] ?? 0, Math.min(24, label(text).length) + 2);
    const all = wide.reduce((a, b) => a + b, 0);
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
      const band = h('span', { class: `band${row === undefined ? '' : ' thin'}${marked.has(row) ? ' marked' : ''}`, title: plain(text), 'data-row': row === undefined ? undefined : row + first }, plain(label(text)));
      at(band, 'top', top / height);
      at(band, 'height', long / height);
      at(band, 'left', wide.slice(0, depth).reduce((a, b) => a + b, 0) / all);
      return at(band, 'width', wide[depth] / all);
    }));
  }

  function drawLegend() {
    const { peak, seconds } = bounds, shades = shadesOf();
    const g = scale.getContext('2d'), image = g.createImageData(256, 1);
    new Uint32Array(image.data.buffer).set(shades.subarray(0, 256));
    g.putImageData(image, 0, 0);
    // Few counts have fewer values than ticks, and long values need room: the last two share one step.
    const steps = [4, 3, 2].find((n) => 2 * n * (7 * shownValue(peak).length + 8) <= (legend.clientWidth || 190) && (metric.value === 'bytes' || peak % n === 0 || peak > 20)) ?? 1;
    fill(values, peak > 0 && Array.from({ length: steps + 1 }, (_, i) => at(h('span', { class: 'tick' }, shownValue(Math.round(peak * i / steps))), 'left', i / steps)));
    scale.hidden = !peak;
    caption.textContent = !peak ? `No ${metric.value} in the selection.` : `${metric.value[0].toUpperCase() + metric.value.slice(1)} per key range and ${seconds === 1 ? 'second' : 'minute'}`;
    legend.setAttribute('aria-label', !peak ? caption.textContent : `${caption.textContent}: colors from 0 to ${shownValue(peak)}`);
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

  const single = (k) => k.first.base64 && k.first.base64 === k.last.base64;
  const linksOf = (i) => [h('a', { href: rowsAt(i) }, 'Rows'), single(map.keys[i]) && [' · ', h('a', { href: historyPath(t, info, map.keys[i].first) }, 'History'), ' · ', h('a', { href: callsPath(t, map.keys[i].first) }, 'Requests')]];
  const rowsAt = (i) => rowsPath(t, info) + (rowsPath(t, info).includes('?') ? '&' : '?') + query({ start: textOf(map.keys[i].first, 4096), end: map.keys[i + 1] && textOf(map.keys[i + 1].first, 4096) }).slice(1);
  const clamp = (n, least, most) => Math.max(least, Math.min(most, n));

  // place returns the moment, from the left, and the range of keys under the pointer.
  function place(e) {
    const box = canvas.getBoundingClientRect();
    return { x: clamp(Math.floor((e.clientX - box.left) / box.width * bounds.width), 0, bounds.width - 1), y: bounds.first + clamp(Math.floor((e.clientY - box.top) / box.height * bounds.height), 0, bounds.height - 1) };
  }
  function point({ x, y }, links = false) {
    const c = bounds.columns.find((column) => column.x === x)?.cells[y] ?? nothing, k = map.keys[y];
    fill(tip, `${clockOf(bounds.start + x * bounds.seconds)} · `, bytesShown(k.first, 80), !single(k) && map.keys[y + 1] && [' to ', bytesShown(map.keys[y + 1].first, 80)], ` · ${counted(c.reads, 'read')}, ${counted(c.writes, 'write')}, ${single(k) ? `row read or written ${counted(c.rows, 'time')}` : `${counted(c.rows, 'row')} read or written`}, ${size(c.bytes)}, ${counted(c.errors, 'error')}`, links && [' · ', linksOf(y)]);
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

  // A click keeps a place, so that the pointer can reach its links; another click there releases it.
  let pinned = false;
  function pin({ x, y }) {
    pinned = !(pinned && spot?.x === x && spot.y === y);
    spot = pinned ? { x, y, fromX: x, fromY: y } : null;
    point({ x, y }, pinned);
    mark();
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
    if (!pinned) point(place(e));
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
    else pin(place(e));
  });
  canvas.addEventListener('pointercancel', () => { from = null; brush.hidden = true; });

  // The keyboard: a place, and the range from the place at which Shift was pressed.
  let spot = null;
  function mark() {
    cursor.hidden = !spot || !pinned && document.activeElement !== canvas || !map?.keys.length || spot.y < bounds.first || spot.y >= bounds.first + bounds.height || spot.x >= bounds.width;
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
      pinned = false;
      spot = { x, y, fromX: e.shiftKey ? clamp(was.fromX, 0, right) : x, fromY: e.shiftKey ? clamp(was.fromY, top, bottom) : y };
      point(spot, true);
    } else {
      if (e.key === 'Escape') { window_ = null; pinned = false; }
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
  canvas.addEventListener('blur', mark);

  const pause = h('button', { type: 'button', 'aria-pressed': 'false', title: 'Stop updating the map', onclick: () => { paused = !paused; pause.setAttribute('aria-pressed', String(paused)); } }, 'Pause');
  main.append(...headOf('Keys', { name: id, about: `load on keys, Bigtable in ${plain(instance)}`, t, dynamodb: names, tables, info }), h('div', { class: 'bar' }, h('label', {}, 'Metric', metric), h('label', {}, 'Time range', span), h('label', {}, 'Brightness', bright), h('span', { class: 'bar end' },
    button('Reset zoom', () => { window_ = null; draw(); }, { title: 'Show all keys and times' }), button('Refresh', () => load(true)), pause,
    button('Save as PNG', () => { h('a', { href: canvas.toDataURL('image/png'), download: `${id}-keys.png` }).click(); }))), marks, tip, picture, sums);
  await load();
  const resized = new ResizeObserver(() => { if (!map?.keys.length) return; axes(bounds.first, bounds.first + bounds.height - 1); drawLegend(); });
  resized.observe(canvas);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => map && draw(), { signal });
  const every = setInterval(() => { if (!paused && !window_ && !pinned && !from && !document.hidden) load(); }, 5000);
  signal.addEventListener('abort', () => { clearInterval(every); resized.disconnect(); });
}
