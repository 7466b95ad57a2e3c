// The views of tables: their statement, and how far their rows follow the tables.
import { h, plain, shown, button, notify } from './dom.js';
import { bytesShown } from './bytes.js';
import { post } from './api.js';
import { viewPath } from './paths.js';

/** stateShown describes the rows of a materialized view. */
export function stateShown(v, lag) {
  if (v.kind !== 'materialized') return 'computed by each query';
  if (v.state === 'filling') return v.next.base64 ? ['is being filled, at the row ', bytesShown(v.next, 60)] : 'is being filled';
  if (v.state === 'refill') return h('span', { class: 'bad' }, lag === 'manual' ? 'a refresh fills it again' : 'the next read fills it again');
  if (v.hidden) return h('span', { class: 'bad' }, `does not show changes since ${v.hidden.replace('T', ' ')}`);
  return h('span', { class: 'ok' }, 'complete');
}

/** viewsShown returns a table of views, and the lag of the materialized ones; again shows the page again. */
export function viewsShown({ views, lag }, info, again) {
  const stored = views.some((v) => v.kind === 'materialized');
  return h('div', { 'data-views': '' }, stored && lag !== '0s' && h('div', { class: 'bar' }, refresh(again), h('small', {}, lag === 'manual' ? 'Materialized views change only when refreshed.' : `A change reaches materialized views after ${lag}.`)),
    h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {}, ['View', 'Kind', 'Statement', 'State'].map((x) => h('th', { scope: 'col' }, x)))), h('tbody', {}, views.map((v) =>
    h('tr', {}, h('td', { class: 'name' }, h('a', { href: viewPath(v, info) }, plain(v.view)), v.instance !== info.instance && h('small', {}, ` in ${plain(v.instance)}`)),
      h('td', {}, v.kind), h('td', { class: 'wraps' }, shown(v.query, 300)), h('td', {}, stateShown(v, lag))))))));
}

/** refresh returns the button that makes the materialized views reflect all changes. */
export const refresh = (again) => button('Refresh views', async () => {
  await post('views/refresh');
  notify('The views are up to date.');
  again();
});
