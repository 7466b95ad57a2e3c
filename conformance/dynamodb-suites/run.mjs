#!/usr/bin/env node
// Runs public DynamoDB test suites, unchanged, against `tabletop serve`.
//
//     run.mjs PATH-TO-TABLETOP [--nubo DIR] [--onetable DIR]
//
// DIR is a checkout of the suite; none of its files is changed. Without any
// DIR both suites are fetched into .suites/ of the repository, at the commits
// below; a suite whose address does not answer is skipped. The dependencies
// of a suite's package.json are installed in its folder if node_modules is
// missing.
//
// Each suite runs once in each wording of --messages: in the first region of
// regions.tsv of those that word all operations alike. Each run has a server of
// its own, in memory. Prints counts by group, then every test whose result
// differs from expected.json: exits 0 when there are no differences. A listed
// test that passes is a difference too. The tests under "newer" there assert
// a text of the older layer; they fail where the operation is in the newer one.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const here = path.dirname(fileURLToPath(import.meta.url))
const fetched = path.join(here, '../../.suites')
const expected = JSON.parse(readFileSync(path.join(here, 'expected.json'), 'utf8'))

// wordings are the different rows of regions.tsv: the first region of each, its number of
// regions, and whether an operation is in the newer layer.
const wordings = (() => {
  const table = readFileSync(path.join(here, '../../facade/internal/request/regions.tsv'), 'utf8')
  const [[, ...columns], ...rows] = table.trimEnd().split('\n').filter((line) => !line.startsWith('#')).map((line) => line.split('\t'))
  const found = new Map()
  for (const [region, ...layers] of rows) {
    const key = layers.join(' ').replaceAll('?', '')
    if (found.has(key)) found.get(key).regions++
    else found.set(key, { region, regions: 1, newer: (operation) => layers[columns.findIndex((c) => c.split(' ').includes(operation))].startsWith('newer') })
  }
  return [...found.values()]
})()

// The source and the command of each suite: the environments of its runs, by
// name; the command that writes a report, its variable for the server's address, and
// the group of a test file.
const suites = {
  // Captured in May 2026, before the newer wording of validation errors: it asserts the older texts.
  nubo: {
    from: 'https://github.com/nubo-db/dynamodb-conformance',
    commit: '0ba4393668860db921afa5728feffe68b55e3e93',
    runs: { sdk: {} },
    command: (dir, report) => ['npx', 'vitest', 'run', '--reporter=json', `--outputFile=${report}`],
    env: (address) => ({ DYNAMODB_ENDPOINT: address }),
    group: (file) => file.split('/').slice(1, file.startsWith('tests/tier1') ? 2 : 3).join('/'),
  },
  // The configuration of the suite, without its own start of a server.
  onetable: {
    from: 'https://github.com/sensedeep/dynamodb-onetable',
    commit: 'd0151dc65fb45508c5a6c232eca21dc40f1b395f',
    runs: { 'sdk v3': { DDB_CLIENT_VERSION: 'v3' }, 'sdk v2': { DDB_CLIENT_VERSION: 'v2' } },
    command: (dir, report) => [
      'npx', 'jest', '--config', path.join(here, 'onetable.jest.config.cjs'), '--rootDir', dir, '--json', `--outputFile=${report}`,
    ],
    env: (address, dir) => ({ DYNAMODB_PORT: new URL(address).port, ONETABLE: dir }),
    group: () => 'all',
  },
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { nubo: { type: 'string' }, onetable: { type: 'string' } },
  })
  if (positionals.length !== 1) {
    console.error('usage: run.mjs PATH-TO-TABLETOP [--nubo DIR] [--onetable DIR]')
    process.exit(2)
  }
  const given = Object.keys(values)
  let surprises = 0
  for (const name of given.length ? given : Object.keys(suites)) {
    const dir = given.length ? path.resolve(values[name]) : checkout(name)
    if (!dir) {
      console.log(`== ${name} left out: ${suites[name].from} cannot be fetched; --${name} DIR runs a checkout`)
      continue
    }
    install(dir)
    for (const wording of wordings) {
      for (const [how, env] of Object.entries(suites[name].runs)) {
        console.log(`== ${name}, ${how}, --messages ${wording.region} (rows of regions.tsv with this wording: ${wording.regions})`)
        const report = await run(positionals[0], suites[name], dir, ['--messages', wording.region], env)
        surprises += compare(suites[name], differences(name, wording), dir, report)
      }
    }
  }
  process.exit(surprises ? 1 : 0)
}

// differences returns the expected differences of a suite in a wording.
function differences(name, wording) {
  const { failures, newer, skipped } = expected[name]
  const all = { ...failures }
  for (const [operation, titles] of Object.entries(newer)) {
    if (wording.newer(operation)) for (const title of titles) all[title] = 'asserts a text in the older wording'
  }
  return { failures: all, skipped }
}

