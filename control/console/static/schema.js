// Completions in a YAML text, from a JSON Schema.

const keyOf = /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([^\s#{}[\],&*!|>'"%@`-][^#]*?|-[^\s#][^#]*?)):(?=\s|$)/;

/**
 * place returns the place of an offset: the path of keys and items (as true), whether a value is expected there,
 * and the keys of the mapping around it. It reads lines and brackets, so that it also works while the text around
 * the offset has mistakes. Without an answer the offset is in a comment, a quoted text or a block of text.
 */
export function place(text, at) {
  const frames = []; // of the blocks around a line: indent, path, and keys or the list
  let found, open, block; // open: { indent, path } of a key without a value yet; block: the indent of a key with a block of text
  const find = (path, value, keys = new Set()) => { if (found === undefined) found = { path, value, keys }; };
  const nothing = () => { if (found === undefined) found = null; };
  const pathAt = (indent) => {
    while (frames.length && frames.at(-1).indent > indent) frames.pop();
    if (open && indent <= open.indent) open = undefined;
    return frames.at(-1);
  };
  const mapping = (indent) => {
    let top = pathAt(indent);
    while (top?.list && frames.at(-2)?.indent === indent) { // the items of a key, which may be as far left as the key
      frames.pop();
      top = frames.at(-1);
    }
    if (top?.indent === indent && !top.list) return top;
    const made = { indent, path: open?.path ?? top?.item ?? [], keys: new Set() };
    frames.push(made);
    open = undefined;
    return made;
  };
  const list = (indent) => {
    if (open?.indent === indent) { // the items of a key may be below it
      frames.push({ indent, path: open.path, list: true });
      open = undefined;
    }
    const top = pathAt(indent);
    if (top?.indent === indent && top.list) return top;
    const made = { indent, path: open?.path ?? [], list: true };
    frames.push(made);
    open = undefined;
    return made;
  };

  /** flow reads a value from an offset to its end, with the brackets and quotes in it, and returns the end. */
  function flow(from, path) {
    const inside = []; // { path, keys } of {, { path } of [
    let i = from, start = from, value = true, current = path; // start of the current word
    const here = (end) => { if (at >= start && at <= end) find(current, value, inside.at(-1)?.keys); };
    for (; i < text.length; i++) {
      const c = text[i];
      if (c === '\n' && !inside.length) break;
      if (c === '#' && /\s/.test(text[i - 1])) {
        here(i - 1);
        while (i < text.length && text[i] !== '\n') i++;
        start = i + 1;
        i--;
      } else if ((c === '"' || c === "'") && !/[^\s{[,:]/.test(text[i - 1])) {
        const quoted = i;
        for (i++; i < text.length && text[i] !== c; i++) if (c === '"' && text[i] === '\\') i++;
        if (at > quoted && at <= i) nothing();
      } else if (c === '{' || c === '[') {
        here(i);
        inside.push(c === '{' ? { path: current, keys: new Set() } : { path: [...current, true], list: true });
        current = inside.at(-1).path;
        value = c === '[';
        start = i + 1;
      } else if (inside.length && (c === '}' || c === ']' || c === ',')) {
        here(i);
        if (c === ',') { current = inside.at(-1).path; value = Boolean(inside.at(-1).list); start = i + 1; } else {
          inside.pop();
          if (!inside.length) return i + 1;
          start = Infinity; // after a closed value there is nothing to complete
        }
      } else if (c === ':' && inside.at(-1)?.keys && !value && /[\s,}\]"]|^$/.test(text[i + 1] ?? '')) {
        here(i);
        const key = text.slice(start, i).trim().replace(/^(["'])(.*)\1$/s, '$2');
        inside.at(-1).keys.add(key);
        current = [...inside.at(-1).path, key];
        value = true;
        start = i + 1;
      }
    }
    here(i);
    return i;
  }

  for (let from = 0; from <= text.length;) {
    let end = text.indexOf('\n', from);
    if (end < 0) end = text.length;
    const line = text.slice(from, end), indent = line.search(/\S|$/), on = at >= from && at <= end;
    const blank = indent === line.length || line[indent] === '#';
    if (block !== undefined && (blank || indent > block)) { // a block of text
      if (on) nothing();
    } else if (blank) {
      block = undefined;
      if (on && at - from <= indent) {
        // The place of a key that would begin here.
        const saved = [...frames], was = open, column = at - from;
        const top = mapping(open && column > open.indent ? column : frames.findLast((f) => f.indent <= column && !f.list)?.indent ?? column);
        if (top.indent <= column) find(top.path, !top.keys.size && Boolean(was), top.keys);
        if (!top.keys.size) { frames.splice(0, frames.length, ...saved); open = was; }
      } else if (on) nothing();
    } else {
      block = undefined;
      let i = indent;
      while (/^-(\s|$)/.test(line.slice(i))) {
        const of = list(i);
        i += 1 + line.slice(i + 1).search(/\S|$/);
        of.item = [...of.path, true];
        open = { indent: of.indent, path: of.item };
      }
      const key = keyOf.exec(line.slice(i));
      if (key && line[i] !== '#') {
        const top = mapping(i), name = key[1] ?? key[2] ?? key[3];
        top.keys.add(name);
        const path = [...top.path, name], rest = from + i + key[0].length;
        if (on && at >= from + i && at < rest) find(top.path, false, top.keys);
        const value = text.slice(rest, end).trim();
        if (/^[|>]/.test(value)) block = i;
        else if (value === '' || value.startsWith('#')) {
          open = { indent: i, path };
          if (on && at > rest && (value === '' || at <= rest + text.slice(rest).indexOf('#'))) find(path, true);
        } else {
          end = Math.max(end, flow(rest, path));
          end = text.indexOf('\n', end);
          if (end < 0) end = text.length;
        }
      } else if (i < line.length && line[i] !== '#') {
        if (/["'[{]/.test(line[i])) {
          end = flow(from + i, open?.path ?? pathAt(i)?.path ?? []);
          end = text.indexOf('\n', end);
          if (end < 0) end = text.length;
        } else if (on && at >= from + i) { // a word that may become a key
          const top = mapping(i);
          find(top.path, !top.keys.size, top.keys);
        }
      } else if (on && at >= from + i && open) find(open.path, true);
    }
    from = end + 1;
  }
  return found ?? undefined;
}

/** alternatives returns the schemas that a schema allows, without references. */
function alternatives(schema, root) {
  if (!schema || typeof schema !== 'object') return [];
  if (schema.$ref) return alternatives(schema.$ref.split('/').slice(1).reduce((at, name) => at[name], root), root);
  return [schema, ...(schema.oneOf ?? []).flatMap((s) => alternatives(s, root))];
}

/** words returns the texts that a pattern of alternatives begins with: ^(a|b\(.+\))$ has a and b(. */
function words(pattern) {
  const inner = /^\^\((.*)\)\$$/.exec(pattern ?? '')?.[1];
  return inner ? inner.split('|').map((w) => w.replace(/\\\(.*$/, '(')).filter((w) => /^[\w-]+\(?$/.test(w)) : [];
}

/** completions returns the keys and values that fit at an offset: from, and options as CodeMirror has them. */
export function completions(text, at, root, explicit) {
  const where = place(text, at);
  if (!where) return null;
  let all = alternatives(root, root);
  for (const step of where.path) {
    const named = all.flatMap((s) => (step === true ? s.items : s.properties?.[step]) ?? []);
    all = (named.length || step === true ? named : all.map((s) => s.additionalProperties)).flatMap((s) => alternatives(s, root));
  }
  const typed = /[\w.*()-]*$/.exec(text.slice(0, at))[0];
  if (!typed && !explicit && (!where.value || text[at - 1] === '\n')) return null;
  const options = [], seen = new Set();
  const add = (option) => {
    if (seen.has(option.label)) return;
    seen.add(option.label);
    options.push({ boost: -Math.min(99, options.length), ...option });
  };
  if (where.value) {
    const info = all.find((s) => s.description)?.description;
    for (const s of all) {
      for (const v of [...(s.enum ?? []), ...words(s.pattern), ...(s.type === 'boolean' ? [true, false] : []), ...(s.type === 'null' ? [null] : []), ...(s.examples ?? [])]) add({ label: String(v), type: 'enum', info, detail: v === s.default ? 'default' : undefined });
      if (s.default !== undefined && s.default !== '') add({ label: String(s.default), type: 'enum', info, detail: 'default' });
    }
  }
  const container = !where.value || !/\S/.test(text.slice(text.lastIndexOf('\n', at - 1) + 1, at - typed.length).replace(/- /g, ''));
  for (const s of container ? all : []) {
    for (const [name, of] of Object.entries(s.properties ?? {})) {
      if (where.keys.has(name) && name !== typed) continue;
      add({ label: name, type: 'property', info: alternatives(of, root).find((s) => s.description)?.description, detail: s.required?.includes(name) ? 'required' : undefined, apply: text[at] === ':' ? name : name + ': ' });
    }
  }
  return options.length ? { from: at - typed.length, options, validFor: /^[\w.*()-]*$/ } : null;
}
