// node-postgres, with its cursor, stream and COPY companions.
import { pipeline } from 'node:stream/promises'
import { Readable } from 'node:stream'
import pg from 'pg'
import Cursor from 'pg-cursor'
import QueryStream from 'pg-query-stream'
import { from, to } from 'pg-copy-streams'
import { assert, check, done, fails, SLOW, TAILGATE } from './tap.js'

const client = new pg.Client()
await client.connect()
const rows = async (...query) => (await client.query(...query)).rows

await check('connects, text of every type', async () => {
  const found = await rows('SELECT * FROM kinds ORDER BY id')
  assert.equal(found.length, 4)
  const [one, two, three, four] = found
  assert.equal(one.a_boolean, true)
  assert.equal(one.a_bigint, '9223372036854775807')
  assert.equal(one.a_double, 0.1)
  assert.equal(one.a_numeric, '123456789.125')
  assert.equal(one.a_char, 'ab   ')
  assert.deepEqual([...one.a_bytea], [0, 255, 97])
  assert.equal(one.a_timestamptz.toISOString(), '2026-01-02T03:04:05.678Z')
  assert.equal(one.an_interval.months, 1)
  assert.deepEqual(one.a_jsonb, { a: [1, 2.5, null], b: 'ü' })
  assert.deepEqual(one.integers, [1, null, -3])
  assert.deepEqual(one.texts, ['x', 'y z', null, ''])
  assert.equal(two.a_text, '')
  assert.equal(three.a_text, null)
  assert.equal(four.a_text, 'two\nlines\t"quoted" \\ € 😀')
})
await check('values of parameters', async () => {
  const values = [1, 'it\'s \\ ü', true, null, 2.5, new Date('2026-01-02T03:04:05Z'), [1, 2], ['a', null], { a: [1] }, Buffer.from([0, 255])]
  const casts = ['int', 'text', 'bool', 'int', 'float8', 'timestamptz', 'int[]', 'text[]', 'jsonb', 'bytea']
  const [row] = await rows({ text: `SELECT ${casts.map((c, i) => `$${i + 1}::${c}`).join(', ')}`, values, rowMode: 'array' })
  assert.deepEqual(row, values)
})
await check('fields: names, types, tables', async () => {
  const { fields, rowCount, command } = await client.query('SELECT id, amount FROM orders LIMIT 1')
  assert.deepEqual(fields.map((f) => [f.name, f.dataTypeID]), [['id', 20], ['amount', 1700]])
  assert.deepEqual([rowCount, command], [1, 'SELECT'])
})
await check('types of parameters that nothing says', async () => {
  assert.deepEqual(await rows('SELECT id FROM orders WHERE id = $1 AND customer = $2', ['5', 'customer 5']), [{ id: '5' }])
  assert.equal((await rows('SELECT id FROM orders ORDER BY id LIMIT $1 OFFSET $2', [2, 5]))[1].id, '7')
})
await check('binary results', async () => {
  const [row] = await rows({ text: 'SELECT id, customer, paid, placed FROM orders WHERE id = $1', values: [3], binary: true })
  assert.equal(row.customer, 'customer 3')
  assert.equal(row.paid, true)
})
await check('a named statement, again and again', async () => {
  for (let n = 1; n <= 5; n += 1) {
    const [row] = await rows({ name: 'by id', text: 'SELECT customer FROM orders WHERE id = $1', values: [n] })
    assert.equal(row.customer, `customer ${n}`)
  }
})
await check('several statements in one query', async () => {
  const results = await client.query('SELECT 1 AS a; SELECT 2 AS b')
  assert.deepEqual(results.map((r) => r.rows[0]), [{ a: 1 }, { b: 2 }])
})
await check('an empty query', async () => assert.equal((await client.query('')).command, null))
await check('errors: code, position, and the connection goes on', async () => {
  const error = await fails('42703', () => client.query('SELECT nosuch FROM orders'))
  assert.deepEqual([error.severity, error.position], ['ERROR', '8'])
  await fails('22P02', () => client.query('SELECT $1::int', ['x']))
  await fails('23505', () => client.query('INSERT INTO orders VALUES (1, \'x\', 1, now(), true)'))
  assert.deepEqual(await rows('SELECT 1 AS one'), [{ one: 1 }])
})
await check('a block: failed, rolled back, savepoint', async () => {
  await client.query('BEGIN')
  await client.query('SAVEPOINT a')
  await fails('22012', () => client.query('SELECT 1/0'))
  await fails('25P02', () => client.query('SELECT 1'))
  await client.query('ROLLBACK TO a')
  assert.deepEqual(await rows('SELECT 5 AS five'), [{ five: 5 }])
  await client.query('COMMIT')
})
await check('writes: RETURNING, rowCount', async () => {
  await client.query('DELETE FROM written WHERE client = \'pg\'')
  for (let n = 1; n <= 3; n += 1) {
    assert.deepEqual(await rows('INSERT INTO written VALUES (\'pg\', $1, $2) RETURNING n', [n, `note ${n}`]), [{ n }])
  }
  assert.equal((await client.query('UPDATE written SET note = $1 WHERE client = \'pg\' AND n > 1', ['x'])).rowCount, 2)
  assert.equal((await client.query('DELETE FROM written WHERE client = \'pg\'')).rowCount, 3)
})
await check('pg-cursor', async () => {
  const cursor = client.query(new Cursor('SELECT id FROM orders WHERE id > $1 ORDER BY id', [10]))
  assert.deepEqual((await cursor.read(3)).map((r) => r.id), ['11', '12', '13'])
  assert.equal((await cursor.read(2000)).length, 987)
  await cursor.close()
})
await check('pg-cursor closed before its end', async () => {
  const cursor = client.query(new Cursor('SELECT id FROM orders'))
  await cursor.read(1)
  await cursor.close()
  assert.deepEqual(await rows('SELECT 1 AS one'), [{ one: 1 }])
})
await check('pg-query-stream', async () => {
  let sum = 0
  for await (const row of client.query(new QueryStream('SELECT id FROM orders', [], { batchSize: 64 }))) sum += Number(row.id)
  assert.equal(sum, 500500)
})
await check('COPY out', async () => {
  let text = ''
  for await (const piece of client.query(to('COPY (SELECT id, customer FROM orders WHERE id < 3 ORDER BY id) TO STDOUT WITH CSV'))) text += piece
  assert.equal(text, '1,customer 1\n2,customer 2\n')
})
await check('COPY in', async () => {
  const copy = client.query(from('COPY written FROM STDIN WITH (FORMAT csv)'))
  await pipeline(Readable.from(['pg,1,one\n', 'pg,2,\n']), copy)
  assert.equal(copy.rowCount, 2)
  assert.deepEqual(await rows('SELECT n, note FROM written WHERE client = \'pg\' ORDER BY n'), [{ n: 1, note: 'one' }, { n: 2, note: null }])
  await client.query('DELETE FROM written WHERE client = \'pg\'')
})
await check('notices', async () => {
  const notices = []
  client.on('notice', (notice) => notices.push(notice.message))
  await client.query('DROP TABLE IF EXISTS nobody')
  assert.deepEqual(notices, ['table "nobody" does not exist, skipping'])
})
await check('statement_timeout, application_name', async () => {
  const other = new pg.Client({ statement_timeout: 200, application_name: 'checks' })
  await other.connect()
  assert.equal((await other.query('SHOW application_name')).rows[0].application_name, 'checks')
  await fails('57014', () => other.query(SLOW))
  await other.end()
})
await check('a cancel by pg_cancel_backend', async () => {
  const other = new pg.Client()
  await other.connect()
  const pid = (await other.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
  const failing = fails('57014', () => other.query(SLOW))
  await new Promise((resolve) => setTimeout(resolve, 300))
  assert.equal((await rows('SELECT pg_cancel_backend($1) AS done', [pid]))[0].done, true)
  await failing
  await other.end()
})
await check('a pool', async () => {
  const pool = new pg.Pool({ max: 4 })
  const found = await Promise.all([...Array(40).keys()].map((n) => pool.query('SELECT $1::int AS n', [n])))
  assert.deepEqual(found.map((r) => r.rows[0].n), [...Array(40).keys()])
  await pool.end()
})
if (TAILGATE) {
  await check('TAIL, row by row', async () => {
    const follower = new pg.Client()
    await follower.connect()
    const seen = []
    const query = new pg.Query('TAIL per_customer WITH (SNAPSHOT = false)')
    const came = new Promise((resolve) => query.on('row', (row) => { seen.push(row); resolve() }))
    query.on('error', () => {})
    follower.query(query)
    await new Promise((resolve) => setTimeout(resolve, 300))
    await client.query('INSERT INTO orders VALUES (5007, \'node\', 7, now(), true)')
    await came
    assert.equal(seen[0].customer, 'node')
    await client.query('DELETE FROM orders WHERE id = 5007')
    follower.on('error', () => {})
    follower.connection.stream.destroy()
  })
}
await client.end()
done()
