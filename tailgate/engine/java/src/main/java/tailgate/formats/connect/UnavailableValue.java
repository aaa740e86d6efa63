package tailgate.formats.connect;

import org.apache.spark.unsafe.types.UTF8String;

/**
 * The placeholder that Debezium writes for a value that it could not read. PostgreSQL does not log
 * an unchanged value that is stored out of line.
 */
public final class UnavailableValue {
  public static final UTF8String TEXT = UTF8String.fromString("__debezium_unavailable_value");
  /** The placeholder as a jsonb. */
  public static final UTF8String JSONB = UTF8String.fromString("\"__debezium_unavailable_value\"");

  private UnavailableValue() {}
}
