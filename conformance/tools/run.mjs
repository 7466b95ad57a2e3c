#!/usr/bin/env node
// Runs public tools for DynamoDB and the tests of a library, unchanged, as published, against a
// running `tabletop serve --like dynamodb-local`.
//
//     run.mjs PATH-TO-TABLETOP PYTHON
//
// PYTHON has the packages of requirements.txt. Each tool has a server of its own. Exits 0 when all pass.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const [binary, python] = process.argv.slice(2).map(path => resolve(path))

// start runs a program, and forwards its output.
function start(args, env = {}, cwd = here) {
  const program = spawn(args[0], args.slice(1), { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  program.ended = new Promise((resolve, reject) => program.on('error', reject).on('exit', resolve))
  program.ended.catch(() => {})
  return program
}

// run waits for a program, and shows its output if it failed.
async function run(args, env, cwd) {
  const program = start(args, env, cwd)
  let text = ''
  for await (const piece of program.stdout) text += piece
  assert.equal(await program.ended, 0, text)
}

// inFolder runs a function in a temporary folder.
async function inFolder(use) {
  const folder = mkdtempSync(resolve(tmpdir(), 'tabletop-tools-'))
  try {
    await use(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

// call calls an operation.
async function call(port, operation, request) {
  const answer = await fetch(`http://127.0.0.1:${port}`, {
    method: 'POST', body: JSON.stringify(request),
    headers: { 'X-Amz-Target': `DynamoDB_20120810.${operation}`, 'Content-Type': 'application/x-amz-json-1.0', ...signed },
  })
  const text = await answer.text()
  assert.ok(answer.ok, `${operation}: ${text}`)
  return JSON.parse(text)
}

// signed is a signature as the server reads it by default: it is not checked.
const signed = {
  'X-Amz-Date': '20261129T000000Z',
  Authorization: 'AWS4-HMAC-SHA256 Credential=a/20261129/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0',
}

const tools = {
  // The library's own tests, from the Go module proxy.
  async 'guregu/dynamo'(port) {
    await inFolder(async folder => {
      const go = (...args) => run(['go', ...args], {
        DYNAMO_TEST_ENDPOINT: `http://127.0.0.1:${port}`, DYNAMO_TEST_REGION: 'us-east-1', AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'a',
      }, folder)
      await go('mod', 'init', 'tools')
      await go('get', '-t', 'github.com/guregu/dynamo/v2@v2.1.1')
      await go('test', '-mod=mod', '-count=1', 'github.com/guregu/dynamo/v2')
    })
  },

  // A backup, and a restore to another table.
  async 'dynamodump'(port) {
    await call(port, 'CreateTable', {
      TableName: 'orders', ProvisionedThroughput: { ReadCapacityUnits: 5, WriteCapacityUnits: 5 },
      AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }], KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    })
    for (let n = 0; n < 60; n++) {
      await call(port, 'PutItem', { TableName: 'orders', Item: { id: { S: `order-${n}` }, total: { N: `${n}.5` }, tags: { SS: ['a', 'b'] }, blob: { B: 'AAH/' }, none: { NULL: true } } })
    }
    await inFolder(async folder => {
      const dump = (...args) => run([resolve(dirname(python), 'dynamodump'), '-r', 'local', '--host', '127.0.0.1', '--port', port, '--accessKey', 'a', '--secretKey', 'a', '--dumpPath', folder, '--noConfirm', '--log', 'ERROR', ...args], {}, folder)
      await dump('-m', 'backup', '-s', 'orders')
      await dump('-m', 'restore', '-s', 'orders', '-d', 'again')
    })
    const items = async table => (await call(port, 'Scan', { TableName: table })).Items
    const before = await items('orders')
    assert.equal(before.length, 60)
    assert.deepEqual(await items('again'), before)
  },

  async '@shelf/jest-dynamodb'(port) {
    await run(['node', 'node_modules/jest/bin/jest.js', '--ci', '--silent'], { TABLETOP_PORT: port })
  },

  async 'pytest-dynamodb'(port) {
    await run([python, '-B', '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '--dynamodb-host', '127.0.0.1', '--dynamodb-port', port, 'test_items.py'])
  },

  async 'dynamodb-admin'(port) {
    const admin = start(['node', 'node_modules/dynamodb-admin/dist/dynamodb-admin.js', '--host', '127.0.0.1', '--port', '0', '--skip-default-credentials', '--dynamo-endpoint', `http://127.0.0.1:${port}`], {
      AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'a',
    })
    try {
      await pages(await listening(admin))
    } finally {
      admin.kill()
      await admin.ended
    }
  },
}

// listening returns the address that dynamodb-admin prints.
async function listening(admin) {
  for await (const line of createInterface(admin.stdout)) {
    const url = line.match(/listening on (http:\/\/\S+)/)?.[1]
    if (url) return url
  }
  throw new Error('dynamodb-admin ended before it was ready')
}

// pages visits each kind of page, like a user who creates a table and an item in it.
async function pages(url) {
  const ask = async (method, path, body) => {
    const answer = await fetch(url + path, { method, headers: { 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) })
    const text = await answer.text()
    assert.ok(answer.ok, `${method} ${path}: ${text}`)
    return text
  }
  await ask('POST', '/create-table', {
    TableDefinition: { TableName: 'orders', HashAttributeName: 'id', HashAttributeType: 'S', ReadCapacityUnits: 1, WriteCapacityUnits: 1 },
  })
  await ask('PUT', '/tables/orders/add-item', { id: 'order-1', total: 42 })
  for (const [path, shown] of [
    ['/', 'orders'], ['/api/tables', 'orders'], ['/tables/orders', 'id'], ['/tables/orders/items', 'order-1'], ['/tables/orders/get', 'id'],
    ['/tables/orders/items/order-1', '42'], ['/tables/orders/meta', 'TableStatus'], ['/tables/orders/add-item', 'id'],
  ]) {
    assert.ok((await ask('GET', path)).includes(shown), `${path} does not have ${shown}`)
  }
  await ask('DELETE', '/tables/orders/items/order-1')
  assert.ok(!(await ask('GET', '/tables/orders/items')).includes('order-1'))
}

let failed = false
for (const [name, use] of Object.entries(tools)) {
  const server = start([binary, 'serve', '--like', 'dynamodb-local', '--bigtable', 'off', '--dynamodb', '127.0.0.1:0'])
  try {
    let port
    for await (const line of createInterface(server.stdout)) {
      port = line.match(/^export AWS_ENDPOINT_URL_DYNAMODB=.*:(\d+)/)?.[1] ?? port
      if (line.startsWith('# ready')) break
    }
    await use(port)
    console.log(`ok    ${name}`)
  } catch (e) {
    failed = true
    console.error(`FAIL  ${name}`, e)
  }
  server.kill('SIGTERM')
  if (await server.ended !== 0) failed = true
}
process.exit(failed ? 1 : 0)
