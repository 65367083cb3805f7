# An image of eagled for processors. From the root of the sources:
#   docker build -f deploy/docker/cpu.Dockerfile -t eagled .
# --build-arg TARBALL=IMAGE takes the archive of `deploy/package.sh tarball` from an image that holds it in /.
ARG DEBIAN=docker.io/library/debian:12-slim
ARG TARBALL=build

FROM ${DEBIAN} AS build
WORKDIR /source
COPY . .
RUN bash deploy/package.sh tarball --output /

FROM ${TARBALL} AS tarball

FROM ${DEBIAN} AS unpacked
COPY --from=tarball /eagled-*.tar.gz /tmp/
RUN mkdir /eagled && tar --extract --gzip --strip-components 1 --directory /eagled --file /tmp/eagled-*.tar.gz \
 && rm -r /eagled/include /eagled/lib/cmake /eagled/lib/pkgconfig /eagled/lib/python3 /eagled/lib/systemd

FROM ${DEBIAN}
RUN apt-get update && apt-get install --yes --no-install-recommends tini && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 7411 eagled && useradd --uid 7411 --gid 7411 --no-create-home --home-dir /nonexistent \
    --shell /usr/sbin/nologin eagled && install -d -o 7411 -g 7411 -m 0755 /run/eagled && install -d -o 7411 -g 7411 -m 0700 /var/cache/eagled
COPY --from=unpacked /eagled /usr/local
COPY deploy/docker/entrypoint.sh /usr/local/libexec/eagle/entrypoint
COPY deploy/docker/eagled.toml /etc/eagled/eagled.toml
LABEL org.opencontainers.image.title="eagled" \
      org.opencontainers.image.description="graph execution daemon" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.documentation="/usr/local/share/doc/eagled/manual/containers.md"
ENV EAGLED_CONFIG=/etc/eagled/eagled.toml EAGLE_ENDPOINT=unix:/run/eagled/eagled.sock
USER 7411:7411
VOLUME ["/run/eagled", "/var/cache/eagled"]
EXPOSE 7411
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["eagled", "health", "eagled.ready"]
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/libexec/eagle/entrypoint"]
CMD ["eagled"]
