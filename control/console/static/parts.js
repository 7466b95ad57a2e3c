// Row keys, split into the parts of a mapping.
import { h, plain } from './dom.js';
import { bytesShown } from './bytes.js';

/** partName returns the name of a part of a row key. A salt is computed from an attribute: its value is not that of the attribute. */
export const partName = (p) => p.encoder?.match(/^(salt|hash)\b/)?.[1] ?? p.name;

/** partsShown returns an element with the parts of a row key, each with its name; the meaning is available on hover and to screen readers. */
export function partsShown(parts) {
  const el = h('span', { class: 'parts' });
  let segment = 0;
  for (const p of parts) {
    if (p.segment !== segment) el.append(h('span', { class: 'soft' }, ' · '));
    segment = p.segment;
    if (!p.name) { el.append(bytesShown(p.bytes, 80)); continue; }
    const name = partName(p), said = `${name === p.name ? name : `${name} of ${p.name}`}, encoded by ${p.encoder}${p.value === undefined ? name === p.name ? '; the value is unknown' : '' : ': ' + p.value}`;
    el.append(h('span', { class: 'part', title: plain(said), 'data-part': p.name }, h('small', {}, plain(name)), ' ', bytesShown(p.bytes, 80),
      p.value !== undefined && p.value !== p.bytes.text && h('small', { class: 'data' }, ' = ', plain(p.value.slice(0, 80)))));
  }
  return el;
}
