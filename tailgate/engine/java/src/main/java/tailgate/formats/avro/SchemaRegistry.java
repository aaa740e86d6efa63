package tailgate.formats.avro;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.Serializable;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.net.ssl.SSLContext;
import tailgate.errors.SqlError;
import tailgate.formats.Format;
import tailgate.security.Secrets;
import tailgate.security.Tls;

/**
 * Schemas by id, from a registry with Confluent's HTTP interface.
 *
 * <p>Schemas are cached until the process ends, because an id never changes its meaning. A schema
 * may reference types of other subjects, which are loaded first.
 */
public final class SchemaRegistry implements Serializable {
  private static final long serialVersionUID = 1;
  // After this time a missing id is looked up again; a schema is registered before it is used.
  private static final long MISSING_NANOS = 10_000_000_000L;
  // Missing ids that are looked up in that time. Malformed messages contain arbitrary ids, and each
  // look-up delays the tick by a request.
  private static final int MISSING_MAX = 200;
  private static final Duration TIMEOUT = Duration.ofSeconds(5);  // of a connection or a response, for which ticks wait
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, Cache> CACHES = new ConcurrentHashMap<>();  // by URL
  // Each client has a thread, so clients are shared.
  private static final HttpClient CLIENT = clientBuilder().build();
  private static final Map<String, HttpClient> TLS_CLIENTS = new ConcurrentHashMap<>();  // by access
  private final String url;
  private final String urlWithoutUser;
  private final String user;
  private final String access;

  /**
   * The answers of a registry.
   *
   * @param schemas a schema after the schemas that it references
   * @param missing the times in milliseconds when ids were not in the registry
   */
  private record Cache(Map<Integer, List<String>> schemas, Map<Integer, Long> missing) {
    Cache() { this(new ConcurrentHashMap<>(), new ConcurrentHashMap<>()); }
  }

  private SchemaRegistry(String url, String access) {
    URI uri = URI.create(url);
    this.url = url;
    this.access = access;
    this.user = uri.getUserInfo();
    this.urlWithoutUser = user == null ? url : url.replace(uri.getRawUserInfo() + "@", "");
  }

  /**
   * Returns a registry.
   *
   * @param url may contain a user and a password
   * @param access the number of the registry's credentials in {@link Secrets}, or empty
   */
  public static SchemaRegistry of(String url, String access) {
    return new SchemaRegistry(url.replaceAll("/+$", ""), access);
  }

  /**
   * Returns a schema as JSON, after the schemas that it references, or null if the registry does
   * not have the id.
   *
   * @throws IOException if the registry does not answer
   * @throws SqlError if too many missing ids were looked up
   */
  public List<String> byId(int id) throws IOException {
    Cache cache = CACHES.computeIfAbsent(url, u -> new Cache());
    List<String> cached = cache.schemas.get(id);
    if (cached != null) return cached;
    Long missingSince = cache.missing.get(id);
    if (missingSince != null && System.nanoTime() - missingSince < MISSING_NANOS) return null;
    checkMissing(cache, id);
    List<String> schema = load(id);
    if (schema == null) cache.missing.put(id, System.nanoTime());
    else cache.schemas.put(id, schema);
    return schema;
  }

  private static void checkMissing(Cache cache, int id) {
    if (cache.missing.size() < MISSING_MAX) return;
    long now = System.nanoTime();
    cache.missing.values().removeIf(since -> now - since >= MISSING_NANOS);
    if (cache.missing.size() < MISSING_MAX) return;
    throw Format.malformed("schema " + id + " was not looked up, because the registry did not have the last "
        + MISSING_MAX + " schemas that messages named");
  }

  private List<String> load(int id) throws IOException {
    JsonNode schema = get("/schemas/ids/" + id);
    if (schema == null) return null;
    Map<String, String> references = new LinkedHashMap<>();
    loadReferences(schema, references);
    List<String> schemas = new ArrayList<>(references.values());
    schemas.add(schema.get("schema").textValue());
    return schemas;
  }

  /**
   * Adds the schemas that a schema references, by path; a schema comes after those that it
   * references.
   */
  private void loadReferences(JsonNode schema, Map<String, String> references) throws IOException {
    for (JsonNode r : schema.path("references")) {
      String subject = URLEncoder.encode(r.get("subject").textValue(), StandardCharsets.UTF_8).replace("+", "%20");
      String path = "/subjects/" + subject + "/versions/" + r.get("version").asInt();
      if (references.containsKey(path)) continue;
      JsonNode referenced = get(path);
      if (referenced == null) throw new IOException("schema registry " + urlWithoutUser + " has no " + path);
      loadReferences(referenced, references);
      references.put(path, referenced.get("schema").textValue());
    }
  }

  // ---- HTTP -------------------------------------------------------------------------------------

  /** Returns a response's JSON, or null for status 404. */
  private JsonNode get(String path) throws IOException {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(urlWithoutUser + path))
        .timeout(TIMEOUT)
        .header("Accept", "application/vnd.schemaregistry.v1+json, application/json");
    try {
      HttpClient client = CLIENT;
      String login = user;
      if (!access.isEmpty()) {
        JsonNode credentials = JSON.readTree(Secrets.text(access));
        if (credentials.has("error")) throw new IOException(credentials.get("error").textValue());
        if (credentials.has("username")) {
          login = credentials.get("username").textValue() + ":" + credentials.path("password").asText();
        }
        if (credentials.has("ca") || credentials.has("key")) client = tlsClient(credentials);
      }
      if (login != null) {
        String encoded = Base64.getEncoder().encodeToString(login.getBytes(StandardCharsets.UTF_8));
        request.header("Authorization", "Basic " + encoded);
      }
      HttpResponse<String> response = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
      if (response.statusCode() == 404) return null;
      if (response.statusCode() / 100 == 3) {
        throw new IOException("HTTP status " + response.statusCode() + ", a redirect, which is not followed");
      }
      if (response.statusCode() != 200) throw new IOException("HTTP status " + response.statusCode());
      return JSON.readTree(response.body());
    } catch (InterruptedException e) {
      throw new InterruptedIOException();
    } catch (IOException e) {
      String reason = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
      throw new IOException("schema registry " + urlWithoutUser + " does not answer: " + reason, e);
    }
  }

  private HttpClient tlsClient(JsonNode credentials) throws IOException {
    HttpClient cached = TLS_CLIENTS.get(access);
    if (cached != null) return cached;
    SSLContext tls = Tls.context(
        credentials.path("ca").textValue(),
        credentials.path("certificate").textValue(),
        credentials.path("key").textValue());
    return TLS_CLIENTS.computeIfAbsent(access, a -> clientBuilder().sslContext(tls).build());
  }

  /** Returns a builder of clients that do not follow redirects: the target may be someone else. */
  private static HttpClient.Builder clientBuilder() {
    return HttpClient.newBuilder().connectTimeout(TIMEOUT).followRedirects(HttpClient.Redirect.NEVER);
  }
}
