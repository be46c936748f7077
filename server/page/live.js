// Charts of what the server does now, from /metrics.

const kSampleEvery = 2000;  // milliseconds
const kSamples = 91;        // that are shown: three minutes
const kWindow = 5;          // samples over which rates and percentiles are taken
const kCounters = ['generated', 'prompt', 'encoded', 'answered', 'refused'];

// [{name, labels, value}] of Prometheus's text format.
function parseMetrics(text) {
  const series = [];
  for (const line of text.split('\n')) {
    const found = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      labels[name] = value;
    }
    const value = found[3] === '+Inf' ? Infinity : Number(found[3]);
    series.push({name: found[1].replace(/^hippodrome_/, ''), labels, value});
  }
  return series;
}

// What the charts need of one scrape, over all models.
function sampleOf(series) {
  const sum = (name, accept = () => true) => series.reduce((total, one) =>
    (one.name === name && accept(one.labels) ? total + one.value : total), 0);
  // Counts up to each bound of a histogram.
  const buckets = (name) => {
    const counts = new Map();
    for (const {name: other, labels: {le}, value} of series) {
      if (other === `${name}_bucket`) counts.set(le, (counts.get(le) ?? 0) + value);
    }
    return [...counts].map(([le, count]) => [le === '+Inf' ? Infinity : Number(le), count])
      .sort((a, b) => a[0] - b[0]);
  };
  return {
    time: performance.now() / 1000,
    generated: sum('generated_tokens_total'),
    prompt: sum('prompt_tokens_total'),
    encoded: sum('encoded_tokens_total'),
    answered: sum('requests_total', ({code, model}) => model && !/^[45]/.test(code)),
    refused: sum('requests_total', ({code}) => /^[45]/.test(code)),
    first: buckets('time_to_first_token_seconds'),
    next: buckets('inter_token_latency_seconds'),
    running: sum('requests_running'),
    queued: sum('requests_queued'),
    slots: sum('state_slots', ({state}) => state === 'active'),
    bytes: sum('state_bytes'),
    budget: sum('state_budget_bytes'),
  };
}

// As Prometheus's histogram_quantile() of the increase; null where nothing was counted.
function quantile(before, after, q) {
  const counts = after.map(([bound, count], i) => [bound, count - (before[i]?.[1] ?? 0)]);
  const total = counts.at(-1)?.[1] ?? 0;
  if (!(total > 0)) return null;
  const at = counts.findIndex(([, count]) => count >= q * total);
  const [low, below] = at === 0 ? [0, 0] : counts[at - 1];
  const [high, above] = counts[at];
  return high === Infinity ? low : low + (high - low) * (q * total - below) / (above - below);
}

const rate = (name) => (before, after) => (after[name] - before[name]) / (after.time - before.time);
const part = (histogram, q) => (before, after) => quantile(before[histogram], after[histogram], q);
const level = (name) => (_, after) => after[name];
const plain = (x) => (x >= 100 ? x.toFixed(0) : String(Number(x.toPrecision(3))));

function bytes(x) {
  const power = x < 1 ? 0 : Math.min(4, Math.floor(Math.log2(x) / 10));
  return `${plain(x / 1024 ** power)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`;
}

const kCharts = [
  {title: 'Tokens per second', unit: plain, least: 10, lines: {
    generated: rate('generated'), prompt: rate('prompt'), encoded: rate('encoded')}},
  {title: 'Requests per second', unit: plain, least: 1, lines: {
    answered: rate('answered'), refused: rate('refused')}},
  {title: 'Time to first token', unit: duration, least: 0.001, lines: {
    median: part('first', 0.5), '99th percentile': part('first', 0.99)}},
  {title: 'Time between tokens', unit: duration, least: 0.001, lines: {
    median: part('next', 0.5), '99th percentile': part('next', 0.99)}},
  {title: 'Requests', unit: plain, least: 4, lines: {
    running: level('running'), queued: level('queued')}},
  {title: 'State', unit: bytes, least: 1 << 20, lines: {bytes: level('bytes')},
   note: ({slots, budget}) => `sequences: ${slots}; room for ${bytes(budget)}`},
];

// A chart by itself: a card with what is true now, and lines of the last minutes.
class Chart {
  constructor({title, unit, least, lines, note}) {
    Object.assign(this, {title, unit, least, note});
    this.lines = Object.entries(lines).map(([name, value], i) => ({
      name, value, points: [],
      path: make('path', {class: `line line${i}`}), now: make('b', {}, '–'),
      key: make('span', {class: `key line${i}`}),
    }));
    this.svg = make('svg', {role: 'img'});
    this.extra = make('span', {class: 'note'});
    this.card = make('figure', {class: 'chart'},
      make('figcaption', {}, make('h3', {}, title), make('p', {class: 'keys'},
        this.lines.map((line) => make('span', {}, line.key, `${line.name} `, line.now)), this.extra)),
      this.svg);
  }

