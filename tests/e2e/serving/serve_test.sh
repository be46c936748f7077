#!/usr/bin/env bash
# Serves a model with the real program and talks to it as a client would.
#   serve_test.sh HIPPODROME MODEL_DIR
set -euo pipefail
hippodrome=$1
model=$2
proto=proto/hippodrome/v1/generation.proto
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  sed 's/^/server: /' "$work/log" >&2 || true
  exit 1
}
equal() { [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"; }

# The ADDRESS of "NAME listening on ADDRESS", once the server says it.
address() {
  local i
  for ((i = 0; i < 600; ++i)); do
    sed -n "s/^$1 listening on //p" "$work/log" | grep . && return
    kill -0 "$server" 2>/dev/null || fail "the server ended before it listened"
    sleep 0.1
  done
  fail "the server does not listen on $1"
}

complete() { curl -sS -N --fail-with-body "http://$http/v1/completions" -d "$1"; }
request() {
  jq -cn --arg prompt "$1" --argjson stream "$2" \
    '{prompt: $prompt, max_tokens: 16, temperature: 0, stream: $stream}'
}

# The texts of the messages of a gRPC response body: five bytes of header, then the message.
grpc_texts() {
  local file=$1 size offset=0 length
  size=$(stat -c %s "$file")
  while [ "$offset" -lt "$size" ]; do
    length=$(od -An -tu4 --endian=big -j $((offset + 1)) -N 4 "$file")
    tail -c +$((offset + 6)) "$file" | head -c "$((length))" |
      protoc -Iproto --decode=hippodrome.v1.GenerateResponse "$proto" |
      sed -n "s/^text: \"\(.*\)\"$/\1/; T; s/\\\\\([\"']\)/\\1/g; p"
    offset=$((offset + 5 + length))
  done
}
grpc_generate() {
  printf 'text: "%s" max_tokens: 16 temperature: 0' "$1" |
    protoc -Iproto --encode=hippodrome.v1.GenerateRequest "$proto" >"$work/message"
  # The header: not compressed, then the length, big-endian; messages here are under 256 bytes.
  { printf '\0\0\0\0%b' "\\x$(printf %02x "$(stat -c %s "$work/message")")"; cat "$work/message"; } \
    >"$work/frame"
  curl -sS --http2-prior-knowledge -H 'content-type: application/grpc' -H 'te: trailers' \
    --data-binary "@$work/frame" -o "$work/reply" \
    "http://$grpc/hippodrome.v1.Generation/Generate"
  printf '%b' "$(grpc_texts "$work/reply" | tr -d '\n')"
}

: >"$work/log"
"$hippodrome" serve --model "demo=$model" --weights f32 --http 127.0.0.1:0 --grpc 127.0.0.1:0 \
  >"$work/log" 2>&1 &
server=$!
http=$(address http)
grpc=$(address grpc)
curl -sS --retry 60 --retry-all-errors --retry-delay 1 --fail "http://$http/ready" >/dev/null ||
  fail "not ready"

prompts=("It was a dark night, and" "The old man" "In the beginning" "My dear sister, I")
expected=()
for prompt in "${prompts[@]}"; do
  expected+=("$("$hippodrome" generate --model "$model" --weights f32 --temperature 0 \
    --max-tokens 16 --prompt "$prompt" --json | jq -r .text)")
done

# All at once, each plain and streamed: what runs beside a request does not change its text.
pids=()
for i in "${!prompts[@]}"; do
  complete "$(request "${prompts[i]}" false)" >"$work/plain$i" & pids+=($!)
  complete "$(request "${prompts[i]}" true)" >"$work/stream$i" & pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || fail "a completion failed"; done
for i in "${!prompts[@]}"; do
  equal "completion $i" "${expected[i]}" "$(jq -r '.choices[0].text' "$work/plain$i")"
  equal "end of stream $i" 'data: [DONE]' "$(grep . "$work/stream$i" | tail -n 1)"
  streamed=$(sed -n 's/^data: \({.*\)/\1/p' "$work/stream$i" | jq -j '.choices[0].text // ""')
  equal "stream $i" "${expected[i]}" "$streamed"
  equal "gRPC $i" "${expected[i]}" "$(grpc_generate "${prompts[i]}")"
done
events=$(grep -c '^data: {' "$work/stream0")
[ "$events" -ge 8 ] || fail "16 tokens came in $events events"

equal "completion tokens" 16 "$(jq .usage.completion_tokens "$work/plain0")"
equal "model list" demo "$(curl -sS "http://$http/v1/models" | jq -r '.data[0].id')"
equal "status of a bad request" 400 \
  "$(curl -s -o /dev/null -w '%{http_code}' "http://$http/v1/completions" -d '{"max_tokens": -1}')"
curl -sS "http://$http/metrics" >"$work/metrics"
grep -q '^hippodrome_' "$work/metrics" || fail "/metrics has no hippodrome_ series"

# A stream that runs when SIGTERM comes is ended, and the exit code is 0.
complete "$(request "Once upon a time" true | jq -c '.max_tokens = 24')" >"$work/last" &
last=$!
sleep 0.2
kill -TERM "$server"
code=0
wait "$server" || code=$?
server=
equal "exit code after SIGTERM" 0 "$code"
wait "$last" || true
echo "passed"
