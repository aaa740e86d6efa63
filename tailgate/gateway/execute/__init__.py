"""The execution of statements. `dispatch` has the cases by kind of statement; the other modules run them."""
