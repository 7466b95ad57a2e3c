// Garbage-collection rules in words, and the cells that they would remove.

/** inWords describes the cells that a rule, in cbt's syntax, collects. */
export function inWords(rule) {
  if (rule === 'never') return 'Keeps all versions';
  const said = rule
    .replace(/maxversions=(\d+)/g, (_, n) => n === '1' ? 'all versions but the newest' : `versions beyond the newest ${n}`)
    .replace(/maxage=([0-9a-z.µ]+)/g, (_, age) => `cells older than ${age}`);
  return `Deletes ${said}`;
}

const units = { h: 3600e6, m: 60e6, s: 1e6, ms: 1e3, µs: 1, us: 1, ns: 1e-3 };

function micros(age) {
  let n = 0;
  for (const [, count, unit] of age.matchAll(/([\d.]+)(h|ms|m|s|µs|us|ns)/g)) n += Number(count) * units[unit];
  return n;
}

/** collected reports whether a rule removes a cell: the version in its column (0 is the newest), its time and the server's time in microseconds. */
export function collected(rule, version, at, now) {
  const tokens = rule.match(/\(|\)|and|or|maxversions=\d+|maxage=[0-9a-z.µ]+|never/g) ?? [];
  let i = 0;
  function one() {
    const t = tokens[i++];
    if (t === '(') { const v = all(); i++; return v; }
    if (t?.startsWith('maxversions=')) {
      const n = Number(t.slice(12));
      return version >= n ? `it is version ${version + 1}, and ${n} ${n === 1 ? 'is' : 'are'} kept` : '';
    }
    if (t?.startsWith('maxage=')) return now - Number(at) > micros(t.slice(7)) ? `it is older than ${t.slice(7)}` : '';
    return '';
  }
  function all() {
    let v = one();
    while (tokens[i] === 'and' || tokens[i] === 'or') {
      const and = tokens[i++] === 'and';
      const w = one();
      v = and ? v && w && `${v}, and ${w}` : v || w;
    }
    return v;
  }
  return all();
}

/** internal describes a family beside those of a mapping; "" for others. */
export const internal = (family) => family === '_t' ? 'Types of values, where the cells alone do not determine them' : family === '_m' ? 'Only a migration uses its cells, and Rows hides them' : bookkeeping({ family }) ? 'Only the DynamoDB endpoint uses its cells, and Rows hides them' : '';

/** bookkeeping reports whether a cell belongs to no item: only the DynamoDB endpoint or a migration uses it. */
export const bookkeeping = (c) => c.family === '_x' || c.family === '_f' || c.family === '_m' || c.family === '_tabletop' || c.family.startsWith('_tabletop.');
