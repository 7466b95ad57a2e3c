// Home: the addresses of the endpoints, their tables, and the present load.
import { h, copier, button, confirmed, counted, exact, number, plain, notify, tabbed } from './dom.js';
import { get, post, part } from './api.js';
import { clientCode } from './clients.js';
import { createBigtable, createDynamoDB, importFile } from './create.js';
import { indexed, keysPath, rowsPath, streamsPath, tablePath } from './paths.js';
import { viewsShown } from './views.js';

function addresses(info, open) {
  const endpoint = (name, at) => at && h('span', { class: 'bar' }, h('b', {}, name), h('code', { class: 'data' }, at), copier('Copy', at, `Copy the address of ${name}`));
  const panels = Object.fromEntries(Object.entries(clientCode(info)).map(([language, codes]) => [language, h('div', { class: 'halves' }, codes.map(([name, code]) =>
    h('div', {}, h('h3', {}, name), h('div', { class: 'bar one' }, h('pre', {}, code), copier('Copy', code, `Copy the code for ${name} in ${language}`)))))]));
  return h('section', { class: 'card' }, h('h2', {}, 'Addresses'), h('div', { class: 'bar' }, endpoint('Bigtable', info.bigtable), endpoint('DynamoDB', info.dynamodb)),
    h('details', { open }, h('summary', {}, 'Connection code for shells, Go, Java, Python and JavaScript'), tabbed('Language', panels)));
}

function banners(info) {
  const out = [];
  if (info.clock.frozen) out.push('The clock is frozen.');
  else if (Math.abs(new Date(info.clock.now) - Date.now()) > 5000) out.push('The server’s clock was changed.');
  if (info.faults) out.push(`${info.faults} fault${info.faults > 1 ? 's are' : ' is'} armed: calls may fail on purpose.`);
  return out.map((text) => h('div', { class: 'note warn' }, text, ' ', h('a', { href: '/lab' }, 'Open the Lab')));
}

async function traffic(info) {
  const { requests } = await get('requests?limit=1000&internal=false');
  const since = new Date(info.clock.now) - 5 * 60_000;
  const last = requests.filter((r) => new Date(r.start) >= since);
  const failed = last.filter((r) => r.status !== 'OK' && !r.stopped).length;
  const many = requests.length === 1000 && last.length === 1000 ? ' or more' : '';
  return h('p', { class: 'soft' }, last.length ? `${many ? last.length + many + ' requests' : counted(last.length, 'request')} in the last 5 minutes, ` : 'No requests in the last 5 minutes. ',
    last.length > 0 && h('span', { class: failed ? 'bad' : 'ok' }, `${failed} failed`), last.length > 0 && '. ', h('a', { href: '/requests' }, 'Watch live'));
}

/** show builds the page, and again when the tables may have changed. */
export async function show(main, context) {
  const first = draw(main, context);
  let waits = false;
  context.live.addEventListener('tables', () => {
    if (waits) return; // for further events
    waits = true;
    setTimeout(async () => {
      waits = false;
      const fresh = h('div');
      try { await first; await draw(fresh, { ...context, info: await get('info') }); } catch (err) { notify(err); return; }
      if (context.signal.aborted) return;
      const was = main.querySelector('input'), is = fresh.querySelector('input'), { scrollTop } = main, typing = was && was === document.activeElement;
      if (was && is) {
        is.value = was.value;
        is.dispatchEvent(new Event('input'));
      }
      main.replaceChildren(...fresh.children);
      main.scrollTop = scrollTop;
      if (typing) is?.focus();
    }, 200);
  }, { signal: context.signal });
  await first;
}

