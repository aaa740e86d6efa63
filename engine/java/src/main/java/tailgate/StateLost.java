package tailgate;

/** State that the log names is missing or damaged: the views have to be filled again. Running the tick again does not help. */
public final class StateLost extends RuntimeException {
  private static final long serialVersionUID = 1;

  public StateLost(String message, Throwable cause) { super(message, cause); }
}
