// Home: the addresses of the endpoints, their tables, and the present load.
import { h, copier, button, confirmed, counted, plain, notify } from './dom.js';
import { get, post, part } from './api.js';
import { awsLine } from './code.js';
import { keysPath, rowsPath, tablePath } from './paths.js';

// lines configure a client of each language to find the endpoints: an endpoint accepts any credentials, and clients require some.
function lines(info) {
  const out = [], { bigtable: bt, dynamodb: ddb, project, instance } = info;
  if (bt) {
    const colon = bt.lastIndexOf(':');
    out.push(['Bigtable: any', `export BIGTABLE_EMULATOR_HOST=${bt}`]);
    out.push(['Go', `os.Setenv("BIGTABLE_EMULATOR_HOST", "${bt}"); client, err := bigtable.NewClient(ctx, "${project}", "${instance}")`]);
    out.push(['Java', `BigtableDataClient client = BigtableDataClient.create(BigtableDataSettings.newBuilderForEmulator("${bt.slice(0, colon)}", ${bt.slice(colon + 1)}).setProjectId("${project}").setInstanceId("${instance}").build());`]);
    out.push(['Python', `import os; os.environ["BIGTABLE_EMULATOR_HOST"] = "${bt}"; from google.cloud import bigtable; instance = bigtable.Client(project="${project}", admin=True).instance("${instance}")`]);
    out.push(['JavaScript', `process.env.BIGTABLE_EMULATOR_HOST = "${bt}"; const instance = new Bigtable({ projectId: "${project}" }).instance("${instance}");`]);
    out.push(['cbt', `BIGTABLE_EMULATOR_HOST=${bt} cbt -project ${project} -instance ${instance} ls`]);
  }
  if (ddb) {
    out.push(['DynamoDB: any', `export AWS_ENDPOINT_URL_DYNAMODB=${ddb} AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=tabletop AWS_SECRET_ACCESS_KEY=tabletop`]);
    out.push(['Go', `client := dynamodb.New(dynamodb.Options{BaseEndpoint: aws.String("${ddb}"), Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("tabletop", "tabletop", "")})`]);
    out.push(['Java', `DynamoDbClient client = DynamoDbClient.builder().endpointOverride(URI.create("${ddb}")).region(Region.US_EAST_1).credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("tabletop", "tabletop"))).build();`]);
    out.push(['Python', `import boto3; client = boto3.client("dynamodb", endpoint_url="${ddb}", region_name="us-east-1", aws_access_key_id="tabletop", aws_secret_access_key="tabletop")`]);
    out.push(['JavaScript', `const client = new DynamoDBClient({ endpoint: "${ddb}", region: "us-east-1", credentials: { accessKeyId: "tabletop", secretAccessKey: "tabletop" } });`]);
    out.push(['AWS CLI', awsLine(info, 'list-tables')]);
  }
  return out;
}

function addresses(info, open) {
  const endpoint = (name, at) => at && h('span', { class: 'bar' }, h('b', {}, name), h('code', { class: 'data' }, at), copier('Copy', at, `Copy the address of ${name}`));
  return [h('h2', {}, 'Addresses'), h('div', { class: 'bar' }, endpoint('Bigtable', info.bigtable), endpoint('DynamoDB', info.dynamodb)),
    h('details', { open }, h('summary', {}, 'Lines for Go, Java, Python, JavaScript and shells'), h('table', { class: 'lines' }, h('tbody', {}, lines(info).map(([what, line]) =>
      h('tr', {}, h('th', { scope: 'row' }, what), h('td', {}, h('code', { class: 'data' }, line)), h('td', {}, copier('Copy', line, `Copy the line for ${what}${/any$/.test(what) ? '' : line.includes(info.dynamodb || '\n') ? ', DynamoDB' : ', Bigtable'}`)))))))];
}

function banners(info) {
  const out = [];
  if (info.clock.frozen) out.push('The clock is frozen.');
  else if (Math.abs(new Date(info.clock.now) - Date.now()) > 5000) out.push('The clock of the server was moved.');
  if (info.faults) out.push(`${info.faults} fault${info.faults > 1 ? 's are' : ' is'} armed: calls may fail on purpose.`);
  return out.map((text) => h('div', { class: 'note warn' }, text, ' ', h('a', { href: '/lab' }, 'To the lab')));
}

async function traffic(info) {
  const { requests } = await get('requests?limit=1000&internal=false');
  const since = new Date(info.clock.now) - 5 * 60_000;
  const last = requests.filter((r) => new Date(r.start) >= since);
  const failed = last.filter((r) => r.status !== 'OK' && !r.stopped).length;
  const many = requests.length === 1000 && last.length === 1000 ? ' or more' : '';
  return h('p', {}, last.length ? `${many ? last.length + many + ' requests' : counted(last.length, 'request')} in the last 5 minutes, ` : 'No requests in the last 5 minutes. ',
    last.length > 0 && h('span', { class: failed ? 'bad' : 'ok' }, `${failed} failed`), last.length > 0 && '. ', h('a', { href: '/requests' }, 'Watch them live'));
}

