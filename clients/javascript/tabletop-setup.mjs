// The global set-up of Jest and Vitest: one server for all test files, which find it by their environment.
//
//	globalSetup: './tabletop-setup.mjs' // in the configuration of either
//
// With flags of serve, or other options of Tabletop.start, in a file of your own:
//
//	import { globalSetup } from './tabletop-setup.mjs'
//	export default globalSetup({ args: ['--mapping', 'orders.yaml'] })
//
// It needs no teardown: Vitest stops the server, and with Jest it stops when Jest ends.
import { Tabletop } from './tabletop.mjs'

let running

/** A set-up that starts a server with these options, and sets its env() in the environment, which test workers inherit. */
export const globalSetup = options => async () => {
	await running?.stop() // that of the last run, as Jest watches
	running = await Tabletop.start(options)
	running.exportEnv()
	process.env.METADATA_SERVER_DETECTION ??= 'none' // else the client of Bigtable warns that it found no metadata server
	return () => running.stop()
}

export default globalSetup()
