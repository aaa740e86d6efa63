package tailgate.errors;

/**
 * An error in the user's data, with PostgreSQL's SQLSTATE and message.
 *
 * <p>It has no stack trace, because every row of a batch may raise one.
 */
public final class SqlError extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final String sqlstate;
  private final boolean inKey;

  public SqlError(String sqlstate, String message) { this(sqlstate, message, false); }

  private SqlError(String sqlstate, String message, boolean inKey) {
    super(message, null, false, false);
    this.sqlstate = sqlstate;
    this.inKey = inKey;
  }

  /** Returns the same error, of the key of a record. */
  public SqlError ofKey() { return new SqlError(sqlstate, getMessage(), true); }

  /** Returns whether the key of a record cannot be decoded, not its value. */
  public boolean inKey() { return inKey; }

  /** Returns 22023, for an argument whose value a function does not accept. */
  public static SqlError invalidParameter(String message) { return new SqlError("22023", message); }

  /** Returns 54001, for a value that is nested too deeply; replaces a StackOverflowError. */
  public static SqlError tooDeep() { return new SqlError("54001", "stack depth limit exceeded"); }

  public String sqlstate() { return sqlstate; }
}
