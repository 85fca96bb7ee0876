// Shows the run of this archive. All of it is data in the page, and everything is set as text:
// nothing here reads markup, and nothing is fetched.
'use strict';

const read = (id) => document.getElementById(id).textContent;
const readLines = (id) => read(id).split('\n').filter(Boolean).map((line) => JSON.parse(line));
const run = JSON.parse(read('run') || '{}');
const events = readLines('events');
const patches = new Map(readLines('patches').map((patch) => [patch.id, patch]));
const isCut = read('cut') === 'true';

// Characters that hide or turn round what stands beside them, and the escapes of terminals, get a visible form.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e0fff}]/gu;
const codeOf = (letter) => letter.codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
const visible = (text) => String(text).replace(/\r\n/g, '\n').replace(HIDDEN, (letter) => `⟨U+${codeOf(letter)}⟩`);

// Makes an element. A text becomes its content, never its markup.
function make(tag, options = {}, children = []) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === 'text') element.textContent = visible(value);
    else if (name === 'tint') element.style.setProperty('--tint', value);
    else if (name === 'onclick' || name === 'oninput') element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter(Boolean));
  return element;
}

const nodes = Object.values(run.nodes || {});
const known = new Map(nodes.map((node) => [node.id, node]));
// Nodes that were deleted are only in the events.
for (const event of events) {
  const first = event.type === 'node.patch' && event.patch.id && !known.has(event.patch.id);
  if (first) known.set(event.patch.id, event.patch);
}
const order = [...known.keys()];
const tintOf = (id) => (order.includes(id) ? `hsl(${(order.indexOf(id) * 67 + 212) % 360} 55% 52%)` : '');
function nameOf(id) {
  const node = known.get(id);
  return node ? node.alias || node.label : 'a deleted node';
}

const clock = (ts) => (ts || '').slice(0, 19).replace('T', ' ');
const number = (value) => Number(value || 0).toLocaleString('en');
const pretty = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));
const shorten = (text, length) => (text.length > length ? `${text.slice(0, length)}…` : text);

function head(who, what, ts) {
  return make('header', {}, [
    make('span', { class: 'who', text: who }),
    what && make('span', { class: 'soft small', text: what }),
    make('time', { datetime: ts || '', text: clock(ts) }),
  ]);
}

function message(event, who, what, text) {
  return make('article', { class: 'item', tint: tintOf(event.nodeId) }, [
    head(who, what, event.ts),
    make('p', { class: 'text', text }),
  ]);
}

const note = (text) => make('p', { class: 'note', text });

// One line of a patch has a colour by its first letters.
function lineClass(line) {
  if (/^(diff |index |--- |\+\+\+ |new file|deleted file|rename |similarity )/.test(line)) return 'file';
  if (line.startsWith('@@')) return 'hunk';
  if (line.startsWith('+')) return 'add';
  return line.startsWith('-') ? 'cut' : '';
}

function showDiff(artifact) {
  const patch = patches.get(artifact.id);
  const files = (artifact.metadata && artifact.metadata.filesChanged) || [];
  if (!patch) return files.length ? note(`changed ${files.join(', ')}`) : null;
  const counts = `+${number(artifact.metadata.added)} −${number(artifact.metadata.removed)}`;
  const lines = patch.text.trimEnd().split('\n').map((line) => make('span', { class: lineClass(line), text: line }));
  return make('details', { open: '' }, [
    make('summary', { text: `Changes  ${counts}  ${shorten(files.join(', '), 160)}` }),
    make('pre', { class: 'diff' }, lines),
    patch.cut && note('The rest is in the file below.'),
    link(artifact),
  ]);
}

function link(artifact) {
  const path = String(artifact.path || '');
  if (!path.startsWith('artifacts/') || path.includes('..')) return null;
  const href = path.split('/').map(encodeURIComponent).join('/');
  return make('a', { class: 'small', href, text: artifact.name });
}

// The files of a turn stand in one row, at the place of the first.
function addFile(turn, file) {
  if (!turn.files) {
    turn.files = make('p', { class: 'files' });
    turn.box.append(turn.files);
  }
  turn.files.append(file);
}

