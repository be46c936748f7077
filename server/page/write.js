// Writing with a decoder: its text goes on in place, and each token shows what else was likely.

const kAlternatives = 8;  // that the server is asked for, of each token
const kSpeakEvery = 4000;  // milliseconds between what screen readers are told of a text that comes

// What is shown of a token that is blank otherwise.
const visible = (name) => name.replaceAll(' ', '·').replaceAll('\n', '↵').replaceAll('\t', '→');
// The server writes so what is no text by itself: such a token cannot be chosen by its name.
const isText = (name) => !name.startsWith('bytes:') && !name.startsWith('token_id:');

// From 0, for what was certain, to 1, for one in a thousand and below.
const surprise = (p) => Math.min(1, -Math.log10(p) / 3).toFixed(3);

class Writer {
  constructor() {
    this.prompt = {text: $('text').value, ids: null};  // ids: null until the server has told
    this.tokens = [];  // {id, text, probability, likeliest: [{name, probability}]}
    this.undoable = [];
    this.drawn = 0;  // tokens that have an element
    this.models = modelChoice(isDecoder);
    $('write-model').append(this.models.label);
    this.models.select.addEventListener('change', () => this.forgetTokens());
    $('go').addEventListener('click', () => (this.running ? this.stop() : this.write()));
    $('edit').addEventListener('click', () => this.edit());
    $('undo').addEventListener('click', () => this.undo());
    $('text').addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.write();
    });
    $('write').addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && this.running) this.stop();
    });
    $('colour').addEventListener('change', () => {
      $('written').classList.toggle('coloured', $('colour').checked);
      $('legend').hidden = !$('colour').checked;
    });
    this.alternatives = new Alternatives(this);
  }

  text() { return this.prompt.text + this.tokens.map((token) => token.text).join(''); }

  // From here on it is text like any other: another model has other tokens.
  forgetTokens() {
    this.stop();
    this.readEdits();
    this.prompt = {text: this.text(), ids: null};
    this.tokens = [];
    this.undoable = [];
    this.redraw();
  }

  edit() {
    this.stop();
    this.alternatives.hide();
    $('text').value = this.text();
    this.show(false);
    $('text').focus();
    $('text').setSelectionRange($('text').value.length, $('text').value.length);
  }

  undo() {
    this.stop();
    ({prompt: this.prompt, tokens: this.tokens} = this.undoable.pop());
    this.redraw();
  }

  stop() {
    this.running?.abort();
  }

  // ---- Asking

  settings() {
    const settings = {};
    for (const name of ['temperature', 'top_p', 'max_tokens', 'seed']) {
      if ($(name).value !== '') settings[name] = Number($(name).value);
    }
    return settings;
  }

  readEdits() {
    if ($('text').hidden || $('text').value === this.text()) return;
    this.prompt = {text: $('text').value, ids: null};
    this.tokens = [];
    this.undoable = [];
  }

  // Goes on where the text ends.
  async write() {
    this.readEdits();
    await this.go({prompt: this.prompt, tokens: [...this.tokens]});
  }

  // Goes on from another token in the place of token `index`.
  async branch(index, name, probability) {
    const before = {prompt: this.prompt, tokens: this.tokens};
    this.stop();
    await this.stopped;
    try {
      const {tokens: ids} = await post('tokenize', {model: this.models.select.value, prompt: name});
      if (ids.length !== 1) throw new ApiError('The server reads this text as several tokens.');
      const {likeliest} = this.tokens[index];
      this.tokens = [...this.tokens.slice(0, index), {id: ids[0], text: name, probability, likeliest}];
    } catch (error) {
      return showError($('write-error'), error);
    }
    await this.go(before);
  }

  // `before`: what undoing goes back to.
  async go(before) {
    this.stop();
    await this.stopped;
    this.stopped = this.run(before);
    await this.stopped;
  }

  async run(before) {
    this.running = new AbortController();
    this.undoable.push(before);
    this.figures = {};
    showError($('write-error'));
    this.alternatives.hide();
    this.redraw();
    this.show(true);
    this.speak('Writing.');
    try {
      await this.stream(this.running.signal);
      this.speak('Done.');
    } catch (error) {
      showError($('write-error'), error, () => this.write());
      this.speak(error.name === 'AbortError' ? 'Stopped.' : '');
    }
    this.running = null;
    this.draw();
    this.show(true);
  }

  async stream(signal) {
    const model = this.models.select.value;
    if (this.prompt.ids === null) {
      const {text} = this.prompt;
      const {tokens} = await post('tokenize', {model, prompt: text}, signal);
      this.prompt = {text, ids: tokens};
    }
    const ids = [...this.prompt.ids, ...this.tokens.map((token) => token.id)];
    this.figures = {begin: performance.now(), tokens: 0};
    const response = await call('v1/completions', {
      model, prompt: ids.length ? ids : '', stream: true, logprobs: kAlternatives, ...this.settings(),
    }, signal);
    const run = {first: this.tokens.length, characters: []};
    for await (const data of events(response)) {
      if (data === '[DONE]') return;
      const event = JSON.parse(data);
      if (event.error) throw new ApiError(event.error.message);
      for (const choice of event.choices) this.take(choice, run);
      this.drawSoon();
    }
    throw new ApiError('The connection broke.');
  }

  // Adds the tokens of an event. `run` has the characters since its beginning: offsets count them,
  // and the text of a token ends where that of the next one begins.
  take({text, token_ids: ids, logprobs}, run) {
    run.characters.push(...text);
    const offsets = (run.offsets ??= []);
    ids.forEach((id, i) => {
      const likeliest = Object.entries(logprobs.top_logprobs[i])
        .map(([name, logarithm]) => ({name, probability: Math.exp(logarithm)}))
        .sort((a, b) => b.probability - a.probability);
      const name = logprobs.tokens[i];
      offsets.push(logprobs.text_offset[i]);
      this.tokens.push({id, name, text: '', probability: Math.exp(logprobs.token_logprobs[i]), likeliest});
    });
    // The one before may have begun the character that is complete only now.
    for (let i = Math.max(0, offsets.length - ids.length - 1); i < offsets.length; ++i) {
      const token = this.tokens[run.first + i];
      token.text = run.characters.slice(offsets[i], offsets[i + 1]).join('');
      if (token.element) token.element.textContent = token.text;
    }
    const now = performance.now();
    this.figures.first ??= now;
    this.figures.last = now;
    this.figures.tokens += ids.length;
    this.unspoken = (this.unspoken ?? '') + text;
    if (now - (this.spoken ?? 0) > kSpeakEvery) this.speak(this.unspoken);
  }

  // ---- Showing

  speak(text) {
    $('speech').textContent = text;
    this.spoken = performance.now();
    this.unspoken = '';
  }

  // Either the text with its tokens, or the field in which it is edited.
  show(written) {
    $('written').hidden = !written;
    $('text').hidden = written;
    $('edit').disabled = !written;
    $('undo').disabled = !written || this.undoable.length === 0;
    $('go').textContent = this.running ? 'Stop' : 'Write';
    $('go').classList.toggle('stop', Boolean(this.running));
  }

  redraw() {
    this.drawn = 0;
    $('written').replaceChildren(make('span', {class: 'prompt'}, this.prompt.text));
    if (!$('text').hidden) $('text').value = this.text();
    this.draw();
    $('undo').disabled = this.undoable.length === 0;
  }

  // A fast model makes more tokens than there are frames.
  drawSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const written = $('written');
    const atEnd = written.scrollHeight - written.scrollTop - written.clientHeight < 40;
    const fresh = this.tokens.slice(this.drawn).map((token, i) => {
      const index = this.drawn + i;
      token.element = make('span', {
        class: 'token', role: 'button', tabindex: index === 0 ? 0 : -1, 'data-index': index,
        'aria-label': `${token.text}, ${percent(token.probability)}`,
      }, token.text);
      token.element.style.setProperty('--surprise', surprise(token.probability));
      return token.element;
    });
    written.append(...fresh);
    this.drawn = this.tokens.length;
    if (atEnd) written.scrollTop = written.scrollHeight;
    const {begin, first, last, tokens} = this.figures ?? {};
    const seconds = (last - first) / 1000;
    $('first-token').textContent = first ? duration((first - begin) / 1000) : '–';
    $('speed').textContent = tokens > 1 && seconds > 0 ? ((tokens - 1) / seconds).toFixed(0) : '–';
    $('count').textContent = tokens ?? '–';
  }
}

