// Knex: migrations up and down, the schema builder, what it tells about tables, and queries.
import knex from 'knex'
import { compare, refused, SCHEMA } from './compare.js'

const open = (port) => knex({
  client: 'pg',
  connection: { host: '127.0.0.1', port, user: 'postgres', database: 'shop' },
  searchPath: [SCHEMA, 'public'],
  pool: { min: 0, max: 4 },
})

const MIGRATIONS = {
  first: {
    async up(db) {
      await db.schema.createTable('users', (t) => {
        t.increments('id')
        t.uuid('key').defaultTo(db.raw('gen_random_uuid()')).notNullable()
        t.string('email', 200).notNullable().unique()
        t.string('name').comment('as it is shown')
        t.boolean('active').defaultTo(db.raw('true'))
        t.enu('role', ['admin', 'user']).defaultTo('user')
        t.enu('state', ['new', 'old'], { useNative: true, enumName: 'user_state' }).defaultTo('new')
        t.json('settings')
        t.jsonb('data').defaultTo('{}')
        t.decimal('balance', 12, 2).defaultTo(0)
        t.double('ratio')
        t.float('factor')
        t.date('born')
        t.time('wakes')
        t.binary('picture')
        t.specificType('tags', 'text[]').defaultTo('{}')
        t.bigInteger('visits').unsigned().defaultTo(0)
        t.timestamps(true, true)
        t.index(['name', 'active'], 'users_by_name')
        t.comment('who logs in')
      })
    },
    down: (db) => db.schema.dropTable('users').raw('DROP TYPE user_state'),
  },
  second: {
    async up(db) {
      await db.schema.createTable('posts', (t) => {
        t.bigIncrements('id')
        t.integer('user_id').unsigned().notNullable().references('id').inTable('users').onDelete('CASCADE').onUpdate('RESTRICT')
        t.text('title').notNullable().checkLength('>', 0)
        t.integer('score').checkPositive('score_positive')
        t.timestamp('at', { useTz: false, precision: 3 }).defaultTo(db.fn.now(3))
        t.unique(['user_id', 'title'], { indexName: 'one_title', deferrable: 'deferred' })
        t.index(['score'], 'by_score', { predicate: db.whereNotNull('score') })
        t.index('title', 'by_title', 'hash')
      })
      await db.schema.alterTable('users', (t) => {
        t.string('phone', 20)
        t.string('name', 80).notNullable().defaultTo('nobody').alter()
        t.renameColumn('ratio', 'share')
        t.dropColumn('factor')
        t.setNullable('key')
        t.dropNullable('active')
      })
    },
    async down(db) {
      await db.schema.dropTable('posts')
      await db.schema.alterTable('users', (t) => {
        t.dropColumn('phone')
        t.renameColumn('share', 'ratio')
        t.float('factor')
      })
    },
  },
  third: {
    async up(db) {
      await db.schema.createView('active_users', (v) => {
        v.columns(['id', 'name'])
        v.as(db('users').select('id', 'name').where('active', true))
      })
      await db.schema.createMaterializedView('scores', (v) => v.as(db('posts').select('user_id').sum('score as total').groupBy('user_id')))
      await db.schema.alterTable('posts', (t) => {
        t.dropUnique(['user_id', 'title'], 'one_title')
        t.dropForeign('user_id')
        t.foreign('user_id', 'author').references('users.id').deferrable('deferred')
        t.dropIndex([], 'by_title')
      })
    },
    async down(db) {
      await db.schema.dropMaterializedView('scores').dropView('active_users')
      await db.schema.alterTable('posts', (t) => {
        t.dropForeign([], 'author')
        t.foreign('user_id').references('users.id')
        t.unique(['user_id', 'title'], 'one_title')
        t.index('title', 'by_title')
      })
    },
  },
}
const migrationSource = {
  getMigrations: async () => Object.keys(MIGRATIONS),
  getMigrationName: (name) => name,
  getMigration: async (name) => MIGRATIONS[name],
}

const CONSTRAINTS = `SELECT conrelid::regclass::text AS t, conname, contype, condeferrable, condeferred FROM pg_constraint
  WHERE connamespace = '${SCHEMA}'::regnamespace AND contype <> 'c' ORDER BY 1, 2`
