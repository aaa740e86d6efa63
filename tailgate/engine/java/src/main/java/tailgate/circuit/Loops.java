package tailgate.circuit;

import java.util.*;

/**
 * The loops of a circuit. A loop has a head, an operator with a {@link Operator#feedback feedback port}, and the operators
 * through which the output of the head returns to this port.
 *
 * <p>The operators of a loop run together until no changes wait for them, in one partition. For all other operators a loop
 * is like one operator: it has one level, and its output is complete when the operators below it run.
 */
final class Loops {
  /** An edge that ends at a port of an operator. */
  record Arrow(int from, int port) {}

  /** Per operator of a loop: the ids of the loop's operators, the head first, each after those that send to it. */
  private final Map<Integer, List<Integer>> loops = new HashMap<>();
  private final Map<Integer, List<Arrow>> incoming;

  /** Finds the loops of operators, given the edges that lead to each. */
  Loops(Collection<Operator> operators, Map<Integer, List<Arrow>> incoming) {
    this.incoming = incoming;
    for (Operator head : operators) {
      if (head.feedback() < 0) continue;
      List<Integer> loop = new ArrayList<>(List.of(head.id));
      Map<Integer, Boolean> answers = new HashMap<>(Map.of(head.id, true));
      for (Arrow arrow : incoming.getOrDefault(head.id, List.of()))
        if (arrow.port == head.feedback()) depends(arrow.from, answers, loop);
      for (int id : loop)
        if (loops.put(id, loop) != null) throw new IllegalArgumentException("operator " + id + " is in two loops");
    }
  }

  /** Returns whether a node depends on the head, whose answer is known. Adds the nodes that do, inputs first. */
  private boolean depends(int node, Map<Integer, Boolean> answers, List<Integer> loop) {
    Boolean answer = answers.get(node);
    if (answer != null) return answer;
    answers.put(node, false);
    boolean any = false;
    for (Arrow arrow : incoming.getOrDefault(node, List.of())) any |= depends(arrow.from, answers, loop);
    answers.put(node, any);
    if (any) loop.add(node);
    return any;
  }

  /** Returns the loop of an operator, or the operator alone. */
  List<Integer> of(int node) { return loops.getOrDefault(node, List.of(node)); }
}
