// The tables into which live DynamoDB tables are followed: phase, lag, dead letters, the next command.
import { h, fill, counted, lineShown, errorBox, number, plain, shown } from './dom.js';
import { get, live } from './api.js';
import { serverTime } from './app.js';
import { at, clockOf, ticksOf } from './axis.js';

const every = 2; // seconds between two reads, while a table is followed
const hour = 3600;

const target = (info) => `--target ${info.bigtable || 'HOST:PORT'}`;
/** placeOf returns the flags that name the instance of a table. */
const placeOf = (t, info) => target(info) + (t.project === info.project ? '' : ` --project ${t.project}`) + (t.instance === info.instance ? '' : ` --instance ${t.instance}`);
// Verify has the address in another flag.
const withPlace = (next, place) => `${next} ${next.includes(' migrate verify ') ? place.replace('--target ', '--against ') : place}`;
const command = (line) => lineShown(line, line.replace(/^.*: (?=tabletop )/, ''));
const secondsOf = (time) => new Date(time) / 1000;

/** lagText returns a lag in milliseconds; negative if it is unknown. */
export const lagText = (ms) => ms < 0 ? 'unknown' : ms < 1000 ? `${Math.round(ms)} ms` : ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : ms < 7_200_000 ? `${(ms / 60_000).toFixed(1)} min` : `${(ms / 3_600_000).toFixed(1)} h`;

/** windowOf returns the shown steps of a history of lags: at most an hour, up to the present. */
export function windowOf({ from, stepSeconds: step, milliseconds }, now) {
  const end = Math.floor(now / step) * step + step, first = secondsOf(from);
  const start = Math.max(end - hour, Math.min(first, end - 600));
  const lags = Array.from({ length: Math.round((end - start) / step) }, (_, i) => milliseconds[Math.round((start - first) / step) + i] ?? -1);
  return { start, end, step, lags, peak: Math.max(0, ...lags) };
}

/** chart returns the lag of the last hour: an element, and a function that draws a table again. */
function chart(name) {
  const canvas = h('canvas', { role: 'img', tabindex: 0, height: 96 }), top = h('span'), times = h('div', { class: 'axis soft mono' });
  const tip = h('p', { class: 'soft', 'aria-live': 'polite' });
  const el = h('figure', { class: 'lag' }, h('div', { class: 'scale soft mono', 'aria-hidden': true }, top, h('span', {}, '0')), canvas, times, tip);
  let shownNow, spot = -1;
  function point() {
    const { start, step, lags } = shownNow;
    tip.textContent = lags[spot] === undefined ? 'Each bar is the greatest lag of ten seconds; a line at the bottom is time without a follower. Point at a bar, or use the arrow keys.'
      : `${clockOf(start + spot * step)} · ${lags[spot] < 0 ? 'nothing followed' : 'at most ' + lagText(lags[spot])}`;
  }
  function draw(t) {
    if (t) shownNow = windowOf(t.lags, serverTime() / 1000);
    if (!shownNow) return;
    const { start, end, step, lags, peak } = shownNow;
    canvas.width = lags.length;
    const g = canvas.getContext('2d'), style = getComputedStyle(canvas), warn = style.getPropertyValue('--warn');
    lags.forEach((ms, i) => {
      if (ms < 0 && i === lags.length - 1) return; // its first checkpoint is still to come
      const high = ms < 0 ? 3 : Math.max(1, Math.ceil(canvas.height * ms / Math.max(1000, peak)));
      g.fillStyle = ms < 0 ? warn : style.color;
      g.fillRect(i, canvas.height - high, 1, high);
    });
    top.textContent = lagText(Math.max(1000, peak));
    canvas.setAttribute('aria-label', `Lag of ${plain(name)} from ${clockOf(start)} to ${clockOf(end)}: at most ${lagText(peak)}`);
    fill(times, ticksOf(start, end, Math.max(2, Math.floor((canvas.clientWidth || 600) / 90))).map((s) => at(h('span', { class: 'tick' }, clockOf(s, end - start < 1200 && step < 60)), 'left', (s - start) / (end - start))));
    point();
  }
  canvas.addEventListener('pointermove', (e) => {
    const box = canvas.getBoundingClientRect();
    spot = Math.max(0, Math.min(shownNow.lags.length - 1, Math.floor((e.clientX - box.left) / box.width * shownNow.lags.length)));
    point();
  });
  canvas.addEventListener('keydown', (e) => {
    const end = shownNow.lags.length - 1, was = spot < 0 ? end + 1 : spot;
    const to = { ArrowLeft: was - 1, ArrowRight: was + 1, Home: 0, End: end }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    spot = Math.max(0, Math.min(end, to));
    point();
  });
  return { el, draw };
}

const fact = (what, ...value) => [h('dt', {}, what), h('dd', {}, value)];

