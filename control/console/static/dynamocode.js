// Client code for a request of DynamoDB.
import { awsLine, goBytes, goText, shellOf } from './code.js';
import { bytesOf } from './bytes.js';

const quoted = JSON.stringify;
const values = ['Key', 'Item', 'ExclusiveStartKey', 'ExpressionAttributeValues'];
const enums = ['ReturnConsumedCapacity', 'ReturnItemCollectionMetrics', 'ReturnValues', 'ReturnValuesOnConditionCheckFailure', 'Select'];
const entriesOf = (map, each, between = ', ') => Object.entries(map).map(([name, v]) => each(name, v)).join(between);
const words = (operation, by) => operation.replace(/([a-z])([A-Z])/g, `$1${by}$2`).toLowerCase();

// literal returns a JSON value in a language of: null, true and false as texts, and the notation of bytes.
function literal(v, of) {
  if (v === null || typeof v === 'boolean') return of[String(v)] ?? String(v);
  if (Array.isArray(v)) return `[${v.map((e) => literal(e, of)).join(', ')}]`;
  if (typeof v !== 'object') return quoted(v);
  const [[kind, x] = [], second] = Object.entries(v);
  if (kind === 'B' && !second && typeof x === 'string') return `{"B": ${of.bytes(x)}}`;
  if (kind === 'BS' && !second && Array.isArray(x)) return `{"BS": [${x.map(of.bytes).join(', ')}]}`;
  return `{${entriesOf(v, (name, e) => `${quoted(name)}: ${literal(e, of)}`)}}`;
}

const python = { null: 'None', true: 'True', false: 'False', bytes: (b) => `base64.b64decode("${b}")` };
const javascript = { bytes: (b) => `Buffer.from("${b}", "base64")` };

const goBinary = (b) => `[]byte(${goBytes(bytesOf({ base64: b }))})`;

function goValue(v) {
  const [[kind, x]] = Object.entries(v);
  const value = { S: goText, N: goText, B: goBinary, BOOL: String, NULL: String, SS: (l) => `[]string{${l.map(goText).join(', ')}}`, NS: (l) => `[]string{${l.map(goText).join(', ')}}`, BS: (l) => `[][]byte{${l.map(goBinary).join(', ')}}`,
    L: (l) => `[]types.AttributeValue{${l.map(goValue).join(', ')}}`, M: goMap }[kind](x);
  return `&types.AttributeValueMember${kind}{Value: ${value}}`;
}
const goMap = (map) => `map[string]types.AttributeValue{${entriesOf(map, (name, v) => `${goText(name)}: ${goValue(v)}`)}}`;

function goMember(name, v) {
  if (values.includes(name)) return goMap(v);
  if (enums.includes(name)) return `types.${name}(${goText(v)})`;
  if (name === 'ExpressionAttributeNames') return `map[string]string{${entriesOf(v, (n, x) => `${goText(n)}: ${goText(x)}`)}}`;
  return { string: () => `aws.String(${goText(v)})`, number: () => `aws.Int32(${v})`, boolean: () => `aws.Bool(${v})` }[typeof v]();
}

const javaMap = (map, each) => `Map.ofEntries(${entriesOf(map, (name, v) => `Map.entry(${quoted(name)}, ${each(v)})`)})`;
const javaBinary = (b) => `SdkBytes.fromByteArray(Base64.getDecoder().decode("${b}"))`;

function javaValue(v) {
  const [[kind, x]] = Object.entries(v);
  const list = (each) => (l) => `List.of(${l.map(each).join(', ')})`;
  const [name, of] = { S: ['S', quoted], N: ['N', quoted], B: ['B', javaBinary], BOOL: ['Bool', String], NULL: ['Nul', String], SS: ['Ss', list(quoted)], NS: ['Ns', list(quoted)], BS: ['Bs', list(javaBinary)], L: ['L', list(javaValue)], M: ['M', (m) => javaMap(m, javaValue)] }[kind];
  return `AttributeValue.from${name}(${of(x)})`;
}

function javaMember(name, v) {
  if (values.includes(name)) return javaMap(v, javaValue);
  return name === 'ExpressionAttributeNames' ? javaMap(v, quoted) : quoted(v);
}

// simple are the operations whose members Go and Java write without further types.
const simple = ['Query', 'Scan', 'GetItem', 'PutItem', 'UpdateItem', 'DeleteItem'];

/** requestCode returns the code of each client that makes a request: [client, code]. */
export function requestCode(info, operation, request) {
  const lower = operation[0].toLowerCase() + operation.slice(1);
  return [
    simple.includes(operation) && ['Go', `out, err := client.${operation}(ctx, &dynamodb.${operation}Input{\n${entriesOf(request, (name, v) => `\t${name}: ${goMember(name, v)},\n`, '')}})`],
    ['Python', `answer = client.${words(operation, '_')}(\n${entriesOf(request, (name, v) => `    ${name}=${literal(v, python)},\n`, '')})`],
    ['JavaScript', `const answer = await client.send(new ${operation}Command({\n${entriesOf(request, (name, v) => `  ${name}: ${literal(v, javascript)},\n`, '')}}));`],
    simple.includes(operation) && ['Java', `var answer = client.${lower}(${operation}Request.builder()\n${entriesOf(request, (name, v) => `    .${name[0].toLowerCase() + name.slice(1)}(${javaMember(name, v)})\n`, '')}    .build());`],
    ['aws', awsLine(info, `${words(operation, '-')} --cli-input-json ${shellOf(quoted(request))}`)],
    ['tabletop ctl', `tabletop ctl query ${operation} ${shellOf(quoted(request))}`],
  ].filter(Boolean);
}