// checkout returns the folder of a suite at its commit, which it fetches the first
// time, or nothing if its address does not answer.
function checkout(name) {
  const { from, commit } = suites[name]
  const dir = path.join(fetched, `${name}-${commit.slice(0, 7)}`)
  if (existsSync(dir)) return dir
  const partial = `${dir}.part`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial, { recursive: true })
  const git = (...args) =>
    spawnSync('git', args, { cwd: partial, stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, GIT_TERMINAL_PROMPT: '0' } }).status === 0
  if (!(git('init', '-q') && git('fetch', '-q', '--depth', '1', from, commit) && git('checkout', '-q', 'FETCH_HEAD'))) {
    rmSync(partial, { recursive: true })
    return undefined
  }
  renameSync(partial, dir)
  return dir
}

// install installs the dependencies of a suite: the versions of its lock file, or the
// newest in their ranges if a registry lacks one of them.
function install(dir) {
  if (existsSync(path.join(dir, 'node_modules'))) return
  for (const args of [['ci'], ['install', '--no-package-lock']]) {
    const { status } = spawnSync('npm', [...args, '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: dir, stdio: ['ignore', 'ignore', 'inherit'] })
    if (status === 0) return
  }
  throw new Error(`npm cannot install the dependencies of ${dir}`)
}

// run returns the report of one run of a suite.
async function run(binary, suite, dir, flags, env) {
  const scratch = mkdtempSync(path.join(tmpdir(), 'tabletop-suites-'))
  const report = path.join(scratch, 'report.json')
  const server = await start(binary, path.join(scratch, 'ports.json'), flags)
  try {
    const [command, ...args] = suite.command(dir, report)
    const child = spawn(command, args, {
      cwd: dir,
      env: { ...process.env, ...suite.env(server.address, dir), ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let stderr = ''
    child.stderr.on('data', (text) => (stderr = (stderr + text).slice(-4000)))
    await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
    if (!existsSync(report)) throw new Error(`${command} ${args.join(' ')} wrote no report:\n${stderr}`)
    return JSON.parse(readFileSync(report, 'utf8'))
  } finally {
    await server.stop()
    rmSync(scratch, { recursive: true })
  }
}

// start runs the server until stop is called, which fails unless it ends cleanly.
async function start(binary, portFile, flags) {
  const args = ['serve', '--bigtable', 'off', '--dynamodb', '127.0.0.1:0', '--port-file', portFile, ...flags]
  const server = spawn(binary, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = new Promise((resolve, reject) => server.on('error', reject).on('exit', resolve))
  ended.catch(() => {})
  while (!existsSync(portFile)) {
    if (server.exitCode !== null) throw new Error(`${binary} ${args.join(' ')} ended before it was ready`)
    await Promise.race([sleep(20), ended])
  }
  return {
    address: JSON.parse(readFileSync(portFile, 'utf8')).dynamodb,
    stop: async () => {
      server.kill('SIGTERM')
      const code = await ended
      if (code !== 0) throw new Error(`the server ended with code ${code} on SIGTERM, expected 0`)
    },
  }
}

// compare prints the counts of a report and its differences from expected.json,
// and returns the number of differing tests.
function compare(suite, { failures, skipped }, dir, report) {
  const groups = {}
  const seen = new Set()
  const surprises = []
  let tests = 0
  for (const file of report.testResults) {
    const where = path.relative(dir, file.name)
    const group = (groups[suite.group(where)] ??= { passed: 0, failed: 0, skipped: 0 })
    if (file.assertionResults.length === 0) surprises.push(`${where}: ran no test: ${file.message}`)
    for (const test of file.assertionResults) {
      const title = `${where}: ${test.fullName}`
      seen.add(title)
      tests++
      const status = { passed: 'passed', failed: 'failed' }[test.status] ?? 'skipped'
      group[status]++
      const skippable = Object.keys(skipped).some((prefix) => where.startsWith(prefix))
      if (status === 'failed' && !failures[title]) surprises.push(`${title}\n    ${test.failureMessages.join('\n').split('\n')[0]}`)
      if (status === 'passed' && failures[title]) surprises.push(`${title}\n    passes now: expected.json says that it fails`)
      if (status === 'skipped' && !skippable) surprises.push(`${title}\n    was skipped`)
    }
  }
  for (const title of Object.keys(failures)) {
    if (!seen.has(title)) surprises.push(`${title}\n    is in expected.json alone`)
  }
  console.table(groups)
  for (const text of surprises) console.log(text)
  console.log(`${tests} tests, ${Object.keys(failures).length} expected to fail, ${surprises.length} unexpected`)
  return surprises.length
}

await main()
