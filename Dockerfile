# The app in a container. Published to this machine only, with runs kept in a volume:
#
#   docker build -t icqf .
#   docker run --rm -p 127.0.0.1:8765:8765 -v icqf-runs:/runs icqf
#
# and open the address that it prints. Any other command works as well:
# docker run --rm -v "$PWD:/data" -w /data icqf check answers.csv
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --only-binary :all: "$(ls /wheels/icqf-*.whl)[app,io]" \
    && rm -r /wheels \
    && useradd --create-home icqf \
    && install -d -o icqf -g icqf /runs
USER icqf
VOLUME /runs
EXPOSE 8765
ENTRYPOINT ["icqf"]
# A container's own loopback is not reached from outside it, so the app must listen at all of its addresses, which it
# does only when told so; `-p 127.0.0.1:…` keeps other machines out.
CMD ["app", "--host", "0.0.0.0", "--allow-other-machines", "--port", "8765", "--no-open", "--folder", "/runs"]
