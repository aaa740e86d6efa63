import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpClient;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.http.HttpClientRequest;
import io.vertx.core.http.HttpClientResponse;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpVersion;
import io.vertx.core.json.JsonArray;
import io.vertx.core.json.JsonObject;
import io.vertx.core.parsetools.RecordParser;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/**
 * Checks Vert.x's HTTP/2 client with the options of ksqlDB's Java client: clear text by prior
 * knowledge, all requests as streams of one connection. Prints them in the Test Anything Protocol.
 */
public final class VertxChecks {
  private static final int PORT = Integer.parseInt(System.getenv("KSQLDB_PORT"));
  private static final String DELIMITED = "application/vnd.ksqlapi.delimited.v1";
  private static final long ANSWER_S = 60;
  private static final String END = "end";
  private static final JsonObject EARLIEST = new JsonObject().put("auto.offset.reset", "earliest");
  private static int count;

  private final Vertx vertx = Vertx.vertx();
  private HttpClient client = client();

  /** The lines of a response as they arrive; END is the last one. */
  private record Lines(HttpClientRequest request, HttpClientResponse response, BlockingQueue<String> lines) {
    String next() throws InterruptedException {
      return Objects.requireNonNull(lines.poll(ANSWER_S, TimeUnit.SECONDS), "no line within the limit");
    }

    void reset() { request.reset(); }
  }

  interface Work {
    void run() throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    VertxChecks checks = new VertxChecks();
    checks.statements();
    checks.inserts();
    checks.queries();
    checks.vanishing();
    System.out.println("1.." + count);
    checks.vertx.close();
  }

  private static void check(String name, Work work) {
    count++;
    try {
      work.run();
      System.out.println("ok " + count + " - " + name);
    } catch (Exception | AssertionError e) {
      System.out.println("not ok " + count + " - " + name + "\n  # " + String.valueOf(e).replace("\n", " | "));
    }
  }

  private static void same(Object found, Object expected) {
    if (!Objects.deepEquals(found, expected)) throw new AssertionError(found + " and not " + expected);
  }

  private HttpClient client() {
    return vertx.createHttpClient(new HttpClientOptions().setSsl(false).setUseAlpn(false)
        .setProtocolVersion(HttpVersion.HTTP_2).setHttp2ClearTextUpgrade(false).setHttp2MaxPoolSize(1)
        .setDefaultHost("127.0.0.1").setDefaultPort(PORT));
  }

  private static <T> T get(Future<T> future) throws Exception {
    return future.toCompletionStage().toCompletableFuture().get(ANSWER_S, TimeUnit.SECONDS);
  }

  private HttpClientRequest request(String path) throws Exception {
    HttpClientRequest request = get(client.request(HttpMethod.POST, path));
    request.putHeader("Accept", path.equals("/ksql") ? "application/json" : DELIMITED);
    return request;
  }

  /** Sends a whole body, or the start of one, and reads the response. */
  private Lines lines(HttpClientRequest request, Buffer body, boolean whole) throws Exception {
    BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    Future<HttpClientResponse> response = request.response().onSuccess(r -> {
      RecordParser parser = RecordParser.newDelimited("\n", r);
      parser.handler(line -> lines.add(line.toString())).endHandler(v -> lines.add(END)).exceptionHandler(e -> lines.add(e.toString()));
    });
    if (whole) {
      request.end(body);
    } else {
      request.setChunked(true);
      request.write(body);
    }
    return new Lines(request, get(response), lines);
  }

  private JsonArray execute(String sql) throws Exception {
    HttpClientRequest request = request("/ksql");
    Future<Buffer> body = request.response().compose(HttpClientResponse::body);
    request.end(new JsonObject().put("ksql", sql).toBuffer());
    return get(body).toJsonArray();
  }

  private Lines query(String sql) throws Exception {
    JsonObject body = new JsonObject().put("sql", sql).put("properties", EARLIEST);
    return lines(request("/query-stream"), body.toBuffer(), true);
  }

  private boolean close(String id) throws Exception {
    HttpClientRequest request = request("/close-query");
    request.end(new JsonObject().put("queryId", id).toBuffer());
    return get(request.response()).statusCode() == 200;
  }

