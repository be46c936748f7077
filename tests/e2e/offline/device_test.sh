#!/usr/bin/env bash
# The program needs no CUDA library, says in one line that a device is missing, and does without.
#   device_test.sh HIPPODROME MODEL_DIR
set -euo pipefail
hippodrome=$1
model=$2

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

needed=$(readelf --dynamic "$hippodrome" | grep NEEDED)
if grep -iE 'cuda|cublas|cufft|nccl|nvrtc' <<<"$needed"; then fail "the program needs CUDA's libraries"; fi

generate() { "$hippodrome" generate --model "$model" --prompt hello --max-tokens 3 --json "$@"; }
on_cpu=$(generate --device cpu)
[ "$(generate)" = "$on_cpu" ] || [ -e /dev/nvidia0 ] || fail "auto does not do as the CPU does"

# With something that looks like a driver, the module itself is loaded and finds no device.
module=$(dirname "$hippodrome")/libhippodrome_cuda.so
if [ ! -e /dev/nvidia0 ] && [ -e "$module" ]; then
  driver=$(mktemp -d)
  trap 'rm -rf "$driver"' EXIT
  echo 'int nothing;' | cc -shared -fPIC -x c - -o "$driver/libcuda.so.1"
  message=$(LD_LIBRARY_PATH="$driver" generate --device cuda 2>&1) && fail "a device was found"
  grep -q 'cuda: no device: ' <<<"$message" || fail "no clear message: $message"
  [ "$(LD_LIBRARY_PATH="$driver" generate)" = "$on_cpu" ] || fail "auto does not fall back"
fi

if [ ! -e /dev/nvidia0 ]; then
  for command in "generate --prompt x" "serve --log-level error" "bench kernels"; do
    words=($command)
    [ "${words[0]}" = bench ] || words+=(--model "$model")
    if message=$("$hippodrome" "${words[@]}" --device cuda 2>&1 >/dev/null); then
      fail "$command: --device cuda succeeds without a device"
    fi
    [ "$(wc -l <<<"$message")" = 1 ] || fail "$command: more than one line: $message"
    grep -q '^hippodrome [a-z ]*: cuda: ' <<<"$message" || fail "$command: no clear message: $message"
  done
fi

# A server says why it took the CPU.
if [ ! -e /dev/nvidia0 ]; then
  log=$(mktemp)
  "$hippodrome" serve --model "$model" --http 127.0.0.1:0 --grpc 127.0.0.1:0 >"$log" 2>&1 &
  server=$!
  for _ in $(seq 300); do
    if grep -q '^grpc listening' "$log"; then break; fi
    sleep 0.1
  done
  kill "$server"
  wait "$server" || true
  said=$(grep ' runs on cpu' "$log") || fail "no device in the log: $(cat "$log")"
  rm -f "$log"
  grep -q '(cuda: .*)$' <<<"$said" || fail "no reason for the CPU: $said"
fi
