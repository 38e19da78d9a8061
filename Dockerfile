# Precede with everything that its papers need: docker build -t precede . && docker run --rm precede reproduce --check --minutes 2
FROM python:3.11-slim-bookworm
WORKDIR /precede
COPY constraints.txt pyproject.toml setup.py MANIFEST.in compiled.txt README.md LICENSE CHANGELOG.md CITATION.cff ./
COPY src src
COPY papers papers
COPY scenarios scenarios
RUN pip install --no-cache-dir --constraint constraints.txt '.[all]' && useradd --create-home precede
USER precede
WORKDIR /home/precede
ENTRYPOINT ["precede"]
CMD ["reproduce", "--check", "--minutes", "10"]
