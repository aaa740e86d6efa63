// Sequelize: sync, sync with alter, what its query interface tells about tables, and models.
import { DataTypes, Op, QueryTypes, Sequelize, Transaction } from 'sequelize'
import { byName, compare, refused, SCHEMA } from './compare.js'

async function open(port) {
  const db = new Sequelize('shop', 'postgres', '', { host: '127.0.0.1', port, dialect: 'postgres', logging: false, define: { schema: SCHEMA } })
  await db.createSchema(SCHEMA)
  return db
}

function define(db, changed = false) {
  const User = db.define('user', {
    id: { type: DataTypes.INTEGER, autoIncrement: true, primaryKey: true },
    key: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4, unique: true },
    email: { type: DataTypes.STRING(changed ? 200 : 100), allowNull: false, unique: 'users_email', comment: 'where mail goes' },
    name: { type: changed ? DataTypes.TEXT : DataTypes.STRING, allowNull: changed, defaultValue: changed ? undefined : 'nobody' },
    role: { type: DataTypes.ENUM('admin', 'user', ...(changed ? ['guest'] : [])), defaultValue: 'user' },
    data: { type: DataTypes.JSONB, defaultValue: {} },
    settings: DataTypes.JSON,
    tags: { type: DataTypes.ARRAY(DataTypes.TEXT), defaultValue: [] },
    numbers: DataTypes.ARRAY(DataTypes.INTEGER),
    balance: { type: DataTypes.DECIMAL(12, 2), defaultValue: 0 },
    visits: { type: DataTypes.BIGINT, defaultValue: 0 },
    ratio: DataTypes.DOUBLE,
    small: DataTypes.SMALLINT,
    born: DataTypes.DATEONLY,
    wakes: DataTypes.TIME,
    seen: DataTypes.DATE(3),
    picture: DataTypes.BLOB,
    address: DataTypes.INET,
    active: { type: DataTypes.BOOLEAN, defaultValue: true, allowNull: false },
    ...(changed ? { phone: { type: DataTypes.STRING(20), defaultValue: '-' } } : { nick: DataTypes.CHAR(5) }),
  }, { paranoid: true, indexes: [{ fields: ['name', { name: 'email', order: 'DESC' }] }, { fields: ['data'], using: 'gin' }, { unique: true, fields: [db.fn('lower', db.col('email'))], name: 'by_lower_email', where: { active: true } }] })
  const Post = db.define('post', {
    id: { type: DataTypes.BIGINT, autoIncrement: true, primaryKey: true },
    title: { type: DataTypes.STRING, allowNull: false, validate: { notEmpty: true } },
    score: { type: DataTypes.INTEGER, defaultValue: 0 },
  }, { version: true })
  const Tag = db.define('tag', { name: { type: DataTypes.STRING, primaryKey: true } }, { timestamps: false })
  User.hasMany(Post, { foreignKey: { allowNull: false }, onDelete: 'CASCADE' })
  Post.belongsTo(User)
  Post.belongsToMany(Tag, { through: 'post_tag' })
  Tag.belongsToMany(Post, { through: 'post_tag' })
  return { User, Post, Tag }
}

const TABLE = { tableName: 'users', schema: SCHEMA }
const plain = (rows) => rows.map((row) => {
  const { createdAt, updatedAt, deletedAt, key, ...rest } = row.toJSON()
  return rest
})
// the queries of Sequelize have no ORDER BY
const columns = (described) => Object.entries(described).map(([name, column]) => [name, { ...column, special: [...column.special].sort() }]).sort()
const sorted = (rows) => rows.map((row) => JSON.stringify(row)).sort()

