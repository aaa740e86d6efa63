# Tailgate as an image: the engine, a gateway, the sinks or the registry, by its command.
#
#   docker build -t tailgate .
#   docker run tailgate engine --data /lake

FROM python:3.11-slim-bookworm AS built
RUN apt-get update && apt-get install --yes --no-install-recommends make maven openjdk-17-jdk-headless && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# What seldom changes first, so that downloads are layers of their own.
COPY Makefile pyproject.toml README.md LICENSE ./
COPY jars jars
RUN make EXTRAS= .venv/.installed tailgate/jars/spark/.resolved tailgate/jars/kafka/.resolved
COPY . .
RUN make EXTRAS= wheel

FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --create-home tailgate \
 && install --directory --owner=tailgate --mode=0700 /lake /registry
COPY --from=built /src/dist /dist
RUN python -m venv /opt/tailgate && /opt/tailgate/bin/pip install --no-cache-dir /dist/*.whl \
 && /opt/tailgate/bin/python -m tailgate.engine.runtime.classes
ENV PATH=/opt/tailgate/bin:$PATH PYTHONUNBUFFERED=1
USER tailgate
WORKDIR /home/tailgate
ENTRYPOINT ["tailgate"]
