# Builds with BuildKit and with the legacy builder alike.
#
#   docker build -t semif-kafka .
#   docker build -t semif-kafka:cpu --build-arg TORCH_INDEX_URL=<index of CPU-only wheels> .
#
# The model is not in the image: mount a Hugging Face cache, a folder or a .gguf file at /models.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

# What is to be installed, without the project's own version: a version bump leaves these two
# files as they are, and with them the layer of several gigabytes that is made from them.
FROM ${PYTHON_IMAGE} AS manifest
WORKDIR /manifest
COPY pyproject.toml constraints.txt deploy/requirements.py ./
RUN python3 requirements.py pyproject.toml > requirements.txt

FROM ${PYTHON_IMAGE}
SHELL ["/bin/bash", "-eu", "-o", "pipefail", "-c"]
ARG TORCH_INDEX_URL=
ENV PATH=/opt/semif-kafka/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
RUN python3 -m venv /opt/semif-kafka \
    && useradd --uid 10001 --create-home --shell /usr/sbin/nologin semif \
    && install -d -o semif /var/cache/semif-kafka /models
COPY --from=manifest /manifest/requirements.txt /manifest/constraints.txt /opt/semif-kafka/
WORKDIR /opt/semif-kafka
# A version without its local part (+cpu) is met by any: one pin serves both kinds of wheels.
RUN if [ -n "$TORCH_INDEX_URL" ]; then \
        pip install --no-cache-dir --no-deps -c constraints.txt --index-url "$TORCH_INDEX_URL" torch; \
    fi \
    && pip install --no-cache-dir -c constraints.txt -r requirements.txt

COPY pyproject.toml README.md LICENSE NOTICE /src/
COPY schemas /src/schemas
COPY semif_engine /src/semif_engine
COPY processor /src/processor
COPY deploy/healthcheck.py ./
RUN pip install --no-cache-dir --no-deps --no-build-isolation /src

# Nothing is fetched at run time: models come from the mount, pinned, or not at all.
ENV HF_HUB_CACHE=/models \
    HF_HUB_OFFLINE=1 \
    TRANSFORMERS_OFFLINE=1 \
    SEMIF_CONVERTED_DIR=/var/cache/semif-kafka \
    SEMIF_HTTP_HOST=0.0.0.0 \
    SEMIF_LOG_FORMAT=json \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001
WORKDIR /home/semif
EXPOSE 9464
# An engine that died may take as long to be replaced as a start (engine_start_seconds, 10 min): only
# past that is it worth somebody's restart.
HEALTHCHECK --interval=10s --timeout=6s --start-period=10m --retries=66 \
    CMD ["python3", "/opt/semif-kafka/healthcheck.py"]
ENTRYPOINT ["semif-kafka"]
CMD ["run"]
