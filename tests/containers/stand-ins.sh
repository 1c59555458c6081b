#!/usr/bin/env bash
# Makes stand-ins for the two public images that the container tests rest on, for a machine whose
# engine reaches no image registry: the same names, made from Debian packages and Kafka's jars.
#
#   stand-ins.sh PYTHON_IMAGE KAFKA_IMAGE JARS
#
# Needs root, debootstrap, and the engine of DOCKER_HOST. What is tested on them is this project's
# Dockerfile, compose file and fixtures, not the real images.
set -euo pipefail
python_image=$1 kafka_image=$2 jars=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! docker image inspect semif-stand-in-base >/dev/null 2>&1; then
    rootfs=${STAND_IN_ROOTFS:-$work/rootfs}
    [ -d "$rootfs" ] || debootstrap --variant=minbase \
        --include=ca-certificates,python3,python3-venv,python3-pip,default-jre-headless \
        bookworm "$rootfs" >"$work/debootstrap.log" || { tail "$work/debootstrap.log" >&2; exit 1; }
    tar -C "$rootfs" -c . | docker import - semif-stand-in-base >/dev/null
fi

mkdir "$work/python"
# The engine's own certificate authorities: package downloads may go through a proxy of theirs.
cp /etc/ssl/certs/ca-certificates.crt "$work/python/"
cat >"$work/python/Dockerfile" <<'DOCKERFILE'
FROM semif-stand-in-base
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_DEFAULT_TIMEOUT=180
DOCKERFILE
docker build -q -t "$python_image" "$work/python" >/dev/null

mkdir "$work/kafka"
cp -rL "$jars" "$work/kafka/jars"
# As the image does it: every KAFKA_ variable is a property, and the log is formatted once.
cat >"$work/kafka/run" <<'RUN'
#!/usr/bin/env bash
set -euo pipefail
properties=/tmp/server.properties
printenv | sed -n 's/^KAFKA_\([A-Z0-9_]*\)=/\1=/p' | while IFS='=' read -r name value; do
    name=${name,,}
    printf '%s=%s\n' "${name//_/.}" "$value"
done >"$properties"
grep -q '^log\.dirs=' "$properties" || echo log.dirs=/tmp/kafka-logs >>"$properties"
java=(java -Xmx512m -XX:+UseSerialGC -cp '/opt/kafka/jars/*')
"${java[@]}" kafka.tools.StorageTool format --ignore-formatted -t AAAAAAAAAAAAAAAAAAAAAA -c "$properties"
exec "${java[@]}" kafka.Kafka "$properties"
RUN
cat >"$work/kafka/Dockerfile" <<'DOCKERFILE'
FROM semif-stand-in-base
RUN useradd --uid 1000 appuser && install -d -o appuser /var/lib/kafka/data
COPY jars /opt/kafka/jars
COPY run /etc/kafka/docker/run
RUN chmod 755 /etc/kafka/docker/run
USER appuser
VOLUME /var/lib/kafka/data
CMD ["/etc/kafka/docker/run"]
DOCKERFILE
docker build -q -t "$kafka_image" "$work/kafka" >/dev/null
