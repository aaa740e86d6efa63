package tailgate;

/** Something outside that the records of a channel need does not answer (a schema registry). No property of the records: the same tick may succeed later. */
public final class SourceStalled extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final String channel;

  public SourceStalled(String channel, String message) {
    super(message);
    this.channel = channel;
  }

  /** The channel of the source, as given to {@link Circuit#source}. */
  public String channel() { return channel; }
}
