import static org.jooq.impl.DSL.*;

import java.math.BigDecimal;
import java.sql.Connection;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import org.jooq.Cursor;
import org.jooq.DSLContext;
import org.jooq.Field;
import org.jooq.JSONB;
import org.jooq.Meta;
import org.jooq.Name;
import org.jooq.Record;
import org.jooq.Result;
import org.jooq.SQLDialect;
import org.jooq.Table;
import org.jooq.impl.SQLDataType;

/** Checks jOOQ: its DDL and metadata, and queries of its DSL. */
public final class JooqChecks {
    private static final String SCHEMA = Comparison.SCHEMA;
    private static final Name PEOPLE = name(SCHEMA, "people");
    private static final Name ORDERS = name(SCHEMA, "orders");
    private static final Table<Record> P = table(PEOPLE).as("p");
    private static final Table<Record> O = table(ORDERS).as("o");
    private static final Field<Integer> P_ID = field(name("p", "id"), Integer.class);
    private static final Field<String> P_NAME = field(name("p", "name"), String.class);
    private static final Field<Integer> O_PERSON = field(name("o", "person"), Integer.class);
    private static final Field<BigDecimal> O_AMOUNT = field(name("o", "amount"), BigDecimal.class);
    private static final Field<Integer> O_ID = field(name("o", "id"), Integer.class);

    interface Work {
        Object run(DSLContext dsl) throws Exception;
    }

    private static Comparison.Step with(Work work) {
        return server -> {
            try (Connection connection = server.connect()) {
                return work.run(using(connection, SQLDialect.POSTGRES));
            }
        };
    }

    private static String rows(Result<?> result) {
        return result.formatJSON();
    }

    private static List<String> metadata(DSLContext dsl) {
        Meta meta = dsl.meta().filterSchemas(schema -> schema.getName().equals(SCHEMA));
        List<String> lines = new ArrayList<>();
        for (Table<?> table : meta.getTables()) {
            lines.add(table + " " + table.getTableType() + " " + table.getPrimaryKey() + " " + table.getUniqueKeys() + " "
                + table.getReferences());
            for (Field<?> field : table.fields()) {
                lines.add(table.getName() + "." + field.getName() + " " + field.getDataType().getTypeName() + " " + field.getDataType()
                    .nullability());
            }
        }
        meta.getSequences().forEach(each -> lines.add(each.toString()));
        return lines.stream().sorted().toList();
    }

    private static void define(Comparison comparison) {
        comparison.check("DDL of its own", with(dsl -> {
            dsl.createSchemaIfNotExists(SCHEMA).execute();
            dsl.setSchema(SCHEMA).execute();
            dsl.createSequence("numbers").startWith(100).incrementBy(5).cache(10).execute();
            dsl.createType("mood").asEnum("good", "bad").execute();
            dsl.createDomain("amount").as(SQLDataType.NUMERIC(12, 2)).constraints(constraint("positive").check(condition("value >= 0")))
                .execute();
            dsl.createTableIfNotExists("people")
                .column("id", SQLDataType.INTEGER.identity(true)).column("name", SQLDataType.VARCHAR(50).nullable(false))
                .column("born", SQLDataType.LOCALDATE).column("data", SQLDataType.JSONB)
                .column("seen", SQLDataType.TIMESTAMPWITHTIMEZONE(3))
                .column("key", SQLDataType.UUID).column("tags", SQLDataType.VARCHAR.getArrayDataType())
                .constraints(primaryKey("id"), constraint("people_name").unique("name")).execute();
            dsl.createTable("orders").column("id", SQLDataType.INTEGER.identity(true)).column("person", SQLDataType.INTEGER)
                .column("amount", SQLDataType.DECIMAL(12, 2).defaultValue(BigDecimal.ZERO)).column("placed", SQLDataType.LOCALDATETIME(6))
                .constraints(constraint("orders_key").primaryKey("id"),
                    constraint("orders_person").foreignKey("person").references("people", "id").onDeleteCascade(),
                    constraint("orders_amount").check(field(name("amount")).ge(inline(0)))).execute();
            dsl.createIndex("orders_by_person").on(table(name("orders")), field(name("person")).desc(), field(name("amount"))).execute();
            dsl.createUniqueIndexIfNotExists("people_lower").on(table(name("people")), lower(field(name("name"), String.class)))
                .execute();
            dsl.createOrReplaceView("totals").as(select(field(name("person")), sum(field(name("amount"), BigDecimal.class)).as("total"))
                .from(name("orders")).groupBy(field(name("person")))).execute();
            dsl.alterTable("people").addColumn("mood", SQLDataType.VARCHAR(10).defaultValue("good")).execute();
            dsl.alterTable("people").alterColumn("born").setNotNull().execute();
            dsl.alterTable("people").alterColumn("born").dropNotNull().execute();
            dsl.alterTable("people").renameColumn("key").to("code").execute();
            dsl.alterTable("people").alter("tags").set(SQLDataType.CLOB.getArrayDataType()).execute();
            dsl.commentOnTable("people").is("those who order").execute();
            dsl.commentOnColumn(name("people", "name")).is("first and last").execute();
            return dsl.createTableIfNotExists("people").column("id", SQLDataType.INTEGER).execute();
        }));
        comparison.check("tables", Comparison.Server::structure);
    }

