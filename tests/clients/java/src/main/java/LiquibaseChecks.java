import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import liquibase.CatalogAndSchema;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.Scope;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.DiffGeneratorFactory;
import liquibase.diff.DiffResult;
import liquibase.diff.compare.CompareControl;
import liquibase.diff.output.DiffOutputControl;
import liquibase.diff.output.changelog.DiffToChangeLog;
import liquibase.resource.ClassLoaderResourceAccessor;
import liquibase.structure.DatabaseObject;

/** Checks Liquibase: changes of each kind, preconditions, rollback, changelogs of a schema, differences of two, drop of all objects. */
public final class LiquibaseChecks {
    private static final String SCHEMA = Comparison.SCHEMA;

    interface Work {
        Object run(Liquibase liquibase) throws Exception;
    }

    private static Object with(Comparison.Server server, Work work) throws Exception {
        Database database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(server.connect()));
        database.setDefaultSchemaName(SCHEMA);
        database.setLiquibaseSchemaName(SCHEMA);
        try (Liquibase liquibase = new Liquibase("changes.xml", new ClassLoaderResourceAccessor(), database)) {
            return Scope.child(Map.of(Scope.Attr.ui.name(), new liquibase.ui.LoggerUIService()), () -> work.run(liquibase));
        }
    }

    private static List<List<String>> log(Comparison.Server server) throws Exception {
        return server.rows("SELECT id, author, filename, orderexecuted, exectype, md5sum, tag FROM " + SCHEMA
            + ".databasechangelog ORDER BY orderexecuted");
    }

    private static Object changelog(Liquibase liquibase) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Liquibase generating = new Liquibase((String) null, new ClassLoaderResourceAccessor(), liquibase.getDatabase());
        generating.generateChangeLog(new CatalogAndSchema(null, SCHEMA),
            new DiffToChangeLog(new DiffOutputControl(false, false, true, null)), new PrintStream(bytes));
        // PostgreSQL writes the queries of views in another form.
        String text = bytes.toString("UTF-8").replaceAll("(?s)<createView.*?</createView>", "");
        List<String> lines = new ArrayList<>();
        for (String line : text.split("\n")) lines.add(line.replaceAll("(id|author)=\"[^\"]*\"", "")
            .replace("(mail)::text", "mail").replace("NOW()", "now()").strip());
        return lines.stream().sorted().toList();
    }

    private static Object differences(Comparison.Server server) throws Exception {
        return with(server, liquibase -> {
            Database other = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(server.connect()));
            other.setDefaultSchemaName("annex");
            try {
                DiffResult result = DiffGeneratorFactory.getInstance().compare(liquibase.getDatabase(), other, CompareControl.STANDARD);
                TreeSet<String> names = new TreeSet<>();
                for (DatabaseObject each : result.getMissingObjects()) names.add("-" + each.getObjectTypeName() + " " + each.getName());
                for (DatabaseObject each : result.getUnexpectedObjects()) names.add("+" + each.getObjectTypeName() + " "
                    + each.getName());
                return List.copyOf(names);
            } finally {
                other.close();
            }
        });
    }

    public static void main(String[] arguments) {
        Contexts contexts = new Contexts();
        LabelExpression labels = new LabelExpression();
        Comparison comparison = new Comparison();
        comparison.check("statements of an update", server -> {
            server.execute("CREATE SCHEMA " + SCHEMA);
            return with(server, liquibase -> {
                StringWriter statements = new StringWriter();
                liquibase.update(2, contexts, labels, statements);
                return statements.toString().lines().filter(line -> !line.startsWith("--") && !line.contains("databasechangelog"))
                    .toList();
            });
        });
        comparison.check("update by two change sets", server -> with(server, liquibase -> {
            liquibase.update(2, contexts, labels);
            liquibase.tag("two");
            return List.of(log(server), server.structure());
        }));
        comparison.check("update with preconditions", server -> with(server, liquibase -> {
            liquibase.update(1, contexts, labels);
            return List.of(log(server), server.structure());
        }));
        comparison.check("rows", server -> List.of(
            server.rows("SELECT id, mail, active, born, seen::text ~ '^20', amount, share, note, document, small, name, phone FROM "
                + SCHEMA + ".people ORDER BY id"), server.rows("SELECT * FROM " + SCHEMA + ".orders ORDER BY 1"),
            server.rows("SELECT * FROM " + SCHEMA + ".codes ORDER BY 1"), server.rows("SELECT " + SCHEMA + ".twice(2)")));
        comparison.check("roll back to a tag, and update again", server -> with(server, liquibase -> {
            liquibase.rollback("two", contexts, labels);
            List<Object> before = List.of(log(server), server.structure());
            liquibase.update(1, contexts, labels);
            return List.of(before, log(server), server.structure());
        }));
        comparison.check("update to the end", server -> with(server, liquibase -> {
            liquibase.update(contexts, labels);
            liquibase.update(contexts, labels);
            return List.of(log(server), server.structure(), liquibase.listUnrunChangeSets(contexts, labels).size(),
                liquibase.listLocks().length);
        }));
        comparison.check("the changelog of a schema", server -> with(server, LiquibaseChecks::changelog));
        comparison.check("differences of two schemas", LiquibaseChecks::differences);
        comparison.check("checksums and locks", server -> with(server, liquibase -> {
            liquibase.clearCheckSums();
            liquibase.validate();
            liquibase.update(contexts, labels);
            liquibase.forceReleaseLocks();
            return log(server);
        }));
        comparison.check("drop all", server -> with(server, liquibase -> {
            liquibase.dropAll();
            List<List<String>> left = server.rows("SELECT relname, relkind FROM pg_class WHERE relnamespace = '" + SCHEMA
                + "'::regnamespace ORDER BY 1");
            server.execute("DROP SCHEMA " + SCHEMA + " CASCADE");
            return left;
        }));
        comparison.done();
    }
}
