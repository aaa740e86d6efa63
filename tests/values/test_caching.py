"""Results for short texts are cached, up to a number; those for long ones are not."""

from __future__ import annotations

from tailgate.values.caching import cached


def test_results_for_short_texts_are_cached() -> None:
    computed: list[str] = []

    @cached(2, 10)
    def length(text: str) -> int:
        computed.append(text)
        return len(text)

    long = "more than ten"
    for text in ("a", "a", long, long, "b", "a", "c", "b"):
        assert length(text) == len(text)
    assert computed == ["a", long, long, "b", "c", "b"]
