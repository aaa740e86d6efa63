import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Workload W1 in Kafka Streams' DSL: a foreign-key join of two tables, then a grouping with an adder
 * and a subtractor. The arguments are settings of Kafka Streams, as {@code name=value}.
 *
 * <p>Topics hold JSON; between the steps there are rows in a binary form, with amounts in cents.
 */
public final class Orders {
  record Order(String customer, String item, long cents) {}

  record Sale(String segment, String item, long cents) {}

  record Total(long orders, long cents) {
    Total plus(long count, long amount) {
      return new Total(orders + count, cents + amount);
    }
  }

  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) {
    Properties settings = new Properties();
    for (String argument : arguments) {
      int equals = argument.indexOf('=');
      settings.put(argument.substring(0, equals), argument.substring(equals + 1));
    }
    StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(settings)));
    KTable<String, Order> orders =
        builder.table("orders", Consumed.with(Serdes.String(), ORDER), Materialized.with(Serdes.String(), ORDER));
    KTable<String, String> segments =
        builder.table("customers", Consumed.with(Serdes.String(), SEGMENT), Materialized.with(Serdes.String(), SEGMENT));
    orders
        .join(
            segments,
            Order::customer,
            (order, segment) -> new Sale(segment, order.item(), order.cents()),
            Materialized.with(Serdes.String(), SALE))
        .groupBy(
            (id, sale) -> KeyValue.pair(sale.segment() + "\t" + sale.item(), sale.cents()),
            Grouped.with(Serdes.String(), Serdes.Long()))
        .aggregate(
            () -> new Total(0, 0),
            (key, cents, total) -> total.plus(1, cents),
            (key, cents, total) -> total.orders() == 1 ? null : total.plus(-1, -cents),
            Materialized.with(Serdes.String(), TOTAL))
        .toStream()
        .mapValues(Orders::message)
        .to("revenue", Produced.with(Serdes.String(), Serdes.String()));
    KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.setUncaughtExceptionHandler(
        error -> {
          error.printStackTrace();
          Runtime.getRuntime().halt(1);
          return null;
        });
    streams.start();
  }

  private static String message(String group, Total total) {
    if (total == null) {
      return null;
    }
    int tab = group.indexOf('\t');
    return "{\"segment\":\"" + group.substring(0, tab) + "\",\"item\":\"" + group.substring(tab + 1) + "\",\"orders\":"
        + total.orders() + ",\"amount\":" + BigDecimal.valueOf(total.cents(), 2) + "}";
  }

  // Serialization for topics and stores. JSON topics of other programs are only read.

  private static JsonNode json(byte[] data) {
    try {
      return JSON.readTree(data);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** An order's message, which is also the format of the store of orders and its changelog. */
  private static final Serde<Order> ORDER =
      serde(
          order ->
              ("{\"customer_id\": " + order.customer() + ", \"item\": \"" + order.item() + "\", \"amount\": "
                  + BigDecimal.valueOf(order.cents(), 2) + "}").getBytes(StandardCharsets.UTF_8),
          data -> {
            JsonNode order = json(data);
            long cents = Math.round(order.get("amount").asDouble() * 100);
            return new Order(order.get("customer_id").asText(), order.get("item").asText(), cents);
          });

  private static final Serde<String> SEGMENT =
      serde(
          segment -> ("{\"segment\": \"" + segment + "\"}").getBytes(StandardCharsets.UTF_8),
          data -> json(data).get("segment").asText());

  private static final Serde<Sale> SALE =
      serde(
          sale -> {
            byte[] segment = sale.segment().getBytes(StandardCharsets.UTF_8);
            byte[] item = sale.item().getBytes(StandardCharsets.UTF_8);
            return ByteBuffer.allocate(12 + segment.length + item.length)
                .putLong(sale.cents()).putInt(segment.length).put(segment).put(item).array();
          },
          data -> {
            ByteBuffer buffer = ByteBuffer.wrap(data);
            long cents = buffer.getLong();
            int length = buffer.getInt();
            String segment = new String(data, 12, length, StandardCharsets.UTF_8);
            return new Sale(segment, new String(data, 12 + length, data.length - 12 - length, StandardCharsets.UTF_8), cents);
          });

  private static final Serde<Total> TOTAL =
      serde(
          total -> ByteBuffer.allocate(16).putLong(total.orders()).putLong(total.cents()).array(),
          data -> {
            ByteBuffer buffer = ByteBuffer.wrap(data);
            return new Total(buffer.getLong(), buffer.getLong());
          });

  private static <T> Serde<T> serde(
      java.util.function.Function<T, byte[]> write, java.util.function.Function<byte[], T> read) {
    return Serdes.serdeFrom(
        (topic, value) -> value == null ? null : write.apply(value),
        (topic, data) -> data == null ? null : read.apply(data));
  }

  private Orders() {}
}
