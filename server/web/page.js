// The dashboard. What others have named reaches the page as text alone (textContent), never as markup.
'use strict';

const SVG = 'http://www.w3.org/2000/svg';
const PERIOD_MS = 1000;
const REMEMBERED = 120; // samples of a spark line
const at = id => document.getElementById(id);

let token = ''; // of this page alone: gone when it goes
let samples = []; // {at, launches, device_s}
let shown = null; // {session, graph, svg} whose picture stands there
let trace = ''; // as it was fetched

// ---- what is asked

class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

async function ask(path) {
  const answer = await fetch(path, { headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: 'no-store' });
  const text = await answer.text();
  if (answer.ok) return text;
  let why = text;
  try { why = JSON.parse(text).error; } catch { /* as it is */ }
  throw new Refused(answer.status, why);
}

// ---- words

const count = n => Number(n).toLocaleString('en-US');
function bytes(n) {
  let value = Number(n), unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return unit === 0 ? `${value} B` : `${value.toPrecision(3)} ${['', 'KiB', 'MiB', 'GiB', 'TiB'][unit]}`;
}
function duration(seconds) {
  const s = Number(seconds);
  if (s === 0) return '0 s';
  if (s < 1e-6) return `${(s * 1e9).toPrecision(3)} ns`;
  if (s < 1e-3) return `${(s * 1e6).toPrecision(3)} µs`;
  if (s < 1) return `${(s * 1e3).toPrecision(3)} ms`;
  if (s < 120) return `${s.toPrecision(3)} s`;
  return s < 7200 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`;
}
const hex = id => BigInt(id).toString(16).padStart(16, '0');

// ---- elements

function element(name, text, css) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (css) made.className = css;
  return made;
}
function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
// Columns are [title, of a row, 'number' or 'text']; what a column makes of a row is a text or a link. What has not changed
// stays the element that it was: it may be under a finger.
function fill(table, columns, rows) {
  const lines = [...table.rows];
  if (!lines.length) {
    const head = table.insertRow();
    for (const [title, , kind] of columns) head.append(element('th', title, kind));
  }
  rows.forEach((row, i) => {
    const line = lines[i + 1] || table.insertRow();
    columns.forEach(([, of, kind], j) => {
      const value = of(row), cell = line.cells[j] || line.appendChild(element('td', undefined, kind));
      const text = value instanceof Element ? value.textContent : value;
      const same = cell.textContent === text && (!(value instanceof Element) || cell.firstChild.href === value.href);
      if (same && cell.firstChild) return;
      cell.replaceChildren(value);
      cell.title = text;
    });
  });
  while (table.rows.length > rows.length + 1) table.deleteRow(-1);
}
function more(id, listed, all) {
  at(id).textContent = Number(all) > listed ? `${count(listed)} of ${count(all)}` : count(all);
}
function spark(svg, values) {
  const most = Math.max(...values, 1e-9), step = 100 / (REMEMBERED - 1), first = REMEMBERED - values.length;
  svg.setAttribute('viewBox', '0 0 100 34');
  svg.setAttribute('preserveAspectRatio', 'none');
  const points = values.map((value, i) => `${((first + i) * step).toFixed(2)} ${(32 - 30 * value / most).toFixed(2)}`);
  svg.replaceChildren(drawn('path', { d: points.length > 1 ? `M${points.join('L')}` : '' }));
}

// ---- everything

function overview(state) {
  const info = state.info;
  const device = info.tenants.reduce((sum, tenant) => sum + tenant.device_s, 0);
  samples.push({ at: info.uptime_s, launches: Number(info.launches), device });
  if (samples.length > 1 && samples.at(-2).at > info.uptime_s) samples = samples.slice(-1); // another worker
  samples = samples.slice(-REMEMBERED - 1);
  const rates = [], work = [];
  for (let i = 1; i < samples.length; ++i) {
    const time = samples[i].at - samples[i - 1].at;
    if (time <= 0) continue;
    rates.push((samples[i].launches - samples[i - 1].launches) / time);
    work.push(Math.max(0, (samples[i].device - samples[i - 1].device) / time));
  }
  at('rate').textContent = rates.length ? count(Math.round(rates.at(-1))) : '–';
  at('busy').textContent = work.length ? `${Math.round(100 * Math.min(1, work.at(-1)))} %` : '–';
  spark(at('rates'), rates);
  spark(at('work'), work);
  const held = Number(info.jobs_held);
  at('queue').textContent = `${count(info.jobs)} job${info.jobs === '1' ? '' : 's'}`;
  at('queued').textContent = (held ? `${count(held)} wait for bytes of earlier ones. ` : '') + (state.running ? `Now: ${state.running}` : 'The team is idle.');
  at('memory').textContent = bytes(info.plane_bytes);
  at('budget').value = Number(info.plane_bytes) / Math.max(1, Number(info.plane_budget_bytes));
  at('budgeted').textContent = `of ${bytes(info.plane_budget_bytes)}, in ${count(info.planes)} planes`;

  more('sessions-more', state.sessions.length, state.all_sessions);
  fill(at('sessions'), [
    ['session', row => hex(row.session)], ['client', row => row.client, 'text'], ['who', row => row.principal, 'text'],
    ['over', row => row.transport + (row.ring ? ', ring' : '') + (row.attached ? '' : ', away')],
    ['age', row => duration(row.age_s), 'number'], ['planes', row => count(row.planes), 'number'],
    ['bytes', row => bytes(row.plane_bytes), 'number'], ['graphs', row => count(row.graphs), 'number'],
    ['jobs', row => count(row.jobs), 'number'],
  ], state.sessions);
  more('graphs-more', state.graphs.length, state.all_graphs);
  fill(at('graphs'), [
    ['graph', row => {
      const link = element('a', row.name || `graph ${row.graph}`);
      link.href = `#${row.session}/${row.graph}`;
      return link;
    }, 'text'],
    ['id', row => row.graph, 'number'], ['session', row => hex(row.session)], ['client', row => row.client, 'text'],
    ['nodes', row => count(row.nodes), 'number'], ['launches', row => count(row.launches), 'number'],
    ['scratch', row => bytes(row.scratch_bytes), 'number'],
  ], state.graphs);
  more('planes-more', state.planes.length, state.all_planes);
  fill(at('planes'), [
    ['plane', row => `${row.plane.id}`], ['label', row => row.label, 'text'], ['session', row => hex(row.session)],
    ['device', row => row.device], ['bytes', row => bytes(row.bytes), 'number'],
    ['', row => [row.granted && 'granted', row.read_only && 'read-only', row.torn && 'half written'].filter(Boolean).join(', ')],
  ], state.planes);
  fill(at('tenants'), [
    ['tenant', row => row.name, 'text'], ['weight', row => String(row.weight), 'number'],
    ['sessions', row => count(row.sessions), 'number'], ['jobs', row => count(row.jobs), 'number'],
    ['ended', row => count(row.jobs_ended), 'number'], ['refused', row => count(row.refused), 'number'],
    ['computed', row => duration(row.device_s), 'number'], ['compiled', row => duration(row.compile_s), 'number'],
    ['longest wait', row => duration(row.longest_queue_wait_s), 'number'],
  ], info.tenants);
}