const INDEXES = `SELECT tablename, indexname, split_part(indexdef, ' WHERE ', 1) AS d FROM pg_indexes
  WHERE schemaname = '${SCHEMA}' AND tablename <> 'scores' ORDER BY 1, 2`

await compare(open, (db) => db.destroy(), {
  'a schema': (db) => db.schema.createSchemaIfNotExists(SCHEMA),
  'migrate.latest': async (db) => (await db.migrate.latest({ migrationSource }))[1],
  'migrate.list and currentVersion': async (db) => [
    await db.migrate.list({ migrationSource }).then(([done, open]) => [done.map((m) => m.name), open]),
    await db.migrate.currentVersion({ migrationSource }),
    await db.migrate.status({ migrationSource }),
  ],
  columnInfo: async (db) => {
    const tables = [await db('users').columnInfo(), await db('posts').columnInfo(), await db('active_users').columnInfo()]
    // Tailgate shows defaults as they were typed
    return tables.map((columns) => Object.entries(columns).map(([name, column]) => [name, { ...column, defaultValue: column.defaultValue?.split('::')[0] }]).sort())
  },
  'hasTable and hasColumn': async (db) => [
    await db.schema.hasTable('users'), await db.schema.hasTable('nowhere'), await db.schema.hasTable('scores'),
    await db.schema.hasColumn('users', 'phone'), await db.schema.hasColumn('users', 'factor'),
  ],
  constraints: async (db) => (await db.raw(CONSTRAINTS)).rows,
  indexes: async (db) => (await db.raw(INDEXES)).rows,
  'insert with returning': (db) => db('users').insert([
    { email: 'a@b.c', name: 'ann', key: null, data: { a: [1, { b: 'x' }] }, tags: ['x', 'y'], balance: 12.5, born: '2000-02-29', share: 0.1 },
    { email: 'b@b.c', name: 'bob', key: null, settings: JSON.stringify({ z: 1 }), picture: Buffer.from([0, 255]), wakes: '07:30' },
    { email: 'c@b.c', key: null, role: 'admin', state: 'old', visits: '9007199254740993' },
  ], ['id', 'name', 'active', 'role', 'state', 'data', 'tags', 'balance', 'visits']),
  'ON CONFLICT': async (db) => [
    await db('users').insert({ email: 'a@b.c', name: 'eve', key: null }).onConflict('email').merge(['name']).returning(['id', 'name']),
    await db('users').insert({ email: 'a@b.c', name: 'fay', key: null }).onConflict('email').ignore().returning('id'),
    await db('users').insert({ email: 'a@b.c', name: 'gus', key: null }).onConflict(db.raw('(email)')).merge({ visits: db.raw('?? + 1', ['users.visits']) })
      .where('users.active', true).returning(['name', 'visits']),
  ],
  'errors of constraints': async (db) => [
    await refused(() => db('users').insert({ email: 'a@b.c' })),
    await refused(() => db('users').insert({ email: 'z@b.c', role: 'nobody' })),
    await refused(() => db('users').insert({ email: 'z@b.c', state: 'nobody' })),
    await refused(() => db('posts').insert({ user_id: 99, title: 'x' })),
    await refused(() => db('posts').insert({ user_id: 1, title: '' })),
    await refused(() => db('posts').insert({ user_id: 1, title: 'x', score: -1 })),
  ],
  batchInsert: async (db) => {
    await db.batchInsert('posts', Array.from({ length: 50 }, (_, i) => ({ user_id: 1 + (i % 2), title: `post ${i}`, score: i + 1 })), 20)
    return db('posts').count('* as n').sum('score as s').avg('score as a').min('title as m').countDistinct('user_id as d').first()
  },
  'joins, groups, windows': async (db) => [
    await db('users as u').leftJoin('posts as p', function on() { this.on('p.user_id', 'u.id').andOnVal('p.score', '>', 40) })
      .groupBy('u.id').select('u.id', 'u.name').count('p.id as n').orderBy('u.id').having(db.raw('count(p.id)'), '>=', 0),
    await db('posts').select('id').rowNumber('r', (q) => q.partitionBy('user_id').orderBy('score', 'desc')).orderBy('id').limit(4).offset(2),
    await db.with('top', db('posts').orderBy('score', 'desc').limit(3)).select('title').from('top').orderBy('title'),
    await db.withRecursive('n', ['i'], db.raw('select 1 union all select i + 1 from n where i < ?', [4])).select('*').from('n'),
    await db('users').whereIn('id', db('posts').distinct('user_id')).whereNotExists(db('posts').where('score', '>', 100)).pluck('name'),
    await db('posts').distinctOn('user_id').orderBy(['user_id', { column: 'score', order: 'desc', nulls: 'last' }]).select('user_id', 'score'),
    await db('users').select('name').union(db('posts').select('title').where('score', '<', 3)).orderBy('name'),
  ],
  JSON: async (db) => [
    await db('users').jsonExtract('data', '$.a[1].b', 'b').orderBy('id'),
    await db('users').whereJsonSupersetOf('data', { a: [1] }).pluck('id'),
    await db('users').whereJsonObject('data', {}).pluck('id'),
    await db('users').whereJsonPath('data', '$.a[0]', '=', 1).pluck('id'),
    await db('users').jsonSet('data', '$.c', 5, 'd').where('id', 1),
    await db('users').where({ id: 1 }).update({ data: db.jsonInsert('data', '$.q', '"new"') }, ['data']),
    await db('users').where({ id: 1 }).update({ data: db.jsonRemove('data', '$.q') }, ['data']),
  ],
  'search: LIKE, arrays, BETWEEN': async (db) => [
    await db('users').whereILike('email', 'A@%').orWhereLike('name', 'b%').orderBy('id').pluck('id'),
    await db('users').whereRaw('? = ANY(tags)', ['x']).pluck('id'),
    await db('posts').whereBetween('score', [3, 5]).orderBy('id').pluck('title'),
    await db('users').whereNull('phone').whereNot({ role: 'admin' }).count(),
  ],
  'transactions, savepoints and locks': async (db) => {
    const names = await db.transaction(async (t) => {
      await t('users').where({ id: 2 }).forUpdate().skipLocked().first('id')
      await t('users').where({ id: 2 }).increment('visits', 5)
      await t.transaction(async (inner) => {
        await inner('users').where({ id: 2 }).update({ name: 'undone' })
        throw new Error('undo')
      }).catch(() => undefined)
      return t('users').where({ id: 2 }).select('name', 'visits')
    }, { isolationLevel: 'repeatable read' })
    await db.transaction(async (t) => { await t('users').del(); throw new Error('undo') }).catch(() => undefined)
    return [names, await db('users').count()]
  },
  'update and delete': async (db) => [
    await db('posts').where('score', '>', 45).update({ title: db.raw("title || '!'") }).returning('title').then((rows) => rows.map((r) => r.title).sort()),
    await db('posts').where('score', '<', 3).del(['id', 'title']).then((rows) => rows.map((r) => r.id).sort()),
    await db('posts').updateFrom('users').where('posts.user_id', '=', db.ref('users.id')).where('users.name', 'bob').update({ score: 7 }),
  ],
  'views': async (db) => {
    await db.schema.refreshMaterializedView('scores')
    await db.schema.createViewOrReplace('active_users', (v) => {
      v.columns(['id', 'name', 'mail'])
      v.as(db('users').select('id', 'name', 'email').where('active', true))
    })
    return [await db('scores').orderBy('user_id'), await db('active_users').where('id', 1)]
  },
  'schema builder: rename and truncate': async (db) => {
    await db.schema.renameTable('posts', 'articles')
    await db('articles').truncate()
    await db.schema.renameTable('articles', 'posts')
    return db('posts').insert({ user_id: 1, title: 'first', score: 1 }, ['title'])
  },
  'migrate.rollback of all, and up again': async (db) => [
    (await db.migrate.down({ migrationSource }))[1],
    (await db.raw(CONSTRAINTS)).rows,
    (await db.migrate.rollback({ migrationSource }, true))[1],
    (await db.migrate.up({ migrationSource }))[1],
    (await db.migrate.latest({ migrationSource }))[1],
    (await db.migrate.rollback({ migrationSource }, true))[1],
  ],
  'nothing is left': async (db) => {
    await db.schema.dropTable('knex_migrations').dropTable('knex_migrations_lock')
    await db.schema.dropSchema(SCHEMA)
    return (await db.raw("SELECT relname FROM pg_class WHERE relname LIKE 'knex%' OR relname LIKE 'user%'")).rows
  },
})
