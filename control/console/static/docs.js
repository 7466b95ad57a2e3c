// Docs: the documents, which the server renders, with their search and copies of their code.
import { h, copier, counted, errorBox, fill, number } from './dom.js';
import { query } from './api.js';

const place = '/docs/search';

/** marked returns the pieces of a text, with the words in it marked. */
function marked(text, words) {
  const pattern = new RegExp(`(${words.map((w) => w.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')).join('|')})`, 'giu');
  return text.split(pattern).map((piece, i) => i % 2 ? h('mark', {}, piece) : piece);
}

/** resultsOf returns elements with the sections that a search found. */
function resultsOf({ count, sections }, words) {
  if (!words.length) return h('p', {}, 'Enter words to search the headings and the text of all documents.');
  return [h('p', { class: 'soft', role: 'status' }, count > sections.length ? `The first ${number(sections.length)} of ${counted(count, 'section')}` : counted(count, 'section')),
    sections.map((s) => h('section', {}, h('h2', {}, h('a', { href: `/docs/${s.document}${s.id && '#' + s.id}` }, marked(s.heading, words)), s.heading !== s.title && h('small', {}, ' ', s.title)), h('p', {}, marked(s.text, words))))];
}

/** show lets the field of a document search while words are typed; Escape shows the document again. */
export function show(main, signal) {
  const input = main.querySelector('nav input'), article = main.querySelector('article'), list = main.querySelector('nav details');
  const current = list?.querySelector('[aria-current]'), sections = list?.querySelector('.sections');
  for (const pre of article.querySelectorAll('pre')) {
    const line = h('div', { class: 'bar one' });
    pre.replaceWith(line);
    line.append(pre, copier('Copy', pre.textContent.replace(/\n$/, ''), 'Copy this block'));
  }
  // The keyboard scrolls only an element that can have the focus.
  const scrollable = new ResizeObserver((sized) => {
    for (const { target } of sized) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute('tabindex');
    }
  });
  for (const el of article.querySelectorAll('pre, .scroll')) scrollable.observe(el);
  const own = [...article.childNodes];
  const here = location.pathname === place;
  let asked = 0;
  // Only a narrow window folds the list: it would hide the document there.
  const wide = matchMedia('(min-width: 1001px)'), unfold = () => { if (list) list.open = wide.matches; };
  wide.addEventListener('change', unfold, { signal });
  unfold();
  if (current) list.scrollTop = current.offsetTop - list.offsetTop - list.clientHeight / 3;
  // Results are not a part of the document.
  function belong(yes) {
    if (yes) current?.setAttribute('aria-current', 'page');
    else current?.removeAttribute('aria-current');
    if (sections) sections.hidden = !yes;
  }
  async function search() {
    const mine = ++asked, words = input.value.split(/\s+/).filter(Boolean);
    belong(!words.length);
    if (here) history.replaceState(null, '', place + query({ q: input.value }));
    if (!words.length && !here) return fill(article, own);
    try {
      const answer = words.length ? await (await fetch('/static/docs.json' + query({ q: input.value }))).json() : {};
      if (mine === asked) fill(article, h('h1', {}, 'Search'), resultsOf(answer, words));
    } catch (err) { if (mine === asked) fill(article, h('h1', {}, 'Search'), errorBox(err)); }
  }
  input.addEventListener('input', search);
  input.addEventListener('keydown', (e) => {
    const first = article.querySelector('section a');
    if (e.key === 'Escape') {
      input.value = '';
      search();
    } else if (e.key === 'ArrowDown' && first) {
      e.preventDefault();
      first.focus();
    } else if (e.key === 'Enter' && input.value && !here) location.assign(place + query({ q: input.value }));
  });
  if (here) {
    input.value = new URLSearchParams(location.search).get('q') ?? '';
    input.focus();
    search();
  }
}
