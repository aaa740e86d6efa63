package tailgate;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.Serializable;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Writer schemas by id, from a registry that speaks Confluent's HTTP interface. What it has answered is kept for as long as the process lives: an id never means another schema.
 * Left out: schema references, basic auth.
 */
final class AvroRegistry implements Serializable {
  private static final long serialVersionUID = 1;
  private static final long MISSING_MS = 10_000;                     // an id that was not found is asked for again after this: schemas are registered before they are used
  private static final Duration ANSWER = Duration.ofSeconds(10);     // longest wait for one answer
  private static final Map<String, Answers> ANSWERS = new ConcurrentHashMap<>();
  private final String url;

  private record Answers(Map<Integer, String> known, Map<Integer, Long> missing) {}

  private AvroRegistry(String url) { this.url = url; }

  static AvroRegistry of(String url) { return new AvroRegistry(url.replaceAll("/+$", "")); }

  /** The schema as JSON, or null if there is none with this id. Throws if the registry does not answer. */
  String byId(int id) throws IOException {
    Answers answers = ANSWERS.computeIfAbsent(url, u -> new Answers(new ConcurrentHashMap<>(), new ConcurrentHashMap<>()));
    String schema = answers.known.get(id);
    if (schema != null) return schema;
    Long since = answers.missing.get(id);
    if (since != null && System.currentTimeMillis() - since < MISSING_MS) return null;
    schema = ask(id);
    if (schema == null) answers.missing.put(id, System.currentTimeMillis());
    else answers.known.put(id, schema);
    return schema;
  }

  private String ask(int id) throws IOException {
    HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/schemas/ids/" + id)).timeout(ANSWER).build();
    try {
      HttpResponse<String> answer = HttpClient.newBuilder().connectTimeout(ANSWER).build().send(request, HttpResponse.BodyHandlers.ofString());
      if (answer.statusCode() == 404) return null;
      if (answer.statusCode() != 200) throw new IOException("it answered " + answer.statusCode());
      return new ObjectMapper().readTree(answer.body()).get("schema").textValue();
    } catch (InterruptedException e) {
      throw new InterruptedIOException();
    } catch (IOException e) {
      throw new IOException("schema registry " + url + " does not answer: " + (e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage()), e);
    }
  }
}
