// Elements, and texts of strangers. Data gets into the document by text nodes alone.

/** h makes an element. Of props, on... are listeners, "class" and attributes are set as they are. */
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

/** fill gives an element other children. */
export function fill(el, ...children) {
  el.replaceChildren();
  put(el, children);
  return el;
}

// What would not be seen, or would move what stands beside it.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function escaped(c) {
  const n = c.charCodeAt(0);
  return n < 0x80 ? '\\x' + n.toString(16).padStart(2, '0') : '\\u{' + n.toString(16) + '}';
}

/** plain is a text on one line, with what cannot be seen written out. */
export function plain(text) {
  return text.replace(unseen, escaped).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** shown is an element with a text of a stranger, at most most characters of it. */
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

/** number writes a number with marks between thousands. */
export function number(n) { return Number(n).toLocaleString('en-US'); }

/** size writes a number of bytes. */
export function size(n) {
  if (n < 1024) return `${n} B`;
  if (n < 1 << 20) return `${(n / 1024).toFixed(1)} KiB`;
  return `${(n / (1 << 20)).toFixed(1)} MiB`;
}

/** button is one that does something; its errors are told. */
export function button(label, act, props = {}) {
  const b = h('button', { type: 'button', ...props, onclick: async () => {
    b.disabled = true;
    try { await act(b); } catch (err) { tell(err); } finally { b.disabled = false; }
  } }, label);
  return b;
}

/** errorBox says what went wrong, and what to do. */
export function errorBox(err) {
  return h('div', { class: 'note error', role: 'alert' }, h('b', {}, err.code ? plain(err.code) + ': ' : ''), shown(err.message ?? String(err), 2000), err.remedy && h('p', { class: 'soft' }, remedyShown(err.remedy)));
}

// What the API would be asked for has a page.
const places = { tables: ['/', 'Home'], requests: ['/requests', 'Requests'], faults: ['/lab', 'Lab'], snapshots: ['/lab', 'Lab'], migrate: ['/migration', 'Migration'] };

function remedyShown(text) {
  const out = [];
  let at = 0;
  for (const m of text.matchAll(/GET \/api\/v1\/(tables|requests|faults|snapshots|migrate)(?![\w/{])/g)) {
    const [href, name] = places[m[1]];
    out.push(plain(text.slice(at, m.index)), h('a', { href }, name));
    at = m.index + m[0].length;
  }
  return [...out, plain(text.slice(at))];
}

let toast;

/** tell shows a text, or an error, for a while. */
export function tell(what) {
  toast?.remove();
  const text = what instanceof Error ? what.message + (what.remedy ? ': ' + what.remedy : '') : what;
  const mine = toast = h('div', { class: 'toast', role: 'status' }, plain(text.slice(0, 600)));
  document.body.append(mine);
  setTimeout(() => mine.remove(), 6000);
}

/** copier is a button that copies a text; with a name for those who do not see what is beside it. */
export function copier(label, text, name) {
  return button(label, async () => {
    const what = typeof text === 'function' ? await text() : text;
    try {
      await navigator.clipboard.writeText(what);
      tell('Copied.');
    } catch {
      dialog('To copy', h('pre', {}, what));
    }
  }, { 'aria-label': name });
}

/** save gives a text to the user as a file. */
export function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/octet-stream' }));
  h('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** dialog opens a modal dialog, and returns it. */
export function dialog(title, ...children) {
  const d = h('dialog', { 'aria-label': title }, h('h1', {}, title), children,
    h('div', { class: 'bar' }, h('button', { type: 'button', onclick: () => d.close() }, 'Close')));
  d.addEventListener('close', () => d.remove());
  document.body.append(d);
  d.showModal();
  return d;
}

/** confirmed asks before something that cannot be taken back. */
export function confirmed(question, label) {
  return new Promise((resolve) => {
    let yes = false;
    const d = dialog(question, h('div', { class: 'bar' }, h('button', { type: 'button', class: 'danger', onclick: () => { yes = true; d.close(); } }, label)));
    d.addEventListener('close', () => resolve(yes));
  });
}

/** counted is a number with what it counts: "1 row", "2 rows". */
export function counted(n, one, more = one + 's') { return `${number(n)} ${Number(n) === 1 ? one : more}`; }

let lists = 0;

/**
 * virtual is a list of which only the lines that are seen are elements. of.count() is how many there are, of.line(i)
 * gives an element. The others may be left out: by of.key(i) the element of a line is found again, and of.update(line, i)
 * brings it up to date; of.end() is called when the last lines are seen; of.pick(i) when one is chosen by a click, by
 * Enter, or by the arrow keys, which call of.look(i) in its place if it is there; of.turn(i, open) is what the arrows
 * to the right and to the left do.
 */
export function virtual(of) {
  const height = of.height ?? 26;
  const space = h('div', { class: 'space', role: 'presentation' });
  const list = h('div', { class: 'virtual', tabindex: 0, role: of.pick ? 'listbox' : 'list', 'aria-label': of.label }, space);
  const id = 'list' + ++lists;
  let chosen = -1, wanted = 0, kept = new Map();
  function make(i) {
    let line;
    try { line = of.line(i); } catch (err) { line = h('div', { class: 'bad' }, 'cannot be shown: ' + plain(String(err))); }
    line.classList.add('line');
    line.setAttribute('role', of.pick ? 'option' : 'listitem');
    line.style.height = height + 'px';
    if (of.pick) line.addEventListener('click', () => choose(line.ariaPosInSet - 1));
    return line;
  }
  function draw() {
    wanted = 0;
    const count = of.count();
    // A browser has no room for an element of more than some million pixels.
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
    // A line that stays is not moved: what is in it may have the focus.
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
