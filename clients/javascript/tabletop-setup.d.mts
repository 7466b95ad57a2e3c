import type { StartOptions } from './tabletop.mjs'

/** A global set-up of Jest or Vitest. It returns the function that stops the server. */
type Setup = () => Promise<() => Promise<void>>

/** A set-up that starts a server with these options, and sets its env() in the environment, which test workers inherit. */
export function globalSetup(options?: StartOptions): Setup

declare const setup: Setup
export default setup
