// What encoders do: a form for each task, and what comes of it.

const heads = (...names) => (model) => names.includes(model.head);
// Offsets of the server count characters; those of JavaScript count halves of some.
const slice = (text, begin, end) => [...text].slice(begin, end).join('');
const lines = (text) => text.split('\n').map((line) => line.trim()).filter(Boolean);

const kTasks = [
  {
    id: 'classify', name: 'Classify', fits: heads('sequence_classification'),
    about: 'Which of its labels the model gives to a text, or to a pair of texts.',
    fields: [
      {name: 'text', label: 'Text', rows: 3, value: 'My dogs love these treats, and so does the cat.'},
      {name: 'second', label: 'Second text, for models of pairs (optional)', rows: 1, optional: true},
    ],
    async answer(ask, {text, second}) {
      const scores = await ask('predict', {inputs: second ? [text, second] : text});
      return scoreRows(scores.map(({label, score}) => [label, score]));
    },
  },
  {
    id: 'choose', name: 'Choose', fits: heads('multiple_choice'),
    about: 'Which of several endings goes best with a beginning.',
    fields: [
      {name: 'text', label: 'Beginning', rows: 2, value: 'The old man went down to the harbour.'},
      {name: 'choices', label: 'Endings, one a line', rows: 4,
       value: 'He looked at the boats.\nHe was made of glass.\nThe number is even.'},
    ],
    async answer(ask, {text, choices}) {
      const endings = lines(choices);
      const [scores] = await ask('predict', {inputs: endings.map((ending) => [text, ending])});
      return scoreRows(scores.map(({label, score}) => [endings[Number(label)], score]));
    },
  },
  {
    id: 'fill', name: 'Fill masks', fits: heads('masked_lm'),
    about: 'The likeliest tokens in the place of each [MASK]. Choose another one to see it in the text.',
    fields: [{name: 'text', label: 'Text', rows: 3, insert: '[MASK]',
              value: 'The old [MASK] looked at the [MASK].'}],
    async answer(ask, {text}) {
      const answer = await ask('fill_mask', {inputs: text, top_k: 5});
      return filledMasks(text, Array.isArray(answer[0]) ? answer : [answer]);
    },
  },
  {
    id: 'tag', name: 'Tag', fits: heads('token_classification'),
    about: 'Labelled stretches of a text.',
    fields: [{name: 'text', label: 'Text', rows: 4,
              value: 'Captain Nemo sailed from Nantes to Iceland with Mary and the old man.'}],
    async answer(ask, {text}) {
      return taggedText(text, await ask('token_classification', {
        inputs: text, aggregation_strategy: 'first',  // words stay whole
      }));
    },
  },
  {
    id: 'ask', name: 'Ask', fits: heads('question_answering'),
    about: 'The part of a text that answers a question about it.',
    fields: [
      {name: 'question', label: 'Question', rows: 1, value: 'Where did the old man live?'},
      {name: 'context', label: 'Text', rows: 5,
       value: 'The old man lived in a small house by the sea. Every morning he went out in his boat.'},
    ],
    async answer(ask, {question, context}) {
      const answer = await ask('question_answering', {inputs: {question, context}, top_k: 3});
      return foundAnswers(context, Array.isArray(answer) ? answer : [answer]);
    },
  },
  {
    id: 'embed', name: 'Embed', fits: (model) => !isDecoder(model),
    about: 'How similar texts are: the cosines of their embeddings.',
    fields: [{name: 'texts', label: 'Texts, one a line', rows: 4,
              value: 'My dogs love these treats.\nThe cat eats nothing else.\nIt arrived broken.'}],
    async answer(ask, {texts}) {
      const inputs = lines(texts);
      return similarities(inputs, await ask('embed', {inputs}));
    },
  },
];

// The section of a task.
function taskPanel(task) {
  const choice = modelChoice(task.fits);
  const areas = Object.fromEntries(task.fields.map((field) => [field.name, make('textarea', {
    name: field.name, rows: field.rows, required: !field.optional, spellcheck: 'false',
  }, field.value ?? '')]));
  const result = make('div', {class: 'result', 'aria-live': 'polite'});
  const error = make('div', {class: 'error', role: 'alert'});
  let running = null;
  const run = async () => {
    running?.abort();
    const mine = running = new AbortController();
    const values = Object.fromEntries(Object.entries(areas).map(([name, area]) => [name, area.value]));
    const ask = (path, body) => post(path, {model: choice.select.value, ...body}, mine.signal);
    showError(error);
    result.classList.add('stale');
    try {
      result.replaceChildren(...await task.answer(ask, values));
    } catch (failed) {
      if (mine === running) showError(error, failed, run);
    }
    if (mine === running) result.classList.remove('stale');
  };
  const form = make('form', {submit: (event) => { event.preventDefault(); run(); }},
    choice.label,
    task.fields.map((field) => make('label', {}, field.label, areas[field.name])),
    make('div', {class: 'actions'},
      make('button', {class: 'primary'}, task.name),
      task.fields.filter((field) => field.insert).map((field) => make('button', {
        type: 'button', click: () => insert(areas[field.name], field.insert),
      }, `Insert ${field.insert}`))));
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  return make('section', {id: task.id, class: 'task', hidden: true},
    make('h2', {}, task.name), make('p', {class: 'about'}, task.about),
    make('div', {class: 'columns'}, form, make('div', {}, error, result)));
}

