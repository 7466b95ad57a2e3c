// Lab: the clock, pending work, faults and snapshots, each also as code for testkit.
import { h, fill, plain, shown, button, copier, confirmed, errorBox, notify, size } from './dom.js';
import { get, live, post, remove, part, query } from './api.js';
import { changesShown } from './changes.js';
import { faultForm } from './faults.js';
import { duration, faultCode } from './gocode.js';
import { serverTime, standing } from './app.js';

const presets = [
  ['10 % of writes UNAVAILABLE', { endpoint: 'bigtable', method: 'MutateRow', effect: 'fail', code: 'UNAVAILABLE', probability: 0.1 }],
  ['The answer of a write is lost, once', { endpoint: 'bigtable', method: 'MutateRow', effect: 'fail', code: 'UNAVAILABLE', applied: true, times: 1 }],
  ['ReadRows ends after 2 rows, once', { endpoint: 'bigtable', method: 'ReadRows', effect: 'cut', code: 'UNAVAILABLE', rows: 2, times: 1 }],
  ['Every call takes 90 s', { endpoint: 'bigtable', method: '*', effect: 'delay', delay: '90s' }],
  ['A write arrives twice, once', { endpoint: 'bigtable', method: 'MutateRow', effect: 'duplicate', times: 1 }],
  ['A condition fails, once', { endpoint: 'dynamodb', method: 'PutItem', effect: 'fail', code: 'ConditionalCheckFailed', times: 1 }],
  ['Access is denied', { endpoint: 'dynamodb', method: '*', effect: 'fail', code: 'AccessDenied' }],
  ['Every read of DynamoDB takes 2 s', { endpoint: 'dynamodb', method: 'GetItem', effect: 'delay', delay: '2s' }],
  ['A transaction conflicts, once', { endpoint: 'dynamodb', method: 'UpdateItem', effect: 'fail', code: 'TransactionConflict', times: 1 }],
  ['Throttled 10 %', { endpoint: 'dynamodb', method: '*', effect: 'fail', code: 'Throttling', probability: 0.1 }],
  ['A batch leaves entries unprocessed, once', { endpoint: 'dynamodb', method: 'BatchWriteItem', effect: 'unprocessed', times: 1 }],
];