// ---- a graph

function heat(part) { // 0 to 1: pale yellow to red
  const hue = 52 - 44 * part, light = 92 - 34 * part;
  return `hsl(${hue.toFixed(0)} 92% ${light.toFixed(0)}%)`;
}
function told(shape, total, measured) {
  let text = `${shape.title}\n${shape.what}`;
  if (!measured) return `${text}\nnot measured yet`;
  text += `\n${duration(shape.seconds)} a launch, ${(100 * shape.seconds / Math.max(total, 1e-12)).toFixed(1)} % of all nodes`;
  if (shape.together > 1) text += `\ncompiled into one function with ${shape.together - 1} more: an equal part of its time`;
  return text;
}
// The picture without the titles that browsers show by themselves; those are told by `tip`.
function place(svg) {
  const read = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  const picture = document.importNode(read, true);
  for (const group of picture.querySelectorAll('g')) {
    const title = group.querySelector(':scope > title');
    if (!title) continue;
    group.told = title.textContent;
    group.setAttribute('aria-label', title.textContent);
    title.remove();
  }
  at('picture').replaceChildren(picture);
}
function paint(found) {
  const nodes = [...at('picture').querySelectorAll('g.node')];
  const boxes = found.shapes.filter(shape => !shape.frame);
  const total = found.shapes.reduce((sum, shape) => sum + (shape.parent < 0 ? shape.seconds : 0), 0);
  const most = Math.max(...boxes.map(shape => shape.seconds), 0);
  nodes.forEach((node, i) => {
    const shape = boxes[i];
    node.told = told(shape, total, found.measured);
    node.setAttribute('aria-label', node.told);
    node.shape = found.shapes.indexOf(shape);
    const warm = found.measured && most > 0 && shape.seconds > 0;
    node.classList.toggle('hot', warm);
    node.querySelector('rect').style.fill = warm ? heat(Math.sqrt(shape.seconds / most)) : '';
  });
  at('heat').hidden = !found.svg;
  at('heat-text').textContent = found.measured
    ? `colour: what each node takes, up to ${duration(most)}; all together ${duration(total)} a launch, from ${count(found.measured)} measured launches`
    : 'no launch has been measured yet';
}
function schedule(found) {
  const rows = found.schedule.map((name, stage) => ({
    stage, name, shapes: found.shapes.filter(shape => shape.parent < 0 && shape.stage === stage),
  }));
  fill(at('schedule'), [
    ['stage', row => String(row.stage), 'number'], ['runs as', row => row.name],
    ['nodes', row => row.shapes.map(shape => shape.title).join(', '), 'text'],
    ['a launch', row => found.measured ? duration(row.shapes.reduce((sum, shape) => sum + shape.seconds, 0)) : '–', 'number'],
  ], rows);
}
async function graph(session, id) {
  const key = `${session}/${id}`;
  const found = JSON.parse(await ask(`/api/graph?session=${session}&graph=${id}`));
  if (location.hash !== `#${key}`) return;
  at('graph-name').textContent = found.name || `graph ${id}`;
  at('graph-facts').textContent = [
    `session ${hex(session)}`, `${count(found.launches)} launches`,
    found.threads ? `${found.threads} threads, built in ${duration(found.build_s)}, ${bytes(found.scratch_bytes)} of scratch memory` : 'built by another worker, and not launched since',
  ].join(' · ');
  if (!shown || shown.key !== key || shown.svg !== found.svg) {
    if (found.svg) place(found.svg);
    else at('picture').textContent = 'Too large for a picture here; eaglectl show draws it.';
    shown = { key, svg: found.svg };
    more('edges-more', found.edges.length, at('picture').querySelectorAll('.edge').length);
    fill(at('edges'), [
      ['from', row => found.shapes[row.from].title, 'text'], ['to', row => found.shapes[row.to].title, 'text'],
      ['kind', row => row.kind], ['why', row => row.title.split('\n').slice(1).join('; ')],
    ], found.edges);
  }
  if (found.svg) paint(found);
  schedule(found);
  trace = await ask(`/api/timeline?session=${session}&graph=${id}`);
  if (location.hash === `#${key}`) timeline(JSON.parse(trace).traceEvents);
}

