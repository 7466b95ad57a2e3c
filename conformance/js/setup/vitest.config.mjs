export default { test: { globalSetup: './with-instance.mjs', globals: true } }
