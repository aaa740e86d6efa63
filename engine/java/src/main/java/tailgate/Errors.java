package tailgate;

/** What an expression threw, as PostgreSQL would have said it. */
final class Errors {
  private Errors() {}

  static SqlError of(Throwable e) {
    if (e instanceof SqlError s) return s;
    return new SqlError("XX000", e.toString());
  }
}
