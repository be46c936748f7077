#!/usr/bin/env bash
# Completes command lines as bash does, and checks what it would propose.
#   completion_test.sh HIPPODROME
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
hippodrome=$1
source deploy/bash_completion

# expect 'PROPOSALS' WORD...: of the command line of these words, the last of which is being typed.
expect() {
  local expected=$1
  shift
  COMP_WORDS=("$hippodrome" "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  # Bash heeds no exit status of it.
  _hippodrome "$hippodrome" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" || true
  [ "${COMPREPLY[*]}" = "$expected" ] ||
    { echo "FAILED: '$*' gives '${COMPREPLY[*]}', expected '$expected'" >&2; exit 1; }
}

complete -p hippodrome | grep -q _hippodrome

# Commands.
expect 'serve' s
expect 'top train tokenizer' t
expect 'sst2 stsb squad syntax' eval s
expect 'generate' bench g
expect '' nothing s
# Options: of the command and of no other.
expect '--help --version' --
expect '--max-sequences --max-state-bytes --max-queue --max-wait --max-client-share --max-body-bytes-total --max-stall-ms --max-batch-tokens --max-batch-delay' serve --max
expect '--temperature --top-k --top-p --typical-p --threads' generate --t
expect '--limit-ttft --limit-itl --limit-e2e' bench serve --l
expect 'generate predict' bench serve --task ''
expect '--table7 --tokens --threads' bench generate --preset h3-125m --t
expect '--data --device' eval rte --json out --d
# Enumerations, in both forms of an option.
expect 'auto cpu cuda' serve --device ''
expect 'cpu cuda' serve --device c
expect 'cpu cuda' serve --device = c
expect 'f32 bf16 int8 int4' serve --weights =
expect 'max none' serve --pad-to ''
expect 'prefill step chunked=' forward --mode ''
expect 'h3-2.7b h3-2.7b-3attn' convert x --preset h3-2
expect 'bigs-128 bigs-512 bigs-4096 bert-large' inspect --flops --preset b
expect '' serve --threads ''
expect '' serve --http ''
# Files and folders.
expect 'deploy/models/bigs-demo' serve --model deploy/models/b
expect 'deploy/models/h3-demo' serve --model x --model demo = deploy/models/h
expect 'deploy/models/h3-demo' serve --model = demo = deploy/models/h
expect 'CMakePresets.json' train --config CMakeP
expect 'README.md' convert READ
expect 'README.md' inspect READ
expect '' serve READ
echo passed
