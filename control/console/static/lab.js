// Lab: the clock, pending work, faults and snapshots, each also as code for testkit.
import { h, fill, plain, shown, button, copier, confirmed, counted, errorBox, notify, size } from './dom.js';
import { get, live, post, remove, part, query } from './api.js';
import { changesShown } from './changes.js';
import { faultForm } from './faults.js';
import { duration, faultCode } from './gocode.js';
import { serverTime, standing } from './app.js';

const presets = [
  ['10% of writes are UNAVAILABLE', { endpoint: 'bigtable', method: 'MutateRow', effect: 'fail', code: 'UNAVAILABLE', probability: 0.1 }],
  ['The response to a write is lost, once', { endpoint: 'bigtable', method: 'MutateRow', effect: 'fail', code: 'UNAVAILABLE', applied: true, times: 1 }],
  ['ReadRows fails after 2 rows, once', { endpoint: 'bigtable', method: 'ReadRows', effect: 'cut', code: 'UNAVAILABLE', rows: 2, times: 1 }],
  ['Every call takes 90 s', { endpoint: 'bigtable', method: '*', effect: 'delay', delay: '90s' }],
  ['A write is applied twice, once', { endpoint: 'bigtable', method: 'MutateRow', effect: 'duplicate', times: 1 }],
  ['A condition fails, once', { endpoint: 'dynamodb', method: 'PutItem', effect: 'fail', code: 'ConditionalCheckFailed', times: 1 }],
  ['Access is denied', { endpoint: 'dynamodb', method: '*', effect: 'fail', code: 'AccessDenied' }],
  ['Every GetItem takes 2 s', { endpoint: 'dynamodb', method: 'GetItem', effect: 'delay', delay: '2s' }],
  ['A transaction conflicts, once', { endpoint: 'dynamodb', method: 'UpdateItem', effect: 'fail', code: 'TransactionConflict', times: 1 }],
  ['10% of requests are throttled', { endpoint: 'dynamodb', method: '*', effect: 'fail', code: 'Throttling', probability: 0.1 }],
  ['A batch leaves entries unprocessed, once', { endpoint: 'dynamodb', method: 'BatchWriteItem', effect: 'unprocessed', times: 1 }],
];

// titled returns the head of a card, with a link to its document.
const titled = (title, href) => h('h2', {}, title, h('a', { class: 'guide', href, 'aria-label': `Docs: ${title}` }, 'Docs'));

