package tailgate.errors;

/**
 * An error in the user's data, with PostgreSQL's SQLSTATE and message.
 *
 * <p>It has no stack trace, because every row of a batch may raise one.
 */
public final class SqlError extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final String sqlstate;

  public SqlError(String sqlstate, String message) {
    super(message, null, false, false);
    this.sqlstate = sqlstate;
  }

  /** Returns 22023, for an argument whose value a function does not accept. */
  public static SqlError invalidParameter(String message) { return new SqlError("22023", message); }

  /** Returns 54001, for a value that is nested too deeply; replaces a StackOverflowError. */
  public static SqlError tooDeep() { return new SqlError("54001", "stack depth limit exceeded"); }

  public String sqlstate() { return sqlstate; }
}
