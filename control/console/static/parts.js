// Row keys, split into the parts of a mapping.
import { h, plain } from './dom.js';
import { bytesShown } from './bytes.js';

/** partsShown returns an element with the parts of a row key, each with its name; the meaning is available on hover and to screen readers. */
export function partsShown(parts) {
  const el = h('span', { class: 'parts' });
  let segment = 0;
  for (const p of parts) {
    if (p.segment !== segment) el.append(h('span', { class: 'soft' }, ' · '));
    segment = p.segment;
    if (!p.name) { el.append(bytesShown(p.bytes, 80)); continue; }
    const said = `${p.name}, written by ${p.encoder}${p.value === undefined ? '; the value is unknown' : ': ' + p.value}`;
    el.append(h('span', { class: 'part', title: plain(said), 'data-part': p.name }, h('small', {}, plain(p.name)), ' ', bytesShown(p.bytes, 80),
      p.value !== undefined && p.value !== p.bytes.text && h('small', { class: 'data' }, ' = ', plain(p.value.slice(0, 80)))));
  }
  return el;
}
