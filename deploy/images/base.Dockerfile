# The base of all images. Any other with glibc, Python 3.11 to 3.13 as /usr/bin/python3, Git and certificate authorities
# does, too: make images BASE=...
FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 git ca-certificates \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
