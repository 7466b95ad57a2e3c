// Home: where the doors are, what is behind them, and what goes on.
import { h, copier, button, confirmed, plain, tell } from './dom.js';
import { get, post, part } from './api.js';
import { keysPath, rowsPath, tablePath } from './paths.js';

function lines(info) {
  const out = [];
  if (info.bigtable) {
    out.push(['Bigtable clients', `export BIGTABLE_EMULATOR_HOST=${info.bigtable}`]);
    out.push(['Go', `client, err := bigtable.NewClient(ctx, "${info.project}", "${info.instance}") // with BIGTABLE_EMULATOR_HOST=${info.bigtable}`]);
    out.push(['cbt', `BIGTABLE_EMULATOR_HOST=${info.bigtable} cbt -project ${info.project} -instance ${info.instance} ls`]);
  }
  if (info.dynamodb) {
    out.push(['AWS CLI', `aws dynamodb list-tables --endpoint-url ${info.dynamodb} --region us-east-1`]);
    out.push(['Python', `boto3.client("dynamodb", endpoint_url="${info.dynamodb}", region_name="us-east-1")`]);
    out.push(['JavaScript', `new DynamoDBClient({ endpoint: "${info.dynamodb}", region: "us-east-1" })`]);
    out.push(['Java', `DynamoDbClient.builder().endpointOverride(URI.create("${info.dynamodb}")).region(Region.US_EAST_1).build()`]);
  }
  return out;
}

function banners(info) {
  const out = [];
  if (info.clock.frozen) out.push('The clock stands still.');
  else if (Math.abs(new Date(info.clock.now) - Date.now()) > 5000) out.push('The clock of the server was moved.');
  if (info.faults) out.push(`${info.faults} fault${info.faults > 1 ? 's are' : ' is'} armed: calls may fail on purpose.`);
  return out.map((text) => h('div', { class: 'note warn' }, text, ' ', h('a', { href: '/lab' }, 'To the lab')));
}

async function traffic(info) {
  const { requests } = await get('requests?limit=1000&internal=false');
  const since = new Date(info.clock.now) - 5 * 60_000;
  const last = requests.filter((r) => new Date(r.start) >= since);
  const failed = last.filter((r) => r.status !== 'OK').length;
  const many = requests.length === 1000 && last.length === 1000 ? ' or more' : '';
  return h('p', {}, last.length ? `${last.length}${many} requests in the last 5 minutes, ` : 'No requests in the last 5 minutes. ',
    last.length > 0 && h('span', { class: failed ? 'bad' : 'ok' }, `${failed} failed`), last.length > 0 && '. ', h('a', { href: '/requests' }, 'Watch them live'));
}

/** show makes the page, and makes it anew when there may be other tables. */
export async function show(main, context) {
  await draw(main, context);
  let waits = false;
  context.live.addEventListener('tables', () => {
    if (waits) return; // for more of them
    waits = true;
    setTimeout(async () => {
      waits = false;
      const fresh = h('div');
      try { await draw(fresh, { ...context, info: await get('info') }); } catch (err) { tell(err); return; }
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
}

async function draw(main, { info, again }) {
  const [tables, now] = await Promise.all([get('tables'), traffic(info)]);
  const own = tables.bigtable.filter((t) => t.own);
  const shownTables = tables.bigtable.filter((t) => !t.own);
  main.append(h('h1', {}, `Tabletop ${info.version}`), info.held && h('div', { class: 'note' }, h('p', {}, 'The test ', h('b', {}, plain(info.held)), ' is held here, with all that it has made.'),
    button('Let it go on', async () => { await post('release'); tell('The test goes on, and this server ends with it.'); }, { class: 'primary' })), banners(info), now);
  main.append(h('h2', {}, 'Tables'));
  if (!shownTables.length && !tables.dynamodb.length) {
    main.append(h('div', { class: 'note' }, h('p', {}, 'There are no tables yet. Any client of either door can make one; this makes one from a shell:'),
      h('pre', {}, info.dynamodb
        ? `aws dynamodb create-table --endpoint-url ${info.dynamodb} --region us-east-1 --table-name orders --billing-mode PAY_PER_REQUEST \\\n  --key-schema AttributeName=id,KeyType=HASH --attribute-definitions AttributeName=id,AttributeType=S`
        : `BIGTABLE_EMULATOR_HOST=${info.bigtable} cbt -project ${info.project} -instance ${info.instance} createtable orders families=f`)));
  } else {
    main.append(tableList(tables, shownTables, own, info));
  }
  main.append(h('h2', {}, 'Addresses'), h('table', {}, h('tbody', {}, lines(info).map(([what, line]) =>
    h('tr', {}, h('th', { scope: 'row' }, what), h('td', { class: 'mono data' }, line), h('td', {}, copier('Copy', line)))))));
  main.append(h('h2', {}, 'All of it'), h('div', { class: 'bar' }, button('Reset…', async () => {
    if (!await confirmed('Remove all tables of both doors, and all faults?', 'Remove everything')) return;
    await post('reset');
    tell('Everything is gone.');
    again();
  }, { class: 'danger' }), h('small', {}, 'A snapshot, which the lab takes, can be come back to.')));
}

function tableList(tables, list, own, info) {
  const filter = h('input', { type: 'search', placeholder: 'Part of a name', 'aria-label': 'Filter tables by name' });
  const body = h('tbody');
  const most = 500;
  const left = h('small');
  const owner = new Map();
  for (const t of list) for (const name of t.dynamodb ?? []) owner.set(name, t);
  const rows = [
    ...list.map((t) => ({ name: `${t.instance}/${t.table}`, t, items: t.dynamodb ?? [] })),
    ...tables.dynamodb.filter((name) => !owner.has(name)).map((name) => ({ name, items: [name] })),
  ];
  function draw() {
    const found = rows.filter((r) => (r.name + ' ' + r.items.join(' ')).includes(filter.value));
    body.replaceChildren(...found.slice(0, most).map(({ t, items }) => h('tr', {},
      h('td', {}, t ? h('a', { href: tablePath(t, info) }, plain(t.table)) : h('span', { class: 'soft' }, 'kept by the door'), t && t.instance !== info.instance && h('small', {}, ` in ${plain(t.instance)}`)),
      h('td', {}, items.map((name, i) => [i > 0 && ', ', h('a', { href: '/d/' + part(name) }, plain(name))])),
      h('td', { class: 'soft' }, t && t.families.map((f) => `${f.name} (${f.gc})`).map(plain).join(', ')),
      h('td', {}, t && [h('a', { href: rowsPath(t, info) }, 'rows'), ' · ', h('a', { href: keysPath(t, info) }, 'keys')]))));
    left.textContent = `${found.length > most ? `the first ${most} of ` : ''}${found.length} tables` + (own.length ? `, and ${own.length} that the DynamoDB door keeps for itself` : '');
  }
  filter.addEventListener('input', draw);
  draw();
  return h('div', {}, h('div', { class: 'bar' }, filter, left), h('table', {}, h('thead', {}, h('tr', {},
    ['Bigtable', 'DynamoDB', 'Families and what is collected', ''].map((t) => h('th', { scope: 'col' }, t)))), body));
}