  private void statements() {
    check("the connection is HTTP/2", () -> {
      HttpClientRequest request = get(client.request(HttpMethod.GET, "/info"));
      request.end();
      HttpClientResponse response = get(request.response());
      same(List.of(response.version(), response.statusCode()), List.of(HttpVersion.HTTP_2, 200));
    });
    check("creates a stream and a table over it", () -> {
      execute("CREATE STREAM java_visits (id INT KEY, name VARCHAR) WITH (kafka_topic='java_visits', partitions=1, value_format='JSON');");
      JsonArray created = execute("CREATE TABLE java_counts AS SELECT name, COUNT(*) AS n FROM java_visits GROUP BY name;");
      same(created.getJsonObject(0).getJsonObject("commandStatus").getString("status"), "SUCCESS");
    });
  }

  private void inserts() {
    check("acks arrive while the body is open", () -> {
      Buffer target = new JsonObject().put("target", "JAVA_VISITS").toBuffer().appendString("\n");
      HttpClientRequest request = request("/inserts-stream");
      Lines acks = lines(request, target.appendString("{\"ID\":0,\"NAME\":\"a\"}\n"), false);
      for (int i = 0; ; i++) {
        JsonObject ack = new JsonObject(acks.next());
        same(List.of(ack.getString("status"), ack.getInteger("seq")), List.of("ok", i));
        if (i == 9) break;
        request.write("{\"ID\":" + (i + 1) + ",\"NAME\":\"" + (i % 2 == 0 ? "b" : "a") + "\"}\n");
      }
      request.end();
      same(acks.next(), END);
    });
    check("a row that does not fit is an error ack", () -> {
      Buffer body = Buffer.buffer("{\"target\":\"JAVA_VISITS\"}\n{\"ID\":\"x\"}\n");
      same(new JsonObject(lines(request("/inserts-stream"), body, true).next()).getString("status"), "error");
    });
  }

  private void queries() {
    check("a push query with LIMIT ends", () -> {
      Lines rows = query("SELECT * FROM java_visits EMIT CHANGES LIMIT 10;");
      same(new JsonObject(rows.next()).getJsonArray("columnNames").getList(), List.of("ID", "NAME"));
      for (int i = 0; i < 10; i++) same(new JsonArray(rows.next()).getInteger(0), i);
      same(rows.next(), END);
    });
    check("50 push queries are streams of one connection", () -> {
      List<Lines> all = IntStream.range(0, 50).mapToObj(i -> {
        try {
          return query("SELECT * FROM java_visits EMIT CHANGES LIMIT 10;");
        } catch (Exception e) {
          throw new IllegalStateException(e);
        }
      }).toList();
      for (Lines rows : all) {
        for (int i = 0; i < 11; i++) rows.next();
        same(rows.next(), END);
      }
    });
    check("a pull query by key", () -> {
      JsonArray row = new JsonArray();
      for (int i = 0; i < 100 && (row.isEmpty() || row.getInteger(1) < 5); i++) {
        Lines rows = query("SELECT * FROM java_counts WHERE name = 'b';");
        rows.next();
        String line = rows.next();
        row = line.equals(END) ? row : new JsonArray(line);
      }
      same(row.getList(), List.of("b", 5));
    });
    check("close-query ends a push query", () -> {
      Lines rows = query("SELECT * FROM java_visits EMIT CHANGES;");
      String id = new JsonObject(rows.next()).getString("queryId");
      same(close(id), true);
      for (String line = rows.next(); !line.equals(END); line = rows.next()) new JsonArray(line);
      same(close(id), false);
    });
  }

  private void vanishing() {
    check("a client that resets its stream, or closes the connection, ends its push queries", () -> {
      Lines reset = query("SELECT * FROM java_visits EMIT CHANGES;");
      String first = new JsonObject(reset.next()).getString("queryId");
      reset.reset();
      String second = new JsonObject(query("SELECT * FROM java_visits EMIT CHANGES;").next()).getString("queryId");
      client.close();
      client = client();
      for (String id : List.of(first, second)) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(ANSWER_S);
        while (running(id)) if (System.nanoTime() > deadline) throw new AssertionError(id + " is running");
      }
    });
  }

  private boolean running(String id) throws Exception {
    return execute("SHOW QUERIES;").encode().contains(id);
  }
}
