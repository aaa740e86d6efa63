package tailgate.state;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.apache.spark.sql.execution.streaming.state.RocksDBFileManager;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReader;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogWriter;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import scala.Option;

/**
 * The versions that precede a version of the state, since a snapshot or the first version. Spark writes them into each
 * changelog file.
 *
 * <p>As JSON, they are `{"store/partition": [[version, id], …]}`: oldest version first, and the version itself last.
 */
public final class Lineages {
  private static final ObjectMapper JSON = new ObjectMapper();
  private final Configuration hadoop;
  private final StateStoreConf conf;

  private Lineages(org.apache.spark.sql.SparkSession session) {
    var state = ((SparkSession) session).sessionState();
    hadoop = state.newHadoopConf();
    conf = new StateStoreConf(state.conf(), scala.collection.immutable.Map$.MODULE$.empty());
  }

  /**
   * Returns the lineage of each partition of each store, as JSON.
   *
   * @param ids as of {@link StateIds}
   */
  public static String of(org.apache.spark.sql.SparkSession session, String path, String ids) throws JsonProcessingException {
    Lineages lineages = new Lineages(session);
    ObjectNode all = JSON.createObjectNode();
    JsonNode state = JSON.readTree(ids);
    int partitions = state.get("partitions").intValue();
    for (int store : StateIds.parse(ids, partitions).stores()) {
      StateIds.Store versions = StateIds.parse(ids, partitions).store(store);
      for (int partition = 0; partition < partitions; partition++) {
        String place = store + "/" + partition;
        ArrayNode items = all.putArray(place);
        for (LineageItem item : lineages.read(path + "/" + place, versions.version(), versions.ids()[partition]))
          if (item.version() < versions.version()) items.addArray().add(item.version()).add(item.checkpointUniqueId());
        items.addArray().add(versions.version()).add(versions.ids()[partition]);
      }
    }
    return JSON.writeValueAsString(all);
  }

  /**
   * Copies the changelog of the last version of each lineage from one folder of state to another one, and replaces the
   * lineage in it. The copies are durable when this method returns.
   *
   * @param lineages as JSON
   */
  public static void copy(org.apache.spark.sql.SparkSession session, String from, String to, String lineages)
      throws JsonProcessingException {
    Lineages files = new Lineages(session);
    DurableFiles.keep(to);
    for (Map.Entry<String, JsonNode> entry : JSON.readTree(lineages).properties()) {
      JsonNode items = entry.getValue();
      LineageItem[] preceding = new LineageItem[items.size() - 1];
      for (int i = 0; i < preceding.length; i++) preceding[i] = item(items.get(i));
      files.copy(from + "/" + entry.getKey(), to + "/" + entry.getKey(), item(items.get(preceding.length)), preceding);
    }
  }

  private static LineageItem item(JsonNode item) { return new LineageItem(item.get(0).longValue(), item.get(1).textValue()); }

  private LineageItem[] read(String folder, long version, String id) {
    RocksDBFileManager files = files(folder);
    StateStoreChangelogReader reader = files.getChangelogReader(version, Option.apply(id));
    try {
      return reader.lineage();
    } finally {
      reader.close();
      files.close();
    }
  }

  private void copy(String from, String to, LineageItem last, LineageItem[] preceding) {
    RocksDBFileManager source = files(from), target = files(to);
    Option<String> id = Option.apply(last.checkpointUniqueId());
    StateStoreChangelogReader reader = source.getChangelogReader(last.version(), id);
    StateStoreChangelogWriter writer = target.getChangeLogWriter(last.version(), false, id, Option.apply(preceding));
    try {
      while (reader.hasNext()) {
        var record = reader.next();
        if (record._3() == null) writer.delete(record._2());
        else writer.put(record._2(), record._3());
      }
      writer.commit();
    } finally {
      writer.abort();  // without effect after the commit
      reader.close();
      source.close();
      target.close();
    }
  }

  private RocksDBFileManager files(String folder) {
    return new RocksDBFileManager(folder, new File(folder), hadoop, conf.compressionCodec(), "", conf, false, Option.empty());
  }
}
