// npm's ksqldb-client: HTTP/2 by prior knowledge, each row of a push query in its own frame.
import KsqldbClient from 'ksqldb-client'
import { assert, check, done } from './tap.js'

const client = new KsqldbClient({ host: 'http://127.0.0.1', port: Number(process.env.KSQLDB_PORT) })
await client.connect()

await check('lists', async () => {
  assert.deepEqual(await client.listStreams(), [])
  assert.ok(Array.isArray(await client.listTables()))
  assert.ok(Array.isArray(await client.listQueries()))
})
await check('describes a table of PostgreSQL', async () => {
  const { name, type } = await client.describeSource('orders')
  assert.deepEqual([name, type], ['ORDERS', 'TABLE'])
})
await check('pull queries', async () => {
  const { status, data } = await client.query('SELECT ID, CUSTOMER FROM orders WHERE ID = 5;')
  assert.deepEqual([status, data.rows], [200, [{ ID: 5, CUSTOMER: 'customer 5' }]])
  assert.deepEqual(data.metadata.columnTypes, ['BIGINT', 'STRING'])
})
await check('push queries', async () => {
  const rows = []
  const { status } = await client.streamQuery('SELECT ID FROM orders EMIT CHANGES LIMIT 50;', ({ rows: some }) => rows.push(...(some ?? [])), {
    properties: { 'auto.offset.reset': 'earliest' }
  })
  assert.deepEqual([status, rows.length, typeof rows[0].ID], [200, 50, 'number'])
})
await check('errors', async () => {
  const { status, error } = await client.query('SELECT * FROM nothing;')
  assert.deepEqual([status, error['@type'], error.error_code], [400, 'statement_error', 40001])
  assert.equal((await client.executeStatement('DROP STREAM nothing;')).error.error_code, 40001)
})
await client.disconnect()
done()
