// The Bigtable calls of a DynamoDB request: when each ran, its request, and Go code that makes it.
import { h, copier, counted, number, plain, shown } from './dom.js';
import { at } from './axis.js';
import { bytesShown } from './bytes.js';
import { callCode } from './gocode.js';

const pretty = (value) => JSON.stringify(value, null, 2);

/** millis formats milliseconds. */
export const millis = (n) => `${number(Number(n.toPrecision(3)))} ms`;

/** tableOf returns the last part of the name of a request's table. */
export const tableOf = (r) => r.table?.slice(r.table.lastIndexOf('/') + 1) ?? '';

export const statusText = (r) => r.stopped ? 'stopped early' : r.status;
/** statusShown returns an element with the status of a request or a call. */
export const statusShown = (r) => h('span', { class: 'pill ' + (r.status === 'OK' ? 'ok' : r.stopped ? 'soft' : 'bad') }, plain(statusText(r)));

/** between returns the milliseconds from one time in RFC 3339 to another, to the nanosecond. */
function between(from, to) {
  const [[, a, restA = ''], [, b, restB = '']] = [from, to].map((t) => t.match(/^(.{19})(\.\d+)?/));
  return Date.parse(b + 'Z') - Date.parse(a + 'Z') + 1000 * (Number(restB) - Number(restA));
}

/** spansOf returns the time of each call as shares of the time of their request: [start, length]. With a frozen clock all begin at once. */
export function spansOf(calls, whole) {
  const start = whole?.start ?? calls.map((c) => c.start).sort()[0];
  const from = calls.map((c) => Math.max(0, between(start, c.start)));
  const all = Math.max(whole?.millis ?? 0, ...calls.map((c, i) => from[i] + c.millis)) || 1;
  return calls.map((c, i) => [from[i] / all, c.millis / all]);
}

/** track returns a line with the time of a call. */
export function track([start, length]) {
  const bar = h('i');
  at(bar, 'left', Math.min(start, 0.99));
  at(bar, 'width', Math.min(length, 1 - start));
  return h('span', { class: 'track', 'aria-hidden': true }, bar);
}

function callShown(c, span) {
  return h('details', { class: 'call' }, h('summary', {}, h('span', { class: 'call-head' }, h('b', { class: 'mono' }, plain(c.operation)), h('span', { class: 'mono' }, plain(tableOf(c))),
    c.key && bytesShown(c.key, 80), c.status !== 'OK' && statusShown(c), c.rows > 0 && h('small', {}, counted(c.rows, 'row'), c.rowsRead > 0 && ` of ${number(c.rowsRead)} read`), h('small', { class: 'end' }, millis(c.millis))), track(span)),
  h('pre', { class: 'data' }, plain(c.request ? '' : c.cut ? 'The request is too large to be kept.' : ''), c.request && shown(pretty(c.request), 20000)),
  c.request && h('div', { class: 'bar' }, copier('Copy call as Go', () => callCode(c.operation, c.request))));
}

/** callsShown returns elements with calls, each with its time within the request, whole, if it is known. */
export function callsShown(calls, whole) {
  const spans = spansOf(calls, whole);
  return [whole && h('p', { class: 'soft' }, `The bars show when the calls ran in the ${millis(whole.millis)} of the request.`), calls.map((c, i) => callShown(c, spans[i]))];
}
