// TypeORM: synchronize, its schema builder's comparison of tables with entities, migrations, its query runner, and repositories.
import 'reflect-metadata'
import {
  ArrayContains, Brackets, DataSource, EntitySchema, ILike, In, IsNull, LessThan, MoreThan, Not, Raw, Table, TableCheck, TableColumn, TableForeignKey, TableIndex,
  TableUnique,
} from 'typeorm'
import { byName, compare, refused, SCHEMA } from './compare.js'

const entities = (changed) => {
  const User = new EntitySchema({
    name: 'User', tableName: 'users', comment: 'who logs in',
    columns: {
      id: { type: Number, primary: true, generated: 'increment' },
      key: { type: 'uuid', generated: 'uuid' },
      email: { type: String, length: 100, unique: true },
      name: { type: 'varchar', nullable: true, default: changed ? 'nobody' : null, comment: 'as it is shown' },
      role: { type: 'enum', enum: changed ? ['admin', 'user', 'guest'] : ['admin', 'user'], enumName: 'user_role', default: 'user' },
      roles: { type: 'enum', enum: ['a', 'b'], array: true, default: [] },
      data: { type: 'jsonb', default: {} },
      list: { type: 'simple-array', nullable: true },
      tags: { type: 'text', array: true, default: [] },
      balance: { type: 'numeric', precision: 12, scale: 2, default: 0 },
      visits: { type: 'bigint', default: 0 },
      ratio: { type: 'double precision', nullable: true },
      born: { type: 'date', nullable: true },
      wakes: { type: 'time', nullable: true },
      seen: { type: 'timestamptz', precision: 3, nullable: true },
      span: { type: 'interval', nullable: true },
      picture: { type: 'bytea', nullable: true },
      address: { type: 'inet', nullable: true },
      during: { type: 'int4range', nullable: true },
      active: { type: Boolean, default: true },
      created: { createDate: true, type: 'timestamptz', select: false },
      updated: { updateDate: true, type: 'timestamptz', select: false },
      deleted: { deleteDate: true, type: 'timestamptz', nullable: true },
      version: { version: true, type: Number },
      ...(changed ? { phone: { type: 'varchar', length: 20, default: '-' } } : { nick: { type: 'char', length: 5, nullable: true } }),
    },
    indices: [{ name: 'by_name', columns: changed ? ['name', 'email'] : ['name'] }, { name: 'by_role', columns: ['role'], where: 'active', unique: false }],
    checks: [{ name: 'small_ratio', expression: '"ratio" < 100' }],
    relations: { posts: { type: 'one-to-many', target: 'Post', inverseSide: 'user' }, boss: { type: 'many-to-one', target: 'User', nullable: true, joinColumn: { name: 'boss_id' }, onDelete: 'SET NULL' } },
  })
  const Post = new EntitySchema({
    name: 'Post', tableName: 'posts',
    columns: {
      id: { type: 'bigint', primary: true, generated: 'identity', generatedIdentity: 'BY DEFAULT' },
      title: { type: String },
      score: { type: Number, default: 0 },
      twice: { type: Number, asExpression: 'score * 2', generatedType: 'STORED' },
    },
    uniques: [{ name: 'one_title', columns: ['title', 'user'] }],
    relations: {
      user: { type: 'many-to-one', target: 'User', inverseSide: 'posts', onDelete: 'CASCADE', nullable: false, joinColumn: { name: 'user_id' } },
      tags: { type: 'many-to-many', target: 'Tag', joinTable: { name: 'post_tags' }, cascade: true },
    },
  })
  const Tag = new EntitySchema({ name: 'Tag', tableName: 'tags', columns: { name: { type: String, primary: true }, ...(changed ? { color: { type: String, nullable: true } } : {}) } })
  const Active = new EntitySchema({
    name: 'Active', tableName: 'active_users', type: 'view', expression: `SELECT id, name FROM ${SCHEMA}.users WHERE active`,
    columns: { id: { type: Number }, name: { type: String } },
  })
  return [User, Post, Tag, Active]
}

class AddNote1700000000001 {
  name = 'AddNote1700000000001'

  async up(runner) {
    await runner.addColumn(`${SCHEMA}.tags`, new TableColumn({ name: 'note', type: 'varchar', length: '10', isNullable: true }))
    await runner.query(`UPDATE ${SCHEMA}.tags SET note = 'x'`)
  }

