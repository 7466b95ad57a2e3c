// The forms that create a table, and that import items from a file.
import { h, fill, dialog, footer, errorBox, number, counted, plain, notify } from './dom.js';
import { dynamo, part, post } from './api.js';
import { escapes, unescapedText } from './bytes.js';

const field = (label, ...inputs) => h('label', { class: 'field' }, label, inputs.length > 1 ? h('span', { class: 'bar' }, inputs) : inputs);
const typed = (label) => h('select', { 'aria-label': label }, [['S', 'String'], ['N', 'Number'], ['B', 'Binary']].map(([value, name]) => h('option', { value }, name)));

/** keyFields returns the fields of a DynamoDB table's name and key, and create, which creates it and returns its name. */
function keyFields() {
  const name = h('input', { 'aria-label': 'Name of the table', placeholder: 'orders', required: true });
  const hash = h('input', { 'aria-label': 'Name of the partition key', placeholder: 'id', title: escapes, required: true }), hashType = typed('Type of the partition key');
  const sort = h('input', { 'aria-label': 'Name of the sort key', placeholder: 'none', title: escapes }), sortType = typed('Type of the sort key');
  return {
    el: [field('Name', name), field('Partition key', hash, hashType), field('Sort key', sort, sortType)], name, hash, hashType, sort,
    async create() {
      const keys = [[unescapedText(hash.value), hashType.value], sort.value && [unescapedText(sort.value), sortType.value]].filter(Boolean);
      await dynamo('CreateTable', {
        TableName: name.value, BillingMode: 'PAY_PER_REQUEST',
        KeySchema: keys.map(([AttributeName], i) => ({ AttributeName, KeyType: i ? 'RANGE' : 'HASH' })),
        AttributeDefinitions: keys.map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
      });
      return name.value;
    },
  };
}

/** form shows a dialog with fields. act runs when it is sent, and its errors are shown. */
function form(title, label, act, ...fields) {
  const wrong = h('div');
  const send = h('button', { class: 'primary' }, label);
  const d = dialog(title, h('form', { class: 'fields', onsubmit: async (e) => {
    e.preventDefault();
    fill(wrong);
    send.disabled = true;
    try {
      await act();
      d.close();
    } catch (err) { fill(wrong, errorBox(err)); } finally { send.disabled = false; }
  } }, fields, wrong, footer('Cancel', send)));
  d.querySelector('input, select')?.focus();
}

/** createDynamoDB asks for a DynamoDB table, creates it, and calls done with the path of its page. */
export function createDynamoDB(done) {
  const fields = keyFields();
  form('New DynamoDB table', 'Create table', async () => done('/d/' + part(await fields.create())), fields.el);
}

/** createBigtable asks for a Bigtable table, creates it, and calls done with the path of its page. */
export function createBigtable(info, done) {
  const name = h('input', { 'aria-label': 'Name of the table', placeholder: 'orders', required: true });
  const families = h('input', { 'aria-label': 'Families', placeholder: 'f, g', required: true }), versions = h('input', { type: 'number', min: 1, max: 100000, 'aria-label': 'Versions to keep', placeholder: 'all' });
  form('New Bigtable table', 'Create table', async () => {
    const rule = versions.value ? { gcRule: { maxNumVersions: Number(versions.value) } } : {};
    const t = await post(`tables/${part(info.instance)}/${part(name.value)}`, { families: Object.fromEntries(families.value.split(/[\s,]+/).filter(Boolean).map((f) => [f, rule])) });
    done(`/t/${part(t.instance)}/${part(t.table)}`);
  }, field('Name', name), field('Families', families), field('Versions to keep', versions));
}

// A number of plain JSON, as its text: numbers of DynamoDB have 38 digits.
class Num { constructor(text) { this.N = text; } }

const tags = ['S', 'N', 'B', 'BOOL', 'NULL', 'SS', 'NS', 'BS', 'L', 'M'];
const isTyped = (v) => v instanceof Object && !(v instanceof Num) && Object.keys(v).length === 1 && tags.includes(Object.keys(v)[0]);

