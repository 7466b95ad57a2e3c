// A test in the style of users of @shelf/jest-dynamodb.
const { DynamoDB } = require('@aws-sdk/client-dynamodb')

const dynamodb = new DynamoDB({
  endpoint: `http://localhost:${process.env.TABLETOP_PORT}`,
  region: 'local-env',
  credentials: { accessKeyId: 'fakeMyKeyId', secretAccessKey: 'fakeSecretAccessKey' },
})

it('has the table of the preset, and an item of its own', async () => {
  const Item = { id: { S: '1' }, hello: { S: 'world' } }
  await dynamodb.putItem({ TableName: 'files', Item })
  expect((await dynamodb.getItem({ TableName: 'files', Key: { id: { S: '1' } } })).Item).toEqual(Item)
})
