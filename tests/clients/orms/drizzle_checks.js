// Drizzle: the migrations that its kit generates, and queries.
import { and, arrayContains, asc, between, count, desc, eq, exists, gt, ilike, inArray, isNull, or, relations, sql, sum } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { migrate } from 'drizzle-orm/node-postgres/migrator'
import * as pg from 'drizzle-orm/pg-core'
import { createRequire } from 'node:module'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Pool } from 'pg'
import { compare, refused, SCHEMA } from './compare.js'

const { generateDrizzleJson, generateMigration } = createRequire(import.meta.url)('drizzle-kit/api')

function define(changed) {
  const schema = pg.pgSchema(SCHEMA)
  const role = schema.enum('user_role', changed ? ['admin', 'user', 'guest'] : ['admin', 'user'])
  const users = schema.table('users', {
    id: pg.serial().primaryKey(),
    key: pg.uuid().defaultRandom().notNull(),
    email: pg.varchar({ length: 100 }).notNull().unique('users_email'),
    name: changed ? pg.text().default('nobody') : pg.text(),
    role: role().default('user').notNull(),
    data: pg.jsonb().default({}),
    settings: pg.json(),
    tags: pg.text().array().default([]),
    balance: pg.numeric({ precision: changed ? 14 : 12, scale: 2 }).default('0'),
    visits: pg.bigint({ mode: 'number' }).default(0),
    ratio: pg.doublePrecision(),
    small: pg.smallint(),
    born: pg.date(),
    wakes: pg.time(),
    seen: pg.timestamp({ withTimezone: true, precision: 3 }).defaultNow(),
    span: pg.interval(),
    address: pg.inet(),
    code: pg.char({ length: 5 }),
    active: pg.boolean().default(true).notNull(),
    lower: pg.text().generatedAlwaysAs(sql`lower(email)`),
    nick: pg.text(),
    ...(changed ? { phone: pg.varchar({ length: 20 }).default('-') } : {}),
  }, (t) => [
    pg.index('by_name').on(t.name.asc().nullsFirst(), t.email.desc()),
    pg.index('by_tags').using('gin', t.data),
    pg.uniqueIndex('by_lower').on(sql`lower(${t.email})`).where(sql`${t.active}`),
    pg.check('small_ratio', sql`${t.ratio} < 100`),
  ])
  const posts = schema.table('posts', {
    id: pg.bigint({ mode: 'number' }).generatedAlwaysAsIdentity({ startWith: 10 }).primaryKey(),
    title: pg.text().notNull(),
    score: pg.integer().default(0).notNull(),
    userId: pg.integer('user_id').notNull().references(() => users.id, { onDelete: 'cascade', onUpdate: 'no action' }),
  }, (t) => [pg.unique('one_title').on(t.userId, t.title)])
  const tags = schema.table('tags', { name: pg.text().primaryKey(), ...(changed ? { color: pg.text() } : {}) })
  const postTags = schema.table('post_tags', {
    post: pg.bigint({ mode: 'number' }).references(() => posts.id), tag: pg.text().references(() => tags.name),
  }, (t) => [pg.primaryKey({ columns: [t.post, t.tag] })])
  const active = schema.view('active_users').as((q) => q.select({ id: users.id, name: users.name }).from(users).where(eq(users.active, true)))
  const scores = schema.materializedView('scores').as((q) => q.select({ user: posts.userId, total: sum(posts.score).as('total') }).from(posts).groupBy(posts.userId))
  return {
    schema, role, users, posts, tags, postTags, active, scores,
    userRelations: relations(users, ({ many }) => ({ posts: many(posts) })),
    postRelations: relations(posts, ({ one, many }) => ({ user: one(users, { fields: [posts.userId], references: [users.id] }), tags: many(postTags) })),
    tagRelations: relations(postTags, ({ one }) => ({ post: one(posts, { fields: [postTags.post], references: [posts.id] }) })),
  }
}

const before = define(false)
const after = define(true)
const { users, posts, tags, postTags, active, scores } = before

