package tailgate.state;

/**
 * State that the log names is missing or damaged, so the views must be filled again. Repeating the
 * tick does not help.
 */
public final class StateLost extends RuntimeException {
  private static final long serialVersionUID = 1;

  public StateLost(String message, Throwable cause) { super(message, cause); }
}