// ---- the timeline: the last launches, and what the team did of them

function spansOf(events) {
  const open = new Map(), spans = [];
  for (const event of events) {
    if (event.ph === 'X') spans.push({ lane: 0, css: 'turn', name: event.name, begin: event.ts, end: event.ts + event.dur });
    if (event.ph === 'b') open.set(`${event.cat} ${event.id} ${event.name}`, event);
    const begun = event.ph === 'e' && open.get(`${event.cat} ${event.id} ${event.name}`);
    if (!begun) continue;
    const css = { queued: 'queued', running: 'running', 'host call': 'host' }[event.name] || (event.cat === 'build' ? 'build' : '');
    const failed = begun.args && begun.args.status && begun.args.status !== 'OK';
    spans.push({ lane: css === 'build' ? 2 : 1, css: failed ? 'failed' : css, name: event.name, begin: begun.ts, end: event.ts, args: begun.args });
  }
  return spans;
}
function timeline(events) {
  const all = spansOf(events), last = Math.max(...all.map(span => span.end));
  const launches = all.filter(span => span.css === 'turn').sort((a, b) => b.end - a.end).slice(0, 60);
  if (!launches.length) {
    at('timeline-text').textContent = 'Nothing has run lately.';
    at('timeline').replaceChildren();
    return;
  }
  const first = Math.min(...launches.map(span => span.begin)), length = Math.max(last - first, 1);
  const spans = all.filter(span => span.css && span.end >= first);
  const picture = drawn('svg', { viewBox: '0 0 1000 98', role: 'img', 'aria-label': 'Timeline' });
  ['team', 'launches', 'builds'].forEach((name, lane) => {
    picture.append(drawn('rect', { class: 'lane', x: 70, y: 2 + 26 * lane, width: 930, height: 22 }), drawn('text', { x: 0, y: 17 + 26 * lane }, name));
  });
  for (const span of spans) {
    const x = 70 + 930 * (Math.max(span.begin, first) - first) / length;
    const width = Math.max(930 * (span.end - Math.max(span.begin, first)) / length, 1);
    const box = drawn('rect', { class: span.css, x, y: 5 + 26 * span.lane, width, height: 16 });
    box.told = `${span.name}: ${duration((span.end - span.begin) * 1e-6)}${span.args && span.args.turns > 1 ? `, ${span.args.turns} turns` : ''}`;
    picture.append(box);
  }
  picture.append(drawn('text', { x: 70, y: 92 }, '0'), drawn('text', { x: 1000, y: 92, 'text-anchor': 'end' }, duration(length * 1e-6)));
  at('timeline-text').textContent = `The last ${launches.length} turns of the team and what lay between, ${duration(length * 1e-6)}.`;
  at('timeline').replaceChildren(picture);
}
at('save').addEventListener('click', () => {
  const link = element('a');
  link.href = URL.createObjectURL(new Blob([trace], { type: 'application/json' }));
  link.download = 'eagle-timeline.json';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});