  async down(runner) {
    await runner.dropColumn(`${SCHEMA}.tags`, 'note')
  }
}

class CreateOrders1700000000002 {
  name = 'CreateOrders1700000000002'

  async up(runner) {
    await runner.createTable(new Table({
      name: `${SCHEMA}.orders`,
      columns: [
        { name: 'id', type: 'uuid', isPrimary: true, generationStrategy: 'uuid', isGenerated: true },
        { name: 'amount', type: 'numeric', precision: 10, scale: 2, default: '0' },
        { name: 'state', type: 'enum', enum: ['new', 'paid'], default: "'new'" },
        { name: 'user_id', type: 'int' },
        { name: 'placed', type: 'timestamp', default: 'now()' },
      ],
      foreignKeys: [{ name: 'of_user', columnNames: ['user_id'], referencedTableName: `${SCHEMA}.users`, referencedColumnNames: ['id'], onDelete: 'CASCADE', deferrable: 'INITIALLY DEFERRED' }],
      checks: [{ name: 'amount_positive', expression: 'amount >= 0' }],
      uniques: [{ name: 'once', columnNames: ['user_id', 'placed'] }],
      indices: [{ name: 'orders_state', columnNames: ['state'] }],
    }), true)
  }

  async down(runner) {
    await runner.dropTable(`${SCHEMA}.orders`)
  }
}

const connect = (port, changed) => new DataSource({
  type: 'postgres', host: '127.0.0.1', port, username: 'postgres', database: 'shop', schema: SCHEMA, entities: entities(changed), uuidExtension: 'pgcrypto',
  migrations: [AddNote1700000000001, CreateOrders1700000000002], installExtensions: false,
}).initialize()

async function open(port) {
  const db = await connect(port, false)
  await withRunner(db, (runner) => runner.createSchema(SCHEMA, true))
  return { db, port }
}

/** Releases the connection of the query runner, on which `db.destroy` would wait, after an error, too. */
async function withRunner(db, work) {
  const runner = db.createQueryRunner()
  try {
    return await work(runner)
  } finally {
    await runner.release()
  }
}

const table = ({ name, columns, indices, uniques, checks, foreignKeys }) => ({
  name,
  // its queries have no ORDER BY
  columns: columns.map(({ '@instanceof': _, ...column }) => column).sort(byName),
  indices: indices.map((i) => [i.name, i.columnNames, i.isUnique, i.where?.replace(/[()]/g, '')]).sort(),
  uniques: uniques.map((u) => [u.name, u.columnNames, u.deferrable]).sort(),
  checks: checks.map((c) => c.name).sort(),
  foreignKeys: foreignKeys.map((f) => [f.name, f.columnNames, f.referencedTableName, f.referencedColumnNames, f.onDelete, f.onUpdate, f.deferrable]).sort(),
})
const sql = ({ upQueries, downQueries }) => [upQueries.map((q) => q.query), downQueries.map((q) => q.query)]