export async function show(main, { info, again, signal }) {
  const said = h('div', { 'aria-live': 'polite' });
  const done = (text) => { fill(said, h('div', { class: 'note' }, text)); };
  const guarded = (label, act, props) => button(label, act, props);

  // The clock.
  const now = h('span', { class: 'mono' });
  let frozen = info.clock.frozen;
  const timeText = () => serverTime().toISOString().slice(0, 19).replace('T', ' ') + ' UTC';
  const tick = () => { now.textContent = `${timeText()}, ${frozen ? 'frozen' : 'running'}`; };
  async function clock(change) {
    await post('clock', change);
    ({ clock: { frozen } } = await standing());
    tick();
    done(`The time is ${timeText()}. Work that was due on the way is done.`);
  }
  tick();
  const by = h('input', { class: 'mono', size: 8, value: '25h', 'aria-label': 'Advance by' });
  const to = h('input', { class: 'mono', size: 22, placeholder: '2030-01-01T00:00:00Z', 'aria-label': 'Set forward to' });
  const clockCard = h('section', { class: 'card' }, h('h2', {}, 'Clock'), h('p', {}, now),
    h('div', { class: 'bar' }, ['1m', '1h', '1d'].map((d) => guarded('+' + d, () => clock({ advance: d }))), by, guarded('Advance', () => clock({ advance: by.value }))),
    h('div', { class: 'bar' }, to, guarded('Set forward', () => clock({ set: to.value })), guarded('Freeze', () => clock({ freeze: true })), guarded('Run', () => clock({ run: true }))),
    h('p', { class: 'soft' }, 'Time moves forward only. Expired items, backups and garbage collections that are due on the way are processed at their own times.'),
    h('div', { class: 'bar last' }, copier('Copy as testkit code', () => `env.Advance(${duration(by.value)})`)));

  const dueCard = h('section', { class: 'card' }, h('h2', {}, 'Garbage and time to live'),
    h('div', { class: 'bar' },
      guarded('Collect garbage now', async () => { const { cells } = await post('gc'); done(`Garbage collection deleted ${cells} cells.`); }),
      guarded('Delete expired items now', async () => { const { items } = await post('ttl'); done(`${items} expired items are deleted.`); })),
    h('p', { class: 'soft' }, 'Until then, reads still return cells that a rule would delete, as in the service; the page of rows strikes them through.'),
    h('div', { class: 'bar last' }, copier('Copy as testkit code', 'env.RunGC()')));

  // Snapshots.
  const name = h('input', { size: 16, value: 'base', 'aria-label': 'Name of the snapshot' });
  const kept = h('div');
  const differences = h('div', { 'aria-live': 'polite' });
  async function compare(from, to) {
    fill(differences, changesShown(await get(`snapshots/${part(from)}/changes` + query({ to })), info));
    differences.scrollIntoView({ block: 'nearest' });
  }
  const sides = h('div', { class: 'bar' });
  let keptText;
  async function snapshots() {
    const list = (await get('snapshots')).snapshots;
    if (signal.aborted || keptText === (keptText = JSON.stringify(list))) return;
    const side = (label, first) => h('select', { 'aria-label': label }, first && h('option', { value: '' }, first), list.map((s) => h('option', { value: s.name }, plain(s.name))));
    const from = side('From'), to = side('To', 'now');
    fill(sides, list.length > 0 && [h('label', {}, 'from', from), h('label', {}, 'to', to), guarded('Compare', () => compare(from.value, to.value))]);
    fill(kept, list.length ? h('table', {}, h('tbody', {}, list.map((s) => h('tr', {}, h('td', {}, shown(s.name, 128)), h('td', { class: 'soft' }, s.taken.slice(0, 19).replace('T', ' ')), h('td', { class: 'num' }, size(s.bytes)),
      h('td', {}, guarded('Changes', () => compare(s.name, '')), ' ', guarded('Restore', async () => { await post(`snapshots/${part(s.name)}/restore`); done(`The state is that of “${plain(s.name)}”.`); }), ' ',
        guarded('Remove', async () => { await remove('snapshots/' + part(s.name)); await snapshots(); }))))))
      : h('p', { class: 'soft' }, 'None yet. A snapshot keeps the tables of both endpoints and is restored in milliseconds: take one before each experiment.'));
  }
  const snapshotCard = h('section', { class: 'card' }, h('h2', {}, 'Snapshots'), kept, sides,
    h('div', { class: 'bar' }, name, guarded('Take', async () => { await post('snapshots', { name: name.value }); await snapshots(); done(`“${plain(name.value)}” is taken.`); })),
    h('div', { class: 'bar last' }, copier('Copy as testkit code', 'snapshot := env.Snapshot()\n// …\nenv.Restore(snapshot)'), guarded('Show all data as text', async () => {
      const { text } = await get('dump');
      fill(said, h('pre', {}, text ? shown(text, 200000) : 'The server has no data.'));
    })));

  // Faults.
  const armed = h('div');
  let armedText;
  async function faults() {
    const list = (await get('faults')).faults;
    if (signal.aborted || armedText === (armedText = JSON.stringify(list))) return;
    fill(armed, list.length ? [h('div', { class: 'scroll' }, h('table', { class: 'faults' }, h('thead', {}, h('tr', {}, ['endpoint', 'method', 'effect', 'which', 'hits', ''].map((t) => h('th', { scope: 'col' }, t)))), h('tbody', {}, list.map((f) => h('tr', { 'data-fault': `${f.endpoint}/${f.id}` },
      h('td', {}, f.endpoint), h('td', { class: 'mono' }, plain(f.method)), h('td', {}, plain([f.effect, f.code, f.reasons?.join(' '), f.delay, f.rows && `${f.rows} rows`, f.applied && 'applied'].filter(Boolean).join(' '))),
      h('td', { class: 'soft wraps' }, plain([f.table && 'table ' + f.table, f.row && 'row ' + (f.row.text ?? f.row.base64), f.item && JSON.stringify(f.item), f.skip && `skip ${f.skip}`, f.times && (f.times === 1 ? 'once' : `${f.times} times`), f.probability !== undefined && `${f.probability * 100} %`].filter(Boolean).join(', '))),
      h('td', { class: 'num' }, String(f.hits)), h('td', { class: 'acts' }, copier('Code', () => faultCode(f)), ' ', guarded('End', async () => { await remove(`faults/${f.endpoint}/${f.id}`); await faults(); }))))))),
    h('div', { class: 'bar' }, guarded('End all', async () => { await remove('faults'); await faults(); }), guarded('Count again', faults), copier('Copy all as testkit code', list.map(faultCode).join('\n')))]
      : h('p', { class: 'soft' }, 'None is armed. A fault makes calls of clients fail, hang, break off or arrive twice, which shows how your program reacts. Choose one below, change it, and arm it.'));
  }
  const form = faultForm(await get('faults/errors'), presets[0][1]);
  const preset = h('select', { 'aria-label': 'Presets', onchange: () => { form.show(presets[preset.selectedIndex][1]); } }, presets.map(([label]) => h('option', {}, label)));
  const wrong = h('div');
  const faultCard = h('section', { class: 'card whole' }, h('h2', {}, 'Faults'), armed, h('div', { class: 'bar' }, preset), form.el,
    h('div', { class: 'bar' }, guarded('Arm', async () => {
      fill(wrong);
      try { await post('faults', form.fault()); } catch (err) { fill(wrong, errorBox(err)); return; }
      await faults();
      done('The fault is armed.');
    }, { class: 'primary' }), copier('Copy as testkit code', () => faultCode(form.fault()))), wrong);

  // Other clients may change the same state, also during the first reads.
  live.addEventListener('tick', tick, { signal });
  live.addEventListener('lab', ({ detail }) => {
    ({ clock: { frozen } } = detail);
    tick();
    Promise.all([snapshots(), faults()]).catch(notify);
  }, { signal });
  await Promise.all([snapshots(), faults()]);
  main.append(h('h1', {}, 'Lab'), said, h('div', { class: 'cards pairs' }, clockCard, dueCard, snapshotCard, h('section', { class: 'card risk' }, h('h2', {}, 'Danger zone'),
    h('div', { class: 'bar' }, guarded('Reset…', async () => {
      if (!await confirmed('Remove all tables of both endpoints, and all faults?', 'Remove everything')) return;
      await post('reset');
      notify('Everything was removed.');
      again();
    }, { class: 'danger' })), h('p', { class: 'soft' }, 'Removes all tables of both endpoints, and the faults. Snapshots and the clock stay.'), h('div', { class: 'bar last' }, copier('Copy as testkit code', 'env.Reset()'))), faultCard), differences);
}
