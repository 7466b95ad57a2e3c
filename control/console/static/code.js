// Client code for bytes and for reading a row.
import { plain } from './dom.js';
import { bytesOf } from './bytes.js';

const hex = (n) => n.toString(16).padStart(2, '0');

// asciiOf returns a Go literal, or after b a Python one, in which each byte outside ASCII is escaped.
const asciiOf = (bytes) => '"' + Array.from(bytes, (n) => n >= 0x20 && n < 0x7f && n !== 0x22 && n !== 0x5c ? String.fromCharCode(n) : '\\x' + hex(n)).join('') + '"';

/** goText returns a Go string. */
export function goText(text) {
  const out = [];
  for (const c of text.toWellFormed()) {
    const n = c.codePointAt(0);
    if (c === '"' || c === '\\') out.push('\\', c);
    else if (plain(c) === c) out.push(c);
    else if (n < 0x80) out.push('\\x', hex(n));
    else out.push(n > 0xffff ? '\\U' : '\\u', n.toString(16).padStart(n > 0xffff ? 8 : 4, '0'));
  }
  return `"${out.join('')}"`;
}

/** goBytes returns a Go string with these bytes. */
export function goBytes(bytes) {
  try { return goText(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes))); } catch { return asciiOf(bytes); }
}

/** shellOf quotes a word for a shell. */
export const shellOf = (word) => "'" + word.replaceAll("'", "'\\''") + "'";

/** awsLine returns a line for a shell without credentials: the endpoint accepts any. */
export const awsLine = (info, command) => `AWS_ACCESS_KEY_ID=tabletop AWS_SECRET_ACCESS_KEY=tabletop aws dynamodb ${command} --endpoint-url ${info.dynamodb} --region us-east-1`;

const json = JSON.stringify;

/** rowCode returns the code of each client that reads a row: [client, code]. */
export function rowCode(info, instance, table, key) {
  const bytes = bytesOf(key), isText = key.text !== undefined && plain(key.text) === key.text;
  const all = Array.from(bytes, hex).join('');
  const out = [
    ['Go', `row, err := client.Open(${json(table)}).ReadRow(ctx, ${goBytes(bytes)})`],
    ['Java', `Row row = client.readRow(TableId.of(${json(table)}), ByteString.${isText ? `copyFromUtf8(${json(key.text)})` : `fromHex("${all}")`});`],
    ['Python', `row = bigtable.Client(project=${json(info.project)}).instance(${json(instance)}).table(${json(table)}).read_row(b${asciiOf(bytes)})`],
    ['JavaScript', `const [row] = await new Bigtable({ projectId: ${json(info.project)} }).instance(${json(instance)}).table(${json(table)}).row(${isText ? json(key.text) : `Buffer.from("${all}", "hex")`}).get();`],
  ];
  if (isText) out.push(['cbt', `BIGTABLE_EMULATOR_HOST=${info.bigtable} cbt -project ${info.project} -instance ${instance} lookup ${table} ${shellOf(key.text)}`]);
  return out;
}
