#!/usr/bin/env node
// Runs the tests of examples/typescript with the packages of this folder, in a copy, since a project has its own packages.
//
//     example.mjs PATH-TO-TABLETOP

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const root = resolve(here, '../..')
const folder = await mkdtemp(join(tmpdir(), 'tabletop-example-'))
try {
  const project = join(folder, 'typescript')
  await cp(join(root, 'examples/typescript'), project, { recursive: true })
  await cp(join(root, 'examples/orders'), join(folder, 'orders'), { recursive: true })
  const { dependencies, devDependencies } = JSON.parse(await readFile(join(project, 'package.json')))
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    const to = join(project, 'node_modules', name)
    await mkdir(resolve(to, '..'), { recursive: true })
    if (name === 'tabletop-emu') { // as tools/dist makes it
      await cp(join(root, 'clients/javascript'), to, { recursive: true })
      await writeFile(join(to, 'package.json'), JSON.stringify({
        name, type: 'module',
        exports: { '.': { types: './tabletop.d.mts', default: './tabletop.mjs' }, './setup': { types: './tabletop-setup.d.mts', default: './tabletop-setup.mjs' } },
      }))
      continue
    }
    assert.equal(JSON.parse(await readFile(join(here, 'node_modules', name, 'package.json'))).version, version, name)
    await symlink(join(here, 'node_modules', name), to)
  }
  await symlink(join(here, 'node_modules/@types'), join(project, 'node_modules/@types'))
  for (const args of [['typescript/bin/tsc'], ['vitest/vitest.mjs', 'run']]) {
    const [program, ...rest] = args
    const run = spawn(process.execPath, [join(here, 'node_modules', program), ...rest], {
      cwd: project, stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, TABLETOP_BINARY: resolve(process.argv[2]) },
    })
    const [code] = await once(run, 'close')
    assert.equal(code, 0, program)
  }
  console.log('ok    the example in TypeScript')
} finally {
  await rm(folder, { recursive: true })
}
