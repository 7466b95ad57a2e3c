// Elements, and untrusted texts. Data gets into the document only by text nodes.
import { remove } from './api.js';

/** h creates an element. In props, on... are listeners; "class" and attributes are set unchanged. */
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'disabled') el[name] = value;
    else el.setAttribute(name, value === true ? '' : value);
  }
  put(el, children);
  return el;
}

function put(el, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    el.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** fill replaces the children of an element. */
export function fill(el, ...children) {
  el.replaceChildren();
  put(el, children);
  return el;
}

// Characters that are invisible, or that move the text beside them.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function escaped(c) {
  const n = c.charCodeAt(0);
  return n < 0x80 ? '\\x' + n.toString(16).padStart(2, '0') : '\\u{' + n.toString(16) + '}';
}

/** plain returns a text on one line, with invisible characters escaped. */
export function plain(text) {
  return text.replace(unseen, escaped).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** exact returns the notation of a value: plain, with \\ for a backslash, so that fields can read it back. */
export const exact = (text) => plain(text.replaceAll('\\', '\\\\'));

/** exactShown returns an element with the notation of a value, and its escapes marked. */
export function exactShown(text, most = 400) {
  const el = h('span', { class: 'data mono' });
  // A pair is never cut.
  const end = text.length > most && /[\ud800-\udbff]/.test(text[most - 1]) ? most - 1 : most;
  marked(el, exact(text.slice(0, end)));
  if (text.length > most) el.append(h('span', { class: 'soft' }, ` … ${number(text.length)} characters`));
  return el;
}

/** marked appends a text in the notation of values, with its escapes marked. */
export function marked(el, text) {
  let at = 0;
  for (const m of text.matchAll(/\\\\|((?:\\x[0-9a-f]{2}|\\u\{[0-9a-f]+\}|\\[nt])+)/g)) {
    if (!m[1]) continue;
    el.append(text.slice(at, m.index), h('span', { class: 'esc' }, m[1]));
    at = m.index + m[0].length;
  }
  el.append(text.slice(at));
}

/** jsonText returns a value as JSON, with invisible characters in JSON's own escapes. */
export const jsonText = (value, indent) => JSON.stringify(value, null, indent)?.replace(unseen, (c) => c === '\n' || c === '\r' ? c : '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

/** shown returns an element with at most the given number of characters of an untrusted text. */
export function shown(text, most = 400) {
  const el = h('span', { class: 'data mono' });
  const cut = text.length > most ? text.slice(0, most) : text;
  let at = 0;
  for (const m of cut.matchAll(unseen)) {
    el.append(cut.slice(at, m.index), h('span', { class: 'esc' }, escaped(m[0])));
    at = m.index + m[0].length;
  }
  el.append(cut.slice(at));
  if (cut !== text) el.append(h('span', { class: 'soft' }, ` … ${number(text.length)} characters`));
  return el;
}

/** number formats a number with separators between thousands. */
export function number(n) { return Number(n).toLocaleString('en-US'); }

/** size formats a number of bytes. */
export function size(n) {
  if (n < 1024) return `${n} B`;
  if (n < 1 << 20) return `${(n / 1024).toFixed(1)} KiB`;
  return `${(n / (1 << 20)).toFixed(1)} MiB`;
}

/** button returns a button with an action; it shows the action's errors. */
export function button(label, act, props = {}) {
  const b = h('button', { type: 'button', ...props, onclick: async () => {
    b.disabled = true;
    try { await act(b); } catch (err) { notify(err); } finally { b.disabled = false; }
  } }, label);
  return b;
}

/** sentence returns a text with a capital, unless it begins with a name such as testkit.OnItem, and a full stop. */
export const sentence = (text) => text && text.replace(/^[a-z](?![a-z]*([A-Z0-9_/]|\.\w))/, (c) => c.toUpperCase()) + (/[.?!:]$/.test(text) ? '' : '.');

// own reports whether an error is of the console or of its API: the code and the text of a service stay unchanged.
const own = (err) => /^[a-z_]*$/.test(err.code ?? '');
const messageOf = (err) => own(err) ? sentence(err.message ?? String(err)) : err.message;

/** errorBox shows an error, and its remedy. */
export function errorBox(err) {
  return h('div', { class: 'note error', role: 'alert' }, !own(err) && h('b', {}, plain(err.code) + ': '), shown(messageOf(err), 2000), err.remedy && h('p', { class: 'soft' }, remedyShown(sentence(err.remedy))));
}

// Pages for the requests that remedies name.
const places = { tables: ['/', 'Home'], requests: ['/requests', 'Requests'], faults: ['/lab', 'Lab'], snapshots: ['/lab', 'Lab'], migrate: ['/migration', 'Migration'] };

/** removal returns a button that removes a fault. */
export const removal = (path) => button('Remove the fault', async (b) => {
  await remove(path);
  b.replaceWith('It is removed now.');
});

function remedyShown(text) {
  const out = [];
  let at = 0;
  for (const m of text.matchAll(/GET \/api\/v1\/(tables|requests|faults|snapshots|migrate)(?![\w/{])|DELETE \/api\/v1\/(faults\/\w+\/\d+) removes the fault/g)) {
    const [href, name] = places[m[1]] ?? [];
    out.push(plain(text.slice(at, m.index)), href ? h('a', { href }, name) : removal(m[2]));
    at = m.index + m[0].length;
  }
  return [...out, plain(text.slice(at))];
}

let toast;

/** notify shows a text and links for a while, or an error until it is closed. */
export function notify(what, ...links) {
  toast?.remove();
  const bad = what instanceof Error, text = bad ? [messageOf(what), what.remedy && sentence(what.remedy)].filter(Boolean).join(' ') : what;
  const mine = toast = h('div', { class: bad ? 'toast error' : 'toast', role: bad ? 'alert' : 'status' }, plain(text.slice(0, 600)), links.map((a) => [' ', a]), bad && h('button', { type: 'button', class: 'close', 'aria-label': 'Close the message', onclick: () => mine.remove() }));
  // What is outside of a modal dialog cannot be clicked.
  (bad && [...document.querySelectorAll('dialog[open]')].at(-1) || document.body).append(mine);
  if (!bad) setTimeout(() => mine.remove(), 6000);
}

/** copier returns a button that copies a text; name describes it for screen readers. */
export function copier(label, text, name) {
  return button(label, async () => {
    const what = typeof text === 'function' ? await text() : text;
    try {
      await navigator.clipboard.writeText(what);
      notify('Copied.');
    } catch {
      dialog('Copy this text', h('pre', {}, what));
    }
  }, { 'aria-label': name });
}

/** lineShown returns an element with lines for a shell or a program, and a button that copies them. */
export const lineShown = (line, copied = line) => h('div', { class: 'bar one' }, h('pre', {}, line), copier('Copy', copied));

/** save offers a text to the user as a file. */
export function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/octet-stream' }));
  h('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** footer returns the last line of a dialog: its actions, and a button that closes it, unless a listener prevents the event cancel. */
export const footer = (close, ...actions) => h('div', { class: 'bar foot' }, h('button', { type: 'button', onclick: (e) => {
  const d = e.target.closest('dialog');
  if (d.dispatchEvent(new Event('cancel', { cancelable: true }))) d.close();
} }, close), actions);

/** dialog opens a modal dialog, and returns it. Children without a footer get one that closes it. */
export function dialog(title, ...children) {
  const d = h('dialog', { 'aria-label': title }, h('h1', {}, title), children);
  if (!d.querySelector('.foot')) d.append(footer('Close'));
  d.addEventListener('close', () => d.remove());
  document.body.append(d);
  d.showModal();
  return d;
}

/** codeDialog shows the code of several clients: [client, code]. */
export const codeDialog = (title, codes) => dialog(title, codes.map(([client, code]) => [h('div', { class: 'bar' }, h('b', {}, client), copier('Copy', code, `Copy the line for ${client}`)), h('pre', { class: 'data' }, code)]));

/** tabbed returns tabs and the panel of the open one. panels are { name: elements }; opened(name) is called when a tab opens, also for the first one. */
export function tabbed(label, panels, opened, first = Object.keys(panels)[0]) {
  const panel = h('div', { role: 'tabpanel' });
  const tabs = h('div', { class: 'bar', role: 'tablist', 'aria-label': label });
  const open = (name) => {
    for (const b of tabs.children) {
      b.setAttribute('aria-selected', String(b.textContent === name));
      b.tabIndex = b.textContent === name ? 0 : -1;
    }
    fill(panel, panels[name]);
    opened?.(name);
  };
  tabs.append(...Object.keys(panels).map((name) => h('button', { type: 'button', role: 'tab', onclick: () => open(name) }, name)));
  tabs.addEventListener('keydown', (e) => {
    const all = [...tabs.children], i = all.indexOf(document.activeElement);
    const to = all[i + { ArrowRight: 1, ArrowLeft: -1 }[e.key]];
    if (to) { to.focus(); open(to.textContent); }
  });
  open(first);
  return [tabs, panel];
}

/** confirmed asks before an action that cannot be undone. */
export function confirmed(question, label) {
  return new Promise((resolve) => {
    let yes = false;
    const d = dialog(question, footer('Cancel', h('button', { type: 'button', class: 'danger', onclick: () => { yes = true; d.close(); } }, label)));
    d.addEventListener('close', () => resolve(yes));
  });
}

/** counted returns a number with its noun: "1 row", "2 rows". */
export function counted(n, one, more = one + 's') { return `${number(n)} ${Number(n) === 1 ? one : more}`; }

let lists = 0;

/**
 * virtual returns a list that only has elements for the visible lines. of.count() returns the number of lines, of.line(i)
 * an element. The rest is optional: of.key(i) identifies the element of a line for reuse, and of.update(line, i)
 * updates it; of.end() is called when the last lines are visible; of.pick(i) when a line is chosen by a click, by
 * Enter, or by the arrow keys, which call of.look(i) instead if it exists; the right and left arrows
 * call of.turn(i, open).
 */
export function virtual(of) {
  const height = of.height ?? 26;
  const space = h('div', { class: 'space', role: 'presentation' });
  const list = h('div', { class: 'virtual', tabindex: 0, role: of.pick ? 'listbox' : 'list', 'aria-label': of.label }, space);
  const id = 'list' + ++lists;
  let chosen = -1, wanted = 0, kept = new Map();
  function make(i) {
    let line;
    try { line = of.line(i); } catch (err) { line = h('div', { class: 'bad' }, 'Cannot be shown: ' + plain(String(err))); }
    line.classList.add('line');
    line.setAttribute('role', of.pick ? 'option' : 'listitem');
    line.style.height = height + 'px';
    if (of.pick) line.addEventListener('click', () => choose(line.ariaPosInSet - 1));
    return line;
  }
  function draw() {
    wanted = 0;
    const count = of.count();
    // Browsers limit the height of an element to some million pixels.
    space.style.height = Math.min(count * height, 12e6) + 'px';
    const scale = Math.max(1, count * height / 12e6);
    const first = Math.max(0, Math.floor(list.scrollTop * scale / height) - 4);
    const last = Math.min(count, first + Math.ceil(list.clientHeight / height) + 8);
    const now = new Map();
    for (let i = first; i < last; i++) {
      const key = of.key ? of.key(i) : {};
      const line = kept.get(key) ?? make(i);
      of.update?.(line, i);
      line.id = `${id}-${i}`;
      line.setAttribute('aria-posinset', i + 1);
      line.setAttribute('aria-setsize', count);
      line.style.top = (scale === 1 ? i * height : list.scrollTop + (i - list.scrollTop * scale / height) * height) + 'px';
      if (of.pick) line.setAttribute('aria-selected', i === chosen);
      now.set(key, line);
    }
    // A line that stays is not moved: it may contain the focus.
    const lines = [...now.values()], stay = new Set(lines);
    for (const line of [...space.children]) if (!stay.has(line)) line.remove();
    lines.forEach((line, n) => { if (space.children[n] !== line) space.insertBefore(line, space.children[n] ?? null); });
    kept = now;
    if (chosen >= first && chosen < last) list.setAttribute('aria-activedescendant', `${id}-${chosen}`);
    else list.removeAttribute('aria-activedescendant');
    if (last >= count - 20) of.end?.();
  }
  function redraw() { wanted ||= requestAnimationFrame(draw); }
  function move(i) {
    if (i < 0 || i >= of.count()) return false;
    chosen = i;
    redraw();
    return true;
  }
  function choose(i) { if (move(i)) of.pick(i); }
  list.addEventListener('scroll', redraw, { passive: true });
  new ResizeObserver(redraw).observe(list);
  if (of.pick) {
    list.addEventListener('keydown', (e) => {
      if (e.target === list && (e.key === 'Enter' || e.key === ' ') && chosen >= 0) {
        e.preventDefault();
        choose(chosen);
        return;
      }
      if (of.turn && chosen >= 0 && (e.key === 'ArrowRight' || e.key === 'ArrowLeft')) {
        e.preventDefault();
        of.turn(chosen, e.key === 'ArrowRight');
        return;
      }
      const end = of.count() - 1, page = Math.max(1, Math.floor(list.clientHeight / height) - 1);
      const to = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, Home: 0, End: end, PageDown: Math.min(end, chosen + page), PageUp: Math.max(0, chosen - page) }[e.key];
      if (to === undefined) return;
      e.preventDefault();
      if (!of.look) choose(to);
      else if (move(to)) of.look(to);
      if (chosen * height < list.scrollTop) list.scrollTop = chosen * height;
      if ((chosen + 1) * height > list.scrollTop + list.clientHeight) list.scrollTop = (chosen + 1) * height - list.clientHeight;
    });
  }
  return { el: list, redraw, choose, get chosen() { return chosen; }, set chosen(i) { chosen = i; } };
}