function valueOf(v) {
  if (v instanceof Num) return { N: v.N };
  if (v === null) return { NULL: true };
  if (typeof v === 'string') return { S: v };
  if (typeof v === 'boolean') return { BOOL: v };
  return Array.isArray(v) ? { L: v.map(valueOf) } : { M: Object.fromEntries(Object.entries(v).map(([name, e]) => [name, valueOf(e)])) };
}

/** itemsOf returns the items of a text: JSON lines, or one JSON array, of items in DynamoDB's JSON, alone or below "Item", or of plain objects. */
export function itemsOf(text) {
  const parse = (json, where) => {
    try { return JSON.parse(json, (_, v, context) => typeof v === 'number' ? new Num(context?.source ?? String(v)) : v); } catch (err) { throw new Error(`${where}: ${err.message}`); }
  };
  // A file of another format, such as CSV, has no use for the parser's error.
  const other = text.trimStart();
  if (other && !/^[[{]/.test(other)) throw new Error('The import expects JSON lines: one object per line');
  const found = /^\s*\[/.test(text) ? parse(text, 'The file').map((v, i) => [`Entry ${i + 1}`, v])
    : text.split('\n').map((line, i) => [`Line ${i + 1}`, line]).filter(([, line]) => line.trim()).map(([where, line]) => [where, parse(line, where)]);
  return found.map(([where, v]) => {
    const item = v?.Item instanceof Object && !isTyped(v.Item) && Object.keys(v).length === 1 ? v.Item : v;
    if (!(item instanceof Object) || Array.isArray(item) || item instanceof Num) throw new Error(`${where} is not an item, such as {"id":{"S":"a"}} or {"id":"a"}`);
    return Object.values(item).every(isTyped) ? JSON.parse(JSON.stringify(item)) : valueOf(item).M;
  });
}

/** importFile asks for a file and a table, puts the items, and calls done with the path of the table's page. preset is the table to begin with. */
export function importFile(tables, done, preset) {
  const file = h('input', { type: 'file', accept: '.json,.jsonl,.ndjson,.txt', 'aria-label': 'File', required: true });
  const to = h('select', { 'aria-label': 'Table' }, h('option', { value: '' }, 'New table'), tables.map((name) => h('option', { value: name, selected: name === preset }, plain(name))));
  const fields = keyFields(), fresh = h('div', { class: 'field-group' }, fields.el), said = h('div', { class: 'soft', 'aria-live': 'polite' }, 'One item per line, as DynamoDB JSON or a plain object: the format of “Save as JSON lines”.');
  let items = [];
  const follow = () => {
    fresh.hidden = to.value !== '';
    for (const el of [fields.name, fields.hash]) el.required = !fresh.hidden;
  };
  to.addEventListener('change', follow);
  follow();
  file.addEventListener('change', async () => {
    items = [];
    if (!file.files[0]) return;
    try { items = itemsOf(await file.files[0].text()); } catch (err) { fill(said, errorBox(err)); return; }
    said.textContent = `The file has ${counted(items.length, 'item')}.`;
    // The first attribute that all items have is a guess of the key.
    const common = Object.keys(items[0] ?? {}).filter((a) => items.every((i) => ['S', 'N', 'B'].includes(Object.keys(i[a] ?? {})[0])));
    fields.name.value ||= file.files[0].name.replace(/\.[a-z]+$/, '').replaceAll(/[^\w.-]/g, '-');
    if (common.length && !fields.hash.value) {
      fields.hash.value = common.find((a) => /^(id|pk)$/i.test(a)) ?? common[0];
      fields.hashType.value = Object.keys(items[0][fields.hash.value])[0];
    }
  });
  form('Import a file', 'Import', async () => {
    if (!items.length) throw new Error('The file has no items.');
    const table = to.value || await fields.create();
    for (let at = 0; at < items.length;) {
      let bytes = 0, end = at;
      while (end < items.length && (end === at || bytes < 1 << 20)) bytes += JSON.stringify(items[end++]).length;
      try { await post('items/' + part(table), { items: items.slice(at, end) }); } catch (err) {
        err.message = `Items before number ${number(at + 1)} are imported. ${err.message}`;
        throw err;
      }
      at = end;
      said.textContent = `${number(at)} of ${counted(items.length, 'item')}`;
    }
    notify(`${counted(items.length, 'item')} imported.`);
    done('/d/' + part(table));
  }, field('File', file), field('Table', to), fresh, said);
}
