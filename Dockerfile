# Tailgate as an image: by its command the engine, a gateway, the sinks or others, and without a command all of them (`up`).
#
#   docker build -t tailgate .
#   docker run tailgate engine --data /lake
#   docker build -t tailgate-registry --target registry .     the schema registry, on port 8081

FROM python:3.11-slim-bookworm AS built
RUN apt-get update && apt-get install --yes --no-install-recommends make maven openjdk-17-jdk-headless && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# What seldom changes first, so that downloads are layers of their own.
COPY Makefile pyproject.toml README.md LICENSE ./
COPY jars jars
RUN make EXTRAS= .venv/.installed jars
COPY . .
RUN make EXTRAS= wheel

FROM python:3.11-slim-bookworm AS runtime
RUN apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --create-home tailgate \
 && install --directory --owner=tailgate --mode=0700 /lake /registry
COPY --from=built /src/dist /dist
RUN python -m venv /opt/tailgate && /opt/tailgate/bin/pip install --no-cache-dir /dist/*.whl \
 && /opt/tailgate/bin/python -m tailgate.engine.runtime.classes \
 && /opt/tailgate/bin/python -m tailgate.embedded.kafka_classes
ENV PATH=/opt/tailgate/bin:$PATH PYTHONUNBUFFERED=1
USER tailgate
WORKDIR /home/tailgate

FROM runtime AS registry
ENTRYPOINT ["python", "-m", "tailgate.embedded.registry"]
CMD ["--data", "/registry", "--port", "8081", "--host", "0.0.0.0", "--insecure"]

FROM runtime
ENTRYPOINT ["tailgate"]
CMD ["up", "--data", "/lake"]
