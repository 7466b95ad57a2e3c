#!/usr/bin/env node
// Runs orders.test.mjs by Jest and by Vitest, whose global set-up is that of clients/javascript, which starts a server.
//
//     run.mjs PATH-TO-TABLETOP
//
// Exits 0 when both pass, and their servers have ended.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const cwd = fileURLToPath(new URL('.', import.meta.url))
const folder = await mkdtemp(join(tmpdir(), 'tabletop-setup-'))
const found = join(folder, 'url')
let failed = false
for (const [name, args, env] of [
  ['Jest', ['--experimental-vm-modules', '../node_modules/jest/bin/jest.js', '--ci'], {}],
  ['Vitest', ['../node_modules/vitest/vitest.mjs', 'run'], { INSTANCE: 'orders' }],
]) {
  const tests = spawn(process.execPath, ['--no-warnings', ...args], {
    cwd, stdio: ['ignore', 'pipe', 'pipe'],
    env: { // with settings of a shell, which the set-up removes
      ...process.env, AWS_PROFILE: 'prod', AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: 'true', TABLETOP_DATA: join(folder, 'data'), TABLETOP_INSTANCE: 'other',
      TABLETOP_BINARY: resolve(process.argv[2]), METADATA_SERVER_DETECTION: undefined, FOUND: found, ...env,
    },
  })
  let text = ''
  for (const stream of [tests.stdout, tests.stderr]) stream.setEncoding('utf8').on('data', piece => { text += piece })
  try {
    const [code] = await once(tests, 'close')
    assert.equal(code, 0, text)
    const { hostname, port } = new URL(await readFile(found, 'utf8'))
    const connection = createConnection(Number(port), hostname).on('error', () => {}) // the server has ended
    await new Promise(resolve => connection.resume().on('close', resolve))
    console.log(`ok    global set-up of ${name}`)
  } catch (e) {
    failed = true
    console.error(`FAIL  global set-up of ${name}`, e)
  }
}
await rm(folder, { recursive: true })
process.exit(failed ? 1 : 0)
