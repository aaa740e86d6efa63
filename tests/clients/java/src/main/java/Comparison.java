import java.lang.reflect.Array;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Runs the steps of a tool on Tailgate and on PostgreSQL; a check passes if both have the same result. */
final class Comparison {
    static final String SCHEMA = "javatools";
    private static final int SHOWN_BEFORE = 150; // characters of a difference
    private static final int SHOWN_AFTER = 250;
    private int count = 0;
    final List<Server> servers;

    /** A server, and the address of its database shop. */
    record Server(String name, String url) {
        static final String USER = "postgres";

        Connection connect() throws SQLException {
            return DriverManager.getConnection(url, USER, null);
        }

        void execute(String... statements) throws SQLException {
            try (Connection connection = connect(); Statement statement = connection.createStatement()) {
                for (String each : statements) statement.execute(each);
            }
        }

        /** Returns the rows of a query, their values as text. */
        List<List<String>> rows(String query) throws SQLException {
            List<List<String>> rows = new ArrayList<>();
            try (Connection connection = connect(); Statement statement = connection.createStatement();
                 ResultSet results = statement.executeQuery(query)) {
                while (results.next()) {
                    List<String> row = new ArrayList<>();
                    for (int i = 1; i <= results.getMetaData().getColumnCount(); i++) row.add(results.getString(i));
                    rows.add(row);
                }
            }
            return rows;
        }

        /** Returns the columns, constraints, indexes and sequences of the schema. */
        List<Object> structure() throws SQLException {
            return List.of(
                rows("SELECT table_name, column_name, data_type, udt_name, is_nullable, is_identity, numeric_precision,"
                    + " character_maximum_length, lower(split_part(column_default, '::', 1)) FROM information_schema.columns"
                    + " WHERE table_schema = '" + SCHEMA + "' AND table_name NOT LIKE '%_errors' ORDER BY 1, 2"),
                rows("SELECT conrelid::regclass::text, contype, pg_get_constraintdef(oid) FROM pg_constraint"
                    + " WHERE connamespace = '" + SCHEMA + "'::regnamespace AND contype <> 'c' ORDER BY 1, 2, 3"),
                rows("SELECT regexp_replace(regexp_replace(indexdef, '::[a-z]+', '', 'g'), '[()\"]', '', 'g') FROM pg_indexes"
                    + " WHERE schemaname = '" + SCHEMA + "' AND indexdef NOT LIKE '%_pkey%' AND indexname <> 'counts_key' ORDER BY 1"), // without casts
                rows("SELECT sequencename, increment_by, start_value FROM pg_sequences WHERE schemaname = '" + SCHEMA + "' ORDER BY 1"));
        }
    }

    interface Step {
        Object run(Server server) throws Exception;
    }

    Comparison() {
        Logger.getLogger("").setLevel(Level.OFF);
        servers = List.of(
            new Server("tailgate", "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/shop"),
            new Server("postgres", "jdbc:postgresql://127.0.0.1:" + System.getenv("CONTROL_PORT") + "/shop"));
    }

    /** Runs a step on both servers. An error of PostgreSQL is a mistake of the step: steps catch those that they expect. */
    void check(String name, Step step) {
        count++;
        List<String> results = new ArrayList<>();
        String failure = null;
        for (Server server : servers) {
            try {
                results.add(text(step.run(server)));
            } catch (Exception | LinkageError | AssertionError e) {
                if (failure == null) failure = server.name() + ": " + reason(e);
                results.add(null);
            }
        }
        if (failure == null && !results.get(0).equals(results.get(1))) failure = difference(results.get(0), results.get(1));
        if (failure == null) System.out.println("ok " + count + " - " + name);
        else System.out.println("not ok " + count + " - " + name + "\n  # " + failure.replace("\n", " | "));
    }

    void done() {
        System.out.println("1.." + count);
    }

    /** Returns the SQLSTATE of the error that a step expects. */
    static String refused(Step step, Server server) throws Exception {
        try {
            step.run(server);
        } catch (Exception e) {
            for (Throwable cause = e; cause != null; cause = cause.getCause()) {
                if (cause instanceof SQLException sql) return e.getClass().getSimpleName() + " " + sql.getSQLState();
            }
            return e.getClass().getSimpleName();
        }
        return "no error";
    }

    /** Returns a value as text, the elements of arrays too. */
    static String text(Object value) {
        if (value == null) return "null";
        if (value.getClass().isArray()) {
            List<String> elements = new ArrayList<>();
            for (int i = 0; i < Array.getLength(value); i++) elements.add(text(Array.get(value, i)));
            return elements.toString();
        }
        if (value instanceof List<?> list) {
            List<String> elements = new ArrayList<>();
            for (Object each : list) elements.add(text(each));
            return String.join("\n", elements);
        }
        return value.toString();
    }

    private static String reason(Throwable error) {
        StringBuilder reason = new StringBuilder(error.toString());
        for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) reason.append(" <- ").append(cause);
        for (StackTraceElement frame : error.getStackTrace()) {
            if (frame.getClassName().endsWith("Checks")) return reason + " at line " + frame.getLineNumber();
        }
        return reason.toString();
    }

    private static String difference(String ours, String theirs) {
        int at = 0;
        while (at < Math.min(ours.length(), theirs.length()) && ours.charAt(at) == theirs.charAt(at)) at++;
        int from = Math.max(0, at - SHOWN_BEFORE);
        return ours.substring(from, Math.min(ours.length(), at + SHOWN_AFTER)) + " and not "
            + theirs.substring(from, Math.min(theirs.length(), at + SHOWN_AFTER));
    }
}
