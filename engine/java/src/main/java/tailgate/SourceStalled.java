package tailgate;

/** Something outside that the records of a channel need does not answer (a schema registry). No property of the records: the same tick may succeed later. */
public final class SourceStalled extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final String channel;
  private final boolean lasting;

  public SourceStalled(String channel, String message) { this(channel, message, false); }

  SourceStalled(String channel, String message, boolean lasting) {
    super(message);
    this.channel = channel;
    this.lasting = lasting;
  }

  /** That a record cannot be decoded and the source is to fail then: trying again does not help. */
  public boolean lasting() { return lasting; }

  /** The channel of the source, as given to {@link Circuit#source}. */
  public String channel() { return channel; }
}
