// The frame of all pages: the sign-in, the navigation, and the current page.
import { h, fill, errorBox, plain } from './dom.js';
import { follow, get, live, session } from './api.js';

const routes = [
  [/^\/$/, 'home.js', 'Home'],
  [/^\/t\/([^/]+)\/([^/]+)\/rows$/, 'rows.js', 'Rows'],
  [/^\/t\/([^/]+)\/([^/]+)$/, 'table.js', 'Table'],
  [/^\/v\/([^/]+)\/([^/]+)$/, 'view.js', 'View'],
  [/^\/d\/([^/]+)$/, 'item.js', 'Items'],
  [/^\/keys\/([^/]+)\/([^/]+)$/, 'keys.js', 'Keys'],
  [/^\/history\/([^/]+)(?:\/([^/]+))?$/, 'history.js', 'History'],
  [/^\/requests$/, 'requests.js', 'Requests'],
  [/^\/query$/, 'query.js', 'Query'],
  [/^\/streams$/, 'streams.js', 'Streams'],
  [/^\/lab$/, 'lab.js', 'Lab'],
  [/^\/migration$/, 'migration.js', 'Migration'],
];
const places = [
  ['/', 'Home', 'addresses of the endpoints, and all tables'], ['/requests', 'Requests', 'live requests of both endpoints'],
  ['/query', 'Query', 'run requests and statements'], ['/streams', 'Streams', 'changes of tables'], ['/lab', 'Lab', 'clock, garbage collection, snapshots and faults'],
  ['/migration', 'Migration', 'live tables, fixtures, and an editor for mappings'], ['/docs/index', 'Docs', 'all documents'],
];

const nav = h('nav', { 'aria-label': 'Pages' }, places.map(([href, label]) => h('a', { href }, label)));
const state = h('a', { href: '/lab', hidden: true, title: 'The server’s clock' }), help = h('a', {}, 'Help');
const main = document.querySelector('main') ?? h('main', { id: 'main', tabindex: -1 });
let doc = main.isConnected && location.pathname; // the path of the document that the server put into the page
let leaving = new AbortController();

async function signIn() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given) {
    history.replaceState(null, '', location.pathname + location.search);
    await session(given);
  }
}

/** askToken shows the page for a missing or wrong token. */
function askToken() {
  const input = h('input', { class: 'mono', size: 44, 'aria-label': 'Token', autocomplete: 'off', autofocus: true });
  const said = h('div');
  fill(main, h('h1', {}, 'Sign in'),
    h('p', {}, 'The server prints a new token at each start: in the address after “# Console:”, as TABLETOP_CONSOLE_TOKEN, and in the port file. With --token-file, the token is in that file.'),
    h('form', { class: 'bar', onsubmit: async (e) => {
      e.preventDefault();
      try {
        await session(input.value.trim());
        show();
      } catch (err) { fill(said, errorBox(err)); }
    } }, input, h('button', { class: 'primary' }, 'Sign in')), said);
  input.focus();
}

let known; // the last info of the server, with its time

/** serverTime returns the present time of the server's clock. */
export const serverTime = () => new Date(Date.parse(known.clock.now) + (known.clock.frozen ? 0 : Date.now() - known.at));

function stand() {
  if (!known) return;
  const now = serverTime();
  const parts = [`${now.toISOString().slice(0, 19).replace('T', ' ')} UTC`];
  if (known.clock.frozen) parts.push('frozen');
  else if (Math.abs(now - Date.now()) > 5000) parts.push('shifted');
  if (known.faults) parts.push(`${known.faults} fault${known.faults > 1 ? 's' : ''} armed`);
  state.textContent = parts.join(' · ');
  state.hidden = false;
}
live.addEventListener('tick', stand);
live.addEventListener('lab', (e) => {
  known = { ...known, ...e.detail, at: Date.now() };
  stand();
});

/** standing shows the differences from a newly started server. */
export async function standing() {
  const info = await get('info');
  known = { ...info, at: Date.now() };
  stand();
  return info;
}

