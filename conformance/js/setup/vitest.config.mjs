export default { cacheDir: '../node_modules/.vite', test: { globalSetup: './with-instance.mjs', globals: true } }