// The list of what else was likely in the place of a token. The pointer or the focus on a token
// shows it; Enter or a click lets it stay and goes into it.
class Alternatives {
  constructor(writer) {
    this.writer = writer;
    this.box = $('alternatives');
    const written = $('written');
    const index = (event) => event.target.closest?.('.token')?.dataset.index;
    const show = (event) => { if (index(event)) this.show(Number(index(event))); };
    written.addEventListener('pointerover', (event) => { if (!this.stays) show(event); });
    written.addEventListener('pointerout', () => this.hideSoon());
    written.addEventListener('focusin', show);
    written.addEventListener('focusout', () => this.hideSoon());
    written.addEventListener('click', (event) => { if (index(event)) this.enter(Number(index(event))); });
    written.addEventListener('keydown', (event) => this.walk(event));
    written.addEventListener('scroll', () => this.hide());
    this.box.addEventListener('pointerenter', () => clearTimeout(this.timer));
    this.box.addEventListener('pointerleave', () => this.hideSoon());
    this.box.addEventListener('keydown', (event) => this.choose(event));
    document.addEventListener('pointerdown', (event) => {
      if (!this.box.contains(event.target)) this.hide();
    });
    for (const away of ['resize', 'hashchange']) window.addEventListener(away, () => this.hide());
  }