// beginnings are the actions of a server without tables.
function beginnings(info, tables, go, again) {
  const card = (title, text, ...buttons) => h('section', { class: 'card' }, h('h3', {}, title), h('p', { class: 'soft' }, text), h('div', { class: 'bar last' }, buttons));
  return h('div', { class: 'cards', 'data-begin': '' },
    card('Create a table', 'DynamoDB needs a name and a key, Bigtable a name and a family.', info.dynamodb && button('DynamoDB table…', () => createDynamoDB(go), { class: 'primary' }), button('Bigtable table…', () => createBigtable(info, go))),
    info.demo && card('Load the demo', 'Sample DynamoDB tables, with the mappings that store their items in Bigtable rows.', button('Load the demo', async () => {
      const { tables: n, items } = await post('demo');
      notify(`${counted(items, 'item')} loaded into ${counted(n, 'table')}.`);
      again();
    })),
    info.dynamodb && card('Import a file', 'Import JSON lines into a new DynamoDB table.', button('Import a file…', () => importFile(tables.dynamodb, go))));
}

/** looks returns cards with the pages of the demo that show most. Its tables may have been deleted since. */
function looks(info, tables) {
  const at = (id, path) => tables.filter((t) => t.instance === info.instance && t.table === id).map((t) => path(t, info))[0];
  const cards = info.demoLoaded ? [
    [at('videos', rowsPath), 'An item beside its cells', 'Point at an attribute to highlight its cells, or at a cell to highlight its attributes.'],
    ['/requests', 'Requests and their Bigtable calls', 'The demo ran the access patterns of its fixtures. Open a request to see its calls.'],
    [at('events', keysPath), 'A hot row', 'One row of Events takes most of its writes; the heat map marks the row.'],
  ].filter(([href]) => href) : [];
  return cards.length === 3 && [h('h2', {}, 'Start here'), h('div', { class: 'cards', 'data-looks': '' }, cards.map(([href, title, text]) => h('section', { class: 'card' }, h('h3', {}, h('a', { href }, title)), h('p', { class: 'soft' }, text))))];
}

async function draw(main, { info, again, go }) {
  const [tables, views, now] = await Promise.all([get('tables?describe=true'), get('views'), traffic(info)]);
  const own = tables.bigtable.filter((t) => t.own);
  const shownTables = tables.bigtable.filter((t) => !t.own);
  const empty = !shownTables.length && !tables.dynamodb.length;
  main.append(h('h1', {}, 'Tabletop', h('small', {}, info.version.replace(/^tabletop /, ''))), info.paused ? h('div', { class: 'note' }, h('p', {}, 'The test ', h('b', {}, plain(info.paused)), ' is paused here, with all its data.'),
    button('Continue', async () => { await post('resume'); notify('The test continues; this server ends with it.'); }, { class: 'primary' })) : '', ...banners(info), now);
  if (empty) main.append(h('h2', {}, 'There are no tables yet'), beginnings(info, tables, go, again));
  main.append(addresses(info, empty));
  if (empty) return; // there is nothing to reset either
  main.append(...[looks(info, shownTables) || []].flat(), h('h2', {}, 'Tables'), tableList(tables, shownTables, own, info, go),
    ...views.views.length ? [h('h2', {}, 'Views'), viewsShown(views, info, again)] : [], h('h2', {}, 'Danger zone'), h('div', { class: 'bar' }, button('Reset…', async () => {
    if (!await confirmed('Delete all tables of both endpoints, and all faults?', 'Delete everything')) return;
    await post('reset');
    notify('All tables were deleted.');
    again();
  }, { class: 'danger' }), h('small', {}, 'Deletes all tables of both endpoints. To restore them later, take a snapshot in the Lab first.')));
}