/** show builds the page, and again when the tables may have changed. */
export async function show(main, context) {
  await draw(main, context);
  let waits = false;
  context.live.addEventListener('tables', () => {
    if (waits) return; // for further events
    waits = true;
    setTimeout(async () => {
      waits = false;
      const fresh = h('div');
      try { await draw(fresh, { ...context, info: await get('info') }); } catch (err) { notify(err); return; }
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
  main.append(h('h1', {}, 'Tabletop ', h('small', {}, info.version.replace(/^tabletop /, ''))), info.paused && h('div', { class: 'note' }, h('p', {}, 'The test ', h('b', {}, plain(info.paused)), ' is paused here, with all its data.'),
    button('Continue', async () => { await post('resume'); notify('The test continues; this server ends with it.'); }, { class: 'primary' })), banners(info), now);
  main.append(...addresses(info, !shownTables.length && !tables.dynamodb.length), h('h2', {}, 'Tables'));
  if (!shownTables.length && !tables.dynamodb.length) {
    main.append(h('div', { class: 'note' }, h('p', {}, 'There are no tables yet. Any client of either endpoint can make one; this makes one from a shell:'),
      h('pre', {}, info.dynamodb
        ? awsLine(info, `create-table --table-name orders --billing-mode PAY_PER_REQUEST \\\n  --key-schema AttributeName=id,KeyType=HASH --attribute-definitions AttributeName=id,AttributeType=S`)
        : `BIGTABLE_EMULATOR_HOST=${info.bigtable} cbt -project ${info.project} -instance ${info.instance} createtable orders families=f`)));
  } else {
    main.append(tableList(tables, shownTables, own, info));
  }
  main.append(h('h2', {}, 'All of it'), h('div', { class: 'bar' }, button('Reset…', async () => {
    if (!await confirmed('Remove all tables of both endpoints, and all faults?', 'Remove everything')) return;
    await post('reset');
    notify('Everything was removed.');
    again();
  }, { class: 'danger' }), h('small', {}, 'Take a snapshot in the lab to be able to restore it.')));
}

function tableList(tables, list, own, info) {
  const filter = h('input', { type: 'search', placeholder: 'Part of a name', 'aria-label': 'Filter tables by name' });
  const body = h('tbody');
  const most = 500;
  const left = h('small');
  const owner = new Map();
  for (const t of list) for (const name of t.dynamodb ?? []) owner.set(name, t);
  // An index in a table of its own is named after its table, with two underscores and the index's name.
  const named = new Map(list.map((t) => [t.name, t]));
  const above = (t) => {
    for (let i = t.table.lastIndexOf('__'); i > 0; i = t.table.lastIndexOf('__', i - 1)) {
      const base = named.get(t.name.slice(0, t.name.length - t.table.length) + t.table.slice(0, i));
      if (base?.dynamodb && !t.dynamodb) return base;
    }
    return undefined;
  };
  const indexes = new Map();
  for (const t of list) {
    const base = above(t);
    if (base) (indexes.get(base) ?? indexes.set(base, []).get(base)).push(t);
  }
  const folded = new Set([...indexes.values()].flat());
  const last = (t) => t.table.startsWith('_');
  const rows = [
    ...list.filter((t) => !folded.has(t)).sort((a, b) => last(a) - last(b)).map((t) => ({ name: `${t.instance}/${t.table}`, t, items: t.dynamodb ?? [], under: indexes.get(t) ?? [] })),
    ...tables.dynamodb.filter((name) => !owner.has(name)).map((name) => ({ name, items: [name], under: [] })),
  ];
  const links = (t) => [h('a', { href: rowsPath(t, info) }, 'rows'), ' · ', h('a', { href: keysPath(t, info) }, 'keys')];
  const link = (t) => h('a', { href: tablePath(t, info) }, plain(t.table));
  function draw() {
    const fits = (text) => text.includes(filter.value);
    const found = rows.filter((r) => fits([r.name, ...r.items, ...r.under.map((t) => t.table)].join(' ')));
    body.replaceChildren(...found.slice(0, most).map(({ t, items, under }) => h('tr', {},
      h('td', {}, t ? link(t) : h('span', { class: 'soft' }, 'a table of the endpoint itself'), t && t.instance !== info.instance && h('small', {}, ` in ${plain(t.instance)}`),
        under.length > 0 && h('details', { open: filter.value !== '' && under.some((u) => fits(u.table)) }, h('summary', {}, h('small', {}, counted(under.length, 'index table'))), under.map((u) => h('div', { class: 'under' }, link(u), ' ', h('small', {}, links(u)))))),
      h('td', {}, items.map((name, i) => [i > 0 && ', ', h('a', { href: '/d/' + part(name) }, plain(name))])),
      h('td', { class: 'soft' }, t && t.families.map((f) => `${f.name} (${f.gc})`).map(plain).join(', ')),
      h('td', {}, t && links(t)))));
    left.textContent = `${found.length > most ? `the first ${most} of ` : ''}${counted(found.length, 'table')}` + (own.length ? `, and ${own.length} of the DynamoDB endpoint itself` : '');
  }
  filter.addEventListener('input', draw);
  draw();
  return h('div', {}, h('div', { class: 'bar' }, filter, left), h('table', {}, h('thead', {}, h('tr', {},
    ['Bigtable', 'DynamoDB', 'Families and their garbage collection', ''].map((t) => h('th', { scope: 'col' }, t)))), body));
}