  // `samples`: of now and before, the oldest first.
  update(samples) {
    for (const line of this.lines) {
      line.points = samples.map((after, i) => {
        const before = samples[Math.max(0, i - kWindow)];
        const value = after === before ? null : line.value(before, after);
        return value === null ? null : [after.time, value];
      });
      const last = line.points.at(-1);
      line.now.textContent = last ? this.unit(last[1]) : '–';
    }
    this.extra.textContent = this.note && samples.length ? this.note(samples.at(-1)) : '';
    this.svg.setAttribute('aria-label', `${this.title}, last three minutes. Now: ` +
      this.lines.map(({name, now}) => `${name} ${now.textContent}`).join(', '));
    this.draw();
  }

  draw() {
    const width = this.svg.clientWidth, height = this.svg.clientHeight;
    if (width === 0) return;
    const values = this.lines.flatMap(({points}) => points.filter(Boolean).map(([, value]) => value));
    const {ticks, share} = this.unit === duration ? decades(values, this.least)
                                                  : steps(values, this.least, this.unit === bytes);
    const left = 58, bottom = height - 20, right = width - 6;
    const seconds = (kSamples - 1) * kSampleEvery / 1000;
    const end = performance.now() / 1000;
    const x = (time) => right - (end - time) / seconds * (right - left);
    const y = (value) => bottom - share(value) * (bottom - 8);
    const grid = [];
    for (const value of ticks) {
      grid.push(make('line', {x1: left, x2: right, y1: y(value), y2: y(value), class: 'grid'}),
                make('text', {x: left - 6, y: y(value) + 4, class: 'end'}, this.unit(value)));
    }
    for (const minutes of [3, 2, 1, 0]) {
      const place = x(end - minutes * 60);
      grid.push(make('text', {x: place, y: height - 4, class: minutes ? 'middle' : 'end'},
                     minutes ? `−${minutes} min` : 'now'));
    }
    for (const line of this.lines) {
      let begun = false;
      line.path.setAttribute('d', line.points.map((point) => {
        const move = begun ? 'L' : 'M';
        begun = point !== null && x(point[0]) >= left;
        return begun ? `${move}${x(point[0]).toFixed(1)},${y(point[1]).toFixed(1)}` : '';
      }).join(''));
    }
    this.svg.replaceChildren(...grid, ...this.lines.map(({path}) => path));
  }
}

// Axes: the values that have a line, and which share of the height a value has.

// From 0, in some three steps of 1, 2 or 5 times a power of ten, of bytes in their larger units.
function steps(values, least, binary) {
  const most = Math.max(least, ...values);
  const unit = binary ? 1024 ** Math.floor(Math.log2(most / 3) / 10) : 1;
  const power = unit * 10 ** Math.floor(Math.log10(most / 3 / unit));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= most / 3 * 0.999);
  const count = Math.ceil(most / step);
  return {ticks: Array.from({length: count + 1}, (_, i) => i * step), share: (x) => x / step / count};
}

// Whole powers of ten: a median and a high percentile may be far apart.
function decades(values, least) {
  const low = Math.floor(Math.log10(Math.min(least, ...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(least, ...values))));
  return {ticks: Array.from({length: high - low + 1}, (_, i) => 10 ** (low + i)),
          share: (x) => (Math.log10(x) - low) / (high - low)};
}

// Samples while the page is seen, so that there is a past when the charts are opened.
class Live {
  constructor() {
    this.samples = [];
    this.charts = kCharts.map((chart) => new Chart(chart));
    $('charts').append(...this.charts.map(({card}) => card));
    new ResizeObserver(() => this.charts.forEach((chart) => chart.draw())).observe($('charts'));
    setInterval(() => this.sample(), kSampleEvery);
    this.sample();
  }

  async sample() {
    if (document.hidden || this.busy || key.refused) return;
    this.busy = true;
    try {
      const sample = sampleOf(parseMetrics(await (await call('metrics')).text()));
      // Counters that fall are those of another process, or without a model that has gone.
      const last = this.samples.at(-1) ?? sample;
      if (kCounters.some((name) => sample[name] < last[name])) this.samples = [];
      this.samples = [...this.samples, sample].slice(-kSamples - kWindow);
      showError($('live-error'));
      if (!$('live').hidden) this.show();
    } catch (error) {
      showError($('live-error'), error);
    }
    this.busy = false;
  }

  show() {
    this.charts.forEach((chart) => chart.update(this.samples));
  }
}

