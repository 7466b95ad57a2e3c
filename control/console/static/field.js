// Fields of JSON, YAML and SQL: a textarea, which becomes an editor when it is first visible.
import { h } from './dom.js';

/** offsetOf returns the offset of a line and column, both from 1, and the end of the line. */
function offsetOf(text, line, column) {
  const start = text.split('\n').slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0);
  const end = text.indexOf('\n', start);
  return [start + column - 1, end < 0 ? text.length : end];
}

/**
 * codeField returns a field over a textarea, which keeps the text. put replaces the text without an event, select goes
 * to a line, and mark shows marks: line, column, text and level ("error", "warn", or another one). If the editor
 * cannot be loaded, the textarea stays.
 */
export function codeField(area, language) {
  const el = h('div', { 'data-field': language }, area);
  let editor, marks = [];
  const seen = new IntersectionObserver(async (entries) => {
    if (!entries.some((e) => e.isIntersecting)) return;
    seen.disconnect();
    try {
      const { mount } = await import('./editor.js');
      editor = await mount(area, language);
      editor.mark(marks);
    } catch { el.dataset.plain = ''; }
  });
  seen.observe(el);
  return {
    el,
    put(text) {
      area.value = text;
      editor?.read();
    },
    select(line, column = 1) {
      const [from, to] = offsetOf(area.value, line, column);
      if (editor) editor.select(from, to);
      else {
        area.focus();
        area.setSelectionRange(from, to);
        area.scrollTop = Math.max(0, (line - 4) * area.scrollHeight / area.value.split('\n').length);
      }
    },
    mark(list) {
      marks = list;
      editor?.mark(list);
    },
  };
}
