// The page as a whole: which sections there are, the key, the theme, the models.

const kModelsEvery = 5000;  // milliseconds

function showSection() {
  const links = [...$('sections').children].filter((link) => !link.hidden);
  const chosen = links.find((link) => link.hash === location.hash) ?? links[0];
  for (const link of $('sections').children) {
    const here = link === chosen;
    if (here) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
    $(link.hash.slice(1)).hidden = !here;
  }
  window.scrollTo(0, 0);
  if (chosen.hash === '#live') live.show();
}

// Only what a model can do has a section.
function showTasks() {
  for (const {id, fits} of [{id: 'write', fits: isDecoder}, ...kTasks]) {
    $('sections').querySelector(`[href="#${id}"]`).hidden = !models.some(fits);
  }
  $('sections').querySelector('[href="#none"]').hidden = models.length > 0;
  showSection();
}

// What did not change is not said again by screen readers.
function showState(text, kind, about) {
  if ($('state').textContent !== text) $('state').textContent = text;
  $('state').className = kind;
  $('none-text').textContent = about;
}

async function loadModels() {
  try {
    const {data} = await (await call('v1/models')).json();
    const changed = JSON.stringify(data) !== JSON.stringify(models);
    models = data;
    showState(models.length === 1 ? '1 model' : `${models.length} models`, 'good',
              'The server has no model now. As soon as one is loaded, what it can do appears here.');
    if (changed) {
      document.dispatchEvent(new Event('models'));
      showTasks();
    }
  } catch (error) {
    showState(error.status === 401 ? 'needs a key' : 'not available', 'bad', error.message);
  }
}

function prepareKey() {
  key.load();
  $('key-button').hidden = !key.value;
  document.addEventListener('keywanted', () => {
    $('key-button').hidden = false;
    $('key-form').hidden = false;
    $('key-about').textContent = key.value ? 'The server does not accept this key.'
                                           : 'This server asks for an API key.';
  });
  $('key-button').addEventListener('click', () => {
    $('key-form').hidden = !$('key-form').hidden;
    if (!$('key-form').hidden) $('key').focus();
  });
  $('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    key.keep($('key').value.trim());
    $('key').value = '';
    $('key-form').hidden = true;
    $('key-button').hidden = !key.value;
    loadModels();
  });
}

// As the system has it, light, or dark.
function prepareTheme() {
  const themes = ['auto', 'light', 'dark'];
  let theme = 'auto';
  try { theme = localStorage.getItem('theme') ?? theme; } catch { /* forbidden */ }
  const apply = () => {
    document.documentElement.dataset.theme = theme;
    $('theme').textContent = `Theme: ${theme}`;
  };
  $('theme').addEventListener('click', () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem('theme', theme); } catch { /* forbidden */ }
    apply();
  });
  apply();
}

prepareTheme();
prepareKey();
$('tasks').replaceWith(...kTasks.map(taskPanel));
$('sections').append(...[{id: 'write', name: 'Write'}, ...kTasks, {id: 'none', name: 'Models'}, {id: 'live', name: 'Live'}]
  .map(({id, name}) => make('a', {href: `#${id}`, hidden: true}, name)));
$('sections').lastChild.hidden = false;
$('sections').querySelector('[href="#none"]').hidden = false;
new Writer();
const live = new Live();
window.addEventListener('hashchange', showSection);
$('reload').addEventListener('click', loadModels);
setInterval(() => { if (!document.hidden && !key.refused) loadModels(); }, kModelsEvery);
showSection();
loadModels();
