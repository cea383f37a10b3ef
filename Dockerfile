# The command `baldur` in a container that needs no network when it runs.
#
#   make package                          # builds the wheel into dist/
#   docker build -t baldur .
#   docker run --rm --network none --user "$(id -u):$(id -g)" -v "$PWD:/study" baldur \
#       evaluate study.toml --jobs 2
#
# The image has every extra but two: torch, which is larger than all the others together, and dask,
# which needs a network. docs/develop/releasing.md says how the image is checked.

ARG PYTHON=3.13.7-slim-bookworm

FROM python:${PYTHON} AS install
COPY dist/*.whl /dist/
RUN python -m venv /opt/baldur \
    && /opt/baldur/bin/python -m pip install --no-cache-dir \
        "$(echo /dist/*.whl)[genetics,imaging,mudata,tables,report,onnx]"

FROM python:${PYTHON}
COPY --from=install /opt/baldur /opt/baldur
# Matplotlib lists fonts below the home folder, where any user may write, also one without a name.
RUN useradd --uid 10001 --create-home --home-dir /home/baldur baldur \
    && chmod 1777 /home/baldur \
    && mkdir /study && chown baldur /study
ENV PATH=/opt/baldur/bin:$PATH \
    HOME=/home/baldur \
    PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /study
ENTRYPOINT ["baldur"]
CMD ["--help"]