// ---- what is told under the pointer

function lit(edges) {
  for (const old of document.querySelectorAll('.lit, .near')) old.classList.remove('lit', 'near');
  const ends = new Set(edges.flatMap(edge => [Number(edge.dataset.from), Number(edge.dataset.to)]));
  for (const edge of edges) edge.classList.add('lit');
  for (const node of at('picture').querySelectorAll('g.node')) node.classList.toggle('near', ends.has(node.shape));
}
// Lines of one node share their beginning: all that are there are told.
function edgesAt(x, y) {
  const found = document.elementsFromPoint(x, y).map(one => one.closest('#picture g.edge'));
  return [...new Set(found.filter(Boolean))];
}
document.addEventListener('mousemove', event => {
  let target = event.target;
  while (target && target !== document && !target.told) target = target.parentNode;
  const onEdge = target && target.classList && target.classList.contains('edge');
  const edges = onEdge ? edgesAt(event.clientX, event.clientY) : [];
  const tip = at('tip'), text = edges.length ? edges.map(edge => edge.told).join('\n\n') : target && target.told;
  tip.hidden = !text;
  lit(edges);
  if (!text) return;
  tip.textContent = text;
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
});

// ---- round and round

function show(which) { for (const id of ['login', 'overview', 'graph']) at(id).hidden = id !== which; }
async function turn() {
  const [, session, id] = /^#(\d+)\/(\d+)$/.exec(location.hash) || [];
  try {
    const state = JSON.parse(await ask('/api/state'));
    const info = state.info;
    at('daemon').textContent = `${info.version} on ${info.host.host_name || ''}, ${info.threads} threads, up ${duration(info.uptime_s)}` + (Number(info.worker_restarts) ? `, ${info.worker_restarts} workers died` : '');
    overview(state);
    if (session) await graph(session, id);
    show(session ? 'graph' : 'overview');
    at('state').textContent = info.draining ? 'draining: it takes no new work' : 'serving';
    at('state').className = info.draining ? 'bad' : '';
  } catch (error) {
    at('state').className = 'bad';
    at('state').textContent = error instanceof Refused ? (error.status === 401 || error.status === 403 ? 'not shown' : error.message) : 'the daemon does not answer';
    if (error.status === 401 || error.status === 403) {
      at('why').textContent = error.message;
      show('login');
    }
    if (!(error instanceof Refused) && !(error instanceof TypeError)) throw error;
  }
}
at('login').addEventListener('submit', event => {
  event.preventDefault();
  token = at('token').value.trim();
  at('token').value = '';
  turn();
});
addEventListener('hashchange', () => { shown = null; at('tip').hidden = true; turn(); });
(async () => {
  for (;;) {
    if (!document.hidden && (at('login').hidden || token)) await turn();
    await new Promise(done => setTimeout(done, PERIOD_MS));
  }
})();
