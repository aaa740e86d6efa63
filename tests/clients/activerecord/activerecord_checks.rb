# Rails' ActiveRecord: migrations, the dump of the schema, introspection and models, each step on Tailgate and on PostgreSQL.
require 'active_record'
require 'json'

SCHEMA = 'rails'
PORTS = { 'tailgate' => ENV.fetch('PGPORT'), 'postgres' => ENV.fetch('CONTROL_PORT') }.freeze
ActiveRecord::Base.logger = Logger.new(ENV['STATEMENTS'], formatter: ->(*, message) { "#{message}\n" }) if ENV['STATEMENTS']
ActiveRecord::Migration.verbose = false
ActiveRecord::Base.default_timezone = :utc

class CreateShop < ActiveRecord::Migration[6.1]
  def change
    create_table :authors, comment: 'who writes' do |t|
      t.string :name, null: false, limit: 80
      t.string :email, index: { unique: true }
      t.integer :books_count, default: 0, null: false
      t.integer :lock_version, default: 0, null: false
      t.timestamps
    end
    create_table :books do |t|
      t.references :author, null: false, foreign_key: true
      t.string :title, null: false, comment: 'as printed'
      t.string :type
      t.integer :status, default: 0, null: false
      t.decimal :price, precision: 8, scale: 2
      t.jsonb :details, default: {}, null: false
      t.string :tags, array: true, default: []
      t.int4range :pages
      t.date :published_on
      t.binary :cover
      t.timestamps
      t.index %i[author_id title], unique: true
      t.index :published_on, order: { published_on: :desc }, where: 'status > 0', name: 'recent_books'
      t.index 'abs(status)', name: 'books_by_size'
      t.check_constraint 'status >= 0', name: 'status_is_known'
    end
    create_table :events, id: :uuid, default: -> { 'gen_random_uuid()' } do |t|
      t.text :note
      t.bigint :count
      t.float :ratio
      t.datetime :at, precision: 6
      t.time :clock
      t.boolean :done, default: false
      t.inet :address
      t.cidr :network
      t.macaddr :device
      t.bit :flags, limit: 4
      t.bit_varying :more_flags
      t.money :fee
      t.json :payload
      t.interval :lasts
      t.numrange :amounts
      t.tstzrange :during
      t.numeric :exact
      t.references :subject, polymorphic: true
    end
    create_join_table :authors, :events, column_options: { type: :bigint }
  end
end

class ChangeShop < ActiveRecord::Migration[6.1]
  def up
    add_column :books, :rating, :integer, default: 3, null: false
    change_column :books, :rating, :decimal, precision: 4, scale: 1
    change_column :books, :title, :text
    change_column_default :books, :rating, from: 3, to: 2.5
    change_column_null :books, :price, false, 1
    change_column_comment :books, :rating, 'of five'
    change_table_comment :books, 'what is sold'
    rename_column :books, :published_on, :printed_on
    rename_index :books, 'recent_books', 'newest_books'
    add_index :books, :tags, using: :gin
    remove_index :books, name: 'books_by_size'
    add_reference :books, :editor, foreign_key: { to_table: :authors, on_delete: :nullify }, index: { name: 'by_editor' }
    add_check_constraint :authors, 'books_count >= 0', name: 'books_are_counted'
    remove_check_constraint :books, name: 'status_is_known'
    change_table(:authors, bulk: true) do |t|
      t.string :country, limit: 2
      t.text :biography
      t.change :email, :text
    end
    rename_table :books, :works
    execute "CREATE VIEW cheap_works AS SELECT id, title FROM works WHERE price < 10"
    execute "CREATE TYPE mood AS ENUM ('sad', 'happy')"
    add_column :authors, :mood, :mood
  end

  def down
    remove_column :authors, :mood
    execute 'DROP TYPE mood'
    execute 'DROP VIEW cheap_works'
    rename_table :works, :books
    change_table(:authors, bulk: true) do |t|
      t.remove :country, :biography
      t.change :email, :string
    end
    add_check_constraint :books, 'status >= 0', name: 'status_is_known'
    remove_check_constraint :authors, name: 'books_are_counted'
    remove_reference :books, :editor
    add_index :books, 'abs(status)', name: 'books_by_size'
    remove_index :books, :tags
    rename_index :books, 'newest_books', 'recent_books'
    rename_column :books, :printed_on, :published_on
    change_table_comment :books, nil
    change_column :books, :title, :string
    remove_column :books, :rating
  end
