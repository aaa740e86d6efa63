// MikroORM: its schema generator's comparison of tables with entities, migrations of it, and the entity manager.
import { EntitySchema, LockMode, MikroORM, PostgreSqlDriver, raw } from '@mikro-orm/postgresql'
import { compare, refused, SCHEMA } from './compare.js'

const entities = (changed) => {
  const User = new EntitySchema({
    name: 'User', tableName: 'users', comment: 'who logs in',
    properties: {
      id: { type: 'integer', primary: true, autoincrement: true },
      key: { type: 'uuid', defaultRaw: 'gen_random_uuid()' },
      email: { type: 'string', length: 100, unique: true },
      name: { type: changed ? 'text' : 'string', nullable: true, comment: 'as it is shown' },
      role: { type: 'string', default: 'user' },
      state: { enum: true, items: changed ? ['new', 'old', 'older'] : ['new', 'old'], nativeEnumName: 'user_state', default: 'new' },
      data: { type: 'json', nullable: true },
      tags: { type: 'string[]', nullable: true },
      balance: { type: 'decimal', precision: changed ? 14 : 12, scale: 2, default: 0 },
      visits: { type: 'bigint', default: 0 },
      ratio: { type: 'double', nullable: true },
      born: { type: 'date', nullable: true },
      wakes: { type: 'time', nullable: true },
      seen: { type: 'datetime', nullable: true, length: 3 },
      picture: { type: 'blob', nullable: true },
      active: { type: 'boolean', default: true },
      lower: { type: 'string', generated: '(lower(email)) stored', nullable: true },
      posts: { kind: '1:m', entity: 'Post', mappedBy: 'user' },
      ...(changed ? { phone: { type: 'string', length: 20, default: '-' } } : { nick: { type: 'character', length: 5, nullable: true } }),
    },
    indexes: [{ name: 'by_name', properties: changed ? ['name', 'email'] : ['name'] }, { name: 'by_data', properties: ['data'], type: 'gin' }],
  })
  const Post = new EntitySchema({
    name: 'Post', tableName: 'posts',
    properties: {
      id: { type: 'bigint', primary: true, autoincrement: true },
      title: { type: 'string' },
      score: { type: 'integer', default: 0 },
      user: { kind: 'm:1', entity: 'User', deleteRule: 'cascade', deferMode: changed ? 'deferred' : undefined },
      tags: { kind: 'm:n', entity: 'Tag', pivotTable: 'post_tags' },
      version: { type: 'integer', version: true },
    },
    uniques: [{ name: 'one_title', properties: ['title', 'user'] }],
  })
  const Tag = new EntitySchema({ name: 'Tag', tableName: 'tags', properties: { name: { type: 'string', primary: true }, ...(changed ? { color: { type: 'string', nullable: true } } : {}) } })
  return [User, Post, Tag]
}

const connect = (port, changed) => MikroORM.init({
  driver: PostgreSqlDriver, host: '127.0.0.1', port, user: 'postgres', password: '', dbName: 'shop', schema: SCHEMA, entities: entities(changed), ensureDatabase: false,
  discovery: { disableDynamicFileAccess: true }, schemaGenerator: { managementDbName: 'shop' },
})
const open = async (port) => ({ orm: await connect(port, false), port })

