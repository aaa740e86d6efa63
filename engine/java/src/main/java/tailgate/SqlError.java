package tailgate;

/** An error of the data, as PostgreSQL names it. Without a stack trace: there may be one a row. */
public final class SqlError extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final String sqlstate;

  public SqlError(String sqlstate, String message) {
    super(message, null, false, false);
    this.sqlstate = sqlstate;
  }

  /** Of values that are nested, as deeply as they are: a StackOverflowError of ours. */
  static SqlError tooDeep() { return new SqlError("54001", "stack depth limit exceeded"); }

  public String sqlstate() { return sqlstate; }
}
