// Table: families with their rules in words, splits, and the DynamoDB table over it.
import { h, exact, fill, shown, plain, button, confirmed, dialog, footer, errorBox, number, counted, size, notify } from './dom.js';
import { base64Of, bytesShown, escapes, unescaped, unescapedText } from './bytes.js';
import { get, post, remove, dynamo, part, query } from './api.js';
import { mappingShown } from './mapping.js';
import { internal, inWords } from './rules.js';
import { go } from './app.js';
import { headOf } from './head.js';
import { indexed } from './paths.js';
import { viewsShown } from './views.js';

const keyText = (schema) => schema.map((k) => `${k.AttributeName} (${k.KeyType === 'HASH' ? 'partition' : 'sort'})`).join(', ');

/** segmentSaid describes a segment of a row key. */
function segmentSaid(g) {
  if (!g.encoders?.length) return 'a fixed text';
  const names = g.attributes?.join(' and ');
  const [, derived] = g.encoders.join(' ').match(/\b(salt|hash)\(/) ?? [];
  const said = !names ? g.encoders.join(' and ') : derived ? `a ${derived} computed from ${names}` : `the value${g.attributes.length > 1 ? 's' : ''} of ${names}`;
  return [said, g.time && 'a time', g.reversed && 'greater values first', g.unordered && !derived && 'not sorted by value'].filter(Boolean).join(', ');
}

/** timeToLiveForm asks for the attribute of a table's time to live, or turns it off if it is on, and calls done. */
function timeToLiveForm(name, attribute, done) {
  const field = h('input', { class: 'mono', 'aria-label': 'Attribute with the time of expiry', value: exact(attribute ?? ''), placeholder: 'expires', title: escapes, required: true, readonly: Boolean(attribute), autofocus: true });
  const wrong = h('div');
  const d = dialog(`Time to live of ${plain(name)}`, h('form', { onsubmit: async (e) => {
    e.preventDefault();
    try {
      await dynamo('UpdateTimeToLive', { TableName: name, TimeToLiveSpecification: { AttributeName: unescapedText(field.value), Enabled: !attribute } });
      d.close();
      done();
    } catch (err) { fill(wrong, errorBox(err)); }
  } }, h('p', {}, h('label', {}, 'Attribute', field)), h('p', { class: 'soft' }, 'It has a number: the seconds since 1970 after which the item expires. “Delete expired items now” in the ', h('a', { href: '/lab' }, 'Lab'), ' deletes such items at once.'),
  wrong, footer('Cancel', h('button', { class: 'primary' }, attribute ? 'Turn off' : 'Turn on'))));
}

async function dynamoTable(name, again) {
  const { response: { Table: t } } = await dynamo('DescribeTable', { TableName: name });
  const ttl = await dynamo('DescribeTimeToLive', { TableName: name }).then((a) => a.response.TimeToLiveDescription, () => undefined);
  const row = (what, text, act) => h('tr', {}, h('th', { scope: 'row' }, what), h('td', {}, shown(text), act && [' ', act]));
  const indexes = [...(t.GlobalSecondaryIndexes ?? []).map((i) => ['global', i]), ...(t.LocalSecondaryIndexes ?? []).map((i) => ['local', i])];
  return h('section', { class: 'card' }, h('h3', {}, h('a', { href: '/d/' + part(name) }, plain(name))), h('table', {}, h('tbody', {},
    row('Key', keyText(t.KeySchema)),
    row('Attributes', t.AttributeDefinitions.map((a) => `${a.AttributeName}: ${a.AttributeType}`).join(', ')),
    row('Capacity', t.BillingModeSummary?.BillingMode === 'PAY_PER_REQUEST' ? 'on demand' : `${t.ProvisionedThroughput?.ReadCapacityUnits} RCU, ${t.ProvisionedThroughput?.WriteCapacityUnits} WCU`),
    row('Time to live', ttl?.AttributeName ? `${ttl.AttributeName} (${ttl.TimeToLiveStatus.toLowerCase()})` : 'none', button('Set…', () => timeToLiveForm(name, ttl?.AttributeName, again), { 'aria-label': `Set the time to live of ${plain(name)}` })),
    row('Items', number(t.ItemCount ?? 0)),
    indexes.map(([kind, i]) => row(`${kind === 'global' ? 'Global' : 'Local'} index`, `${i.IndexName}: ${keyText(i.KeySchema)}, ${i.Projection.ProjectionType.toLowerCase()}`)))));
}

/** ruleOf returns a garbage-collection rule in the JSON of Bigtable's administration: a number of versions, an age, or both. */
export function ruleOf(versions, age, both) {
  const rules = [versions && { maxNumVersions: Number(versions) }, age && { maxAge: seconds(age) }].filter(Boolean);
  if (rules.length < 2) return rules[0] ?? {};
  return { [both ? 'intersection' : 'union']: { rules } };
}

function seconds(age) {
  const m = age.trim().match(/^(\d+(?:\.\d+)?)(s|m|h|d)$/);
  if (!m) throw new Error(`“${age}” is not an age: write a number with s, m, h or d, such as 7d`);
  return Number(m[1]) * { s: 1, m: 60, h: 3600, d: 86400 }[m[2]] + 's';
}

/** familyForm asks for the rule of a family, new if name is not given, and calls done with the modification. */
function familyForm(name, done) {
  const id = h('input', { class: 'mono', 'aria-label': 'Family', value: name ?? '', disabled: !!name, autofocus: !name });
  const versions = h('input', { type: 'number', min: 1, max: 100000, 'aria-label': 'Number of versions to keep' }), age = h('input', { 'aria-label': 'Age up to which to keep cells', size: 8, placeholder: '7d' });
  const join = h('select', { 'aria-label': 'How they are joined' }, [['or', 'either applies'], ['and', 'both apply']].map(([value, label]) => h('option', { value }, label)));
  const wrong = h('div');
  const d = dialog(name ? `Garbage collection of ${plain(name)}` : 'New family', h('form', { onsubmit: async (e) => {
    e.preventDefault();
    try {
      const gcRule = ruleOf(versions.value, age.value, join.value === 'and');
      await done({ id: id.value, [name ? 'update' : 'create']: Object.keys(gcRule).length ? { gcRule } : {} });
      d.close();
    } catch (err) { wrong.replaceChildren(errorBox(err)); }
  } }, h('p', {}, h('label', {}, 'Name', id)), h('p', {}, 'Delete cells'), h('p', {}, h('label', {}, 'beyond the newest', versions, 'versions')), h('p', {}, h('label', {}, 'older than', age)), h('p', {}, h('label', {}, 'if', join)),
  h('p', { class: 'soft' }, 'Without a limit, all versions are kept.'), wrong, footer('Cancel', h('button', { class: 'primary' }, name ? 'Save the rule' : 'Create the family'))));
}

export async function show(main, { args: [instance, id], info, params, again }) {
  const project = params.get('project');
  const at = `tables/${part(instance)}/${part(id)}`;
  const prefix = h('input', { class: 'mono', size: 14, 'aria-label': 'Prefix of the rows to drop', placeholder: 'Prefix, or all', title: escapes });
  const modify = async (modification) => {
    await post(at + '/families' + query({ project }), { modifications: [modification] });
    again();
  };
  const [t, tables, { views, lag }] = await Promise.all([get(at + query({ project })), get('tables'), get('views')]);
  const named = new Map(tables.bigtable.map((b) => [b.name, b])), { dynamodb: names = [], own: ofEndpoint } = named.get(t.name) ?? {};
  const base = indexed(named.get(t.name) ?? t, named), ofMigrations = /^_migration_(schema|state)$/.test(id), kept = ofEndpoint || ofMigrations || base;
  const own = (family) => names.length > 0 && internal(family);
  main.append(...headOf('Table', { name: id, about: `Bigtable table in ${plain(instance)}`, t, dynamodb: names, tables, info }),
    h('p', { class: 'soft' }, h('span', { class: 'mono data' }, plain(t.name)), `, about ${size(t.bytes)}`));
  main.append(h('h2', {}, 'Families'));
  if (!t.families.length) main.append(h('div', { class: 'note' }, 'The table has no families, and accepts no cells without one. Add a family here, or from a shell: ', h('code', {}, `cbt createfamily ${plain(id)} f`)));
  else main.append(h('table', {}, h('thead', {}, h('tr', {}, ['Family', 'Garbage collection', 'Meaning'].map((x) => h('th', { scope: 'col' }, x)), h('td'))), h('tbody', {}, t.families.map((f) =>
    h('tr', {}, h('td', { class: 'mono' }, plain(f.name), own(f.name) && h('span', { class: 'badge soft', title: internal(f.name) }, 'internal')), h('td', { class: 'mono' }, plain(f.gc)), h('td', {}, f.aggregate && `Aggregate: ${plain(f.aggregate)}. `, plain(inWords(f.gc))), h('td', { class: 'acts' }, !own(f.name) && !kept && [
      button('Rule…', () => familyForm(f.name, modify), { 'aria-label': `Rule of ${plain(f.name)}` }), ' ',
      button('Drop…', async () => {
        const also = names.length ? ` The items of ${plain(names.join(', '))} lose the attributes in it.` : '';
        if (await confirmed(`Drop the family ${plain(f.name)} and all its cells?${also}`, 'Drop the family')) await modify({ id: f.name, drop: true });
      }, { class: 'danger', 'aria-label': `Drop ${plain(f.name)}` })]))))));
  main.append(h('div', { class: 'bar' }, !kept && button('New family…', () => familyForm(undefined, modify)), button('Collect garbage now', async () => notify(`Garbage collection deleted ${counted((await post('gc')).cells, 'cell')} in all tables.`))));
  if (t.splits?.length) main.append(h('h2', {}, counted(t.splits.length, 'initial split')), h('div', {}, t.splits.slice(0, 200).map((s) => h('div', {}, bytesShown(s)))));
  if (t.keys?.length) main.append(h('h2', {}, 'Row keys'), h('table', {}, h('thead', {}, h('tr', {}, ['Rule', 'Segments', 'Meaning'].map((x) => h('th', { scope: 'col' }, x)))), h('tbody', {}, t.keys.map((k) =>
    h('tr', {}, h('td', {}, plain(k.rule), h('small', {}, ' of ', plain(k.table))), h('td', { class: 'mono' }, k.segments.map((g, i) => [i > 0 && h('span', { class: 'soft' }, ' · '), h('span', { class: 'part', title: plain(segmentSaid(g)) }, plain(g.template))])),
      h('td', { class: 'soft' }, plain(k.segments.map(segmentSaid).join('; '))))))));
  if (t.keys?.length) main.append(mappingShown(id));
  const reading = views.filter((v) => v.reads.includes(id) && v.name.split('/', 4).join() === t.name.split('/', 4).join());
  if (reading.length) main.append(h('h2', {}, 'Views of this table'), viewsShown({ views: reading, lag }, info, again));
  main.append(h('h2', {}, 'DynamoDB tables in these rows'));
  if (kept) {
    main.append(h('p', { class: 'soft', 'data-kept': '' }, base ? ['An index of ', base.dynamodb.map((name, i) => [i > 0 && ', ', h('a', { href: '/d/' + part(name) }, plain(name))]), ' has its entries in these rows: only the DynamoDB endpoint changes them.']
      : ofMigrations ? 'Migrations keep their state in this table: only tabletop migrate and the DynamoDB endpoint change it.' : 'The DynamoDB endpoint keeps its own data in this table: only the endpoint changes it.'));
    return;
  }
  if (!names.length) main.append(h('p', { class: 'soft' }, 'None. Only Bigtable clients use these rows.'));
  for (const name of names) main.append(await dynamoTable(name, again).catch(errorBox));
  main.append(h('h2', {}, 'Danger zone'), h('div', { class: 'bar' }, prefix, button('Drop rows…', async () => {
    const all = !prefix.value;
    if (!await confirmed(all ? 'Delete all rows of the table?' : `Delete the rows that begin with “${plain(prefix.value)}”?`, 'Delete the rows')) return;
    await post(at + '/drop' + query({ project }), all ? { all } : { prefix: { base64: base64Of(unescaped(prefix.value)) } });
    notify('The rows were deleted.');
    again();
  }, { class: 'danger' }), names.length ? names.map((name) => button(names.length > 1 ? `Delete the DynamoDB table ${plain(name)}…` : 'Delete the DynamoDB table…', async () => {
    if (!await confirmed(`Delete the DynamoDB table ${plain(name)} and all its items?`, 'Delete the table')) return;
    await dynamo('DeleteTable', { TableName: name });
    go('/');
  }, { class: 'danger' })) : button('Delete the table…', async () => {
    if (!await confirmed(`Delete the table ${plain(id)}?`, 'Delete the table')) return;
    await remove(at + query({ project }));
    go('/');
  }, { class: 'danger' })));
}
