// What every part needs: elements, calls of the server's routes, the models that it has.

const $ = (id) => document.getElementById(id);

// An element. `attributes`: functions are listeners, false and null leave an attribute out.
// `children` become text unless they are elements: data is never read as markup.
function make(tag, attributes = {}, ...children) {
  const svg = ['svg', 'path', 'line', 'text', 'circle'].includes(tag);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag)
                      : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== false && value !== null) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat());
  return element;
}

const percent = (p) => `${(p * 100).toFixed(p >= 0.9995 ? 0 : 1)} %`;

// Two digits, or as many as there are before the point.
const duration = (seconds) => (seconds < 0.9995
  ? `${Number((seconds * 1000).toPrecision(seconds < 0.1 ? 2 : 3))} ms` : `${Number(seconds.toFixed(1))} s`);

// A row that shows a share of one: a name, a bar, a number.
function barRow(tag, name, share, attributes = {}) {
  const fill = make('span', {class: 'fill'});
  fill.style.width = `${Math.max(share, 0) * 100}%`;
  return make(tag, {...attributes, class: `row ${attributes.class ?? ''}`},
              make('span', {class: 'name'}, name), make('span', {class: 'track'}, fill),
              make('span', {class: 'number'}, percent(share)));
}

// ---- Calls

class ApiError extends Error {
  constructor(message, status = 0, seconds = 0) {
    super(message);
    this.status = status;
    this.seconds = seconds;  // to wait before another try makes sense
  }
}

// The key lives as long as the tab. Where storage is forbidden it lives as long as the page.
const key = {
  value: '',
  refused: false,  // so that nothing asks again by itself before there is another one
  load() { try { this.value = sessionStorage.getItem('key') ?? ''; } catch { /* forbidden */ } },
  keep(value) {
    this.value = value;
    this.refused = false;
    try {
      if (value) sessionStorage.setItem('key', value);
      else sessionStorage.removeItem('key');
    } catch { /* forbidden */ }
  },
};

// What the server says of a failure, in the shape of any of its interfaces.
async function failure(response) {
  let said = '';
  try {
    const {error} = await response.json();
    said = typeof error === 'string' ? error : error.message;
  } catch { /* no JSON: the status has to do */ }
  const seconds = Number(response.headers.get('Retry-After')) || 0;
  const {status} = response;
  if (status === 401) {
    key.refused = true;
    document.dispatchEvent(new Event('keywanted'));
    return new ApiError(key.value ? 'The server does not accept this key.'
                                  : 'The server asks for an API key.', status);
  }
  const meaning = {403: 'This key may not do that', 429: 'The server is busy',
                   503: 'The server does not take requests now'}[status];
  return new ApiError([meaning, said].filter(Boolean).join(': ') || `HTTP status ${status}`, status,
                      seconds);
}

// GET, or POST of `body` as JSON. Throws ApiError; AbortError when `signal` says so.
async function call(path, body, signal) {
  const headers = {};
  if (key.value) headers.Authorization = `Bearer ${key.value}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? 'GET' : 'POST', headers, signal, cache: 'no-store',
      redirect: 'error', body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError('The server cannot be reached.');
  }
  if (!response.ok) throw await failure(response);
  return response;
}

const post = async (path, body, signal) => (await call(path, body, signal)).json();

// The data of each event of a stream, as it comes.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = '';;) {
    let piece;
    try {
      piece = await reader.read();
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new ApiError('The connection broke.');
    }
    if (piece.done) return;
    const parts = (rest + piece.value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) if (part.startsWith('data: ')) yield part.slice(6);
  }
}

// ---- Errors on the page

// Shows `error` in `place`, with a button for another try, which waits as long as the server asks.
function showError(place, error, retry) {
  clearInterval(place.timer);
  place.replaceChildren();
  if (!error || error.name === 'AbortError') return;
  const button = make('button', {type: 'button', click: () => { showError(place); retry(); }});
  let left = error.seconds ?? 0;
  const count = () => {
    button.disabled = left > 0;
    button.textContent = left > 0 ? `Try again in ${left} s` : 'Try again';
    if (left-- <= 0) clearInterval(place.timer);
  };
  place.append(make('p', {}, error.message));
  if (retry && [0, 429, 503].includes(error.status)) place.append(button);
  count();
  if (left >= 0) place.timer = setInterval(count, 1000);
}

// ---- Models

let models = [];
const isDecoder = (model) => model.head === undefined;

// A labelled choice among the models that `fits` accepts. It follows what is loaded.
function modelChoice(fits) {
  const select = make('select', {});
  const fill = () => {
    const names = models.filter(fits).map((model) => model.id);
    if (names.join('\n') === [...select.options].map((option) => option.value).join('\n')) return;
    const before = select.value;
    select.replaceChildren(...names.map((name) => make('option', {value: name}, name)));
    if (names.includes(before)) select.value = before;
    else select.dispatchEvent(new Event('change'));
  };
  document.addEventListener('models', fill);
  fill();
  return {select, label: make('label', {}, 'Model', select)};
}