await compare(open, ({ orm }) => orm.close(true), {
  'checkConnection and ensureDatabase': async ({ orm }) => [await orm.checkConnection(), await orm.schema.ensureDatabase()],
  'createSchema': ({ orm }) => orm.schema.createSchema({ schema: SCHEMA }),
  'the schema generator finds no difference': async ({ orm }) => [await orm.schema.getUpdateSchemaSQL({ schema: SCHEMA }), await orm.schema.getUpdateSchemaMigrationSQL({ schema: SCHEMA })],
  'flush': async ({ orm }) => {
    const em = orm.em.fork()
    const ann = em.create('User', { email: 'a@b.c', name: 'ann', data: { a: [1, { b: 'x' }] }, tags: ['x', 'y'], balance: '12.50', ratio: 0.1, born: '2000-02-29', wakes: '07:30', seen: new Date('2026-01-02T03:04:05.678Z'), picture: Buffer.from([0, 255]) })
    em.create('User', { email: 'b@b.c', role: 'admin', visits: 9007199254740993n })
    const [red, blue] = ['red', 'blue'].map((name) => em.create('Tag', { name }))
    for (let n = 1; n < 4; n += 1) em.create('Post', { title: `post ${n}`, score: n, user: ann, tags: n === 1 ? [red, blue] : [] })
    await em.flush()
    ann.name = 'anna'
    await em.flush()
    return [ann.id, ann.role, ann.active, String(ann.visits)]
  },
  'find': async ({ orm }) => {
    const em = orm.em.fork()
    const users = await em.findAll('User', { populate: ['posts.tags'], orderBy: { id: 'asc', posts: { id: 'desc' } } })
    const joined = await orm.em.fork().find('Post', { user: { name: { $ilike: 'A%' } }, score: { $gt: 1 } }, { populate: ['user'], strategy: 'joined', orderBy: { id: 1 }, limit: 2 })
    const [rows, n] = await orm.em.fork().findAndCount('Post', { tags: { name: ['red', 'blue'] } }, { limit: 1 })
    return [
      users.map((u) => [u.id, u.lower, u.data, u.tags, u.balance, String(u.visits), u.born, u.wakes, u.seen, u.posts.map((p) => [p.title, p.tags.length])]),
      joined.map((p) => [p.title, p.user.email]), rows.length, n,
      (await orm.em.fork().find('User', { data: { a: { $ne: null } } })).length,
      (await orm.em.fork().find('User', { tags: { $contains: ['x'] } })).length,
      (await orm.em.fork().find('User', { $or: [{ role: 'admin' }, { [raw('lower(email)')]: 'a@b.c' }] })).length,
    ]
  },
  'query builder and knex': async ({ orm }) => {
    const em = orm.em.fork()
    return [
      await em.createQueryBuilder('Post', 'p').select(['user', raw('sum(p.score) as total')]).groupBy('user').execute(),
      await em.createQueryBuilder('User').insert({ email: 'b@b.c', name: 'bob' }).onConflict('email').merge(['name']).returning(['id', 'name']).execute(),
      await em.createQueryBuilder('User').update({ visits: raw('visits + 1') }).where({ id: 1 }).execute(),
      await em.upsert('User', { email: 'c@b.c', name: 'cid' }).then((u) => [u.email, u.role]),
      (await em.upsertMany('User', [{ email: 'c@b.c', name: 'cyd' }, { email: 'd@b.c', name: 'dan' }])).map((u) => u.name),
      await em.nativeDelete('User', { email: 'd@b.c' }), await em.count('User'),
      await em.getConnection().execute('select count(*) from orms.users where id > ?', [0]),
    ]
  },
  'transactions and locks': async ({ orm }) => {
    const error = await refused(() => orm.em.fork().transactional(async (em) => {
      em.create('User', { email: 'z@b.c' })
      await em.flush()
      await em.transactional(async (inner) => { inner.create('User', { email: 'a@b.c' }) })
    }))
    const found = await orm.em.fork().transactional(async (em) => em.findOneOrFail('User', 1, { lockMode: LockMode.PESSIMISTIC_PARTIAL_WRITE }))
    const post = await orm.em.fork().transactional(async (em) => {
      const row = await em.findOneOrFail('Post', { title: 'post 1' }, { lockMode: LockMode.OPTIMISTIC, lockVersion: 1 })
      row.score = 10
      await em.flush()
      return row.version
    })
    return [error, found.email, post]
  },
  'entities that changed: the statements, and updateSchema': async (own) => {
    await own.orm.close(true)
    own.orm = await connect(own.port, true)
    const { up, down } = await own.orm.schema.getUpdateSchemaMigrationSQL({ schema: SCHEMA })
    await own.orm.schema.updateSchema({ schema: SCHEMA })
    return [up, down, await own.orm.schema.getUpdateSchemaSQL({ schema: SCHEMA })]
  },
  'rows after it': async ({ orm }) => (await orm.em.fork().find('User', {}, { orderBy: { id: 1 } })).map((u) => [u.email, u.name, u.phone, u.balance, u.role, u.state]),
  'nothing is left': async ({ orm }) => {
    await orm.em.getConnection().execute('drop schema orms cascade')
    return orm.em.getConnection().execute("select nspname from pg_namespace where nspname = 'orms'")
  },
})