end

class IndexWithoutLocks < ActiveRecord::Migration[6.1]
  disable_ddl_transaction!

  def up
    add_index :authors, :country, algorithm: :concurrently
    add_foreign_key :works, :works, column: :author_id, name: 'pointless', validate: false
    remove_foreign_key :works, name: 'pointless'
  end

  def down
    remove_index :authors, :country, algorithm: :concurrently
  end
end

class Failing < ActiveRecord::Migration[6.1]
  def change
    create_table(:lost) { |t| t.string :name }
    execute 'SELECT 1 / 0'
  end
end

MIGRATIONS = [CreateShop, ChangeShop, IndexWithoutLocks].freeze

class Author < ActiveRecord::Base
  has_many :works, dependent: :destroy
  validates :email, uniqueness: true, allow_nil: true
end

class Work < ActiveRecord::Base
  belongs_to :author, counter_cache: :books_count
  belongs_to :editor, class_name: 'Author', optional: true
  enum status: { draft: 0, printed: 1, sold_out: 2 }
  store_accessor :details, :isbn
  scope :cheap, -> { where('price < ?', 10) }
end

class Novel < Work; end

class Event < ActiveRecord::Base
  attribute :lasts, :interval
  belongs_to :subject, polymorphic: true, optional: true
end

NOW = Time.utc(2026, 5, 1, 12, 30, 15.123456r)
STEPS = {}

def step(name, &work) = STEPS[name] = work
def connection = ActiveRecord::Base.connection

def refused
  yield && 'no error'
rescue ActiveRecord::ActiveRecordError => error
  [error.class.name, error.cause&.class&.name]
end

def migrator(direction, migrations, version = nil)
  proxies = migrations.each_with_index.map { |migration, i| migration.new(migration.name, 20_260_501_000_000 + i + 1) }
  ActiveRecord::Migrator.new(direction, proxies, ActiveRecord::SchemaMigration, version)
end

def forget
  [Author, Work, Novel, Event].each(&:reset_column_information)
end

