// DynamoDB values in their JSON form.
import { h, counted, exact, exactShown, jsonText } from './dom.js';
import { bytesOf, bytesShown, int64Of, lengthOf } from './bytes.js';

/** typeOf returns the tag of a value: "S", "N", … */
export const typeOf = (v) => Object.keys(v)[0];

/** valueShown returns an element with a value and its type. */
export function valueShown(v, depth = 0) {
  if (!v || typeof v !== 'object') return h('span', { class: 'soft' }, '—');
  const type = typeOf(v), x = v[type];
  const tag = h('span', { class: 'type' }, type + ' ');
  switch (type) {
    case 'S': case 'N': case 'B': return h('span', {}, tag, x === '' ? h('span', { class: 'soft' }, '(empty)') : exactShown(String(x)));
    case 'BOOL': return h('span', {}, tag, String(x));
    case 'NULL': return h('span', {}, tag, 'null');
    case 'SS': case 'NS': case 'BS': return h('span', {}, tag, x.slice(0, 50).map((s, i) => [i > 0 && ', ', exactShown(s, 120)]), x.length > 50 && ` … ${x.length}`);
    case 'L': case 'M': {
      const entries = type === 'L' ? x.map((e, i) => [i, e]) : Object.entries(x);
      if (!entries.length) return h('span', {}, tag, h('span', { class: 'soft' }, '(empty)'));
      if (depth > 6) return h('span', {}, tag, exactShown(jsonText(x)));
      return h('details', { open: depth < 1 && entries.length < 6 }, h('summary', {}, tag, counted(entries.length, 'entry', 'entries')),
        h('table', {}, h('tbody', {}, entries.slice(0, 200).map(([name, e]) => h('tr', {}, h('th', { scope: 'row' }, exact(String(name))), h('td', {}, valueShown(e, depth + 1)))))));
    }
    default: return exactShown(jsonText(v));
  }
}

/** isNumber reports whether DynamoDB reads a text as a number, unless it is too long, large or small. */
export const isNumber = (text) => /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);

/** numbersIn adds the numbers in a value to a set. */
export function numbersIn(v, into) {
  const [type, x] = Object.entries(v ?? {})[0] ?? [];
  if (type === 'N') into.add(x);
  else if (type === 'NS') for (const n of x) into.add(n);
  else if (type === 'L' || type === 'M') for (const e of Object.values(x)) numbersIn(e, into);
  return into;
}

/** numbersOf returns the numbers in items, which may be undefined. */
export function numbersOf(...items) {
  const out = new Set();
  for (const item of items) for (const v of Object.values(item ?? {})) numbersIn(v, out);
  return out;
}

/** counterOf returns the number in the bytes of a cell: eight bytes are a counter if the item has their number, or if sum is set. */
export function counterOf(b, numbers, sum) {
  if (lengthOf(b) !== 8) return undefined;
  const n = int64Of(bytesOf(b));
  return sum || numbers?.has(n) ? n : undefined;
}

/** counterShown returns elements with the number of a counter. */
export const counterShown = (n) => [h('span', { class: 'mono' }, n), h('span', { class: 'type' }, ' int64')];

/** cellValueShown returns an element with the bytes of a cell, or its number if it is a counter. */
export function cellValueShown(b, most, numbers) {
  const n = counterOf(b, numbers);
  return n ? h('span', { 'data-counter': n }, counterShown(n)) : bytesShown(b, most);
}

/** ordered returns the attributes of an item as [name, value]: its key first, then the others by name. */
export const ordered = (item, keys = []) => [...keys.filter((a) => Object.hasOwn(item, a)), ...Object.keys(item).filter((a) => !keys.includes(a)).sort()].map((a) => [a, item[a]]);

/** compared orders two values for a column: numbers by value, other values of a type as texts, and values of different types by type. */
export function compared(x, y) {
  const text = (v) => (typeOf(v) === 'N' ? Number(v.N) : valueText(v)), [a, b] = typeOf(x) === typeOf(y) ? [text(x), text(y)] : [typeOf(x), typeOf(y)];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** valueText returns a value in the notation of values, on one line, without its type; documents are JSON. */
export function valueText(v) {
  if (!v) return '';
  const type = typeOf(v), x = v[type];
  return typeof x === 'string' ? exact(x) : type === 'NULL' ? 'null' : Array.isArray(x) && type !== 'L' ? x.map(exact).join(', ') : jsonText(x);
}
