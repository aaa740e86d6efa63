package tailgate.state;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.state.LineageItem;
import org.apache.spark.sql.execution.streaming.state.RocksDBFileManager;
import org.apache.spark.sql.execution.streaming.state.StateStoreChangelogReader;
import org.apache.spark.sql.execution.streaming.state.StateStoreConf;
import scala.Option;

/**
 * The versions that precede a version of the state, since a snapshot or the first version. Spark writes them into each
 * changelog file.
 */
public final class Lineages {
  private static final ObjectMapper JSON = new ObjectMapper();

  private Lineages() {}

  /**
   * Returns the lineage of each partition of each store, oldest version first and with the version itself, as JSON:
   * `{"store/partition": [[version, id], …]}`.
   *
   * @param ids as of {@link StateIds}
   */
  public static String of(org.apache.spark.sql.SparkSession session, String path, String ids) throws JsonProcessingException {
    Configuration hadoop = ((SparkSession) session).sparkContext().hadoopConfiguration();
    ObjectNode all = JSON.createObjectNode();
    JsonNode state = JSON.readTree(ids);
    int partitions = state.get("partitions").intValue();
    for (int store : StateIds.parse(ids, partitions).stores()) {
      StateIds.Store versions = StateIds.parse(ids, partitions).store(store);
      for (int partition = 0; partition < partitions; partition++) {
        String place = store + "/" + partition;
        ArrayNode items = all.putArray(place);
        for (LineageItem item : read(hadoop, path + "/" + place, versions.version(), versions.ids()[partition]))
          if (item.version() < versions.version()) items.addArray().add(item.version()).add(item.checkpointUniqueId());
        items.addArray().add(versions.version()).add(versions.ids()[partition]);
      }
    }
    return JSON.writeValueAsString(all);
  }

  private static LineageItem[] read(Configuration hadoop, String folder, long version, String id) {
    StateStoreConf conf = StateStoreConf.empty();
    RocksDBFileManager files =
        new RocksDBFileManager(folder, new File(folder), hadoop, conf.compressionCodec(), "", conf, false, Option.empty());
    StateStoreChangelogReader reader = files.getChangelogReader(version, Option.apply(id));
    try {
      return reader.lineage();
    } finally {
      reader.close();
      files.close();
    }
  }
}