/** segments decodes parts of a path; undefined if one is malformed. */
function segments(parts) {
  try { return parts.filter((p) => p !== undefined).map(decodeURIComponent); } catch { return undefined; }
}

/** missing shows the page of an unknown path. */
function missing() {
  standing().catch(() => {}); // without a token the header stays without a clock
  document.title = 'Page not found · Tabletop';
  fill(main, h('h1', {}, 'Page not found'), h('p', {}, 'The console has no page at ', h('code', { class: 'data' }, plain(location.pathname)), '. Its pages are:'),
    h('ul', {}, places.map(([href, label, what]) => h('li', {}, h('a', { href }, label), ': ', what))));
}

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  delete document.documentElement.dataset.ready;
  for (const d of document.querySelectorAll('dialog')) d.close(); // its links lead to another page
  const route = routes.find(([pattern]) => pattern.test(location.pathname));
  if (doc !== location.pathname) doc = undefined;
  for (const a of nav.children) {
    const href = a.getAttribute('href');
    // The pages of a table belong to the list of tables, all documents to their list.
    if (href === location.pathname) a.setAttribute('aria-current', 'page');
    else if (href === '/' && /^\/(t|v|d|keys|history)\//.test(location.pathname) || doc && href.startsWith('/docs/')) a.setAttribute('aria-current', 'true');
    else a.removeAttribute('aria-current');
  }
  // Each page has a section of its name in the document of the console.
  help.setAttribute('href', '/docs/console' + (route ? '#' + route[2].toLowerCase() : ''));
  help.hidden = !!doc;
  if (doc) {
    standing().catch(() => {}); // a document needs no token
    (await import('./docs.js')).show(main, signal);
    document.documentElement.dataset.ready = doc;
    return;
  }
  main.className = '';
  const args = route && segments(location.pathname.match(route[0]).slice(1));
  if (!args) {
    missing();
    document.documentElement.dataset.ready = location.pathname;
    return;
  }
  const [, file, title] = route;
  try {
    document.title = [...args, title, 'Tabletop'].join(' · ');
    const [page, info] = await Promise.all([import('./' + file), standing()]);
    if (signal.aborted) return;
    // That page has a stream of its own. The moment is before the first read of the page, which thus misses no change.
    if (file !== 'requests.js') follow(file === 'migration.js' ? 'lab,tables,runs' : 'lab,tables', info.events, signal);
    fill(main);
    await page.show(main, { args, info, params: new URLSearchParams(location.search), signal, again: show, go, live });
  } catch (err) {
    if (signal.aborted) return;
    if (err.code === 'token') askToken();
    else {
      if (!main.querySelector('h1')) fill(main, h('h1', {}, title));
      main.append(errorBox(err));
    }
  }
  if (!signal.aborted) document.documentElement.dataset.ready = location.pathname;
}

/** go shows another page. */
export function go(path) {
  history.pushState(null, '', path);
  show();
  main.focus();
}

document.body.append(
  h('a', { class: 'skip', href: '#main' }, 'Skip to content'),
  h('header', {}, h('b', {}, 'Tabletop'), nav, h('span', { class: 'state' }, state, help)), main);
document.addEventListener('click', (e) => {
  const a = e.target.closest?.('a[href^="/"]:not([href^="/docs/"])'); // the server renders documents
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  e.preventDefault();
  go(a.getAttribute('href'));
});
// A slash goes to the search of the documents, and Ctrl-K does so from each page.
document.addEventListener('keydown', (e) => {
  const field = main.querySelector('nav input'), slash = doc && e.key === '/' && !e.target.closest?.('input, textarea, select');
  if (!slash && !(e.key === 'k' && (e.ctrlKey || e.metaKey) && !document.querySelector('dialog'))) return;
  e.preventDefault();
  if (doc) field.focus();
  else location.assign('/docs/search');
});
addEventListener('popstate', () => {
  if (doc && doc === location.pathname) return; // a section of the same document
  if (location.pathname.startsWith('/docs/')) location.reload();
  else show();
});
try { await signIn(); } catch { /* show asks for the token */ }
show();
