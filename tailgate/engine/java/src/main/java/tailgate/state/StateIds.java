package tailgate.state;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.*;

/**
 * The version of every store that the last tick in the log committed.
 *
 * <p>Each store numbers its own versions, because the store of a new level starts at 0 in a later
 * tick, and a level without operators does not commit. Every version has an id per partition,
 * created at its commit. A repeated tick creates other ids, and the first ones are never used.
 *
 * <pre>   {"partitions": 2, "stores": {"0": {"version": 17, "ids": ["…", "…"]}}}</pre>
 */
public final class StateIds {
  private static final ObjectMapper JSON = new ObjectMapper();
  private final int partitions;
  private final SortedMap<Integer, Store> stores = new TreeMap<>();

  public record Store(long version, String[] ids) implements java.io.Serializable {}

  private StateIds(int partitions) { this.partitions = partitions; }

  public static StateIds parse(String json, int partitions) {
    StateIds ids = new StateIds(partitions);
    if (json == null || json.isEmpty()) return ids;
    try {
      JsonNode node = JSON.readTree(json);
      if (node.get("partitions").intValue() != partitions)
        throw new IllegalArgumentException("the state has " + node.get("partitions") + " partitions, not " + partitions);
      node.get("stores").properties().forEach(e -> {
        String[] of = new String[partitions];
        for (int i = 0; i < partitions; i++) of[i] = e.getValue().get("ids").get(i).textValue();
        ids.stores.put(Integer.valueOf(e.getKey()), new Store(e.getValue().get("version").longValue(), of));
      });
      return ids;
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not state ids: " + json, e);
    }
  }

  public int partitions() { return partitions; }

  public Set<Integer> stores() { return stores.keySet(); }

  /** Returns the version of a store, 0 if it has none yet. */
  public Store store(int store) { return stores.getOrDefault(store, new Store(0, null)); }

  /** The id of the version that a store has committed in a partition. */
  public record Committed(int store, int partition, String id) {}

  /**
   * Returns the ids after a tick: those that it committed, and unchanged ones of stores that it did
   * not open.
   */
  public StateIds after(List<Committed> committed) {
    StateIds next = new StateIds(partitions);
    next.stores.putAll(stores);
    for (Committed c : committed) {
      Store store = next.stores.get(c.store);
      if (store == null || store.version == store(c.store).version)
        next.stores.put(c.store, store = new Store(store(c.store).version + 1, new String[partitions]));
      store.ids[c.partition] = c.id;
    }
    next.stores.values().forEach(s -> { for (String id : s.ids) Objects.requireNonNull(id, "a partition did not commit"); });
    return next;
  }

  @Override public String toString() {
    ObjectNode node = JSON.createObjectNode();
    node.put("partitions", partitions);
    ObjectNode all = node.putObject("stores");
    stores.forEach((store, s) -> {
      ObjectNode one = all.putObject(Integer.toString(store)).put("version", s.version);
      var list = one.putArray("ids");
      for (String id : s.ids) list.add(id);
    });
    return node.toString();
  }
}
