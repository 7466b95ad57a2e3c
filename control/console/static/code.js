// Bytes, and the reading of a row, as code of clients.
import { plain } from './dom.js';
import { bytesOf } from './bytes.js';

const hex = (n) => n.toString(16).padStart(2, '0');

/** stringOf is a literal of Go, and behind b one of Python, of which each byte that is not of ASCII is written out. */
export const stringOf = (bytes) => '"' + Array.from(bytes, (n) => n >= 0x20 && n < 0x7f && n !== 0x22 && n !== 0x5c ? String.fromCharCode(n) : '\\x' + hex(n)).join('') + '"';

/** shellOf quotes a word for a shell. */
export const shellOf = (word) => "'" + word.replaceAll("'", "'\\''") + "'";

/** awsLine is a line for a shell that knows no credentials: the door takes any. */
export const awsLine = (info, command) => `AWS_ACCESS_KEY_ID=tabletop AWS_SECRET_ACCESS_KEY=tabletop aws dynamodb ${command} --endpoint-url ${info.dynamodb} --region us-east-1`;

const json = JSON.stringify;

/** filterGo is a filter in the JSON of its message as code of Go; it throws where the client has no such filter. */
export function filterGo(filter) {
  const all = Object.entries(filter).map(([key, value]) => [key.replace(/_([a-z])/g, (_, c) => c.toUpperCase()), value]);
  const [name, x] = all[0] ?? ['passAllFilter', true];
  const bytes = () => stringOf(bytesOf({ base64: x }));
  const of = {
    chain: () => `ChainFilters(${x.filters.map(filterGo).join(', ')})`,
    interleave: () => `InterleaveFilters(${x.filters.map(filterGo).join(', ')})`,
    condition: () => `ConditionFilter(${[x.predicateFilter ?? x.predicate_filter, x.trueFilter ?? x.true_filter, x.falseFilter ?? x.false_filter].map((f) => f ? filterGo(f) : 'nil').join(', ')})`,
    passAllFilter: () => 'PassAllFilter()', blockAllFilter: () => 'BlockAllFilter()',
    rowKeyRegexFilter: () => `RowKeyFilter(${bytes()})`, rowSampleFilter: () => `RowSampleFilter(${Number(x)})`,
    familyNameRegexFilter: () => `FamilyFilter(${stringOf(new TextEncoder().encode(x))})`,
    columnQualifierRegexFilter: () => `ColumnFilter(${bytes()})`, valueRegexFilter: () => `ValueFilter(${bytes()})`,
    cellsPerRowOffsetFilter: () => `CellsPerRowOffsetFilter(${Number(x)})`, cellsPerRowLimitFilter: () => `CellsPerRowLimitFilter(${Number(x)})`,
    cellsPerColumnLimitFilter: () => `LatestNFilter(${Number(x)})`, stripValueTransformer: () => 'StripValueFilter()',
    applyLabelTransformer: () => `LabelFilter(${stringOf(new TextEncoder().encode(x))})`,
  }[name];
  if (!of || all.length > 1) throw new Error(`The filter ${all.map(([n]) => n).join(', ')} is not written as Go here: take it out of the copy.`);
  return 'bigtable.' + of();
}

/** rowCode is for each client the code that reads a row: [client, code]. */
export function rowCode(info, instance, table, key) {
  const bytes = bytesOf(key), isText = key.text !== undefined && plain(key.text) === key.text;
  const all = Array.from(bytes, hex).join('');
  const out = [
    ['Go', `row, err := client.Open(${json(table)}).ReadRow(ctx, ${stringOf(bytes)})`],
    ['Java', `Row row = client.readRow(TableId.of(${json(table)}), ByteString.${isText ? `copyFromUtf8(${json(key.text)})` : `fromHex("${all}")`});`],
    ['Python', `row = bigtable.Client(project=${json(info.project)}).instance(${json(instance)}).table(${json(table)}).read_row(b${stringOf(bytes)})`],
    ['JavaScript', `const [row] = await new Bigtable({ projectId: ${json(info.project)} }).instance(${json(instance)}).table(${json(table)}).row(${isText ? json(key.text) : `Buffer.from("${all}", "hex")`}).get();`],
  ];
  if (isText) out.push(['cbt', `BIGTABLE_EMULATOR_HOST=${info.bigtable} cbt -project ${info.project} -instance ${instance} lookup ${table} ${shellOf(key.text)}`]);
  return out;
}
