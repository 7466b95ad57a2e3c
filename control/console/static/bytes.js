// Bytes, which are base64 in the API, and their possible meanings.
import { h, plain } from './dom.js';

/** bytesOf decodes at most the given number of bytes of the API's base64. */
export function bytesOf(b, most = Infinity) {
  const chars = Math.ceil(Math.min(b.base64.length * 3 / 4, most) / 3) * 4;
  const text = atob(b.base64.length > chars ? b.base64.slice(0, chars) : b.base64);
  const out = new Uint8Array(Math.min(text.length, most));
  for (let i = 0; i < out.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

/** lengthOf returns the number of bytes. */
export const lengthOf = (b) => b.base64.length / 4 * 3 - (b.base64.endsWith('==') ? 2 : b.base64.endsWith('=') ? 1 : 0);

/** base64Of encodes bytes for the API. */
export function base64Of(bytes) {
  let text = '';
  for (const n of bytes) text += String.fromCharCode(n);
  return btoa(text);
}

/** unescaped reads what escapedBytes writes: text, with \xNN and \\ in it. */
export function unescaped(text) {
  const out = [];
  const utf8 = new TextEncoder();
  for (const m of text.matchAll(/\\x([0-9a-fA-F]{2})|\\\\|[^\\]+|\\/g)) {
    if (m[1]) out.push(parseInt(m[1], 16));
    else out.push(...utf8.encode(m[0] === '\\\\' ? '\\' : m[0]));
  }
  return Uint8Array.from(out);
}

// escapedBytes returns text, with \xNN for each byte outside visible characters.
function escapedBytes(bytes) {
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let out = '';
  for (let i = 0; i < bytes.length;) {
    const n = bytes[i];
    const length = n < 0x80 ? 1 : n >= 0xc2 && n < 0xe0 ? 2 : n >= 0xe0 && n < 0xf0 ? 3 : n >= 0xf0 && n < 0xf5 ? 4 : 1;
    let text = '';
    try { text = utf8.decode(bytes.subarray(i, i + length)); } catch { /* not a character */ }
    if (text === '\\') text = '\\\\';
    else if (plain(text) !== text) text = '';
    out += text || '\\x' + n.toString(16).padStart(2, '0');
    i += text ? length : 1;
  }
  return out;
}

/** textOf returns the beginning of bytes in a form that distinguishes different bytes. */
export function textOf(b, most = 200) {
  const bytes = bytesOf(b, most);
  return escapedBytes(bytes) + (lengthOf(b) > bytes.length ? '…' : '');
}

/** bytesShown returns an element with the beginning of bytes. */
export function bytesShown(b, most = 200) {
  if (!b.base64) return h('span', { class: 'soft' }, '(empty)');
  const el = h('span', { class: 'data mono' });
  let at = 0;
  const text = textOf(b, most);
  for (const m of text.matchAll(/(?:\\x[0-9a-f]{2})+/g)) {
    el.append(text.slice(at, m.index), h('span', { class: 'esc' }, m[0]));
    at = m.index + m[0].length;
  }
  el.append(text.slice(at));
  return el;
}

/** meanings returns the possible meanings of bytes: [name, text]. */
export function meanings(b) {
  const bytes = bytesOf(b, 64 << 10);
  const out = [['bytes', String(lengthOf(b))]];
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    out.push(['text', text]);
    if (/^\s*[[{]/.test(text)) out.push(['JSON', JSON.stringify(JSON.parse(text), null, 2)]);
  } catch { /* neither */ }
  const view = new DataView(bytes.buffer);
  if (bytes.length === 8) {
    out.push(['int64, big endian', view.getBigInt64(0).toString()], ['float64, big endian', String(view.getFloat64(0))]);
  }
  if (bytes.length === 4) out.push(['int32, big endian', String(view.getInt32(0))], ['float32, big endian', String(view.getFloat32(0))]);
  out.push(['hex', Array.from(bytes.subarray(0, 4096), (n) => n.toString(16).padStart(2, '0')).join(' ') + (bytes.length > 4096 ? ' …' : '')]);
  return out;
}

/** timeOf formats microseconds as a time. */
export function timeOf(micros) {
  const ms = Number(micros) / 1000;
  if (!(Math.abs(ms) < 8.64e15)) return String(micros);
  const rest = String(((Number(micros) % 1000) + 1000) % 1000).padStart(3, '0');
  return new Date(Math.floor(ms)).toISOString().replace('Z', rest === '000' ? 'Z' : rest + 'Z').replace('T', ' ');
}