function factsOf(t) {
  const lag = t.lagNanoseconds / 1e6, worst = t.shards?.reduce((a, b) => a.lagNanoseconds > b.lagNanoseconds ? a : b);
  const n = t.dirty, proof = t.proof;
  return [
    h('div', {}, fact('Follower', t.running ? plain(t.running) : h('span', { class: 'bad' }, 'none'), t.mode && `, ${t.mode}`)),
    t.saved && h('div', {}, fact('Lag', h('b', { class: lag < 0 ? 'bad' : '' }, lagText(lag)), worst && h('small', { title: plain(worst.id) }, ` worst of ${counted(t.shards.length, 'shard')}`))),
    t.saved && h('div', {}, fact('Applied', `${counted(t.changes, 'change')}, ${number(Math.round(t.rate))} per second`)),
    h('div', {}, fact('Dead letters', h('span', { class: t.letterCount ? 'bad' : 'ok' }, number(t.letterCount)))),
    t.throttles > 0 && h('div', {}, fact('Throttled', counted(t.throttles, 'time'))),
    h('div', {}, fact('Verified', proof
      ? [`${plain(proof.at.slice(0, 19))}Z${proof.dirty ? ', changed keys' : ''}: ${number(proof.compared)} compared, `, h('span', { class: proof.differences ? 'bad' : 'ok' }, counted(proof.differences, 'difference')), `, ${number(proof.unsettled)} unsettled`,
        proof.valid && `; ${t.moreDirty ? 'more than ' : ''}${counted(n, 'key')} changed since`] : 'never')),
  ];
}

function lettersOf(t) {
  if (!t.letterCount) return null;
  return h('details', { open: true }, h('summary', {}, counted(t.letterCount, 'dead letter'), t.letterCount > t.letters.length && `, the first ${number(t.letters.length)}`),
    h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {}, ['Key', 'Reason', 'Mapping', 'Time'].map((x) => h('th', { scope: 'col' }, x)))), h('tbody', {}, t.letters.map((l) => h('tr', { 'data-letter': '' },
      h('td', { class: 'wraps' }, shown(l.key, 400)), h('td', { class: 'wraps' }, l.code && !l.reason.startsWith(l.code) && [h('b', {}, plain(l.code)), ' '], shown(l.reason, 2000)), h('td', { class: 'wraps' }, plain(l.mapping ?? '')), h('td', { class: 'nowrap soft' }, plain(l.at.slice(0, 19)), 'Z')))))));
}

function historyOf(t) {
  return t.history?.length > 0 && h('details', {}, h('summary', {}, 'Phases'), h('div', { class: 'scroll' }, h('table', {}, h('tbody', {}, t.history.map((e) => h('tr', {},
    h('th', { scope: 'row', class: 'nowrap' }, plain(e.at.slice(0, 19)), 'Z'), h('td', {}, plain(`${e.from ? e.from + ' → ' : ''}${e.to}`)), h('td', { class: 'soft wraps' }, plain(e.by))))))));
}

/** card returns the section of a table, and a function that shows its next state. */
function card(t, info) {
  const picture = chart(t.table || t.target), badge = h('span', { class: 'badge' }), since = h('p', { class: 'soft' }), facts = h('dl', { class: 'facts' }), next = h('div'), letters = h('div'), phases = h('div');
  const name = t.table || 'unknown table';
  const el = h('section', { class: 'card', 'data-followed': t.target }, h('h2', {}, plain(`${name} → ${t.target}`), badge), since, facts, picture.el, next, letters, phases);
  let last = {};
  // An unchanged part stays: it may contain the focus, or be open.
  const part = (into, name, state, draw) => {
    const text = JSON.stringify(state);
    if (last[name] !== text) fill(into, draw());
    last[name] = text;
  };
  const update = (now) => {
    badge.textContent = now.phase;
    since.textContent = `since ${now.at.slice(0, 19)}Z, set by ${plain(now.by)}`;
    fill(facts, factsOf(now));
    picture.el.hidden = !now.lags;
    if (now.lags) picture.draw(now);
    part(next, 'next', now.next, () => now.next && [h('h3', {}, 'Next'), command(withPlace(now.next, placeOf(now, info)))]);
    part(letters, 'letters', [now.letterCount, now.letters], () => lettersOf(now));
    part(phases, 'history', now.history, () => historyOf(now));
  };
  return { el, update, redraw: () => picture.draw() };
}

/** show appends the section of live tables, and keeps it current until signal ends it. */
export async function show(main, { info, signal }) {
  const body = h('div', {}), cards = new Map();
  main.append(h('section', {}, h('h2', {}, 'Live tables'), body));
  const idOf = (t) => `${t.project}/${t.instance}/${t.target}`;
  let names, asking = false, again = false, followed = false, seconds = 0;
  async function look() {
    if (asking) {
      again = true;
      return;
    }
    asking = true;
    again = false;
    try {
      const { tables } = await get('followed');
      if (signal.aborted) return;
      const now = tables.map(idOf).join(' ');
      if (now !== names) {
        names = now;
        cards.clear();
        for (const t of tables) cards.set(idOf(t), card(t, info));
        fill(body, tables.length ? [...cards.values()].map((c) => c.el) : h('details', {}, h('summary', {}, 'No live DynamoDB table is followed. Show how to start'),
          h('p', { class: 'soft' }, 'Load an export, then follow the table’s later changes. This page then shows the lag, the dead letters and the next command.'),
          command(`tabletop migrate load EXPORT --mapping mapping.yaml ${target(info)}`), command(`tabletop migrate follow TABLE ${target(info)}`)));
      }
      followed = tables.length > 0;
      for (const t of tables) cards.get(idOf(t)).update(t);
    } catch (err) {
      if (signal.aborted) return;
      names = undefined;
      fill(body, errorBox(err));
    } finally { asking = false; }
    if (again) await look();
  }
  live.addEventListener('tick', () => { if (followed && !asking && !document.hidden && ++seconds % every === 0) look(); }, { signal });
  live.addEventListener('tables', look, { signal });
  const redraw = () => { for (const c of cards.values()) c.redraw(); };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw, { signal });
  const resized = new ResizeObserver(redraw);
  resized.observe(body);
  signal.addEventListener('abort', () => resized.disconnect());
  await look();
}