await compare(open, ({ db }) => db.destroy(), {
  synchronize: async ({ db }) => db.synchronize(),
  'the schema builder finds no difference': async ({ db }) => sql(await db.driver.createSchemaBuilder().log()),
  'tables of the query runner': ({ db }) => withRunner(db, async (runner) => {
    const tables = await runner.getTables(['users', 'posts', 'tags', 'post_tags'].map((name) => `${SCHEMA}.${name}`))
    const views = await runner.getViews([])
    return [tables.map(table).sort(byName), views.map((v) => [v.name, v.materialized])]
  }),
  'has, databases, schemas': ({ db }) => withRunner(db, async (runner) => [
    await runner.hasTable(`${SCHEMA}.users`), await runner.hasTable('nowhere'), await runner.hasColumn(`${SCHEMA}.users`, 'nick'), await runner.hasSchema(SCHEMA),
    await runner.hasDatabase('shop'), await runner.getCurrentDatabase(), await runner.getCurrentSchema(), await runner.getVersion().then((v) => v.split('.')[0]),
  ]),
  'save and insert': async ({ db }, own) => {
    own.users = db.getRepository('User')
    own.posts = db.getRepository('Post')
    const ann = await own.users.save({ email: 'a@b.c', name: 'ann', data: { a: [1, { b: 'x' }] }, list: ['p', 'q'], tags: ['x', 'y'], roles: ['a', 'b'], balance: '12.50', ratio: 0.1, born: '2000-02-29', wakes: '07:30', seen: new Date('2026-01-02T03:04:05.678Z'), span: '1 day 02:00', picture: Buffer.from([0, 255]), address: '10.0.0.1', during: '[1,5)' })
    const many = await own.users.insert([{ email: 'b@b.c', name: 'bob', boss: ann }, { email: 'c@b.c', role: 'admin', visits: '9007199254740993' }])
    await own.posts.save([1, 2, 3].map((n) => ({ title: `post ${n}`, score: n, user: ann, tags: n === 1 ? [{ name: 'red' }, { name: 'blue' }] : [] })))
    return [ann.id, ann.version, ann.role, many.identifiers, many.generatedMaps.map((m) => [m.id, m.role, m.version])]
  },
  find: async (_, { users, posts }) => [
    await users.find({ order: { id: 'ASC' } }).then((rows) => rows.map(({ key, ...row }) => row)),
    await users.find({ where: { posts: { score: MoreThan(1) } }, relations: { posts: true, boss: true }, order: { id: 'ASC', posts: { id: 'DESC' } }, take: 1 }).then((rows) => rows.map((u) => [u.id, u.posts.map((p) => [p.title, p.twice])])),
    await posts.findAndCount({ relations: { tags: true, user: { boss: true } }, skip: 0, take: 2, order: { id: 'ASC', tags: { name: 'ASC' } } }).then(([rows, n]) => [n, rows.map((p) => [p.title, p.user.email, p.tags])]),
    await users.findBy([{ name: ILike('A%') }, { role: In(['admin']) }]).then((rows) => rows.length),
    await users.findBy({ tags: ArrayContains(['x']), boss: IsNull(), name: Not('x'), ratio: LessThan(1), email: Raw((a) => `lower(${a}) = :m`, { m: 'a@b.c' }) }).then((rows) => rows.length),
    await users.existsBy({ email: 'a@b.c' }), await posts.sum('score'), await posts.average('score'), await posts.count({ where: { user: { email: 'a@b.c' } } }),
  ],
  'query builder': async ({ db }, { users, posts }) => [
    await users.createQueryBuilder('u').leftJoinAndSelect('u.posts', 'p', 'p.score > :s', { s: 1 }).orderBy('u.id').addOrderBy('p.score', 'DESC').skip(0).take(2).getMany().then((rows) => rows.map((u) => [u.id, u.posts.map((p) => p.id)])),
    await posts.createQueryBuilder('p').select('p.user_id', 'u').addSelect('sum(p.score)', 's').groupBy('p.user_id').having('sum(p.score) > :m', { m: 2 }).getRawMany(),
    await users.createQueryBuilder('u').where(new Brackets((q) => q.where('u.role = :r', { r: 'admin' }).orWhere('u.id IN (:...ids)', { ids: [1, 2] }))).andWhere((q) => `u.id NOT IN ${q.subQuery().select('p.user_id').from('Post', 'p').where('p.score > 100').getQuery()}`).orderBy('u.name', 'ASC', 'NULLS FIRST').getMany().then((rows) => rows.map((u) => u.id)),
    await db.createQueryBuilder().addCommonTableExpression("SELECT id FROM orms.users WHERE role = 'admin'", 'a').select('a.id', 'id').from('a', 'a').getRawMany(),
    await users.createQueryBuilder('u').distinctOn(['u.role']).orderBy('u.role').addOrderBy('u.id', 'DESC').getMany().then((rows) => rows.map((u) => u.id)),
    await db.createQueryBuilder().insert().into('User').values([{ email: 'b@b.c', name: 'bobby' }]).orUpdate(['name'], ['email']).returning(['id', 'name']).execute().then((r) => [r.raw[0].id, r.raw[0].name]),
    await db.createQueryBuilder().insert().into('User').values({ email: 'b@b.c' }).orIgnore().execute().then((r) => r.raw),
    await db.createQueryBuilder().update('User').set({ visits: () => 'visits + 1' }).where('id = :id', { id: 1 }).returning(['visits', 'version']).execute().then((r) => [r.affected, r.raw]),
  ],
  'upsert, increment, soft delete': async (_, { users }) => {
    await users.upsert([{ email: 'b@b.c', name: 'rob' }, { email: 'd@b.c', name: 'dan' }], { conflictPaths: ['email'], skipUpdateIfNoValuesChanged: true })
    await users.increment({ email: 'd@b.c' }, 'visits', 5)
    const dan = await users.findOneByOrFail({ email: 'd@b.c' })
    await users.softDelete(dan.id)
    const visible = await users.count()
    await users.restore(dan.id)
    await users.save({ ...dan, name: 'daniel' })
    const all = await users.count({ withDeleted: true })
    await users.remove(await users.findOneByOrFail({ email: 'd@b.c' }))
    return [visible, all, await users.count(), dan.visits]
  },
  'transactions and locks': async ({ db }, { users }) => {
    const error = await refused(() => db.transaction('SERIALIZABLE', async (m) => {
      await m.insert('User', { email: 'z@b.c' })
      await m.transaction(async (inner) => inner.update('User', { email: 'z@b.c' }, { name: 'z' }))
      await m.insert('User', { email: 'a@b.c' })
    }))
    const locked = await db.transaction(async (m) => m.getRepository('User').createQueryBuilder('u').setLock('pessimistic_write').setOnLocked('skip_locked').where('u.id = 1').getMany())
    const found = await db.transaction((m) => m.findOne('User', { where: { id: 1 }, lock: { mode: 'for_no_key_update' } }))
    return [error, locked.length, found.email, await users.count()]
  },
  'a query of a view': ({ db }) => withRunner(db, (runner) => runner.query('SELECT count(*) AS n FROM orms.active_users')),
  'entities that changed: the statements, and synchronize': async (own) => {
    await own.db.destroy()
    own.db = await connect(own.port, true)
    const log = sql(await own.db.driver.createSchemaBuilder().log())
    await own.db.synchronize()
    return [log, sql(await own.db.driver.createSchemaBuilder().log())]
  },
  'rows after it': ({ db }) => db.getRepository('User').find({ select: { id: true, email: true, name: true, phone: true, role: true, balance: true }, order: { id: 'ASC' } }),
  'migrations: run, show, undo': async ({ db }) => {
    const run = await db.runMigrations({ transaction: 'each' })
    const open = await db.showMigrations()
    const orders = await withRunner(db, (runner) => runner.getTable(`${SCHEMA}.orders`))
    await db.undoLastMigration()
    await db.undoLastMigration({ transaction: 'all' })
    const again = await db.runMigrations({ transaction: 'all' })
    return [run.map((m) => m.name), open, table(orders), again.length]
  },
  'the query runner changes tables': ({ db }) => withRunner(db, async (runner) => {
    const name = `${SCHEMA}.orders`
    await runner.addColumn(name, new TableColumn({ name: 'mood', type: 'enum', enum: ['good', 'bad'], isArray: true, isNullable: true }))
    await runner.changeColumn(name, 'amount', new TableColumn({ name: 'total', type: 'numeric', precision: 10, scale: 2, isNullable: true, comment: 'with tax' }))
    await runner.renameColumn(name, 'placed', 'at')
    await runner.createIndex(name, new TableIndex({ name: 'by_total', columnNames: ['total'], where: 'total > 5' }))
    await runner.createUniqueConstraint(name, new TableUnique({ name: 'one_total', columnNames: ['total'] }))
    await runner.createCheckConstraint(name, new TableCheck({ name: 'below', expression: 'total < 1000' }))
    await runner.createForeignKey(name, new TableForeignKey({ name: 'tag_fk', columnNames: ['tag'], referencedTableName: `${SCHEMA}.tags`, referencedColumnNames: ['name'] })).catch((e) => e.code)
    await runner.renameTable(name, 'sales')
    const sales = await runner.getTable(`${SCHEMA}.sales`)
    await runner.dropIndex(sales, 'by_total')
    await runner.dropUniqueConstraint(sales, 'one_total')
    await runner.dropCheckConstraint(sales, 'below')
    await runner.dropColumn(sales, 'mood')
    await runner.updatePrimaryKeys(sales, sales.columns.filter((c) => ['id', 'user_id'].includes(c.name)))
    await runner.clearTable(`${SCHEMA}.sales`)
    const after = await runner.getTable(`${SCHEMA}.sales`)
    return [table(sales), table(after)]
  }),
  dropDatabase: ({ db }) => withRunner(db, async (runner) => {
    await db.dropDatabase()
    await runner.dropSchema(SCHEMA, true, true)
    return runner.query("SELECT relname FROM pg_class WHERE relname IN ('users', 'posts', 'typeorm_metadata') AND relnamespace <> 'pg_catalog'::regnamespace")
  }),
})