// A tool is one element that its later events complete.
function showTool(event, tools) {
  const state = make('span', { class: 'badge warn', text: 'proposed' });
  const line = shorten(pretty(event.tool.args.command || event.tool.args.message || event.tool.args), 140);
  const body = make('div', {}, [make('pre', { class: 'wrap', text: pretty(event.tool.args) })]);
  tools.set(event.tool.id, { state, body });
  return make('details', {}, [
    make('summary', {}, [
      state, ' ', make('span', { class: 'who', text: event.tool.name }), ' ',
      make('span', { class: 'soft', text: line.replace(/\s+/g, ' ') }),
    ]),
    body,
  ]);
}

function completeTool(event, tools) {
  const tool = tools.get(event.toolId);
  if (!tool) return;
  const ok = event.result && event.result.ok;
  tool.state.textContent = ok ? 'done' : 'failed';
  tool.state.className = `badge ${ok ? 'good' : 'bad'}`;
  const output = (event.result && event.result.output) || (event.error && event.error.message);
  if (output) tool.body.append(make('pre', { class: 'wrap', text: pretty(output) }));
}

function showApproval(event) {
  return note(`Asked for approval: ${event.context || event.tool.name}`);
}

const places = { web: ' in the web UI', 'command-line': ' on the command line', api: ' over the API', daemon: ' by Turnkeep itself' };

function showResolution(event) {
  const { status, reason, by } = event.resolution;
  return note(`Answer: ${status}${places[by] || ''}${reason ? ` (${reason})` : ''}`);
}

const endings = {
  'turn.completed': ['completed', 'good'],
  'turn.failed': ['failed', 'bad'],
  'turn.interrupted': ['interrupted', 'warn'],
};

// What an event adds to its turn, or to the page if it belongs to none.
function show(event, tools) {
  switch (event.type) {
    case 'message.user': {
      const { role, content } = event.message;
      return message(event, role === 'user' ? 'You' : 'Daemon', `to ${nameOf(event.message.nodeId)}`, content);
    }
    case 'handoff.sent': {
      const { fromNodeId, toNodeId, payload } = event.envelope;
      const failed = payload.status && payload.status.ok === false;
      return message(event, nameOf(fromNodeId), `${failed ? 'reports a failure' : 'hands'} to ${nameOf(toNodeId)}`, payload.message);
    }
    case 'message.assistant.final': {
      const what = event.status === 'interrupted' ? 'was interrupted' : '';
      return message(event, nameOf(event.nodeId), what, event.content);
    }
    case 'message.assistant.thinking.final':
      return make('details', {}, [make('summary', { class: 'soft', text: 'Thought' }), make('p', { class: 'text soft', text: event.content })]);
    case 'tool.proposed': return showTool(event, tools);
    case 'tool.completed': return completeTool(event, tools);
    case 'approval.requested': return showApproval(event);
    case 'approval.resolved': return showResolution(event);
    case 'artifact.created':
      return event.artifact.kind === 'diff' ? showDiff(event.artifact) : link(event.artifact);
    case 'telemetry.usage': {
      const { promptTokens, completionTokens } = event.usage;
      const cost = event.costUsd ? `, $${event.costUsd}` : '';
      return note(`${number(promptTokens)} tokens in, ${number(completionTokens)} out${cost}`);
    }
    case 'node.log': return note(`stderr: ${event.text}`);
    case 'run.stalled': return note(`${nameOf(event.nodeId)} goes in circles: ${event.evidence.reason}`);
    case 'run.phase': return note(`Phase ${event.phase}`);
    case 'run.patch': {
      const { status, pausedReason } = event.patch;
      return status ? note(`The run is ${status}${pausedReason ? ` (${pausedReason})` : ''}`) : null;
    }
    case 'edge.created':
      return note(`${nameOf(event.edge.from)} ${event.edge.bidirectional ? '↔' : '→'} ${nameOf(event.edge.to)} (${event.edge.label})`);
    case 'node.patch':
      return event.patch.id && event.patch.label ? note(`${event.patch.label} joined as ${event.patch.roleTemplate}`) : null;
    case 'node.deleted': return note(`${nameOf(event.nodeId)} was deleted`);
    default: return null;
  }
}

