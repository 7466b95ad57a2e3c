// The preset creates this before the tests, as in its own documentation.
module.exports = {
  port: Number(process.env.TABLETOP_PORT),
  tables: [{
    TableName: 'files',
    KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
    ProvisionedThroughput: { ReadCapacityUnits: 1, WriteCapacityUnits: 1 },
  }],
}
