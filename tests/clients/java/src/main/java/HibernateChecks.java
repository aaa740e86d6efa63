import jakarta.persistence.*;
import jakarta.persistence.criteria.CriteriaBuilder;
import jakarta.persistence.criteria.CriteriaQuery;
import jakarta.persistence.criteria.Root;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Stream;
import org.hibernate.LockMode;
import org.hibernate.ScrollMode;
import org.hibernate.ScrollableResults;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.Formula;
import org.hibernate.annotations.Generated;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.annotations.NaturalId;
import org.hibernate.cfg.Configuration;
import org.hibernate.type.SqlTypes;

/** Checks Hibernate: its creation, update and validation of a schema, entities with relations, HQL, criteria, locks and batches. */
public final class HibernateChecks {
    private static final String SCHEMA = Comparison.SCHEMA;

    public enum Role { ADMIN, USER }

    @Embeddable
    public static class Address {
        public String street;
        public String city;
    }

    @Entity(name = "Account")
    @Table(name = "accounts", indexes = @Index(name = "accounts_by_name", columnList = "name desc, active"))
    @Inheritance(strategy = InheritanceType.JOINED)
    public static class Account {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) public Long id;
        @Version public int version;
        @NaturalId @Column(length = 100, nullable = false) public String mail;
        public String name;
        @Column(nullable = false) public boolean active = true;
        @JdbcTypeCode(SqlTypes.NAMED_ENUM) public Role role = Role.USER;
        @Enumerated(EnumType.STRING) public Role second;
        @Embedded public Address address;
        @Column(precision = 12, scale = 2) public BigDecimal balance;
        public double ratio;
        public UUID key;
        public LocalDate born;
        public LocalTime wakes;
        public LocalDateTime local;
        public Instant seen;
        public OffsetDateTime zoned;
        public Duration span;
        public byte[] bytes;
        public String[] tags;
        public List<Integer> numbers = new ArrayList<>();
        @JdbcTypeCode(SqlTypes.JSON) public Map<String, Object> data;
        @Column(length = 100_000) public String note;
        @Formula("upper(name)") public String loud;
        @Generated @Column(insertable = false, updatable = false,
            columnDefinition = "integer generated always as (length(mail)) stored") public Integer length;
        @ElementCollection @CollectionTable(name = "phones") @OrderColumn public List<String> phones = new ArrayList<>();
        @OneToMany(mappedBy = "account", cascade = CascadeType.ALL,
            orphanRemoval = true) @OrderBy("title") public List<Post> posts = new ArrayList<>();

