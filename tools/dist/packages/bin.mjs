#!/usr/bin/env node
// Runs the program of this platform.
import { spawn } from 'node:child_process'
import { program } from './tabletop.mjs'

const binary = program()
if (binary === 'tabletop') { // on PATH this script is the first of that name
	console.error(`tabletop: the package @tabletop-emu/${process.platform}-${process.arch} is not installed; npm leaves it out with --omit=optional`)
	process.exit(3)
}
const child = spawn(binary, process.argv.slice(2), { stdio: 'inherit' })
// A terminal sends these signals to the program too, which ends.
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {})
process.on('SIGTERM', () => child.kill('SIGTERM'))
child.on('error', e => {
	console.error(`tabletop: ${e.message}`)
	process.exit(3)
})
child.on('exit', (code, signal) => {
	if (!signal) process.exit(code)
	process.removeAllListeners(signal)
	process.kill(process.pid, signal)
})
