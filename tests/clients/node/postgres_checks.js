// postgres.js: everything prepared and pipelined, types read from pg_type.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import postgres from 'postgres'
import { assert, check, done, fails, SLOW, TAILGATE } from './tap.js'

const notices = []
const sql = postgres({ max: 3, onnotice: (notice) => notices.push(notice.message) })

await check('connects, every type', async () => {
  const [one, , three, four] = await sql`SELECT * FROM kinds ORDER BY id`
  assert.equal(one.a_bigint, '9223372036854775807')
  assert.equal(one.a_numeric, '123456789.125')
  assert.deepEqual([...one.a_bytea], [0, 255, 97])
  assert.equal(one.a_timestamptz.toISOString(), '2026-01-02T03:04:05.678Z')
  assert.deepEqual(one.a_jsonb, { a: [1, 2.5, null], b: 'ü' })
  assert.deepEqual(one.integers, [1, NaN, -3]) // it reads NULL in an array of numbers so
  assert.deepEqual(one.texts, ['x', 'y z', 'NULL', '']) // and so NULL in one of texts
  assert.equal(three.integers, null)
  assert.equal(four.a_text, 'two\nlines\t"quoted" \\ € 😀')
})
await check('values of parameters, types inferred', async () => {
  assert.deepEqual([...(await sql`SELECT id FROM orders WHERE id = ${5} AND customer = ${'customer 5'} AND placed > ${new Date(0)}`)], [{ id: '5' }])
  const [row] = await sql`SELECT ${1}::int AS a, ${'x'}::text AS b, ${true}::bool AS c, ${null}::int AS d, ${sql.json({ a: [1] })}::jsonb AS e`
  assert.deepEqual({ ...row }, { a: 1, b: 'x', c: true, d: null, e: { a: [1] } })
})
await check('arrays as parameters', async () => {
  assert.equal((await sql`SELECT count(*)::int AS n FROM orders WHERE id = ANY(${[1, 2, 3]})`)[0].n, 3)
  assert.equal((await sql`SELECT count(*)::int AS n FROM orders WHERE id IN ${sql([1, 2, 3])}`)[0].n, 3)
})
await check('fragments, identifiers, raw values', async () => {
  const found = await sql`SELECT ${sql(['id', 'customer'])} FROM ${sql('orders')} WHERE ${sql`id < 3`} ORDER BY id`
  assert.deepEqual([...found], [{ id: '1', customer: 'customer 1' }, { id: '2', customer: 'customer 2' }])
  assert.deepEqual([...(await sql`SELECT id FROM orders WHERE id = 1`.values())], [['1']])
  assert.equal((await sql`SELECT id FROM orders WHERE id = 1`.raw())[0][0].toString(), '1')
})
await check('columns, count, command of a result; describe', async () => {
  const result = await sql`SELECT id, amount FROM orders WHERE id < ${4}`
  assert.deepEqual(result.columns.map((c) => [c.name, c.type]), [['id', 20], ['amount', 1700]])
  assert.deepEqual([result.count, result.command], [3, 'SELECT'])
  const { types, columns } = await sql`SELECT id FROM orders WHERE amount > ${1}`.describe()
  assert.deepEqual([types, columns.map((c) => c.type)], [[1700], [20]])
})
await check('simple queries of several statements', async () => {
  const results = await sql`SELECT 1 AS a; SELECT 2 AS b`.simple()
  assert.deepEqual(results.map((r) => ({ ...r[0] })), [{ a: 1 }, { b: 2 }])
})
await check('pipelined queries', async () => {
  const found = await Promise.all([...Array(60).keys()].map((n) => sql`SELECT ${n}::int AS n`))
  assert.deepEqual(found.map((r) => r[0].n), [...Array(60).keys()])
})
await check('errors: code and the connection goes on', async () => {
  await fails('42P01', () => sql`SELECT * FROM nobody`)
  await fails('42703', () => sql`SELECT nosuch FROM orders WHERE id = ${1}`)
  await fails('22012', () => sql`SELECT 1/${0}::int`)
  assert.equal((await sql`SELECT 1 AS one`)[0].one, 1)
})
await check('begin: rollback by an error, savepoint', async () => {
  await assert.rejects(sql.begin(async (tx) => {
    await tx`INSERT INTO written VALUES ('postgres.js', 1, 'gone')`
    throw new Error('give up')
  }), /give up/)
  const [five] = await sql.begin('isolation level repeatable read', async (tx) => {
    await tx.savepoint((sp) => sp`SELECT 1/0`).catch(() => {})
    return tx`SELECT 5 AS five`
  })
  assert.equal(five.five, 5)
  assert.equal((await sql`SELECT count(*)::int AS n FROM written WHERE client = 'postgres.js'`)[0].n, 0)
})
await check('inserts of objects, RETURNING, update', async () => {
  const made = [1, 2, 3].map((n) => ({ client: 'postgres.js', n, note: n === 2 ? null : `note ${n}` }))
  assert.deepEqual([...(await sql`INSERT INTO written ${sql(made)} RETURNING n`)].map((r) => r.n), [1, 2, 3])
  assert.equal((await sql`UPDATE written SET ${sql({ note: 'x' })} WHERE client = 'postgres.js' AND n > ${1}`).count, 2)
  assert.equal((await sql`DELETE FROM written WHERE client = 'postgres.js'`).count, 3)
})
await check('cursors: portals with limits', async () => {
  let sum = 0
  let pieces = 0
  for await (const rows of sql`SELECT id FROM orders`.cursor(100)) {
    pieces += 1
    for (const row of rows) sum += Number(row.id)
  }
  assert.deepEqual([sum, pieces], [500500, 10])
  await sql`SELECT id FROM orders`.cursor(10, () => sql.CLOSE)
})
await check('forEach', async () => {
  let count = 0
  await sql`SELECT id FROM orders`.forEach(() => { count += 1 })
  assert.equal(count, 1000)
})
await check('COPY out and in', async () => {
  let text = ''
  for await (const piece of await sql`COPY (SELECT id FROM orders WHERE id < 3 ORDER BY id) TO STDOUT`.readable()) text += piece
  assert.equal(text, '1\n2\n')
  await pipeline(Readable.from(['postgres.js\t1\tone\n', 'postgres.js\t2\t\\N\n']), await sql`COPY written FROM STDIN`.writable())
  assert.equal((await sql`DELETE FROM written WHERE client = 'postgres.js'`).count, 2)
})
await check('cancel', async () => {
  const query = sql.unsafe(SLOW)
  const failing = fails('57014', () => query)
  setTimeout(() => query.cancel(), 300)
  await failing
})
await check('notices', async () => {
  notices.length = 0
  await sql`DROP TABLE IF EXISTS nobody`
  assert.deepEqual(notices, ['table "nobody" does not exist, skipping'])
})
await check('options of the connection', async () => {
  const other = postgres({ max: 1, connection: { search_path: 'annex', application_name: 'checks' }, prepare: false, transform: postgres.camel })
  assert.equal((await other`SELECT current_schema() AS current_schema`)[0].currentSchema, 'annex')
  assert.equal((await other`SELECT count(*)::int AS n FROM notes WHERE id > ${0}`)[0].n, 0)
  await other.end()
})
if (TAILGATE) {
  await check('TAIL by a cursor', async () => {
    let count = 0
    for await (const rows of sql`TAIL per_customer`.cursor(5)) {
      count += rows.length
      if (count >= 10) break
    }
    assert.equal(count, 10)
  })
}
await sql.end({ timeout: 2 })
done()
