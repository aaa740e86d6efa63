package tailgate.formats.avro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Requests to a schema registry. */
class SchemaRegistryTest {
  /** The registry's credentials must not reach another server that a redirect names. */
  @Test
  void redirectsAreNotFollowed() throws Exception {
    List<String> logins = Collections.synchronizedList(new ArrayList<>());
    HttpServer target = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    HttpServer redirecting = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    target.createContext("/", exchange -> {
      logins.add(String.valueOf(exchange.getRequestHeaders().getFirst("Authorization")));
      exchange.sendResponseHeaders(404, -1);
    });
    redirecting.createContext("/", exchange -> {
      String location = "http://127.0.0.1:" + target.getAddress().getPort() + exchange.getRequestURI();
      exchange.getResponseHeaders().add("Location", location);
      exchange.sendResponseHeaders(302, -1);
    });
    target.start();
    redirecting.start();
    try {
      String url = "http://ann:secret@127.0.0.1:" + redirecting.getAddress().getPort();
      SchemaRegistry registry = SchemaRegistry.of(url, "");
      IOException error = assertThrows(IOException.class, () -> registry.byId(7));
      assertTrue(error.getMessage().contains("302, a redirect, which is not followed"), error.getMessage());
      assertFalse(error.getMessage().contains("secret"));
      assertEquals(List.of(), logins);
    } finally {
      target.stop(0);
      redirecting.stop(0);
    }
  }
}
