export default { test: { globalSetup: './setup.ts', fileParallelism: false } }
