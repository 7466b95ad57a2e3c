// Starts a server for all tests, which begins with the orders of ../orders.
import { fileURLToPath } from 'node:url'
import { globalSetup } from 'tabletop-emu/setup'

export default globalSetup({ seed: fileURLToPath(new URL('../orders', import.meta.url)) })
