"""The rows of running statements: of TAIL and SUBSCRIBE (`tail`, `envelopes`), scrolling, and COPY TO."""
