import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Properties;
import java.util.TreeSet;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.PGStatement;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PGobject;
import org.postgresql.util.PSQLException;

/** Checks pgjdbc (text and binary transfer, setFetchSize, metadata, batches, COPY) and prints them in the Test Anything Protocol. */
public final class Checks {
    private static final String SLOW =
        "SELECT count(*) FROM orders a, orders b, orders c, orders d WHERE a.id + b.id = c.id * d.id";
    private static final boolean TAILGATE = "tailgate".equals(System.getenv("FLAVOUR"));
    private static int count = 0;

    interface Work {
        void run() throws Exception;
    }

    private static void check(String name, Work work) {
        count++;
        try {
            work.run();
            System.out.println("ok " + count + " - " + name);
        } catch (Exception | AssertionError e) {
            int line = -1;
            for (StackTraceElement frame : e.getStackTrace()) {
                if (line < 0 && frame.getClassName().startsWith("Checks")
                    && !frame.getMethodName().equals("same"))
                  line = frame.getLineNumber();
            }
            System.out.println("not ok " + count + " - " + name + "\n  # "
                + String.valueOf(e.getMessage()).replace("\n", " | ") + " at line " + line);
        }
    }

    private static void same(Object found, Object expected) {
        if (!Objects.deepEquals(found, expected)) throw new AssertionError(found + " and not " + expected);
    }

    private static PSQLException fails(String sqlstate, Work work) throws Exception {
        try {
            work.run();
        } catch (PSQLException e) {
            same(e.getSQLState(), sqlstate);
            return e;
        }
        throw new AssertionError("no error " + sqlstate);
    }

    private static Connection connect(String... properties) throws SQLException {
        Properties given = new Properties();
        given.put("user", System.getenv("PGUSER"));
        for (int i = 0; i < properties.length; i += 2) given.put(properties[i], properties[i + 1]);
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        return DriverManager.getConnection(url, given);
    }

    private static List<List<Object>> rows(ResultSet results) throws SQLException {
        List<List<Object>> rows = new ArrayList<>();
        try (results) {
            while (results.next()) {
                List<Object> row = new ArrayList<>();
                for (int i = 1; i <= results.getMetaData().getColumnCount(); i++) row.add(results.getObject(i));
                rows.add(row);
            }
        }
        return rows;
    }