// The timeline: one box for each turn at the place of its start, and what belongs to none between.
function timeline() {
  const items = [];
  const turns = new Map();
  const tools = new Map();
  for (const event of events) {
    const of = [event.nodeId, event.message && event.message.nodeId,
      event.envelope && event.envelope.fromNodeId, event.envelope && event.envelope.toNodeId];
    if (event.type === 'turn.status') {
      if (event.status === 'turn.started') {
        const state = make('span', { class: 'badge warn', text: 'open' });
        const top = head(nameOf(event.nodeId), 'turn', event.ts);
        top.insertBefore(state, top.lastChild);
        const box = make('article', { class: 'item turn', tint: tintOf(event.nodeId) }, [top]);
        turns.set(event.turnId, { box, state });
        items.push({ element: box, of });
      }
      const ended = endings[event.status];
      const turn = turns.get(event.turnId);
      if (ended && turn) {
        [turn.state.textContent, turn.state.className] = [ended[0], `badge ${ended[1]}`];
        if (event.detail) turn.box.append(note(event.detail));
      }
      continue;
    }
    const element = show(event, tools);
    if (!element) continue;
    const turn = turns.get(event.turnId);
    if (turn && element.tagName === 'A') addFile(turn, element);
    else if (turn) turn.box.append(element);
    else items.push({ element, of });
  }
  return items;
}

function header() {
  const usage = run.usage || {};
  const good = { completed: 'good', failed: 'bad', paused: 'warn' };
  const fact = (label, value) => value && make('span', {}, [make('span', { class: 'soft', text: `${label} ` }), make('b', { text: value })]);
  return make('section', {}, [
    make('h1', { text: run.title || 'A run' }),
    make('span', { class: `badge ${good[run.status] || ''}`, text: run.status || '' }),
    run.goal && make('p', { class: 'goal', text: run.goal }),
    make('p', { class: 'facts small' }, [
      fact('created', clock(run.createdAt)), fact('phase', run.phase), fact('mode', run.globalMode),
      fact('tokens', number(usage.totalTokens)), fact('directory', run.cwd), fact('id', run.id),
    ]),
  ]);
}

function nodeCard(node, choose) {
  return make('button', { class: 'node', type: 'button', 'aria-pressed': 'false', tint: tintOf(node.id), onclick: (click) => choose(node.id, click.currentTarget) }, [
    make('span', { class: 'who', text: node.alias || node.label }), ' ',
    make('span', { class: 'soft small', text: `${node.roleTemplate} · ${node.providerName || node.provider}` }),
    make('p', { class: 'small soft', text: shorten(node.summary || node.status || '', 140) }),
  ]);
}

function start() {
  const items = timeline();
  const list = make('section', { 'aria-label': 'Timeline' }, items.map((item) => item.element));
  const empty = make('p', { class: 'empty', text: 'Nothing fits.' });
  const wanted = { node: null, text: '' };
  const filter = () => {
    let shown = 0;
    for (const { element, of } of items) {
      const fits = (!wanted.node || of.includes(wanted.node))
        && element.textContent.toLowerCase().includes(wanted.text);
      element.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    empty.hidden = shown > 0;
  };
  const cards = [];
  const choose = (id, card) => {
    wanted.node = wanted.node === id ? null : id;
    cards.forEach((other) => other.setAttribute('aria-pressed', String(other === card && wanted.node === id)));
    filter();
  };
  cards.push(...[...known.values()].map((node) => nodeCard(node, choose)));
  const search = make('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search the timeline', oninput: (input) => {
    wanted.text = input.target.value.toLowerCase();
    filter();
  } });
  filter();
  document.getElementById('page').append(...[
    header(),
    make('h2', { text: 'Nodes' }),
    cards.length ? make('div', { class: 'nodes' }, cards) : note('The run has no nodes.'),
    make('div', { class: 'bar' }, [make('h2', { text: 'Timeline' }), search]),
    isCut && note('This run is long: the page leaves some of it out. events.jsonl has everything.'),
    list, empty,
  ].filter(Boolean));
}

start();