function insert(area, text) {
  area.setRangeText(text, area.selectionStart, area.selectionEnd, 'end');
  area.focus();
}

// ---- Answers, as elements

const scoreRows = (scores) => [make('ul', {class: 'rows'},
  scores.map(([name, score]) => barRow('li', name, score)))];

// The text with each mask filled, and the candidates for each, which are buttons that put
// themselves there.
function filledMasks(text, masks) {
  const parts = text.split('[MASK]');
  const filled = masks.map((candidates) => make('mark', {}, candidates[0].token_str));
  const sentence = make('p', {class: 'sentence'}, parts[0],
    ...masks.flatMap((_, i) => [filled[i], parts[i + 1] ?? '']));
  const lists = masks.map((candidates, i) => {
    const rows = candidates.map(({token_str: name, score}, at) => barRow('button', name, score, {
      type: 'button', 'aria-pressed': String(at === 0),
      click: () => {
        filled[i].textContent = name;
        rows.forEach((row, other) => row.setAttribute('aria-pressed', String(other === at)));
      },
    }));
    return make('div', {class: 'rows', role: 'group', 'aria-label': `Mask ${i + 1}`},
                make('h3', {}, masks.length > 1 ? `Mask ${i + 1}` : 'Candidates'), rows);
  });
  return [sentence, ...lists];
}

// A label has the same colour wherever it stands.
function taggedText(text, entities) {
  const labels = [...new Set(entities.map((entity) => entity.entity_group))].sort();
  const sentence = make('p', {class: 'sentence tagged'});
  let at = 0;
  for (const {entity_group: label, score, start, end} of entities) {
    sentence.append(slice(text, at, start), make('mark', {
      class: `label${labels.indexOf(label) % 6}`, title: `${label}: ${percent(score)}`,
    }, slice(text, start, end), make('small', {}, label)));
    at = end;
  }
  sentence.append(slice(text, at));
  if (entities.length === 0) return [sentence, make('p', {class: 'about'}, 'Nothing is labelled.')];
  return [sentence, make('ul', {class: 'rows'}, entities.map(({entity_group: label, score, start, end}) =>
    barRow('li', `${label}: ${slice(text, start, end)}`, score)))];
}

// The context with the best answer marked; the others are buttons that mark theirs.
function foundAnswers(context, answers) {
  const sentence = make('p', {class: 'sentence'});
  const mark = ({start, end}) => sentence.replaceChildren(
    slice(context, 0, start), make('mark', {}, slice(context, start, end)), slice(context, end));
  const rows = answers.map((answer, at) => barRow('button', answer.answer || 'no answer', answer.score, {
    type: 'button', 'aria-pressed': String(at === 0),
    click: () => {
      mark(answer);
      rows.forEach((row, other) => row.setAttribute('aria-pressed', String(other === at)));
    },
  }));
  mark(answers[0]);
  return [sentence, make('div', {class: 'rows', role: 'group', 'aria-label': 'Answers'}, rows)];
}

// Embeddings have length 1: their products are cosines.
function similarities(texts, embeddings) {
  const cosine = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const cells = embeddings.map((a) => embeddings.map((b) => cosine(a, b)));
  const row = (values, i) => make('tr', {}, make('th', {scope: 'row'}, `${i + 1}`),
    values.map((value) => {
      const cell = make('td', {}, value.toFixed(2));
      cell.style.setProperty('--p', Math.max(0, value).toFixed(3));
      return cell;
    }));
  return [
    make('ol', {class: 'texts'}, texts.map((text) => make('li', {}, text))),
    make('table', {class: 'heat'}, make('caption', {}, 'Cosines'),
      make('tr', {}, make('td', {}), texts.map((_, i) => make('th', {scope: 'col'}, `${i + 1}`))),
      cells.map(row)),
    make('p', {class: 'about'}, `Embeddings have ${embeddings[0].length} numbers each.`),
  ];
}