def schema
  stream = StringIO.new
  ActiveRecord::SchemaDumper.dump(connection, stream)
  stream.string.lines.grep_v(/version:|^#/)
end

def introspected
  connection.schema_cache.clear!
  connection.data_sources.sort.to_h do |table|
    columns = connection.columns(table).map { |c| [c.name, c.sql_type, c.null, c.default, c.default_function, c.comment, c.array, c.serial?] }
    indexes = connection.indexes(table).sort_by(&:name).map { |i| [i.name, i.columns, i.unique, i.where, i.using, i.orders, i.comment] }
    keys = connection.foreign_keys(table).sort_by(&:name).map { |k| [k.name, k.to_table, k.options] }
    checks = connection.tables.include?(table) ? connection.check_constraints(table).map(&:name).sort : []
    [table, [columns, indexes, keys, checks, connection.primary_keys(table), connection.pk_and_sequence_for(table)&.map(&:to_s)]]
  end
end

step('connects') { [connection.active?, connection.encoding, connection.schema_names & [SCHEMA], connection.current_schema, connection.extensions] }
step('migrates, with advisory locks') { migrator(:up, MIGRATIONS.first(1)).migrate && ActiveRecord::SchemaMigration.all_versions }
step('dumps the schema') { schema }
step('introspects the schema') { introspected }
step('changes the schema') { migrator(:up, MIGRATIONS).migrate && ActiveRecord::InternalMetadata.pluck(:key, :value) }
step('dumps the changed schema') { schema }
step('introspects the changed schema') { introspected }
step('names of keys, sequences and indexes after rename_table') do
  connection.select_rows("SELECT relname, relkind FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = '#{SCHEMA}' ORDER BY 1")
end
step('rolls back and migrates again') do
  [migrator(:down, MIGRATIONS, 20_260_501_000_001).migrate && schema, migrator(:up, MIGRATIONS).migrate && schema]
end
step('a migration that fails') do
  error = refused { ActiveRecord::Migrator.new(:up, [Failing.new('Failing', 20_260_601_000_000)], ActiveRecord::SchemaMigration).migrate }
  [error, connection.table_exists?(:lost)]
rescue StandardError => e
  [e.class.name, connection.table_exists?(:lost)]
end
step('creates and finds') do
  forget
  ada = Author.create!(name: 'Ada', email: 'ada@example.com', created_at: NOW, updated_at: NOW)
  bob = Author.create!(name: 'Bob', created_at: NOW, updated_at: NOW, mood: 'happy')
  work = Work.create!(author: ada, title: 'One', price: '9.99', tags: %w[a b], pages: 1...300, printed_on: '2026-01-31', cover: "\x00\xff".b,
                      isbn: '123', created_at: NOW, updated_at: NOW)
  Novel.create!(author: ada, title: 'Two', price: 20, status: :printed, created_at: NOW, updated_at: NOW, editor: bob)
  Novel.create!(author: bob, title: 'Three', price: '0.5', details: { isbn: '9', n: [1, 2] }, created_at: NOW, updated_at: NOW)
  [Author.order(:id).map(&:attributes), Work.order(:id).map { |w| w.attributes.merge('cover' => w.cover&.bytes) }, work.reload.pages, work.isbn, Novel.count]
end
step('every type') do
  Event.create!(id: '00000000-0000-0000-0000-000000000001', note: 'é', count: 2**62, ratio: 0.1, at: NOW, clock: '08:09:10', done: true,
                address: '10.0.0.1', network: '10.0.0.0/8', device: '08:00:2b:01:02:03', flags: '0101', more_flags: '11', fee: '12.34',
                payload: { 'a' => [1, nil] }, lasts: 36.hours, amounts: BigDecimal('1.5')..BigDecimal('2.5'), during: NOW..(NOW + 60),
                exact: BigDecimal('1.2300'), subject: Work.first)
  event = Event.find('00000000-0000-0000-0000-000000000001')
  [event.attributes.transform_values(&:to_s), event.subject.title, Event.where(address: '10.0.0.1', during: event.during).count]
end
step('queries') do
  [
    Author.joins(:works).where(works: { status: 'printed' }).pluck(:name),
    Author.includes(:works).order(:id).map { |a| a.works.map(&:title).sort },
    Author.eager_load(:works).order('authors.id, works.id').map { |a| a.works.size },
    Author.left_joins(:works).group('authors.name').order('authors.name').count('works.id'),
    Work.group(:status).sum(:price), Work.average(:price), Work.minimum(:printed_on), Work.distinct.count(:author_id),
    Work.where("details->>'isbn' = ?", '123').pluck(:title), Work.where("'a' = ANY (tags)").ids, Work.where('pages @> 5').ids,
    Work.where(title: %w[One Two], price: 5..).order(Arel.sql('lower(title) DESC')).limit(1).offset(1).pluck(:title),
    Work.cheap.or(Work.where(author: Author.last)).order(:id).ids, Work.where.not(editor: nil).ids, Work.exists?(title: 'None'),
    Work.where(author_id: Author.where(name: 'Ada').select(:id)).count, Work.from(Work.where('price > 1'), :works).count,
    Work.find_by_sql(['WITH w AS (SELECT *, rank() OVER (ORDER BY price) AS place FROM works) SELECT * FROM w WHERE place <= ?', 2]).map(&:title),
    Work.order(:id).find_each(batch_size: 2).map(&:id), Work.in_batches(of: 2).sum { |batch| batch.update_all('rating = rating + 1') },
    Work.optimizer_hints('x').count, Work.annotate('a comment').where(id: 1).pick(:title), Work.unscoped.reselect(:title).order(title: :desc).map(&:title),
    Author.find_by('lower(name) = ?', 'bob').name, Work.order(Work.arel_table[:price].desc.nulls_last).first.title
  ]
end
step('inserts and upserts many') do
  rows = [{ name: 'Cy', email: 'cy', created_at: NOW, updated_at: NOW }, { name: 'Di', email: 'ada@example.com', created_at: NOW, updated_at: NOW }]
  [
    Author.insert_all(rows, unique_by: :email, returning: %i[name]).rows,
    Author.upsert_all(rows.map { |row| row.merge(country: 'uk') }, unique_by: :email, returning: %i[name country]).rows,
    refused { Author.insert_all!(rows) }, Author.upsert({ id: 1, name: 'Ada L', created_at: NOW, updated_at: NOW }, returning: :id).rows,
    Author.order(:name).pluck(:name, :email, :country), Author.insert_all([{ name: 'E', created_at: NOW, updated_at: NOW }]).columns
  ]
end
step('updates, locks, transactions and savepoints') do
  ada, stale = Author.find_by(email: 'ada@example.com'), Author.find_by(email: 'ada@example.com')
  ada.update!(biography: 'x', updated_at: NOW)
  result = [refused { stale.update!(biography: 'y') }, ada.works.size, ada.books_count]
  Author.transaction do
    ada.with_lock { ada.increment!(:lock_version, touch: false) }
    Author.transaction(requires_new: true) do
      Author.create!(name: 'lost')
      raise ActiveRecord::Rollback
    end
    Author.create!(name: 'kept', created_at: NOW, updated_at: NOW)
  end
  result << Author.where(name: %w[lost kept]).pluck(:name) << Author.lock('FOR UPDATE SKIP LOCKED').order(:id).first.id
  result << Author.transaction(isolation: :serializable) { Author.count } << Author.where(name: 'kept').delete_all
  result << Work.last.destroy.title << Author.order(:id).pluck(:books_count) << Work.first.touch(time: NOW)
  result
end
step('errors') do
  [
    refused { Author.create!(name: nil) }, refused { Work.create!(author_id: 1, title: 'One', price: 1) }, refused { Author.create!(email: 'ada@example.com', name: 'x') },
    refused { Author.insert({ name: 'x' * 81, created_at: NOW, updated_at: NOW }) }, refused { Work.insert({ author_id: 999, title: 'x', price: 1, created_at: NOW, updated_at: NOW }) },
    refused { connection.execute('SELECT * FROM missing') }, refused { connection.execute('SELEC') }, refused { connection.execute('SELECT 99999999999::int') },
    refused { Author.where('books_count = -1').update_all('books_count = -2') }, refused { Author.update_all(books_count: -1) },
    refused { Author.transaction { connection.execute('SET LOCAL statement_timeout = 20') && connection.execute('SELECT pg_sleep(2)') } }
  ]
end
step('fixtures: rows without checks of foreign keys, sequences behind them') do
  connection.insert_fixtures_set({ 'authors' => [{ id: 500, name: 'fixture', created_at: NOW, updated_at: NOW }] }, ['events'])
  connection.disable_referential_integrity { connection.execute('DELETE FROM authors_events') }
  connection.reset_pk_sequence!('authors')
  [Event.count, Author.create!(name: 'next').id, connection.truncate_tables('events', 'authors_events').nil?]
end
step('prepared statements, cursors and EXPLAIN') do
  [
    connection.exec_query('SELECT $1::int + 1 AS n', 'x', [ActiveRecord::Relation::QueryAttribute.new('n', 1, ActiveModel::Type::Integer.new)], prepare: true).rows,
    connection.select_value('SELECT ARRAY[1, 2]'), connection.select_all("SELECT 1.50::numeric AS n, now() - now() AS i, '{\"a\": 1}'::jsonb AS j").to_a.to_s,
    Author.where(id: 1).explain.include?('EXPLAIN for'), connection.supports_advisory_locks?, connection.get_advisory_lock(7), connection.release_advisory_lock(7)
  ]
end
step('rolls all migrations back') { migrator(:down, MIGRATIONS).migrate && connection.tables.sort }

def results(port)
  options = { adapter: 'postgresql', host: '127.0.0.1', port: port, username: 'postgres', database: 'shop' }
  ActiveRecord::Base.establish_connection(options)
  connection.execute("DROP SCHEMA IF EXISTS #{SCHEMA} CASCADE; CREATE SCHEMA #{SCHEMA}")
  ActiveRecord::Base.establish_connection(options.merge(schema_search_path: SCHEMA))
  found = STEPS.to_h do |name, work|
    [name, JSON.pretty_generate(work.call.as_json)]
  rescue StandardError => e
    [name, "#{e.class}: #{e.message[0, 600]}"]
  end
  connection.execute("DROP SCHEMA #{SCHEMA} CASCADE")
  found
end

def difference(ours, theirs)
  return "PostgreSQL: #{theirs}" if theirs.match?(/\A[A-Z]\w+(::\w+)*: /)
  return if ours == theirs

  a, b = ours.lines.map(&:strip), theirs.lines.map(&:strip)
  at = a.each_index.find { |i| a[i] != b[i] } || a.size
  "#{a[[at - 3, 0].max, 8].join(' ')} and not #{b[[at - 3, 0].max, 8].join(' ')}"
end

found = PORTS.transform_values { |port| results(port) }
STEPS.each_key.with_index(1) do |name, number|
  why = difference(found['tailgate'][name], found['postgres'][name])
  puts "#{'not ' if why}ok #{number} - #{name}"
  puts "  # #{why.gsub("\n", ' | ')}" if why
end
puts "1..#{STEPS.size}"
