// Bytes, which are base64 in the API, and their possible meanings.
import { exact, h, marked } from './dom.js';

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

/** escapes explains the notation of values, for fields. */
export const escapes = 'Bytes as text, with \\n, \\t, \\xNN for other bytes, \\u{…} for invisible characters, and \\\\ for a backslash';

/** unescaped reads the notation of values: text, with \xNN, \u{…}, \n, \t and \\ in it. */
export function unescaped(text) {
  const out = [];
  const utf8 = new TextEncoder();
  for (const [all, byte, point] of text.matchAll(/\\x([0-9a-fA-F]{2})|\\u\{([0-9a-fA-F]{1,6})\}|\\[\\nt]|[^\\]+|\\/g)) {
    if (byte) out.push(parseInt(byte, 16));
    else if (point) out.push(...utf8.encode(String.fromCodePoint(Math.min(parseInt(point, 16), 0x10ffff))));
    else out.push(...utf8.encode({ '\\\\': '\\', '\\n': '\n', '\\t': '\t' }[all] ?? all));
  }
  return Uint8Array.from(out);
}

/** unescapedText is unescaped for a value that is text. */
export function unescapedText(text) {
  try { return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(unescaped(text)); } catch { throw new Error(`“${text}” has bytes that are no text`); }
}

// escapedBytes returns bytes in the notation of values.
function escapedBytes(bytes) {
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let out = '';
  for (let i = 0; i < bytes.length;) {
    const n = bytes[i];
    const length = n < 0x80 ? 1 : n >= 0xc2 && n < 0xe0 ? 2 : n >= 0xe0 && n < 0xf0 ? 3 : n >= 0xf0 && n < 0xf5 ? 4 : 1;
    let text = '';
    try { text = exact(utf8.decode(bytes.subarray(i, i + length))); } catch { /* not a character */ }
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
  marked(el, textOf(b, most));
  return el;
}

/** meanings returns the possible meanings of bytes: [name, text]. */
export function meanings(b) {
  const bytes = bytesOf(b, 64 << 10);
  const out = [['Bytes', String(lengthOf(b))]];
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    out.push(['Text', text]);
    if (/^\s*[[{]/.test(text)) out.push(['JSON', JSON.stringify(JSON.parse(text), null, 2)]);
  } catch { /* neither */ }
  const view = new DataView(bytes.buffer);
  if (bytes.length === 8) {
    out.push(['Int64, big endian', int64Of(bytes)], ['Float64, big endian', String(view.getFloat64(0))]);
  }
  if (bytes.length === 4) out.push(['Int32, big endian', String(view.getInt32(0))], ['Float32, big endian', String(view.getFloat32(0))]);
  out.push(['Hex', Array.from(bytes.subarray(0, 4096), (n) => n.toString(16).padStart(2, '0')).join(' ') + (bytes.length > 4096 ? ' …' : '')]);
  return out;
}

/** int64Of returns the number that eight bytes are, big endian. */
export const int64Of = (bytes) => new DataView(bytes.buffer).getBigInt64(0).toString();

/** timeOf formats microseconds as a time. */
export function timeOf(micros) {
  const ms = Number(micros) / 1000;
  if (!(Math.abs(ms) < 8.64e15)) return String(micros);
  const rest = String(((Number(micros) % 1000) + 1000) % 1000).padStart(3, '0');
  return new Date(Math.floor(ms)).toISOString().replace('Z', rest === '000' ? 'Z' : rest + 'Z').replace('T', ' ');
}