        @Override public String toString() {
            return String.join("; ", Comparison.text(List.of(id, version, mail, String.valueOf(name), active, role,
                String.valueOf(second), ratio)),
                address == null ? "" : address.street + "," + address.city, "" + balance, "" + key, "" + born, "" + wakes, "" + local,
                    "" + seen,
                "" + (zoned == null ? null : zoned.toInstant()), "" + span, Comparison.text(bytes), Comparison.text(tags), "" + numbers,
                    "" + data, "" + note,
                "" + loud, "" + length).replace("\n", ",");
        }
    }

    @Entity(name = "Customer")
    @Table(name = "customers")
    public static class Customer extends Account {
        public Integer discount;
    }

    @Entity(name = "Post")
    @Table(name = "posts", uniqueConstraints = @UniqueConstraint(name = "posts_title", columnNames = {"account_id", "title"}),
        check = @CheckConstraint(name = "posts_score", constraint = "score >= 0"))
    public static class Post {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) public Long id;
        @Column(nullable = false) public String title;
        public int score;
        @ManyToOne(fetch = FetchType.LAZY, optional = false) public Account account;
        @ManyToMany @JoinTable(name = "post_labels") public Set<Label> labels = new java.util.LinkedHashSet<>();

        public Post() { }

        Post(Account account, String title, int score) {
            this.account = account;
            this.title = title;
            this.score = score;
        }
    }

    @Entity(name = "Label")
    @Table(name = "labels")
    public static class Label {
        @Id public String name;

        public Label() { }

        Label(String name) {
            this.name = name;
        }
    }

    /** A later version of labels, for the update of the schema. */
    @Entity(name = "ColoredLabel")
    @Table(name = "labels")
    public static class ColoredLabel {
        @Id public String name;
        @Column(length = 20) public String color;
        @ManyToOne public ColoredLabel parent;
        @Column(unique = true) public Integer position;
    }

    private static SessionFactory factory(Comparison.Server server, String action, Class<?>... entities) {
        Configuration configuration = new Configuration().setProperty("hibernate.connection.url", server.url())
            .setProperty("hibernate.connection.username", Comparison.Server.USER).setProperty("hibernate.hbm2ddl.auto", action)
            .setProperty("hibernate.default_schema", SCHEMA).setProperty("hibernate.hbm2ddl.create_namespaces", "true")
            .setProperty("hibernate.jdbc.batch_size", "20").setProperty("hibernate.order_inserts", "true")
                .setProperty("hibernate.jdbc.time_zone", "UTC")
            .setProperty("hibernate.hbm2ddl.halt_on_error", action.equals("create") ? "false" : "true")
            .setProperty("hibernate.connection.pool_size", "4");
        for (Class<?> each : entities) configuration.addAnnotatedClass(each);
        return configuration.buildSessionFactory();
    }

    private static final Map<String, SessionFactory> FACTORIES = new HashMap<>();

    interface Work {
        Object run(Session session) throws Exception;
    }

    /** A step in a transaction. */
    private static Comparison.Step with(Work work) {
        return server -> {
            try (Session session = FACTORIES.get(server.name()).openSession()) {
                Transaction transaction = new Transaction(session);
                try {
                    Object result = work.run(session);
                    transaction.commit();
                    return result;
                } finally {
                    transaction.close();
                }
            }
        };
    }

    private record Transaction(Session session) implements AutoCloseable {
        Transaction {
            session.beginTransaction();
        }

        void commit() {
            session.getTransaction().commit();
        }

        @Override public void close() {
            if (session.getTransaction().isActive()) session.getTransaction().rollback();
        }
    }

    private static Account account(Account account, String mail, String name) {
        account.mail = mail;
        account.name = name;
        return account;
    }

    private static void schema(Comparison comparison) {
        comparison.check("create the schema", server -> {
            FACTORIES.put(server.name(), factory(server, "create", Account.class, Customer.class, Post.class, Label.class));
            return server.structure();
        });
        comparison.check("validate the schema", server -> {
            factory(server, "validate", Account.class, Customer.class, Post.class, Label.class).close();
            return "valid";
        });
        comparison.check("validate a schema that lacks a column", server -> Comparison.refused(each -> {
            factory(each, "validate", ColoredLabel.class).close();
            return null;
        }, server));
    }

    private static void write(Comparison comparison) {
        comparison.check("persist", with(session -> {
            Customer ann = (Customer) account(new Customer(), "ann@b.c", "ann");
            ann.discount = 5;
            ann.role = Role.ADMIN;
            ann.second = Role.USER;
            ann.address = new Address();
            ann.address.street = "Main";
            ann.address.city = "Ulm";
            ann.balance = new BigDecimal("12.50");
            ann.ratio = 0.1;
            ann.key = UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
            ann.born = LocalDate.of(2000, 2, 29);
            ann.wakes = LocalTime.of(7, 30);
            ann.local = LocalDateTime.of(2026, 1, 2, 3, 4, 5, 678_901_000);
            ann.seen = Instant.parse("2026-01-02T03:04:05.678901Z");
            ann.zoned = OffsetDateTime.parse("2026-01-02T03:04:05+02:00");
            ann.span = Duration.ofMinutes(90);
            ann.bytes = new byte[] {0, -1, 97};
            ann.tags = new String[] {"x", "y z", null};
            ann.numbers.addAll(List.of(3, 1, 2));
            ann.data = Map.of("a", List.of(1, "b"));
            ann.note = "n".repeat(50);
            ann.phones.addAll(List.of("1", "2"));
            ann.posts.add(new Post(ann, "second", 2));
            ann.posts.add(new Post(ann, "first", 1));
            Label red = new Label("red");
            session.persist(red);
            session.persist(new Label("blue"));
            ann.posts.get(0).labels.add(red);
            session.persist(ann);
            session.persist(account(new Account(), "bob@b.c", "bob"));
            for (int n = 0; n < 60; n++) session.persist(account(new Account(), n + "@b.c", "person " + n % 7));
            session.flush();
            return List.of(ann.id, ann.length, ann.posts.get(0).id);
        }));
        comparison.check("read what was written", with(session -> {
            Account ann = session.byNaturalId(Account.class).using("mail", "ann@b.c").load();
            List<String> posts = new ArrayList<>();
            for (Post post : ann.posts) posts.add(post.title + post.labels.stream().map(label -> label.name).toList());
            return List.of(ann, ann.phones.toString(), posts, session.find(Account.class, 2L), ((Customer) ann).discount);
        }));
        comparison.check("change, merge, remove", with(session -> {
            Account ann = session.find(Account.class, 1L);
            ann.name = "anne";
            ann.phones.remove(0);
            ann.posts.remove(0);
            ann.tags = new String[] {"z"};
            Account detached = account(new Account(), "bob@b.c", "robert");
            detached.id = 2L;
            Account merged = session.merge(detached);
            session.remove(session.find(Account.class, 3L));
            session.flush();
            session.refresh(ann);
            return List.of(ann, ann.version, merged.version, ann.posts.size(), ann.phones.toString());
        }));
        comparison.check("optimistic and pessimistic locks", server -> List.of(
            // A transaction reads at one time in Tailgate, so the conflict is 40001 there.
            Comparison.refused(with(session -> {
                Account stale = session.find(Account.class, 2L);
                server.execute("UPDATE " + SCHEMA + ".accounts SET version = version + 1 WHERE id = 2");
                stale.name = "stale";
                session.flush();
                return null;
            }), server).equals("no error"),
            with(session -> session.find(Account.class, 2L, LockModeType.PESSIMISTIC_WRITE).name
                + session.createSelectionQuery("from Post", Post.class)
                .setLockMode(LockModeType.PESSIMISTIC_READ).list().size()
                + session.find(Account.class, 2L, LockModeType.PESSIMISTIC_FORCE_INCREMENT).version).run(server),
            with(session -> session.createSelectionQuery("from Post p order by p.id", Post.class)
                .setHibernateLockMode(LockMode.UPGRADE_SKIPLOCKED).list().size()).run(server)));
        comparison.check("constraints", server -> List.of(
            Comparison.refused(with(session -> {
                session.persist(account(new Account(), "bob@b.c", "twice"));
                session.flush();
                return null;
            }), server),
            Comparison.refused(with(session -> {
                session.persist(new Post(session.find(Account.class, 2L), "negative", -1));
                return null;
            }), server)));
        comparison.check("bulk changes of joined tables", with(session -> List.of(
            session.createMutationQuery("insert into Customer (mail, name, discount, active, role, ratio, version) select mail ||"
                + " '.x', name, 7, true, role, ratio, 0"
                + " from Account where name = 'person 1'").executeUpdate(),
            session.createMutationQuery("update Customer set discount = discount + 1, name = upper(name) where discount = 7")
                .executeUpdate(),
            session.createMutationQuery("update versioned Account set name = 'n' where name = 'person 2'").executeUpdate(),
            session.createMutationQuery("insert into Label (name) values ('red'), ('green') on conflict (name) do nothing")
                .executeUpdate(),
            session.createMutationQuery("delete from Customer where discount = 8 and mail like '1@%'").executeUpdate(),
            session.createSelectionQuery("select c.mail, c.name, c.discount from Customer c order by c.mail", Object[].class).list())));
        comparison.check("a stateless session", server -> {
            try (var session = FACTORIES.get(server.name()).openStatelessSession()) {
                session.beginTransaction();
                session.upsert(new Label("red"));
                session.upsert(new Label("gray"));
                session.insert(new Label("white"));
                session.delete(new Label("white"));
                session.getTransaction().commit();
            }
            return server.rows("SELECT name FROM " + SCHEMA + ".labels ORDER BY 1");
        });
    }

    private static void query(Comparison comparison) {
        for (String hql : new String[] {
            "select a.name, count(*), max(a.id) from Account a group by a.name having count(*) > 1 order by a.name",
            "select a.mail, p.title, size(p.labels) from Account a left join a.posts p order by a.id, p.id limit 5 offset 1",
            "select p.title from Post p where p.account.address.city = 'Ulm' and exists (select 1 from p.account.phones f where f"
                + " = '2') order by 1",
            "select a.id, row_number() over (partition by a.name order by a.id), lag(a.mail) over (order by a.id) from Account a"
                + " order by a.id limit 4",
            "select type(a), a.id from Account a where type(a) = Customer order by a.id limit 3",
            "with top as (select a.id as id, a.name as name from Account a order by a.id limit 3) select t.name from top t order by t.id",
            "select a.id from Account a where array_contains(a.numbers, 3) and array_length(a.tags) = 1",
            "select year(a.born), month(a.born), extract(week from a.seen), a.seen + 2 day, (a.local - local datetime 2026-01-01"
                + " 00:00:00) by second"
                + " from Account a where a.id = 1",
            "select cast(a.balance as string), a.balance / 3, round(a.ratio, 1), a.id % 4, power(a.id, 2), concat(a.name, '-',"
                + " a.mail), a.name || '!' from Account a where a.id = 1",
            "select lower(a.name), substring(a.mail, 1, 3), locate('@', a.mail), left(a.mail, 2), trim(both 'a' from a.name),"
                + " replace(a.mail, '@', ' '), lpad(a.name, 8, '*'),"
                + " coalesce(a.note, '-'), nullif(a.name, 'bob'), case when a.active then 1 else 0 end from Account a where a.id"
                    + " < 4 order by a.id",
            "select listagg(distinct a.name, ',') within group (order by a.name), array_agg(a.id) within group (order by a.id)"
                + " from Account a where a.id < 9",
            "select a.name from Account a where a.name ilike 'AN%' or a.mail in ('bob@b.c') union all select l.name from Label l"
                + " where l.name like 'r%' order by 1",
            "select a.id from Account a where (a.id, a.name) in ((1, 'anne'), (2, 'x')) and a.born between date 1999-01-01 and"
                + " local date",
            "select truncate(a.seen, month), format(a.local as 'yyyy-MM-dd'), sum(a.id) filter (where a.active) from Account a"
                + " where a.id = 1 group by a.seen, a.local",
            "from Label l where l not in (select element(p.labels) from Post p) order by l.name",
        }) {
            comparison.check("HQL: " + hql.substring(0, Math.min(90, hql.length())), with(session -> {
                List<Object> rows = new ArrayList<>();
                for (Object row : session.createSelectionQuery(hql, Object.class)
                    .list()) rows.add(row instanceof Label label ? label.name : Comparison.text(row).replace("\n", ","));
                return rows;
            }));
        }
        comparison.check("criteria, pages, streams, scrolling", with(session -> {
            CriteriaBuilder builder = session.getCriteriaBuilder();
            CriteriaQuery<Tuple> criteria = builder.createTupleQuery();
            Root<Account> root = criteria.from(Account.class);
            criteria.select(builder.tuple(root.get("mail"), builder.length(root.get("name"))))
                .where(builder.and(builder.like(root.get("mail"), "%@b.c"), builder.greaterThan(root.<Long>get("id"), 2L)))
                .orderBy(builder.desc(root.get("id")));
            List<Object> results = new ArrayList<>();
            for (Tuple tuple : session.createQuery(criteria).setFirstResult(3).setMaxResults(4)
                .list()) results.add(Comparison.text(tuple.toArray()));
            try (Stream<Long> ids = session.createSelectionQuery("select id from Account order by id", Long.class).setFetchSize(5)
                .getResultStream()) {
                results.add(ids.mapToLong(Long::longValue).sum());
            }
            try (ScrollableResults<Long> scroll = session.createSelectionQuery("select id from Account order by id", Long.class)
                .scroll(ScrollMode.SCROLL_INSENSITIVE)) {
                scroll.last();
                results.add(scroll.get());
                scroll.previous();
                results.add(scroll.get());
            }
            results.add(session.createNativeQuery("select id, name, data ->> 'a' from " + SCHEMA + ".accounts where id = :id",
                Object[].class).setParameter("id", 1).getSingleResult());
            results.add(session.createSelectionQuery("from Account a where a.role = :role and a.key = :key", Account.class)
                .setParameter("role", Role.ADMIN)
                .setParameter("key", UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")).getResultCount());
            return results;
        }));
    }

    public static void main(String[] arguments) {
        Comparison comparison = new Comparison();
        schema(comparison);
        write(comparison);
        query(comparison);
        comparison.check("update the schema", server -> {
            factory(server, "update", ColoredLabel.class).close();
            factory(server, "validate", ColoredLabel.class).close();
            return server.structure();
        });
        comparison.check("drop the schema", server -> {
            FACTORIES.get(server.name()).close();
            factory(server, "drop", Account.class, Customer.class, Post.class, Label.class).close();
            List<List<String>> left = server.rows("SELECT relname, relkind FROM pg_class WHERE relnamespace = to_regnamespace('"
                + SCHEMA + "') ORDER BY 1");
            server.execute("DROP SCHEMA IF EXISTS " + SCHEMA + " CASCADE");
            return left;
        });
        comparison.done();
    }
}