    private static List<List<Object>> query(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return rows(statement.executeQuery(sql));
        }
    }

    private static List<String> column(ResultSet results, String name) throws SQLException {
        List<String> values = new ArrayList<>();
        try (results) {
            while (results.next()) values.add(results.getString(name));
        }
        return values;
    }

    private static void everyType(Connection connection) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM kinds ORDER BY id")) {
            for (int again = 0; again < 7; again++) { // from the fifth execution on, a named statement with binary results
                ResultSet r = statement.executeQuery();
                r.next();
                same(r.getBoolean("a_boolean"), true);
                same(r.getShort("a_smallint"), (short) 32767);
                same(r.getLong("a_bigint"), Long.MAX_VALUE);
                same(r.getFloat("a_real"), 1.5f);
                same(r.getDouble("a_double"), 0.1);
                same(r.getBigDecimal("a_numeric"), new BigDecimal("123456789.125"));
                same(r.getString("a_varchar"), "häßlich");
                same(r.getString("a_char"), "ab   ");
                same(r.getBytes("a_bytea"), new byte[] {0, -1, 97});
                same(r.getObject("a_date", LocalDate.class), LocalDate.of(2026, 2, 28));
                same(r.getTime("a_time").toString(), "23:59:59");
                same(r.getTimestamp("a_timestamp").toString(), "2026-01-02 03:04:05.678901");
                same(r.getObject("a_timestamptz", OffsetDateTime.class).toInstant().toString(), "2026-01-02T03:04:05.678901Z");
                same(((PGInterval) r.getObject("an_interval")).getDays(), 2);
                same(r.getObject("a_uuid"), UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"));
                same(((PGobject) r.getObject("a_jsonb")).getValue(), "{\"a\": [1, 2.5, null], \"b\": \"ü\"}");
                same(r.getArray("integers").getArray(), new Integer[] {1, null, -3});
                same(r.getArray("texts").getArray(), new String[] {"x", "y z", null, ""});
                r.next();
                same(r.getString("a_text"), "");
                r.next();
                r.getInt("an_integer");
                same(r.wasNull(), true);
                r.next();
                same(r.getString("a_text"), "two\nlines\t\"quoted\" \\ € \uD83D\uDE00");
                same(r.next(), false);
            }
        }
    }

    private static void values(Connection connection) throws Exception {
        String sql = "SELECT ?::int, ?::text, ?::bool, ?::float8, ?::numeric, ?::date, ?::timestamp, ?::bytea, ?::uuid, ?::int, ?::int[], ?::timestamptz";
        OffsetDateTime at = OffsetDateTime.parse("2026-01-02T03:04:05.000006Z");
        try (PreparedStatement s = connection.prepareStatement(sql)) {
            for (int again = 0; again < 7; again++) {
                s.setInt(1, again);
                s.setString(2, "it's \\ ü");
                s.setBoolean(3, true);
                s.setDouble(4, 2.5);
                s.setBigDecimal(5, new BigDecimal("1.10"));
                s.setObject(6, LocalDate.of(2026, 1, 2));
                s.setTimestamp(7, Timestamp.valueOf("2026-01-02 03:04:05.5"));
                s.setBytes(8, new byte[] {0, -1});
                s.setObject(9, new UUID(0, 5));
                s.setNull(10, Types.INTEGER);
                s.setArray(11, connection.createArrayOf("int4", new Integer[] {1, null}));
                s.setObject(12, at);
                ResultSet r = s.executeQuery();
                r.next();
                same(r.getInt(1), again);
                same(r.getString(2), "it's \\ ü");
                same(r.getBoolean(3), true);
                same(r.getDouble(4), 2.5);
                same(r.getBigDecimal(5).compareTo(new BigDecimal("1.1")), 0);
                same(r.getObject(6, LocalDate.class), LocalDate.of(2026, 1, 2));
                same(r.getTimestamp(7), Timestamp.valueOf("2026-01-02 03:04:05.5"));
                same(r.getBytes(8), new byte[] {0, -1});
                same(r.getObject(9), new UUID(0, 5));
                same(r.getObject(10), null);
                same(r.getArray(11).getArray(), new Integer[] {1, null});
                same(r.getObject(12, OffsetDateTime.class), at);
            }
        }
    }

    private static void metadata(Connection connection) throws Exception {
        DatabaseMetaData meta = connection.getMetaData();
        check("metadata: the product", () -> {
            same(meta.getDatabaseProductName(), "PostgreSQL");
            same(meta.getDatabaseMajorVersion(), 15);
            same(meta.supportsTransactions(), true);
        });
        check("metadata: catalogs, schemas, kinds of tables", () -> {
            same(column(meta.getCatalogs(), "TABLE_CAT").contains(connection.getCatalog()), true);
            same(column(meta.getSchemas(), "TABLE_SCHEM")
                .containsAll(List.of("annex", "public", "pg_catalog", "information_schema")), true);
            same(column(meta.getSchemas(null, "ann%"), "TABLE_SCHEM"), List.of("annex"));
            same(column(meta.getTableTypes(), "TABLE_TYPE").contains("MATERIALIZED VIEW"), true);
        });
        check("metadata: tables", () -> {
            same(column(meta.getTables(null, "public", "%", new String[] {"VIEW"}), "TABLE_NAME"), List.of("large_orders"));
            same(column(meta.getTables(null, "public", "per_customer", null), "TABLE_TYPE"), List.of("MATERIALIZED VIEW"));
            TreeSet<String> tables = new TreeSet<>(column(meta.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"));
            same(tables.containsAll(List.of("kinds", "orders", "written")), true);
        });
        check("metadata: columns", () -> {
            same(column(meta.getColumns(null, "public", "kinds", "%"), "COLUMN_NAME").size(), 21);
            try (ResultSet r = meta.getColumns(null, "public", "orders", "amount")) {
                r.next();
                same(List.of(r.getInt("DATA_TYPE"), r.getString("TYPE_NAME"), r.getInt("COLUMN_SIZE"), r.getInt("DECIMAL_DIGITS")),
                    List.of(Types.NUMERIC, "numeric", 10, 2));
                same(r.getString("IS_NULLABLE"), "YES");
            }
            same(column(meta.getColumns(null, "public", "orders", "paid"), "COLUMN_DEF"), List.of("false"));
        });
        check("metadata: keys and indexes", () -> {
            same(column(meta.getPrimaryKeys(null, "public", "written"), "COLUMN_NAME"), List.of("client", "n"));
            same(new TreeSet<>(column(meta.getIndexInfo(null, "public", "orders", false, true), "INDEX_NAME")),
                new TreeSet<>(List.of("orders_customer", "orders_pkey")));
            same(rows(meta.getImportedKeys(null, "public", "orders")).size(), 0);
            same(rows(meta.getExportedKeys(null, "public", "orders")).size(), 0);
            same(rows(meta.getCrossReference(null, null, "orders", null, null, "written")).size(), 0);
            same(column(meta.getBestRowIdentifier(null, "public", "orders",
                DatabaseMetaData.bestRowSession, true), "COLUMN_NAME"), List.of("id"));
            rows(meta.getVersionColumns(null, "public", "orders"));
        });
        check("metadata: types, functions, procedures, keywords", () -> {
            same(column(meta.getTypeInfo(), "TYPE_NAME").containsAll(List.of("int4", "text", "timestamptz", "_int4")), true);
            same(column(meta.getFunctions(null, "public", "%"), "FUNCTION_NAME"), List.of("doubled"));
            same(column(meta.getFunctionColumns(null, "public", "doubled", "%"), "COLUMN_NAME"), List.of("returnValue", "n"));
            rows(meta.getProcedures(null, "public", "%"));
            rows(meta.getProcedureColumns(null, "public", "%", "%"));
            same(meta.getSQLKeywords().isEmpty(), false);
            same(meta.getMaxColumnNameLength(), 63);
            meta.getMaxIndexLength();
        });
        check("metadata: privileges, user types, client information", () -> {
            same(column(meta.getTablePrivileges(null, "public", "orders"), "PRIVILEGE").contains("SELECT"), true);
            same(column(meta.getColumnPrivileges(null, "public", "orders", "id"), "PRIVILEGE").contains("SELECT"), true);
            rows(meta.getUDTs(null, "public", "%", null));
            rows(meta.getClientInfoProperties());
        });
        check("metadata of a result: tables, nullability, precision", () -> {
            try (Statement s = connection.createStatement()) {
                ResultSetMetaData m = s.executeQuery("SELECT id, amount AS a FROM orders LIMIT 1").getMetaData();
                same(List.of(m.getColumnLabel(2), m.getColumnTypeName(2), m.getPrecision(2),
                    m.getScale(2)), List.of("a", "numeric", 10, 2));
            }
        });
        check("metadata of parameters", () -> {
            try (PreparedStatement s = connection.prepareStatement("SELECT id FROM orders WHERE amount > ? AND customer = ?")) {
                same(s.getParameterMetaData().getParameterTypeName(1), "numeric");
                same(s.getMetaData().getColumnTypeName(1), "int8");
            }
        });
    }

    private static void writes(Connection connection) throws Exception {
        check("writes: counts, RETURNING, generated keys", () -> {
            try (Statement s = connection.createStatement()) {
                s.executeUpdate("DELETE FROM written WHERE client = 'jdbc'");
                same(s.executeUpdate("INSERT INTO written VALUES ('jdbc', 1, 'one'), ('jdbc', 2, NULL)"), 2);
                same(s.executeUpdate("INSERT INTO written VALUES ('jdbc', 3, 'x')", new String[] {"n"}), 1);
                same(column(s.getGeneratedKeys(), "n"), List.of("3"));
                same(rows(s.executeQuery("UPDATE written SET note = 'y' WHERE client = 'jdbc' AND n = 1 RETURNING note")), List.of(List.of("y")));
            }
        });
        check("writes: a batch", () -> {
            try (PreparedStatement s = connection.prepareStatement("INSERT INTO written VALUES ('jdbc', ?, ?)")) {
                for (int n = 10; n < 30; n++) {
                    s.setInt(1, n);
                    s.setString(2, "note " + n);
                    s.addBatch();
                }
                same(s.executeBatch().length, 20);
            }
            same(query(connection, "SELECT count(*) FROM written WHERE client = 'jdbc'"), List.of(List.of(23L)));
        });
        check("writes: a batch as one INSERT of many rows", () -> {
            try (Connection other = connect("reWriteBatchedInserts", "true");
                 PreparedStatement s = other.prepareStatement("INSERT INTO written VALUES (?, ?, ?)")) {
                for (int n = 30; n < 47; n++) {
                    s.setString(1, "jdbc");
                    s.setInt(2, n);
                    s.setString(3, null);
                    s.addBatch();
                }
                s.executeBatch();
            }
            same(query(connection, "SELECT count(*) FROM written WHERE client = 'jdbc' AND note IS NULL"), List.of(List.of(18L)));
        });
        check("COPY in and out", () -> {
            var copy = connection.unwrap(PGConnection.class).getCopyAPI();
            same(copy.copyIn("COPY written FROM STDIN WITH (FORMAT csv)", new StringReader("jdbc,100,one\njdbc,101,\n")), 2L);
            StringWriter out = new StringWriter();
            same(copy.copyOut("COPY (SELECT n, note FROM written WHERE client = 'jdbc' AND n >= 100 ORDER BY n) TO STDOUT", out), 2L);
            same(out.toString(), "100\tone\n101\t\\N\n");
            try (Statement s = connection.createStatement()) {
                same(s.executeUpdate("DELETE FROM written WHERE client = 'jdbc'"), 42);
            }
        });
        check("a block: rollback, savepoint, isolation, read only", () -> {
            connection.setAutoCommit(false);
            try (Statement s = connection.createStatement()) {
                s.executeUpdate("INSERT INTO written VALUES ('jdbc', 1, 'gone')");
                Savepoint point = connection.setSavepoint("a");
                fails("22012", () -> s.executeQuery("SELECT 1/0"));
                connection.rollback(point);
                same(query(connection, "SELECT 5"), List.of(List.of(5)));
                connection.rollback();
                connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                same(connection.getTransactionIsolation(), Connection.TRANSACTION_SERIALIZABLE);
                connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
                connection.setReadOnly(true);
                fails("25006", () -> s.executeUpdate("DELETE FROM written"));
                connection.rollback();
                connection.setReadOnly(false);
            } finally {
                connection.rollback();
                connection.setAutoCommit(true);
            }
        });
        check("an updatable result", () -> {
            try (Statement s = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
                s.executeUpdate("INSERT INTO written VALUES ('jdbc', 1, 'one')");
                ResultSet r = s.executeQuery("SELECT client, n, note FROM written WHERE client = 'jdbc'");
                r.next();
                r.updateString("note", "updated");
                r.updateRow();
                r.moveToInsertRow();
                r.updateString("client", "jdbc");
                r.updateInt("n", 2);
                r.insertRow();
                r.beforeFirst();
                r.next();
                r.deleteRow();
            }
            same(query(connection, "DELETE FROM written WHERE client = 'jdbc' RETURNING n"), List.of(List.of(2)));
        });
    }

    public static void main(String[] arguments) throws Exception {
        Connection connection = connect();
        check("connects, isValid", () -> same(connection.isValid(5), true));
        check("every type, text and then binary", () -> everyType(connection));
        check("values in all types, text and then binary", () -> values(connection));
        for (String mode : List.of("simple", "extended", "extendedForPrepared", "extendedCacheEverything")) {
            check("preferQueryMode=" + mode, () -> {
                try (Connection other = connect("preferQueryMode", mode)) {
                    same(query(other, "SELECT id, customer FROM orders WHERE id = 5"), List.of(List.of(5L, "customer 5")));
                    try (PreparedStatement s = other.prepareStatement("SELECT count(*) FROM orders WHERE customer = ? AND id > ?")) {
                        s.setString(1, "customer 5");
                        s.setLong(2, 5);
                        same(rows(s.executeQuery()), List.of(List.of(99L)));
                    }
                }
            });
        }
        check("binaryTransfer from the first statement on", () -> {
            try (Connection other = connect("prepareThreshold", "-1")) {
                everyType(other);
                values(other);
            }
        });
        check("a statement that the server keeps", () -> {
            try (PreparedStatement s = connection.prepareStatement("SELECT customer FROM orders WHERE id = ?")) {
                s.unwrap(PGStatement.class).setPrepareThreshold(1);
                for (long n = 1; n < 5; n++) {
                    s.setLong(1, n);
                    same(rows(s.executeQuery()), List.of(List.of("customer " + n)));
                }
                same(s.unwrap(PGStatement.class).isUseServerPrepare(), true);
            }
        });
        check("setFetchSize: a portal, some rows at a time", () -> {
            connection.setAutoCommit(false);
            try (Statement s = connection.createStatement(); Statement between = connection.createStatement()) {
                s.setFetchSize(64);
                ResultSet r = s.executeQuery("SELECT id FROM orders ORDER BY id");
                long sum = 0;
                for (int n = 0; r.next(); n++) {
                    sum += r.getLong(1);
                    if (n == 100) same(rows(between.executeQuery("SELECT 1")), List.of(List.of(1))); // while a portal is open
                }
                same(sum, 500500L);
            } finally {
                connection.commit();
                connection.setAutoCommit(true);
            }
        });
        check("setMaxRows", () -> {
            try (Statement s = connection.createStatement()) {
                s.setMaxRows(3);
                same(rows(s.executeQuery("SELECT id FROM orders")).size(), 3);
            }
        });
        check("several results of one statement", () -> {
            try (Statement s = connection.createStatement()) {
                same(s.execute("SELECT 1; SELECT 2"), true);
                same(s.getMoreResults(), true);
                same(rows(s.getResultSet()), List.of(List.of(2)));
            }
        });
        check("a refcursor-less scrollable result", () -> {
            try (Statement s = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY)) {
                ResultSet r = s.executeQuery("SELECT id FROM orders ORDER BY id");
                r.last();
                same(r.getRow(), 1000);
                r.absolute(5);
                same(r.getLong(1), 5L);
            }
        });
        check("JDBC escapes", () ->
            same(query(connection, "SELECT {fn lcase('A')}, {d '2026-01-02'}, {ts '2026-01-02 03:04:05'}").get(0).get(0), "a"));
        check("a function", () -> {
            try (PreparedStatement s = connection.prepareStatement("SELECT doubled(?)")) {
                s.setInt(1, 21);
                same(rows(s.executeQuery()), List.of(List.of(42)));
            }
        });
        check("errors: SQLSTATE, position, fields", () -> {
            PSQLException e = fails("42703", () -> query(connection, "SELECT nosuch FROM orders"));
            same(e.getServerErrorMessage().getPosition(), 8);
            fails("42P01", () -> query(connection, "SELECT * FROM nobody"));
            e = fails("23502", () -> query(connection, "INSERT INTO orders (id) VALUES (-1)"));
            same(List.of(e.getServerErrorMessage().getTable(), e.getServerErrorMessage().getColumn()), List.of("orders", "customer"));
        });
        check("warnings", () -> {
            try (Statement s = connection.createStatement()) {
                s.execute("DROP TABLE IF EXISTS nobody");
                same(s.getWarnings().getMessage(), "table \"nobody\" does not exist, skipping");
            }
        });
        check("setQueryTimeout, cancel", () -> {
            try (Statement s = connection.createStatement()) {
                s.setQueryTimeout(1);
                fails("57014", () -> s.executeQuery(SLOW));
                s.setQueryTimeout(0);
                new Thread(() -> {
                    try {
                        Thread.sleep(300);
                        s.cancel();
                    } catch (Exception ignored) {
                        // the check reports it
                    }
                }).start();
                fails("57014", () -> s.executeQuery(SLOW));
            }
        });
        check("settings: schema, application name, network timeout", () -> {
            try (Connection other = connect("ApplicationName", "checks", "currentSchema", "annex",
                "options", "-c statement_timeout=60000")) {
                same(other.getSchema(), "annex");
                same(query(other, "SELECT count(*) FROM notes"), List.of(List.of(0L)));
                same(query(other, "SHOW application_name"), List.of(List.of("checks")));
                other.setSchema("public");
                same(other.getSchema(), "public");
                other.setClientInfo("ApplicationName", "again");
                same(query(other, "SHOW application_name"), List.of(List.of("again")));
            }
        });
        metadata(connection);
        writes(connection);
        if (TAILGATE) {
            check("TAIL by setFetchSize", () -> {
                connection.setAutoCommit(false);
                try (Statement s = connection.createStatement()) {
                    s.setFetchSize(5);
                    ResultSet r = s.executeQuery("TAIL per_customer");
                    for (int n = 0; n < 10; n++) same(r.next(), true);
                    same(r.getMetaData().getColumnName(1), "mz_timestamp");
                } finally {
                    connection.rollback();
                    connection.setAutoCommit(true);
                }
            });
        }
        connection.close();
        System.out.println("1.." + count);
    }
}
