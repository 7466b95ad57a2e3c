// The configuration of the suite in the folder $ONETABLE, without the start
// and end of DynamoDB Local: DYNAMODB_PORT says where the server is. A machine
// that is busy with something else fails no test.
const { globalSetup, globalTeardown, ...own } = require(require('path').join(process.env.ONETABLE, 'jest.config.js'))

module.exports = { ...own, testTimeout: 60_000 }
