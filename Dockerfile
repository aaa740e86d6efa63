# Tailgate as an image: the engine, a gateway, the sinks or the registry, by its command.
#
#   docker build -t tailgate .
#   docker run tailgate engine --data /lake

FROM python:3.11-slim-bookworm AS built
RUN apt-get update && apt-get install --yes --no-install-recommends make maven openjdk-17-jdk-headless && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/tailgate
# What seldom changes first, so that downloads are layers of their own.
COPY Makefile pyproject.toml README.md LICENSE ./
COPY jars jars
RUN make EXTRAS= .venv/.installed .jars/spark/.resolved
COPY . .
RUN make EXTRAS= tailgate/engine/java/target/tailgate.jar

FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --create-home tailgate \
 && install --directory --owner=tailgate --mode=0700 /lake /registry
COPY --from=built /opt/tailgate /opt/tailgate
ENV PATH=/opt/tailgate/.venv/bin:$PATH PYTHONUNBUFFERED=1
USER tailgate
WORKDIR /home/tailgate
ENTRYPOINT ["tailgate"]