    private static void write(Comparison comparison) {
        Field<Integer> id = field(name("id"), Integer.class);
        Field<String> name = field(name("name"), String.class);
        Field<JSONB> data = field(name("data"), SQLDataType.JSONB);
        Field<LocalDate> born = field(name("born"), LocalDate.class);
        comparison.check("insert, upsert, returning", with(dsl -> List.of(
            rows(dsl.insertInto(table(PEOPLE), name, born, data).values("ann", LocalDate.of(2000, 2, 29),
                JSONB.valueOf("{\"a\": [1, 2]}"))
                .values("bob", null, null).values("eve", LocalDate.of(1999, 1, 1), null).returningResult(id, name, data).fetch()),
            rows(dsl.insertInto(table(PEOPLE), name, data).values("bob", JSONB.valueOf("1")).onConflict(name).doUpdate().set(data,
                JSONB.valueOf("2"))
                .returningResult(id, data).fetch()),
            dsl.insertInto(table(PEOPLE), name).values("bob").onDuplicateKeyIgnore().execute(),
            dsl.batch(dsl.insertInto(table(ORDERS), field(name("person")), field(name("amount"))).values((Integer) null,
                (BigDecimal) null))
                .bind(1, new BigDecimal("10.50")).bind(1, new BigDecimal("2")).bind(2, new BigDecimal("7.25")).execute(),
            dsl.insertInto(table(ORDERS), field(name("person")), field(name("amount"))).select(select(field(name("p", "id")),
                field("1.5")).from(P)).execute())));
        comparison.check("update, delete, merge", with(dsl -> List.of(
            rows(dsl.update(table(PEOPLE)).set(name, name.concat("!")).where(name.eq("eve")).returningResult(name).fetch()),
            dsl.update(table(ORDERS)).set(field(name("amount"), BigDecimal.class), field(name("amount"), BigDecimal.class).add(1)).from(P)
                .where(P_ID.eq(field(name(SCHEMA, "orders", "person"), Integer.class))).and(P_NAME.eq("ann")).execute(),
            dsl.deleteFrom(table(ORDERS)).where(field(name("amount"), BigDecimal.class).lt(new BigDecimal("1.6")))
                .and(field(name("person")).eq(3)).execute(),
            dsl.mergeInto(table(PEOPLE).as("t")).using(select(val("ann").as("name"), val("joe").as("other"))).on(field(name("t",
                "name"), String.class).eq("ann"))
                .whenMatchedThenUpdate().set(field(name("data")), JSONB.valueOf("3")).whenNotMatchedThenInsert(name).values(val("none"))
                    .execute())));
        comparison.check("a transaction with a nested one", with(dsl -> {
            try {
                dsl.transaction(outer -> {
                    outer.dsl().insertInto(table(PEOPLE), name).values("outer").execute();
                    try {
                        outer.dsl().transaction(inner -> inner.dsl().insertInto(table(PEOPLE), name).values("ann").execute());
                    } catch (org.jooq.exception.IntegrityConstraintViolationException e) {
                        outer.dsl().insertInto(table(PEOPLE), name).values(e.sqlState()).execute();
                    }
                    throw new IllegalStateException("roll back, with " + outer.dsl().fetchCount(table(PEOPLE)));
                });
            } catch (IllegalStateException e) {
                return List.of(e.getMessage(), dsl.fetchCount(table(PEOPLE)));
            }
            return "committed";
        }));
    }

