# The server's image where `make images` cannot run, as on macOS and Windows: the same software, but two builds differ, no
# list of it is made, and the image has no health check. `docker compose up --build` builds it.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv git ca-certificates make
WORKDIR /src
COPY . .
RUN make dashboard docs \
    && python3 -m venv /opt/roost \
    && /opt/roost/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements/runtime.txt \
    && /opt/roost/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${BASE}
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 git ca-certificates \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
    && useradd --uid 1000 --gid 0 --home-dir /data --shell /usr/sbin/nologin roost \
    && install -d -o 1000 -g 0 -m 775 /data
COPY --from=build /opt/roost /opt/roost
ENV PATH=/opt/roost/bin:/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 HOME=/data ROOST_DATA=/data ROOST_ENGINES=/data/engines
USER 1000:0
WORKDIR /data
VOLUME /data
EXPOSE 8642
ENTRYPOINT ["/opt/roost/bin/roost"]
CMD ["up", "--host", "0.0.0.0"]
