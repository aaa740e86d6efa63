package tailgate;

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
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import javax.net.ssl.SSLContext;

/**
 * Writer schemas by id, from a registry that speaks Confluent's HTTP interface. What it has answered is kept for as long as the process lives: an id never means another schema.
 * A schema may name types of other subjects (references), which come first.
 */
final class AvroRegistry implements Serializable {
  private static final long serialVersionUID = 1;
  private static final long MISSING_MS = 10_000;                     // an id that was not found is asked for again after this: schemas are registered before they are used
  private static final int MISSING_MAX = 200;                        // that are asked for in this time: malformed messages name any, and each costs the tick a request
  private static final Duration ANSWER = Duration.ofSeconds(10);     // longest wait for one answer
  private static final Map<String, Answers> ANSWERS = new ConcurrentHashMap<>();
  private static final HttpClient CLIENT = builder().build();  // one for all: a client has a thread of its own
  private static final Map<String, HttpClient> CLIENTS = new ConcurrentHashMap<>();  // those with certificates of their own, by `access`
  private final String url, shown, user, access;

  private record Answers(Map<Integer, List<String>> known, Map<Integer, Long> missing) {}

  /** A user and a password may stand in the URL; `shown` is without them. `access`: see {@link Format#avro}. */
  private AvroRegistry(String url, String access) {
    URI at = URI.create(url);
    this.url = url;
    this.access = access;
    this.user = at.getUserInfo();
    this.shown = user == null ? url : url.replace(at.getRawUserInfo() + "@", "");
  }

  static AvroRegistry of(String url, String access) { return new AvroRegistry(url.replaceAll("/+$", ""), access); }

  /** The schema as JSON, after those it names, or null if there is none with this id. Throws IOException if the registry does not answer, SqlError if it was asked for too many that it does not have. */
  List<String> byId(int id) throws IOException {
    Answers answers = ANSWERS.computeIfAbsent(url, u -> new Answers(new ConcurrentHashMap<>(), new ConcurrentHashMap<>()));
    List<String> schema = answers.known.get(id);
    if (schema != null) return schema;
    Long since = answers.missing.get(id);
    if (since != null && System.currentTimeMillis() - since < MISSING_MS) return null;
    if (answers.missing.size() >= MISSING_MAX) {
      long old = System.currentTimeMillis() - MISSING_MS;
      answers.missing.values().removeIf(at -> at <= old);
      if (answers.missing.size() >= MISSING_MAX) throw new SqlError("22P02", "schema " + id + " was not looked up: the registry has had none of the last " + MISSING_MAX + " that messages named");
    }
    schema = ask(id);
    if (schema == null) answers.missing.put(id, System.currentTimeMillis());
    else answers.known.put(id, schema);
    return schema;
  }

  private List<String> ask(int id) throws IOException {
    JsonNode found = get("/schemas/ids/" + id);
    if (found == null) return null;
    Map<String, String> all = new LinkedHashMap<>();
    references(found, all);
    List<String> schemas = new ArrayList<>(all.values());
    schemas.add(found.get("schema").textValue());
    return schemas;
  }

  private void references(JsonNode schema, Map<String, String> found) throws IOException {
    for (JsonNode r : schema.path("references")) {
      String path = "/subjects/" + URLEncoder.encode(r.get("subject").textValue(), StandardCharsets.UTF_8).replace("+", "%20") + "/versions/" + r.get("version").asInt();
      if (found.containsKey(path)) continue;
      JsonNode other = get(path);
      if (other == null) throw new IOException("schema registry " + shown + " has no " + path);
      references(other, found);
      found.put(path, other.get("schema").textValue());
    }
  }

  /** Redirects are not followed: where they lead is not who the credentials are for. */
  private static HttpClient.Builder builder() { return HttpClient.newBuilder().connectTimeout(ANSWER).followRedirects(HttpClient.Redirect.NEVER); }

  private HttpClient client(JsonNode said) throws IOException {
    HttpClient known = CLIENTS.get(access);
    if (known != null) return known;
    SSLContext tls = Tls.context(said.path("ca").textValue(), said.path("certificate").textValue(), said.path("key").textValue());
    return CLIENTS.computeIfAbsent(access, a -> builder().sslContext(tls).build());
  }

  /** Null for 404. */
  private JsonNode get(String path) throws IOException {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(shown + path)).timeout(ANSWER).header("Accept", "application/vnd.schemaregistry.v1+json, application/json");
    try {
      HttpClient client = CLIENT;
      String who = user;
      if (!access.isEmpty()) {
        JsonNode said = new ObjectMapper().readTree(Secrets.text(access));
        if (said.has("error")) throw new IOException(said.get("error").textValue());
        if (said.has("username")) who = said.get("username").textValue() + ":" + said.path("password").asText();
        if (said.has("ca") || said.has("key")) client = client(said);
      }
      if (who != null) request.header("Authorization", "Basic " + Base64.getEncoder().encodeToString(who.getBytes(StandardCharsets.UTF_8)));
      HttpResponse<String> answer = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
      if (answer.statusCode() == 404) return null;
      if (answer.statusCode() >= 300 && answer.statusCode() < 400) throw new IOException("it answers " + answer.statusCode() + ", a redirect, which is not followed");
      if (answer.statusCode() != 200) throw new IOException("it answered " + answer.statusCode());
      return new ObjectMapper().readTree(answer.body());
    } catch (InterruptedException e) {
      throw new InterruptedIOException();
    } catch (IOException e) {
      throw new IOException("schema registry " + shown + " does not answer: " + (e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage()), e);
    }
  }
}
