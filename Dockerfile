# judge in a container (docs/install.md); no model is in it.
#   docker build -t judge .                              or with extras: --build-arg EXTRAS='[local]'
#   docker run --rm -i judge validate - --ask "Is it polite?" -m openai:gpt-4o < mails.jsonl
FROM python:3.11-slim AS build
ARG EXTRAS=""
COPY pyproject.toml README.md LICENSE /src/
COPY judge /src/judge
COPY graphs /src/graphs
COPY rubrics /src/rubrics
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir "/src${EXTRAS}"

FROM python:3.11-slim
COPY --from=build /venv /venv
# Any user may write here, for `docker run --user`: cache, weights, configuration.
RUN useradd --uid 10001 --no-create-home judge && mkdir -m 1777 /home/judge && mkdir -m 1777 /data
ENV PATH=/venv/bin:$PATH HOME=/home/judge
USER judge
WORKDIR /data
ENTRYPOINT ["judge"]
CMD ["--help"]
