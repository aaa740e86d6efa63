package tailgate.formats;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** An HTTP server that answers as a schema registry, from schemas in memory. */
public final class StubRegistry implements AutoCloseable {
  private static final ObjectMapper JSON = new ObjectMapper();
  private final Map<Integer, String> schemas = new ConcurrentHashMap<>();
  private final HttpServer server;

  public StubRegistry() throws IOException {
    System.setProperty("sun.net.httpserver.nodelay", "true");
    server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext("/schemas/ids/", exchange -> {
      String schema = schemas.get(Integer.valueOf(exchange.getRequestURI().getPath().replaceAll(".*/", "")));
      byte[] body = JSON.writeValueAsBytes(Map.of("schema", schema == null ? "" : schema));
      exchange.sendResponseHeaders(schema == null ? 404 : 200, body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    });
    server.start();
  }

  public String url() { return "http://127.0.0.1:" + server.getAddress().getPort(); }

  public void put(int id, String schema) { schemas.put(id, schema); }

  public String schema(int id) { return schemas.get(id); }

  /** Adds the schemas of a recorded registry's file; {@code idOffset} is added to their ids. */
  public void load(Path file, int idOffset) throws IOException {
    for (JsonNode s : JSON.readTree(file.toFile())) {
      JsonNode schema = s.get("schema");
      schemas.put(idOffset + s.get("id").intValue(), schema.isTextual() ? schema.textValue() : schema.toString());
    }
  }

  @Override public void close() { server.stop(0); }
}