await compare(open, (db) => db.close(), {
  'authenticate and databaseVersion': async (db) => {
    await db.authenticate()
    return (await db.databaseVersion()).split('.')[0]
  },
  'sync with force': async (db, own) => {
    Object.assign(own, define(db))
    await db.sync({ force: true })
  },
  describeTable: async (db) => {
    const q = db.getQueryInterface()
    return [columns(await q.describeTable(TABLE)), columns(await q.describeTable({ tableName: 'post_tag', schema: SCHEMA }))]
  },
  'showAllTables, showAllSchemas, tableExists': async (db) => {
    const q = db.getQueryInterface()
    const tables = await q.showAllTables()
    return [sorted(tables.filter((t) => t.schema === SCHEMA)), (await db.showAllSchemas({ logging: false })).includes(SCHEMA), await q.tableExists(TABLE)]
  },
  showIndex: async (db) => {
    const found = await db.getQueryInterface().showIndex(TABLE)
    return found.map(({ name, unique, primary, fields, definition }) => ({ name, unique, primary, fields: name === 'by_lower_email' ? 0 : fields, definition: name === 'by_lower_email' ? 0 : definition }))
      .sort(byName)
  },
  'foreign keys': async (db) => {
    const q = db.getQueryInterface()
    return [await q.getForeignKeyReferencesForTable({ tableName: 'posts', schema: SCHEMA }), await q.getForeignKeysForTables(['post_tag'])]
  },
  'sync again changes nothing': (db) => db.sync().then(() => undefined),
  'create and bulkCreate': async (db, { User }) => [
    plain([await User.create({ email: 'a@b.c', name: 'ann', data: { a: { b: 5 }, l: [1, 2] }, tags: ['x', 'y'], numbers: [1, 2], balance: '12.50', born: '2000-02-29', wakes: '07:30:00', seen: new Date('2026-01-02T03:04:05.678Z'), picture: Buffer.from([0, 255]), address: '10.0.0.1', nick: 'an', ratio: 0.1 })]),
    plain(await User.bulkCreate([{ email: 'b@b.c', name: 'bob', visits: '9007199254740993' }, { email: 'c@b.c', role: 'admin' }], { returning: true })),
    plain(await User.bulkCreate([{ email: 'b@b.c', name: 'eve' }], { updateOnDuplicate: ['name'], conflictAttributes: ['email'], returning: true })),
    (await User.bulkCreate([{ email: 'b@b.c', name: 'fay' }], { ignoreDuplicates: true })).length,
  ],
  upsert: async (db, { User }) => {
    const [row, created] = await User.upsert({ id: 2, email: 'b@b.c', name: 'bob' }, { returning: true })
    return [plain([row]), created]
  },
  findOrCreate: async (db, { User }) => {
    const results = [await User.findOrCreate({ where: { email: 'd@b.c' }, defaults: { name: 'dan' } }), await User.findOrCreate({ where: { email: 'd@b.c' } })]
    return results.map(([row, created]) => [row.name, created])
  },
  'findOrCreate in a transaction': async (db, { User }) => db.transaction(async (transaction) => {
    const [row, created] = await User.findOrCreate({ where: { name: 'nobody here', email: 'x@b.c' }, transaction })
    return [row.name, created]
  }),
  'posts with tags': async (db, { User, Post, Tag }) => {
    const ann = await User.findOne({ where: { email: 'a@b.c' } })
    const posts = []
    for (let i = 0; i < 5; i += 1) posts.push(await ann.createPost({ title: `post ${i}`, score: i }))
    await Tag.bulkCreate([{ name: 'red' }, { name: 'blue' }])
    await posts[0].setTags(['red', 'blue'])
    await posts[1].addTag('red')
    return [await posts[0].countTags(), await ann.countPosts(), (await Post.create({ userId: ann.id, title: 'with', tags: [{ name: 'new' }] }, { include: Tag })).tags.length]
  },
  'find with include, limit and order': async (db, { User, Post, Tag }) => {
    const found = await User.findAndCountAll({
      include: [{ model: Post, where: { score: { [Op.gt]: 0 } }, required: false, include: [Tag] }],
      order: [['id', 'DESC'], [Post, 'id', 'ASC']], limit: 2, offset: 1, distinct: true,
    })
    const lazy = await Post.findAll({ include: [{ model: User, attributes: ['name'] }, { model: Tag, through: { attributes: [] } }], order: ['id'], limit: 3 })
    const separate = await User.findAll({ attributes: ['id'], include: [{ model: Post, separate: true, limit: 2, order: [['score', 'DESC']], attributes: ['score', 'userId'] }], order: ['id'] })
    return [found.count, found.rows.map((u) => [u.name, u.posts.map((p) => [p.title, p.tags.length])]), lazy.map((p) => [p.title, p.user.name, p.tags.length]), separate]
  },
  'operators': async (db, { User }) => {
    const ids = async (where) => (await User.findAll({ where, order: ['id'], attributes: ['id'] })).map((u) => u.id)
    return [
      await ids({ 'data.a.b': 5 }), await ids({ data: { [Op.contains]: { l: [1] } } }), await ids({ data: { a: { b: { [Op.gt]: 4 } } } }),
      await ids({ tags: { [Op.contains]: ['x'] } }), await ids({ tags: { [Op.overlap]: ['y', 'z'] } }), await ids({ numbers: { [Op.contained]: [1, 2, 3] } }),
      await ids({ name: { [Op.iLike]: 'A%' } }), await ids({ name: { [Op.regexp]: '^b' } }), await ids({ email: { [Op.startsWith]: 'c' } }),
      await ids({ id: { [Op.in]: [1, 3] } }), await ids({ [Op.or]: [{ role: 'admin' }, { ratio: { [Op.between]: [0, 1] } }] }),
      await ids(db.where(db.fn('char_length', db.col('name')), 3)), await ids({ name: { [Op.ne]: null }, deletedAt: { [Op.is]: null } }),
      await ids({ born: { [Op.lt]: new Date('2020-01-01') } }), await ids({ name: { [Op.iLike]: { [Op.any]: ['a%', 'b%'] } } }), await ids({ name: { [Op.notIRegexp]: '^B' } }),
    ]
  },
  'aggregates': async (db, { Post, User }) => [
    await Post.sum('score'), await Post.max('score'), await Post.min('title'), await Post.count({ group: ['userId'] }),
    await Post.findAll({ attributes: ['userId', [db.fn('COUNT', db.col('id')), 'n'], [db.fn('array_agg', db.literal('"title" ORDER BY "title"')), 'titles']], group: ['userId'], having: db.literal('count("id") > 1'), raw: true }),
    await User.aggregate('balance', 'avg', { dataType: 'float' }),
  ],
  'update, increment, destroy, restore': async (db, { User, Post }) => {
    const [n, rows] = await User.update({ name: 'ann b' }, { where: { email: 'a@b.c' }, returning: true })
    const [[changed]] = await User.increment({ visits: 5, small: 1 }, { where: { id: 1 } })
    const post = await Post.findOne({ order: ['id'] })
    await post.update({ title: 'changed' })
    await User.destroy({ where: { email: 'd@b.c' } })
    const visible = await User.count()
    await User.restore()
    return [n, plain(rows), changed.map((r) => r.visits), post.version, visible, await User.count(), await Post.destroy({ where: { score: 4 }, limit: 1 })]
  },
  'transactions': async (db, { User }) => {
    const error = await refused(() => db.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE }, async (transaction) => {
      await User.create({ email: 'z@b.c' }, { transaction })
      await db.transaction({ transaction }, async (inner) => User.update({ name: 'z' }, { where: {}, transaction: inner }))
      await User.create({ email: 'a@b.c' }, { transaction })
    }))
    const locked = await db.transaction(async (transaction) => User.findAll({ where: { id: 1 }, lock: transaction.LOCK.UPDATE, skipLocked: true, transaction, attributes: ['id'] }))
    return [error, locked.length, await User.count()]
  },
  'errors of constraints': async (db, { User, Post }) => [
    await refused(() => User.create({ email: 'a@b.c' })),
    await refused(() => Post.create({ title: 'x', userId: 99 })),
    await refused(() => User.create({ email: null })),
    await refused(() => db.query('INSERT INTO orms.users (email) VALUES (NULL)')),
    await User.create({ email: 'a@b.c' }).catch((e) => [e.fields, e.errors?.map((x) => x.path)]),
  ],
  'raw queries': async (db) => [
    await db.query('SELECT id, name FROM orms.users WHERE id = :id', { replacements: { id: 1 }, type: QueryTypes.SELECT }),
    await db.query('SELECT id FROM orms.users WHERE id = $1 OR email = $2 ORDER BY id', { bind: [1, 'b@b.c'], type: QueryTypes.SELECT }),
    (await db.query("UPDATE orms.users SET name = 'x' WHERE id = 3", { type: QueryTypes.UPDATE })),
  ],
  'query interface: columns': async (db) => {
    const q = db.getQueryInterface()
    await q.addColumn(TABLE, 'added', { type: DataTypes.INTEGER, allowNull: false, defaultValue: 5 })
    await q.addColumn(TABLE, 'mood', { type: DataTypes.ENUM('good', 'bad'), defaultValue: 'good' })
    await q.changeColumn(TABLE, 'added', { type: DataTypes.BIGINT, allowNull: true })
    await q.renameColumn(TABLE, 'added', 'renamed')
    const described = await q.describeTable(TABLE)
    await q.removeColumn(TABLE, 'renamed')
    await q.removeColumn(TABLE, 'mood')
    return columns({ renamed: described.renamed, mood: described.mood })
  },
  'query interface: indexes and constraints': async (db) => {
    const q = db.getQueryInterface()
    await q.addIndex(TABLE, ['ratio'], { name: 'by_ratio', concurrently: true })
    await q.addIndex(TABLE, { fields: ['small'], unique: true, name: 'by_small', where: { small: { [Op.gt]: 5 } } })
    await q.addConstraint(TABLE, { fields: ['ratio'], type: 'check', name: 'small_ratio', where: { ratio: { [Op.lt]: 100 } } })
    await q.addConstraint(TABLE, { fields: ['name', 'small'], type: 'unique', name: 'name_small' })
    await q.addConstraint({ tableName: 'posts', schema: SCHEMA }, { fields: ['score'], type: 'foreign key', name: 'score_fk', references: { table: TABLE, field: 'id' }, onDelete: 'set null' }).catch((e) => e.parent?.code)
    const shown = await db.query("SELECT constraint_name, constraint_type FROM information_schema.table_constraints WHERE table_schema = 'orms' AND constraint_name NOT LIKE '%not_null' ORDER BY 1, 2", { type: QueryTypes.SELECT })
    await q.removeConstraint(TABLE, 'small_ratio')
    await q.removeConstraint(TABLE, 'name_small')
    await q.removeIndex(TABLE, 'by_ratio', { concurrently: true })
    await q.removeIndex(TABLE, 'by_small')
    return shown
  },
  'sync with alter': async (db, own) => {
    Object.assign(own, define(db, true))
    await db.sync({ alter: true })
    return columns(await db.getQueryInterface().describeTable(TABLE))
  },
  'sync with alter, again': async (db) => {
    await db.sync({ alter: { drop: false } })
    return Object.keys(await db.getQueryInterface().describeTable(TABLE)).sort()
  },
  'renameTable, truncate, drop': async (db, { User, Tag }) => {
    const q = db.getQueryInterface()
    await q.renameTable({ tableName: 'tags', schema: SCHEMA }, 'labels')
    await q.renameTable({ tableName: 'labels', schema: SCHEMA }, 'tags')
    await User.truncate({ cascade: true, restartIdentity: true })
    const left = await Tag.count()
    await db.drop({ cascade: true })
    return [left, (await q.showAllTables()).filter((t) => t.schema === SCHEMA)]
  },
  'nothing is left': async (db) => {
    await db.dropSchema(SCHEMA)
    return (await db.query("SELECT typname FROM pg_type WHERE typname LIKE 'enum_%'", { type: QueryTypes.SELECT }))
  },
})
