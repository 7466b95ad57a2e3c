// The configuration of the suite in the folder $ONETABLE, without the start
// and end of DynamoDB Local: DYNAMODB_PORT is the port of the server. A busy
// machine fails no test.
const { globalSetup, globalTeardown, ...own } = require(require('path').join(process.env.ONETABLE, 'jest.config.js'))

module.exports = { ...own, testTimeout: 60_000 }
