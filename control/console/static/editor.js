// The editor of a field: CodeMirror over its textarea.
import {
  autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, completionKeymap, defaultKeymap, EditorState, EditorView, ensureSyntaxTree,
  highlightActiveLine, highlightActiveLineGutter, HighlightStyle, highlightSpecialChars, history, historyKeymap, indentOnInput, json, keymap, lineNumbers,
  linter, lintGutter, nextDiagnostic, placeholder, search, searchKeymap, setDiagnostics, syntaxHighlighting, syntaxTree, tags, yaml,
} from './codemirror.js';
import { h } from './dom.js';
import { completions } from './schema.js';

const colors = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--link)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword, tags.typeName, tags.labelName], color: 'var(--atom)' },
  { tag: [tags.comment, tags.lineComment, tags.meta], color: 'var(--soft)', fontStyle: 'italic' },
]);

const theme = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'var(--bg)' },
  '&.cm-focused': { outline: 'none' }, // the page outlines the field
  '.cm-scroller': { fontFamily: 'inherit', lineHeight: 'inherit' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-gutters': { color: 'var(--soft)', backgroundColor: 'var(--panel)', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--sel) 45%, transparent)' },
  '&.cm-focused .cm-activeLineGutter': { color: 'var(--text)', backgroundColor: 'var(--sel)' },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--sel)', outline: '1px solid var(--edge)' },
  '&.cm-focused .cm-nonmatchingBracket': { backgroundColor: 'var(--badbg)' },
  '.cm-placeholder': { color: 'var(--soft)' },
  '.cm-specialChar': { color: 'var(--bad)' },
  '.cm-searchMatch': { backgroundColor: 'var(--mark)', outline: '1px solid var(--edge)' },
  '.cm-selectionMatch': { backgroundColor: 'var(--mark)' },
  '.cm-tooltip': { color: 'var(--text)', backgroundColor: 'var(--panel)', border: '1px solid var(--edge)', borderRadius: 'var(--s1)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': { color: 'var(--on-link)', backgroundColor: 'var(--link)' },
  '.cm-completionDetail': { color: 'inherit' },
  '.cm-completionInfo': { maxWidth: '52ch', padding: 'var(--s2) var(--s3)', font: 'var(--small)/1.45 system-ui, sans-serif' },
  '.cm-diagnostic': { maxWidth: '72ch', font: 'var(--small)/1.45 system-ui, sans-serif' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
  '.cm-diagnostic-warning': { borderLeftColor: 'var(--warn)' },
  '.cm-diagnostic-info': { borderLeftColor: 'var(--link)' },
  '.cm-panels': { color: 'var(--text)', backgroundColor: 'var(--panel)' },
  '.cm-panels.cm-panels-top': { borderBottom: '1px solid var(--line)' },
  '.cm-button, .cm-textfield': { color: 'var(--text)', background: 'var(--bg)', border: '1px solid var(--edge)', borderRadius: 'var(--radius)' },
  '.cm-panel.cm-search [name=close]': { color: 'var(--text)' },
});

/** mistake returns the place of the mistake in a text of JSON. */
function mistake(view) {
  const text = view.state.doc.toString();
  if (!text.trim()) return [];
  try {
    JSON.parse(text);
    return [];
  } catch (err) {
    const last = text.trimEnd().length - 1;
    let at;
    ensureSyntaxTree(view.state, text.length, 20)?.iterate({ enter: (node) => { if (node.type.isError) at ??= node.from; } });
    const from = Math.min(at ?? last, last);
    return [{ from, to: from + 1, severity: 'error', message: err.message }];
  }
}

let schema; // of mappings, once it is needed

/** complete returns the completions of a mapping. */
async function complete({ state, pos, explicit }) {
  schema ??= fetch('/static/mapping.schema.json').then((r) => r.json()).catch(() => { schema = undefined; });
  const root = await schema;
  return root ? completions(state.doc.toString(), pos, root, explicit) : null;
}

const languages = {
  sql: () => [EditorView.lineWrapping],
  json: () => [json(), EditorView.lineWrapping, linter(mistake, { delay: 200 })],
  yaml: () => [yaml(), autocompletion({ override: [complete], icons: false, activateOnCompletion: (c) => c.type === 'property' })],
};

// Chromium itself replaces selected lines with an element that has a style, which the policy of the pages refuses.
const typeOver = EditorView.domEventHandlers({ beforeinput({ inputType, data }, view) {
  const { from, to, empty } = view.state.selection.main;
  if (inputType !== 'insertText' || !data || empty || view.composing) return false;
  const insert = () => view.state.update(view.state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true });
  if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, data, insert))) view.dispatch(insert());
  return true;
} });

const severity = { error: 'error', warn: 'warning' };

/**
 * mount covers a textarea with an editor in a shadow root, where CodeMirror needs no style element. A change in the
 * editor is an input event of the textarea, and an input event or read shows the text of the textarea.
 */
export function mount(area, language) {
  const host = h('div', { class: 'editor' });
  const root = host.attachShadow({ mode: 'open' });
  let rows;
  const sized = () => { if (rows !== area.rows) host.style.height = `calc(${rows = area.rows} * 1.45em + 10px)`; };
  const view = new EditorView({
    root, parent: root,
    state: EditorState.create({
      doc: area.value,
      extensions: [
        lineNumbers(), highlightSpecialChars(), history(), indentOnInput(), bracketMatching(), closeBrackets(), highlightActiveLine(), highlightActiveLineGutter(),
        typeOver, search({ top: true }), lintGutter(), syntaxHighlighting(colors), theme, languages[language](), placeholder(area.placeholder),
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...searchKeymap, ...historyKeymap, { key: 'F8', run: nextDiagnostic }, ...defaultKeymap]),
        EditorView.contentAttributes.of({ 'aria-label': area.ariaLabel, tabindex: '0' }),
        EditorView.updateListener.of((update) => {
          const text = update.docChanged && update.state.doc.toString();
          if (!update.docChanged || text === area.value) return;
          area.value = text;
          area.dispatchEvent(new Event('input', { bubbles: true }));
        }),
      ],
    }),
  });
  const read = () => {
    sized();
    const now = view.state.doc.toString();
    if (now !== area.value) view.dispatch({ changes: { from: 0, to: now.length, insert: area.value } });
  };
  const focused = area.getRootNode().activeElement === area, { selectionStart, selectionEnd } = area;
  sized();
  area.hidden = true;
  area.after(host);
  area.addEventListener('input', read);
  const select = (anchor, head) => {
    view.focus();
    view.dispatch({ selection: { anchor, head }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
  };
  if (focused) select(selectionStart, selectionEnd);
  const mark = (list) => {
    const { doc } = view.state;
    view.dispatch(setDiagnostics(view.state, list.filter((m) => m.line > 0 && m.line <= doc.lines).map((m) => {
      const line = doc.line(m.line), from = Math.min(line.from + Math.max(0, (m.column ?? 1) - 1), line.to);
      const tree = syntaxTree(view.state), node = tree.resolveInner(from, 1);
      const word = !tree.length && view.state.wordAt(from); // SQL has no tree
      const to = word ? word.to : node.from === from && node.to > from ? Math.min(node.to, line.to) : line.to;
      return { from, to, severity: severity[m.level] ?? 'info', message: m.text };
    })));
  };
  return { read, select, mark };
}