async function open(port) {
  const pool = new Pool({ host: '127.0.0.1', port, user: 'postgres', database: 'shop', max: 4 })
  return { pool, port, db: drizzle(pool, { schema: before }) }
}

/** Writes the migrations from one schema to the next, as drizzle-kit generate does, and returns their folder. */
async function migrations(port, schemas) {
  const folder = join(process.env.CHECKS_FOLDER, `drizzle-${port}`)
  mkdirSync(join(folder, 'meta'), { recursive: true })
  const empty = generateDrizzleJson({})
  const snapshots = [empty, ...schemas.map((schema) => generateDrizzleJson(schema, empty.id))]
  const entries = []
  for (let n = 0; n < schemas.length; n += 1) {
    const statements = await generateMigration(snapshots[n], snapshots[n + 1])
    writeFileSync(join(folder, `000${n}_step.sql`), statements.join('\n--> statement-breakpoint\n'))
    entries.push({ idx: n, version: '7', when: 1700000000000 + n, tag: `000${n}_step`, breakpoints: true })
  }
  writeFileSync(join(folder, 'meta/_journal.json'), JSON.stringify({ version: '7', dialect: 'postgresql', entries }))
  return folder
}

await compare(open, ({ pool }) => pool.end(), {
  'generate and migrate': async (own) => {
    own.migrationsFolder = await migrations(own.port, [before])
    await migrate(own.db, { migrationsFolder: own.migrationsFolder, migrationsSchema: 'orms_log' })
    await migrate(own.db, { migrationsFolder: own.migrationsFolder, migrationsSchema: 'orms_log' })
    return (await own.db.execute(sql`SELECT id, created_at FROM orms_log.__drizzle_migrations ORDER BY id`)).rows
  },
  'insert with returning': async ({ db }) => [
    await db.insert(users).values([
      { email: 'a@b.c', name: 'ann', data: { a: [1, { b: 'x' }] }, tags: ['x', 'y'], balance: '12.50', ratio: 0.1, born: '2000-02-29', wakes: '07:30:00', span: '1 day', address: '10.0.0.1', code: 'ab', settings: { z: 1 } },
      { email: 'b@b.c', name: 'bob', role: 'admin' },
    ]).returning().then((rows) => rows.map(({ key, seen, visits, ...row }) => [row, String(visits)])),
    await db.insert(posts).values([1, 2, 3].map((n) => ({ title: `post ${n}`, score: n, userId: 1 }))).returning({ id: posts.id }),
    await db.insert(tags).values([{ name: 'red' }, { name: 'blue' }]).then((r) => r.rowCount),
    await db.insert(postTags).values([{ post: 10, tag: 'red' }, { post: 10, tag: 'blue' }]).then((r) => r.rowCount),
    await db.insert(users).values({ email: 'b@b.c' }).onConflictDoUpdate({ target: users.email, set: { name: sql`excluded.email` } }).returning({ name: users.name }),
    await db.insert(users).values({ email: 'b@b.c' }).onConflictDoNothing().returning({ id: users.id }),
  ],
  'select': async ({ db }) => {
    const top = db.$with('top').as(db.select().from(posts).orderBy(desc(posts.score)).limit(2))
    const part = db.select({ user: posts.userId, n: count().as('n') }).from(posts).groupBy(posts.userId).as('part')
    return [
      await db.select({ id: users.id, title: posts.title }).from(users).leftJoin(posts, and(eq(posts.userId, users.id), gt(posts.score, 1))).orderBy(users.id, asc(posts.id)),
      await db.select({ user: posts.userId, n: count(), s: sum(posts.score), r: sql`rank() over (order by count(*))`.mapWith(Number) }).from(posts).groupBy(posts.userId).having(gt(count(), 1)),
      await db.with(top).select({ title: top.title }).from(top).orderBy(top.title),
      await db.select({ name: users.name, n: part.n }).from(users).innerJoin(part, eq(part.user, users.id)),
      await db.selectDistinctOn([posts.userId], { u: posts.userId, t: posts.title }).from(posts).orderBy(posts.userId, desc(posts.score)),
      await db.select({ id: users.id }).from(users).where(or(ilike(users.name, 'A%'), inArray(users.role, ['admin']), and(isNull(users.small), between(users.ratio, 0, 1)), arrayContains(users.tags, ['x']))).orderBy(users.id),
      await db.select({ id: users.id }).from(users).where(exists(db.select().from(posts).where(eq(posts.userId, users.id)))),
      await db.select({ b: sql`${users.data}->'a'->1->>'b'` }).from(users).where(sql`${users.data} @> ${JSON.stringify({ a: [1] })}`),
      await db.select({ name: users.name }).from(users).unionAll(db.select({ name: posts.title }).from(posts)).orderBy(sql`1`).limit(3).offset(1),
      await db.select().from(active).orderBy(active.id), await db.$count(users, gt(users.id, 1)),
    ]
  },
  'relational queries': async ({ db }) => [
    await db.query.users.findMany({ columns: { id: true, name: true }, with: { posts: { columns: { title: true, score: true }, with: { tags: true }, orderBy: desc(posts.score), limit: 2 } }, orderBy: users.id }),
    await db.query.posts.findFirst({ where: eq(posts.title, 'post 1'), with: { user: { columns: { email: true } }, tags: { orderBy: postTags.tag } }, extras: { twice: sql`${posts.score} * 2`.as('twice') } }),
  ],
  'update and delete': async ({ db }) => [
    await db.update(users).set({ visits: sql`${users.visits} + 1`, name: null }).where(eq(users.id, 2)).returning({ name: users.name, role: users.role }),
    await db.update(posts).set({ score: sql`${posts.score} + 10` }).from(users).where(and(eq(users.id, posts.userId), eq(users.email, 'a@b.c'))).returning({ score: posts.score }).then((rows) => rows.map((r) => r.score).sort()),
    await db.delete(posts).where(eq(posts.title, 'post 3')).returning({ id: posts.id }),
  ],
  'views': async ({ db }) => {
    await db.refreshMaterializedView(scores)
    return db.select().from(scores)
  },
  'prepared statements': async ({ db }) => {
    const byId = db.select({ email: users.email }).from(users).where(eq(users.id, sql.placeholder('id'))).prepare('by_id')
    return [await byId.execute({ id: 1 }), await byId.execute({ id: 2 })]
  },
  'transactions and locks': async ({ db }) => {
    const error = await refused(() => db.transaction(async (tx) => {
      await tx.insert(users).values({ email: 'z@b.c' })
      await tx.transaction(async (inner) => { await inner.insert(tags).values({ name: 'green' }); inner.rollback() }).catch(() => undefined)
      await tx.insert(users).values({ email: 'a@b.c' })
    }, { isolationLevel: 'serializable', accessMode: 'read write', deferrable: true }))
    const locked = await db.transaction((tx) => tx.select({ id: users.id }).from(users).where(eq(users.id, 1)).for('update', { skipLocked: true }))
    return [error, locked, await db.$count(users), await db.$count(tags)]
  },
  'migrate to a changed schema': async ({ db, port }) => {
    await migrate(db, { migrationsFolder: await migrations(port, [before, after]), migrationsSchema: 'orms_log' })
    return (await db.execute(sql`SELECT column_name, data_type, split_part(column_default, '::', 1) AS d, is_nullable FROM information_schema.columns WHERE table_schema = 'orms' AND table_name IN ('users', 'posts', 'tags') ORDER BY table_name, ordinal_position`)).rows
  },
  'rows after it': async ({ db }) => (await db.execute(sql`SELECT email, phone, balance::text, role, lower FROM orms.users ORDER BY id`)).rows,
  'nothing is left': async ({ db }) => {
    await db.execute(sql`DROP SCHEMA orms CASCADE`)
    await db.execute(sql`DROP SCHEMA orms_log CASCADE`)
    return (await db.execute(sql`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'orms%'`)).rows
  },
})