  show(index) {
    clearTimeout(this.timer);
    this.index = index;
    this.stays = false;
    const token = this.writer.tokens[index];
    const rows = token.likeliest.map(({name, probability}) => {
      const chosen = name === (token.name ?? token.text);
      return barRow('button', isText(name) ? visible(name) : name.replace(/^bytes:/, ''), probability, {
        type: 'button', class: chosen ? 'chosen' : null, 'aria-current': chosen && 'true',
        disabled: !isText(name) || chosen,
        title: chosen ? 'stands there' : isText(name) ? 'go on from here' : 'a part of a character, or none',
        click: () => this.branch(name, probability),
      });
    });
    this.box.replaceChildren(make('p', {}, 'Likely here. Choose one to go on from it.'), ...rows);
    this.box.hidden = false;
    this.place(token.element);
  }

  // The list goes: what had the focus in it leaves it to the button that can stop.
  branch(name, probability) {
    this.hide();
    $('go').focus({preventScroll: true});
    this.writer.branch(this.index, name, probability);
  }

  // Below the token, or above it where there is no room, and within the window.
  place(element) {
    const token = element.getClientRects()[0] ?? element.getBoundingClientRect();
    const {width, height} = this.box.getBoundingClientRect();
    const left = Math.min(token.left, document.documentElement.clientWidth - width - 8);
    const below = token.bottom + 4;
    const fits = below + height < window.innerHeight;
    this.box.style.left = `${Math.max(8, left)}px`;
    this.box.style.top = `${fits ? below : Math.max(8, token.top - height - 4)}px`;
  }

  hide() {
    clearTimeout(this.timer);
    this.box.hidden = true;
    this.stays = false;
  }

  // Leaves time for the pointer to get from the token to the list.
  hideSoon() {
    clearTimeout(this.timer);
    if (!this.stays) this.timer = setTimeout(() => this.hide(), 250);
  }

  enter(index) {
    this.show(index);
    this.stays = true;
    this.box.querySelector('button:enabled')?.focus({preventScroll: true});
  }

  // Among tokens: one of them takes part in the order of Tab, arrows reach the others.
  walk(event) {
    const at = Number(event.target.dataset?.index);
    const last = this.writer.tokens.length - 1;
    const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last}[event.key];
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.enter(at);
    } else if (event.key === 'Escape' && !this.box.hidden) {
      event.stopPropagation();
      this.hide();
    } else if (to >= 0 && to <= last) {
      event.preventDefault();
      event.target.tabIndex = -1;
      const {element} = this.writer.tokens[to];
      element.tabIndex = 0;
      element.focus();
    }
  }

  // Within the list.
  choose(event) {
    const buttons = [...this.box.querySelectorAll('button:enabled')];
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step) {
      event.preventDefault();
      const at = buttons.indexOf(document.activeElement) + step;
      buttons[(at + buttons.length) % buttons.length]?.focus();
    } else if (event.key === 'Escape' || event.key === 'Tab') {
      event.preventDefault();
      event.stopPropagation();
      this.writer.tokens[this.index]?.element.focus();
      this.hide();
    }
  }
}

