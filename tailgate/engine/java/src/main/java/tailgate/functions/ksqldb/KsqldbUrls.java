package tailgate.functions.ksqldb;

import java.io.ByteArrayOutputStream;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;
import tailgate.errors.SqlError;

/**
 * ksqlDB's functions of URLs, which have the syntax of RFC 3986.
 *
 * <p>Generated code calls them ({@code Functions}); arguments are not NULL, and a result of null is
 * NULL. {@code tailgate/sql/compute/ksqldb/urls.py} computes the same and names the sources.
 */
public final class KsqldbUrls {
  private static final Pattern PARTS = Pattern.compile(
      "(?:(?<protocol>[A-Za-z][A-Za-z0-9+.-]*):(?<opaque>[^/#][^#]*)?)?(?://(?<authority>[^/?#]*))?"
          + "(?<path>[^?#]*)(?:\\?(?<query>[^#]*))?(?:#(?<fragment>.*))?");
  private static final Pattern AUTHORITY =
      Pattern.compile("(?:[^@]*@)?(?<host>\\[[^\\]]*\\]|[^:@\\[\\]]*)(?::(?<port>[0-9]{0,9}))?");
  private static final Pattern INVALID =
      Pattern.compile("[\\x00-\\x20\\x7f\"<>\\\\^`{|}]|%(?![0-9A-Fa-f]{2})");
  private static final Set<String> NAMES =
      Set.of("protocol", "host", "port", "path", "query", "fragment");
  private static final Pattern ESCAPE = Pattern.compile("%(?![0-9A-Fa-f]{2})");

  private KsqldbUrls() {}

  private static Matcher parts(UTF8String url) {
    String text = url.toString();
    Matcher m = PARTS.matcher(text);
    if (text.isEmpty() || INVALID.matcher(text).find() || !m.matches()) {
      throw SqlError.invalidParameter("URL input has invalid syntax");
    }
    return m;
  }

  /** Returns a text whose + and %xx are replaced. Throws 22023. */
  private static String decoded(String text) {
    if (ESCAPE.matcher(text).find()) {
      throw SqlError.invalidParameter("URL input has an invalid escape sequence");
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    byte[] bytes = text.replace('+', ' ').getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < bytes.length; i++) {
      if (bytes[i] == '%') {
        out.write(Character.digit(bytes[i + 1], 16) * 16 + Character.digit(bytes[i + 2], 16));
        i += 2;
      } else {
        out.write(bytes[i]);
      }
    }
    return out.toString(StandardCharsets.UTF_8).replace('\0', '\ufffd');
  }

  private static UTF8String decodedPart(String text) {
    return text == null ? null : UTF8String.fromString(decoded(text.replace("+", "%2B")));
  }

  /** Returns the protocol, host, port, path, query or fragment of a URL; null if it has none. Throws 22023. */
  public static UTF8String ksqldbUrlPart(UTF8String url, UTF8String part) {
    String name = part.toString();
    if (!NAMES.contains(name)) throw SqlError.invalidParameter("a URL has no part \"" + name + "\"");
    Matcher m = parts(url);
    if (name.equals("protocol")) return UTF8String.fromString(m.group(name));
    if (name.equals("path") && m.group("opaque") != null) return null;  // as in mailto:a@b
    if (!name.equals("host") && !name.equals("port")) return decodedPart(m.group(name));
    Matcher authority = AUTHORITY.matcher(m.group("authority") == null ? "" : m.group("authority"));
    String value = authority.matches() ? authority.group(name) : null;
    return value == null || value.isEmpty() ? null : UTF8String.fromString(value);
  }

  /** Returns the value of the first parameter of a name in a URL's query; an empty text if it has no value. */
  public static UTF8String ksqldbUrlParameter(UTF8String url, UTF8String name) {
    String query = parts(url).group("query");
    if (query == null) return null;
    for (String parameter : query.split("&", -1)) {
      int at = parameter.indexOf('=');
      String key = at < 0 ? parameter : parameter.substring(0, at);
      if (!key.isEmpty() && decodedPart(key).equals(name)) return decodedPart(at < 0 ? "" : parameter.substring(at + 1));
    }
    return null;
  }

  public static UTF8String ksqldbUrlDecode(UTF8String text) { return UTF8String.fromString(decoded(text.toString())); }

  public static UTF8String ksqldbUrlEncode(UTF8String text) {
    return UTF8String.fromString(URLEncoder.encode(text.toString(), StandardCharsets.UTF_8));
  }
}
