// The control API.

const prefix = '/api/v1/';

/** APIError is the answer of the API to a request that failed. */
export class APIError extends Error {
  constructor(status, error) {
    super(error.text);
    this.status = status;
    this.code = error.code;
    this.remedy = error.remedy;
  }
}

// Timestamps may be too large for a number of JavaScript: large ones are read as BigInt.
function parse(text) {
  if (!/"timestamp":-?\d{17}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (name, value, context) =>
    name === 'timestamp' && !Number.isSafeInteger(value) && context?.source ? BigInt(context.source) : value);
}

async function ask(method, path, body, headers = {}) {
  let response;
  try {
    response = await fetch(prefix + path, {
      method, credentials: 'same-origin',
      headers: body === undefined ? headers : { 'Content-Type': 'application/json', ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new APIError(0, { code: 'unreachable', text: 'The server does not respond.', remedy: 'Check that it is running.' });
  }
  const text = await response.text();
  let answer;
  try { answer = parse(text); } catch { answer = { error: { code: 'internal', text: text.slice(0, 300), remedy: '' } }; }
  if (!response.ok) throw new APIError(response.status, answer.error ?? { code: String(response.status), text });
  return answer;
}

export const get = (path) => ask('GET', path);
export const post = (path, body = {}) => ask('POST', path, body);
export const remove = (path) => ask('DELETE', path);

/** session exchanges a token for a cookie. */
export const session = (token) => ask('POST', 'session', {}, { Authorization: 'Bearer ' + token });

/** dynamo runs an operation of DynamoDB: response has its answer, calls the Bigtable calls. Unless it is a client's, it is the console's own: no fault affects it, and no count has it. */
export const dynamo = (operation, request, client = false) => post('query', { operation, request, own: !client });

/** live dispatches news of the server: "lab" when experiments changed it (detail), "tables" when the tables may have changed, "runs" with the running migrate commands (detail), "tick" every second. */
export const live = new EventTarget();
setInterval(() => live.dispatchEvent(new Event('tick')), 1000);

function listen(params) {
  const source = new EventSource(prefix + 'events' + query(params));
  for (const kind of ['lab', 'runs']) source.addEventListener(kind, (e) => live.dispatchEvent(new CustomEvent(kind, { detail: JSON.parse(e.data) })));
  source.addEventListener('tables', () => live.dispatchEvent(new Event('tables')));
  return source;
}

/** events calls each with the requests after one, also the console's own, until signal ends it. */
export function events(after, signal, each, lost) {
  const source = listen({ after, kinds: 'requests,lab,tables', own: 'true' });
  source.addEventListener('request', (e) => each(JSON.parse(e.data)));
  source.onerror = () => lost(source.readyState === EventSource.CLOSED);
  source.onopen = () => lost(undefined);
  signal.addEventListener('abort', () => source.close());
}

/** follow listens to some kinds of events after a moment, until signal ends it, and while the page is visible: a browser has few connections to a server. */
export function follow(kinds, after, signal) {
  let source;
  const look = () => {
    source?.close();
    source = document.hidden ? undefined : listen({ kinds, after });
  };
  look();
  document.addEventListener('visibilitychange', look, { signal });
  signal.addEventListener('abort', () => source?.close());
}

/** part escapes a piece of a path. */
export const part = encodeURIComponent;

/** query returns the query string of the parameters that are not empty. */
export function query(params) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value !== undefined && value !== null && value !== '') q.set(name, value);
  const text = q.toString();
  return text && '?' + text;
}

/** projectOf returns the project in the resource name of a table. */
export const projectOf = (name) => name.split('/')[1];