    private static void query(Comparison comparison) {
        comparison.check("joins, aggregates, windows", with(dsl -> List.of(
            rows(dsl.select(P_NAME, count(), sum(O_AMOUNT), rowNumber().over(orderBy(P_NAME.desc()))).from(P).leftJoin(O)
                .on(O_PERSON.eq(P_ID))
                .groupBy(P_NAME).having(count().ge(1)).orderBy(P_NAME).fetch()),
            rows(dsl.select(O_ID, O_AMOUNT, lag(O_AMOUNT).over().partitionBy(O_PERSON).orderBy(O_ID), percentRank().over()
                .orderBy(O_AMOUNT, O_ID))
                .from(O).orderBy(O_ID).limit(4).offset(1).fetch()),
            rows(dsl.select(listAgg(P_NAME, ",").withinGroupOrderBy(P_NAME), arrayAgg(P_ID).orderBy(P_ID), count()
                .filterWhere(P_ID.gt(1)),
                median(P_ID.cast(SQLDataType.DOUBLE)), boolOr(P_ID.gt(2))).from(P).fetch()),
            rows(dsl.select(O_PERSON, O_AMOUNT, count()).from(O).groupBy(rollup(O_PERSON, O_AMOUNT)).orderBy(O_PERSON.asc()
                .nullsFirst(), O_AMOUNT.asc().nullsFirst()).fetch()))));
        comparison.check("multiset, lateral, recursion, values", with(dsl -> List.of(
            rows(dsl.select(P_NAME, multiset(select(O_ID, O_AMOUNT).from(O).where(O_PERSON.eq(P_ID)).orderBy(O_ID)).as("orders"))
                .from(P).orderBy(P_ID).fetch()),
            rows(dsl.select(P_NAME, field(name("l", "top"))).from(P).crossApply(table(select(max(O_AMOUNT).as("top")).from(O)
                .where(O_PERSON.eq(P_ID))).as("l"))
                .orderBy(P_ID).fetch()),
            rows(dsl.withRecursive("n", "i").as(select(inline(1)).unionAll(select(field(name("i"), Integer.class).add(1)).from(name("n"))
                .where(field(name("i"), Integer.class).lt(4)))).selectFrom(name("n")).fetch()),
            rows(dsl.selectFrom(values(row(1, "a"), row(2, "b")).as("v", "n", "t")).fetch()),
            rows(dsl.select(field(name("g"), Integer.class)).from(generateSeries(1, 3).as("g")).union(select(inline(9))).orderBy(1)
                .fetch()),
            rows(dsl.select(jsonbObject(key("a").value(1), key("b").value("x")), jsonbArray(inline(1), inline("y")), jsonbArrayAgg(P_ID)
                .orderBy(P_ID)).from(P).fetch()))));
        comparison.check("conditions and functions", with(dsl -> List.of(
            rows(dsl.select(P_ID).from(P).where(P_NAME.likeIgnoreCase("A%").or(P_NAME.in("bob")).and(exists(selectOne().from(O)
                .where(O_PERSON.eq(P_ID)))))
                .and(P_NAME.isNotNull()).and(P_ID.between(1, 5)).and(P_NAME.isDistinctFrom("x")).orderBy(P_ID).fetch()),
            rows(dsl.select(P_ID).from(P).where(row(P_ID, P_NAME).in(row(1, "ann"), row(2, "x"))).fetch()),
            rows(dsl.select(when(P_ID.gt(1), "big").otherwise("small"), coalesce(P_NAME, inline("")), substring(P_NAME, 2),
                length(P_NAME), P_NAME.upper(),
                position(P_NAME, "n"), replace(P_NAME, "n", "m"), lpad(P_NAME, 6, "*"), P_ID.mod(2), greatest(P_ID, inline(2)),
                    md5(P_NAME)).from(P).orderBy(P_ID).fetch()),
            rows(dsl.select(localDateAdd(inline(LocalDate.of(2026, 1, 31)), 1, org.jooq.DatePart.MONTH),
                extract(inline(LocalDate.of(2026, 1, 31)), org.jooq.DatePart.QUARTER),
                trunc(inline(LocalDate.of(2026, 5, 31)), org.jooq.DatePart.MONTH), localDateDiff(org.jooq.DatePart.DAY,
                    LocalDate.of(2026, 1, 1), LocalDate.of(2026, 3, 1))).fetch()))));
        comparison.check("cursors, locks, plain SQL", with(dsl -> {
            List<Object> results = new ArrayList<>();
            dsl.transaction(inner -> {
                try (Cursor<?> cursor = inner.dsl().select(O_ID).from(O).orderBy(O_ID).fetchSize(2).fetchLazy()) {
                    while (cursor.hasNext()) results.add(cursor.fetchNext().get(0));
                }
                results.add(rows(inner.dsl().select(P_ID).from(P).where(P_ID.eq(1)).forUpdate().skipLocked().fetch()));
                results.add(rows(inner.dsl()
                    .resultQuery("select {0}, {1} from {2} where id = {3}", field(name("name")), val(7), table(PEOPLE), val(1))
                    .fetch()));
            });
            results.add(dsl.fetch("select * from " + SCHEMA + ".totals order by 1").formatCSV());
            results.add(dsl.nextval(sequence(name(SCHEMA, "numbers"))));
            return results;
        }));
    }

    public static void main(String[] arguments) {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        Comparison comparison = new Comparison();
        define(comparison);
        write(comparison);
        query(comparison);
        comparison.check("metadata", with(JooqChecks::metadata));
        comparison.check("DROP", with(dsl -> {
            dsl.setSchema(SCHEMA).execute();
            dsl.alterTable("orders").dropConstraint("orders_amount").execute();
            dsl.alterTable("people").dropColumnIfExists("mood").execute();
            dsl.truncate("orders").restartIdentity().cascade().execute();
            dsl.dropViewIfExists("totals").execute();
            dsl.dropIndexIfExists("orders_by_person").execute();
            dsl.dropTable("people").cascade().execute();
            dsl.dropDomain("amount").execute();
            dsl.dropType("mood").execute();
            dsl.dropSchemaIfExists(SCHEMA).cascade().execute();
            return dsl.fetchCount(table(name("pg_namespace")), field(name("nspname")).eq(SCHEMA));
        }));
        comparison.done();
    }
}
