// The form of a fault: fields for the members that its endpoint and effect have.
import { h, fill } from './dom.js';
import { codeField } from './field.js';

const effects = { bigtable: ['fail', 'delay', 'cut', 'duplicate'], dynamodb: ['fail', 'delay', 'unprocessed', 'stale'] };
const statuses = ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'ABORTED', 'RESOURCE_EXHAUSTED', 'INTERNAL', 'UNKNOWN', 'CANCELLED', 'FAILED_PRECONDITION', 'NOT_FOUND', 'ALREADY_EXISTS', 'PERMISSION_DENIED', 'UNAUTHENTICATED', 'INVALID_ARGUMENT', 'OUT_OF_RANGE', 'UNIMPLEMENTED', 'DATA_LOSS'];
const fails = (f) => f.effect === 'fail' || f.effect === 'cut';
const short = (code) => (code ?? '').replace(/Exception$/, '');

/**
 * faultForm returns the form, fault, which returns its fault, and show, which fills it. known are the errors,
 * reasons and operations of DynamoDB. The text holds the whole fault, and each field is a view of a member.
 */
export function faultForm(known, first) {
  let f = {};
  const text = h('textarea', { rows: 9, 'aria-label': 'The fault, as JSON', oninput: () => { try { f = JSON.parse(text.value); } catch { return; } draw(); } });
  const json = codeField(text, 'json');
  const methods = h('datalist', { id: 'fault-methods' });
  const fields = [];
  const write = (name, value) => {
    if (value === undefined || value === '' || value === false) delete f[name]; else f[name] = value;
    for (const other of fields) if (!other.when(f)) delete f[other.name];
    json.put(JSON.stringify(f, null, 2));
    draw();
  };
  // One field: read returns the text of a member, and parse the member of a text.
  const field = (name, label, when, { el = h('input', { class: 'mono' }), read = (v) => v ?? '', parse = (v) => v } = {}) => {
    el.setAttribute('aria-label', label);
    const check = el.type === 'checkbox';
    el.addEventListener('change', () => {
      let value;
      try { value = check ? el.checked : el.value === '' ? undefined : parse(el.value); el.setCustomValidity(''); } catch (err) { el.setCustomValidity(err.message); el.reportValidity(); return; }
      write(name, value);
    });
    const row = h('label', { class: 'field' }, label, el);
    fields.push({ name, when, row, draw: () => { if (check) el.checked = !!f[name]; else el.value = read(f[name]); } });
    return el;
  };
  const always = () => true, dynamo = (g) => g.endpoint === 'dynamodb', bigtable = (g) => g.endpoint === 'bigtable';
  const select = (options) => h('select', {}, options.map((o) => h('option', {}, o)));
  const number = (min, step = 1) => ({ el: h('input', { type: 'number', min, step }), parse: Number });
  const box = () => ({ el: h('input', { type: 'checkbox' }) });
  field('endpoint', 'Endpoint', always, { el: select(['dynamodb', 'bigtable']) });
  field('method', 'Method', always, { el: h('input', { class: 'mono', list: 'fault-methods', placeholder: '* for all' }) });
  const effect = field('effect', 'Effect', (g) => effects[g.endpoint]?.includes(g.effect), { el: select([]) });
  const code = field('code', 'Error', fails, { el: select([]), read: (v) => (dynamo(f) ? short(v) : v ?? '') });
  field('message', 'Error text', fails, { el: h('input', { placeholder: 'as in the service' }) });
  field('reasons', 'Reasons', (g) => dynamo(g) && g.effect === 'fail' && short(g.code) === 'TransactionCanceled', {
    el: h('input', { class: 'mono', placeholder: 'None, ConditionalCheckFailed', title: known.reasons.join(', ') }), read: (v) => (v ?? []).join(', '), parse: (v) => v.split(/[\s,]+/).filter(Boolean),
  });
  field('delay', 'Delay', (g) => g.effect === 'delay', { el: h('input', { class: 'mono', placeholder: '90s' }) });
  field('rows', 'Rows before it', (g) => g.effect === 'cut', number(0));
  field('snapshot', 'Snapshot', (g) => g.effect === 'stale');
  field('applied', 'Applied, response lost', (g) => g.effect === 'fail', box());
  field('table', 'Table', always, { el: h('input', { class: 'mono', placeholder: 'any' }) });
  field('row', 'Row key', bigtable, { el: h('input', { class: 'mono', placeholder: 'any' }), read: (v) => v?.text ?? (v ? 'base64:' + v.base64 : ''), parse: (v) => (v.startsWith('base64:') ? { base64: v.slice(7) } : { text: v }) });
  field('item', 'Item key', dynamo, { el: h('input', { class: 'mono', placeholder: 'any, such as {"id":{"S":"a"}}' }), read: (v) => (v ? JSON.stringify(v) : ''), parse: JSON.parse });
  field('behindDynamoDB', 'Calls by the DynamoDB endpoint', bigtable, box());
  field('skip', 'Skip the first', always, number(0));
  field('times', 'Times', always, number(1));
  field('probability', 'Probability', always, number(0, 'any'));

  function draw() {
    const options = (el, list, now) => fill(el, (list.includes(now) || !now ? list : [now, ...list]).map((o) => h('option', {}, o)));
    options(effect, effects[f.endpoint] ?? [], f.effect);
    const meets = known.errors.filter((e) => !e.operations || f.method === '*' || e.operations.includes(f.method)).map((e) => e.name);
    if (dynamo(f)) options(code, meets, short(f.code)); else options(code, statuses, f.code);
    fill(methods, (dynamo(f) ? known.operations : []).map((o) => h('option', { value: o })));
    for (const one of fields) {
      one.row.hidden = one.name !== 'effect' && !one.when(f);
      one.draw();
    }
  }
  // A change of the endpoint or the effect removes the members of the old one, and chooses those that it must have.
  const whole = fields.map((one) => one.row);
  whole[0].addEventListener('change', () => choose());
  whole[2].addEventListener('change', () => choose());
  function choose() {
    if (!effects[f.endpoint]?.includes(f.effect)) f.effect = 'fail';
    if (fails(f) && (dynamo(f) ? !known.errors.some((e) => e.name === short(f.code)) : !statuses.includes(f.code))) f.code = dynamo(f) ? 'Throttling' : 'UNAVAILABLE';
    if (f.effect === 'delay' && !f.delay) f.delay = '90s';
    write('effect', f.effect);
  }
  const show = (fault) => { f = structuredClone(fault); json.put(JSON.stringify(f, null, 2)); draw(); };
  show(first);
  return { el: [methods, h('div', { class: 'field-group fault-fields' }, whole), h('details', {}, h('summary', {}, 'As JSON'), json.el)], fault: () => JSON.parse(text.value), show };
}