function tableList(tables, list, own, info, go) {
  const filter = h('input', { type: 'search', placeholder: 'Filter by name', 'aria-label': 'Filter tables by name' });
  const body = h('tbody');
  const most = 500;
  const left = h('small');
  const owner = new Map();
  for (const t of list) for (const name of t.dynamodb ?? []) owner.set(name, t);
  const named = new Map(list.map((t) => [t.name, t])), indexes = new Map();
  for (const t of list) {
    const base = indexed(t, named);
    if (base) (indexes.get(base) ?? indexes.set(base, []).get(base)).push(t);
  }
  const folded = new Set([...indexes.values()].flat());
  const last = (t) => t.table.startsWith('_');
  const rows = [
    ...list.filter((t) => !folded.has(t)).sort((a, b) => last(a) - last(b)).map((t) => ({ name: `${t.instance}/${t.table}`, t, items: t.dynamodb ?? [], under: indexes.get(t) ?? [] })),
    ...tables.dynamodb.filter((name) => !owner.has(name)).map((name) => ({ name, items: [name], under: [] })),
  ];
  const links = (t, items = []) => [
    items.map((name) => [h('a', { href: '/d/' + part(name) }, 'Items'), ' · ']), h('a', { href: rowsPath(t, info) }, 'Rows'), ' · ', h('a', { href: keysPath(t, info) }, 'Keys'),
    items.some((name) => tables.described[name]?.stream) && [' · ', h('a', { href: streamsPath(t, info, items[0]) }, 'Stream')],
  ];
  const link = (t) => h('a', { href: tablePath(t, info) }, plain(t.table));
  // With Bigtable alone the columns of DynamoDB would be empty.
  const both = tables.dynamodb.length > 0;
  const each = (items, draw) => items.map((name) => h('div', {}, draw(tables.described[name], name)));
  const families = (t) => {
    const shown = t.families.filter((f) => !f.name.startsWith('_')), rest = t.families.length - shown.length;
    return [shown.map((f, i) => [i > 0 && ', ', h('span', { class: 'nowrap' }, `${plain(f.name)} (${plain(f.aggregate ?? f.gc)})`)]), rest > 0 && h('small', { title: t.families.filter((f) => f.name.startsWith('_')).map((f) => plain(f.name)).join(', ') }, `${shown.length ? ' and ' : ''}${number(rest)} internal`)];
  };
  function draw() {
    const fits = (text) => text.includes(filter.value);
    const found = rows.filter((r) => fits([r.name, ...r.items, ...r.under.map((t) => t.table)].join(' ')));
    body.replaceChildren(...found.slice(0, most).map(({ t, items, under }) => h('tr', {},
      both && [h('td', { class: 'name' }, each(items, (d, name) => h('a', { href: '/d/' + part(name) }, plain(name)))),
        h('td', { class: 'num' }, each(items, (d) => d ? number(d.items) : '')),
        h('td', {}, each(items, (d) => d?.key.map((k, i) => [i > 0 && ', ', h('span', { class: 'nowrap' }, h('code', {}, exact(k.name)), ' ', h('span', { class: 'type', title: i ? 'sort key' : 'partition key' }, k.type))])))],
      h('td', { class: both ? '' : 'name' }, t ? link(t) : h('span', { class: 'soft' }, 'managed by the endpoint'), t && t.instance !== info.instance && h('small', {}, ` in ${plain(t.instance)}`),
        under.length > 0 && h('details', { open: filter.value !== '' && under.some((u) => fits(u.table)) }, h('summary', {}, h('small', {}, counted(under.length, 'index table'))), under.map((u) => h('div', { class: 'under' }, link(u), ' ', h('small', {}, links(u)))))),
      h('td', { class: 'soft spare' }, t && families(t)),
      h('td', { class: 'acts' }, t && links(t, items)))));
    left.textContent = `${found.length > most ? `the first ${most} of ` : ''}${counted(found.length, 'table')}` + (own.length ? `, ${number(own.length)} internal hidden` : '');
  }
  filter.addEventListener('input', draw);
  draw();
  return h('div', {}, h('div', { class: 'bar' }, filter, left, h('span', { class: 'bar end' },
    info.dynamodb && button('New DynamoDB table…', () => createDynamoDB(go)), button('New Bigtable table…', () => createBigtable(info, go)), info.dynamodb && button('Import a file…', () => importFile(tables.dynamodb, go)))),
  h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {},
    [both && ['DynamoDB table', 'name'], both && ['Items', 'num'], both && ['Key'], ['Bigtable table'], ['Families', 'spare']].filter(Boolean).map(([name, cls]) => h('th', { scope: 'col', class: cls }, name)), h('td'))), body)));
}
