package tailgate.sources;

/**
 * An external system that the records of a channel need, such as a schema registry, does not
 * answer. The records are not the cause: the same tick may succeed later.
 */
public final class SourceStalled extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final String channel;
  private final boolean lasting;

  public SourceStalled(String channel, String message) { this(channel, message, false); }

  public SourceStalled(String channel, String message, boolean lasting) {
    super(message);
    this.channel = channel;
    this.lasting = lasting;
  }

  /**
   * Returns whether a retry does not help: a record cannot be decoded, and the source's policy is
   * to fail.
   */
  public boolean lasting() { return lasting; }

  /** Returns the channel of the source, under which the circuit has it. */
  public String channel() { return channel; }
}