export async function show(main, { info, again, signal }) {
  const said = h('div', { 'aria-live': 'polite' });
  const done = (text) => { fill(said, h('div', { class: 'note' }, text)); };
  const deleted = (items) => `${counted(items, 'expired item')} deleted`;
  const guarded = (label, act, props) => button(label, act, props);

  // The clock.
  const now = h('span', { class: 'mono' });
  let frozen = info.clock.frozen;
  const timeText = () => serverTime().toISOString().slice(0, 19).replace('T', ' ') + ' UTC';
  const tick = () => { now.textContent = `${timeText()}, ${frozen ? 'frozen' : 'running'}`; };
  async function clock(change) {
    const { expired = 0 } = await post('clock', change);
    ({ clock: { frozen } } = await standing());
    tick();
    done(`The time is ${timeText()}.${change.advance || change.set ? ` Work due until then was done: ${deleted(expired)}.` : ''}`);
  }
  tick();
  const by = h('input', { class: 'mono', size: 8, value: '25h', 'aria-label': 'Advance by' });
  const to = h('input', { class: 'mono', size: 22, placeholder: '2030-01-01T00:00:00Z', 'aria-label': 'New time' });
  const clockCard = h('section', { class: 'card' }, titled('Clock', '/docs/control#clock'), h('p', {}, now),
    h('div', { class: 'bar' }, ['1m', '1h', '1d'].map((d) => guarded('+' + d, () => clock({ advance: d }))), by, guarded('Advance', () => clock({ advance: by.value }))),
    h('div', { class: 'bar' }, to, guarded('Set time', () => clock({ set: to.value })), guarded('Freeze', () => clock({ freeze: true })), guarded('Resume', () => clock({ run: true }))),
    h('p', { class: 'soft' }, 'Time only moves forward. Expirations, backups and garbage collections that fall due run at their own times.'),
    h('div', { class: 'bar last' }, copier('Copy as testkit code', () => `env.Advance(${duration(by.value)})`)));

  const dueCard = h('section', { class: 'card' }, titled('Garbage collection and time to live', '/docs/tasks/ttl'),
    h('div', { class: 'bar' },
      guarded('Collect garbage now', async () => { const { cells } = await post('gc'); done(`Garbage collection deleted ${counted(cells, 'cell')}.`); }),
      guarded('Delete expired items now', async () => { const { items } = await post('ttl'); done(`${deleted(items)}.${items ? '' : ' A move of the clock deletes the items that expire until then.'}`); })),
    h('p', { class: 'soft' }, 'As in the service, reads return expired cells until they are deleted. The Rows page strikes them through.'),
    h('div', { class: 'bar last' }, copier('Copy as testkit code', 'env.RunGC()')));

  // Snapshots.
  const name = h('input', { size: 16, value: 'base', 'aria-label': 'Name of the snapshot' });
  const kept = h('div');
  const differences = h('div', { class: 'whole', 'aria-live': 'polite' });
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
    fill(sides, list.length > 0 && [h('label', {}, 'From', from), h('label', {}, 'To', to), guarded('Compare', () => compare(from.value, to.value))]);
    fill(kept, list.length ? h('table', {}, h('tbody', {}, list.map((s) => h('tr', {}, h('td', {}, shown(s.name, 128)), h('td', { class: 'soft' }, s.taken.slice(0, 19).replace('T', ' ')), h('td', { class: 'num' }, size(s.bytes)),
      h('td', {}, guarded('Changes', () => compare(s.name, '')), ' ', guarded('Restore…', async () => {
        if (!await confirmed(`Replace all tables with the snapshot “${plain(s.name)}”?`, 'Replace all tables')) return;
        await post(`snapshots/${part(s.name)}/restore`);
        done(`Restored “${plain(s.name)}”.`);
      }), ' ', guarded('Delete…', async () => {
        if (!await confirmed(`Delete the snapshot “${plain(s.name)}”?`, 'Delete the snapshot')) return;
        await remove('snapshots/' + part(s.name));
        await snapshots();
      }, { class: 'danger' }))))))
      : h('p', { class: 'soft' }, 'No snapshots yet. Take one before an experiment: it keeps all tables, and restoring it takes milliseconds.'));
  }
  const snapshotCard = h('section', { class: 'card whole' }, titled('Snapshots', '/docs/control#snapshots'), kept, sides,
    h('div', { class: 'bar' }, name, guarded('Take snapshot', async () => { await post('snapshots', { name: name.value }); await snapshots(); done(`Took “${plain(name.value)}”.`); })),
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
    fill(armed, list.length ? [h('div', { class: 'scroll' }, h('table', { class: 'faults' }, h('thead', {}, h('tr', {}, ['Endpoint', 'Method', 'Effect', 'Conditions', 'Hits', ''].map((t) => h('th', { scope: 'col' }, t)))), h('tbody', {}, list.map((f) => h('tr', { 'data-fault': `${f.endpoint}/${f.id}` },
      h('td', {}, f.endpoint), h('td', { class: 'mono' }, plain(f.method)), h('td', {}, plain([f.effect, f.code, f.reasons?.join(' '), f.delay, f.rows && `${f.rows} rows`, f.applied && 'applied'].filter(Boolean).join(' '))),
      h('td', { class: 'soft wraps' }, plain([f.table && 'table ' + f.table, f.row && 'row ' + (f.row.text ?? f.row.base64), f.item && JSON.stringify(f.item), f.skip && `skip ${f.skip}`, f.times && (f.times === 1 ? 'once' : `${f.times} times`), f.probability !== undefined && `${f.probability * 100}%`].filter(Boolean).join(', '))),
      h('td', { class: 'num' }, String(f.hits)), h('td', { class: 'acts' }, copier('Code', () => faultCode(f)), ' ', guarded('Remove', async () => { await remove(`faults/${f.endpoint}/${f.id}`); await faults(); }))))))),
    h('div', { class: 'bar' }, guarded('Remove all', async () => { await remove('faults'); await faults(); }), guarded('Refresh hits', faults), copier('Copy all as testkit code', list.map(faultCode).join('\n')))]
      : h('p', { class: 'soft' }, 'No faults are armed. A fault makes client calls fail, hang, stop midway or arrive twice, so that you can test how your program reacts.'));
  }
  const form = faultForm(await get('faults/errors'), presets[0][1]);
  const preset = h('select', { 'aria-label': 'Preset', onchange: () => { form.show(presets[preset.selectedIndex][1]); } }, presets.map(([label]) => h('option', {}, label)));
  const wrong = h('div');
  const faultCard = h('section', { class: 'card whole' }, titled('Faults', '/docs/control#faults'), armed, h('div', { class: 'bar' }, h('label', {}, 'Preset', preset)), form.el,
    h('div', { class: 'bar' }, guarded('Arm fault', async () => {
      fill(wrong);
      try { await post('faults', form.fault()); } catch (err) { fill(wrong, errorBox(err)); return; }
      await faults();
      done('The fault is armed.');
    }, { class: 'primary' }), copier('Copy as testkit code', () => faultCode(form.fault()))), wrong,
    h('p', { class: 'soft' }, 'Faults do not affect changes on pages of the console, such as Save in the dialog of an item. ', h('a', { href: '/query' }, 'Try them in Query')));

  // Other clients may change the same state, also during the first reads.
  live.addEventListener('tick', tick, { signal });
  live.addEventListener('lab', ({ detail }) => {
    ({ clock: { frozen } } = detail);
    tick();
    Promise.all([snapshots(), faults()]).catch(notify);
  }, { signal });
  await Promise.all([snapshots(), faults()]);
  main.append(h('h1', {}, 'Lab'), said, h('div', { class: 'cards pairs' }, clockCard, dueCard, snapshotCard, differences, faultCard, h('section', { class: 'card whole risk' }, h('h2', {}, 'Danger zone'),
    h('div', { class: 'bar' }, guarded('Reset…', async () => {
      if (!await confirmed('Delete all tables of both endpoints, and all faults?', 'Delete everything')) return;
      await post('reset');
      notify('All tables were deleted.');
      again();
    }, { class: 'danger' })), h('p', { class: 'soft' }, 'Deletes all tables of both endpoints and all faults. Keeps snapshots and the clock.'), h('div', { class: 'bar last' }, copier('Copy as testkit code', 'env.Reset()')))));
}
