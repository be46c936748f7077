#!/usr/bin/env bash
# Installs the package on a Debian 12 that has nothing else, and serves the model that comes with it.
# Needs mmdebstrap and Debian's mirror; run by hand, since tests need no network.
#   fresh_debian.sh HIPPODROME_DEB
set -euo pipefail
package=$(realpath "$1")

if [ "${2:-}" != inside ]; then
  exec mmdebstrap --variant=minbase --format=null --include=man-db,curl,bash-completion \
    --customize-hook="copy-in $package $(realpath "${BASH_SOURCE[0]}") /opt" \
    --chrooted-customize-hook="bash /opt/$(basename "${BASH_SOURCE[0]}") /opt/$(basename "$package") inside" \
    bookworm
fi

say() { printf '\n== %s\n' "$*"; }
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

say 'install'
# The root was made without the lists of packages.
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends install "$package"
hippodrome --version
dpkg -l 'libcuda*' '*-dev' 2>/dev/null | grep '^ii' && fail 'it brought packages for building'

say 'manual page and completion'
MANWIDTH=80 man hippodrome 2>/dev/null | sed -n '1,12p'
man --where hippodrome
[ "$(man --warnings hippodrome 2>&1 >/dev/null)" = '' ] || fail 'man warns'
# shellcheck disable=SC1091
completed=$(bash -c '
  source /usr/share/bash-completion/bash_completion
  _completion_loader hippodrome
  COMP_WORDS=(hippodrome serve --device "") COMP_CWORD=3
  _hippodrome hippodrome "" --device
  echo "${COMPREPLY[*]}"')
echo "hippodrome serve --device: $completed"
[ "$completed" = 'auto cpu cuda' ] || fail 'no completion'

say 'serve'
log=$(mktemp)
hippodrome serve --model /usr/share/hippodrome/models/h3-demo \
  --model /usr/share/hippodrome/models/bigs-demo --http 127.0.0.1:0 --grpc 127.0.0.1:0 >"$log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
for _ in $(seq 600); do
  if grep -q '^grpc listening on' "$log"; then break; fi
  kill -0 "$server" || fail "the server ended: $(cat "$log")"
  sleep 0.1
done
cat "$log"
url=http://$(sed -n 's/^http listening on //p' "$log")
# expect PATTERN PATH JSON: a line of the answer matches.
expect() {
  local answer
  answer=$(curl -sS -N --fail-with-body "$url$2" -H 'Content-Type: application/json' -d "$3")
  printf '%s\n' "$answer"
  grep -q "$1" <<<"$answer" || fail "$2 $3: no line with $1"
}
prompt='"model": "h3-demo", "prompt": "It was a dark night, and", "max_tokens": 8'
expect '"completion_tokens": *8' /v1/completions "{$prompt}"
expect '^data: \[DONE\]' /v1/completions "{$prompt, \"stream\": true}"
expect '"score"' /predict '{"inputs": "My dogs love these treats, and so does the cat."}'
kill -TERM "$server"
wait "$server" || fail 'the server ended with an error'
trap - EXIT

say 'remove'
DEBIAN_FRONTEND=noninteractive apt-get -y -qq purge hippodrome >/dev/null
[ ! -e /usr/bin/hippodrome ] && [ ! -e /usr/share/hippodrome ] || fail 'something stays behind'
echo passed
