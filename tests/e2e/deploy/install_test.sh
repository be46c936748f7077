#!/usr/bin/env bash
# Installs into a folder, moves it and works from there; then packs a Debian package.
#   install_test.sh BUILD_FOLDER MODULE_FOLDER
# MODULE_FOLDER: where modules go, relative to the prefix.
set -euo pipefail
build=$1
module_folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

cmake --install "$build" --prefix "$work/made" >"$work/log" || fail "$(cat "$work/log")"
prefix=$work/moved
mv "$work/made" "$prefix"
files='bin/hippodrome
include/hippodrome/client.h
share/bash-completion/completions/hippodrome
share/doc/hippodrome/README.md
share/doc/hippodrome/LICENSE
share/doc/hippodrome/CHANGELOG.md
share/doc/hippodrome/SECURITY.md
share/doc/hippodrome/docs/architecture.md
share/hippodrome/docker/Dockerfile
share/hippodrome/haproxy/haproxy.cfg
share/hippodrome/haproxy/replicas.cfg
share/hippodrome/kubernetes/cpu.yaml
share/hippodrome/nginx/replicas.conf
share/hippodrome/slurm/train.sbatch
share/hippodrome/systemd/hippodrome.service
share/hippodrome/prometheus/prometheus.yml
share/hippodrome/prometheus/alerts.yml
share/hippodrome/grafana/dashboards/overview.json
share/hippodrome/grafana/provisioning/dashboards/hippodrome.yml
share/hippodrome/models/h3-demo/model.safetensors
share/hippodrome/models/bigs-demo/model.safetensors
share/hippodrome/proto/hippodrome/v1/generation.proto
share/hippodrome/proto/hippodrome/v1/encoding.proto
share/hippodrome/proto/hippodrome/v1/models.proto
share/hippodrome/proto/hippodrome/v1/states.proto
share/man/man1/hippodrome.1'
for file in $files; do [ -s "$prefix/$file" ] || fail "$file is not installed"; done
strange=$(cd "$prefix" && find . -type f | grep -vE \
  "^./(bin/hippodrome$|include/hippodrome/client.h$|$module_folder/|share/(bash-completion|doc/hippodrome|hippodrome|man/man1)/)") &&
  fail "installed as well: $strange"
for module in cuda mpi; do
  [ ! -e "$build/bin/libhippodrome_$module.so" ] ||
    [ -s "$prefix/$module_folder/libhippodrome_$module.so" ] ||
    fail "no module for $module in $module_folder"
done

generate() {
  "$prefix/bin/hippodrome" generate --model "$prefix/share/hippodrome/models/h3-demo" --device cpu \
    --prompt 'It was a dark night, and' --max-tokens 4 --json "$@"
}
[ "$(generate | jq '.token_ids | length')" = 4 ] || fail "no four tokens: $(generate)"

# With something that looks like a driver, the program opens the installed module, here an empty one.
if [ ! -e /dev/nvidia0 ]; then
  echo 'int nothing;' | cc -shared -fPIC -x c - -o "$work/libcuda.so.1"
  mkdir -p "$prefix/$module_folder"
  : >"$prefix/$module_folder/libhippodrome_cuda.so"
  message=$(LD_LIBRARY_PATH="$work" generate --device cuda 2>&1) && fail "an empty module worked"
  grep -qF "$prefix/$module_folder/libhippodrome_cuda.so: file too short" <<<"$message" ||
    fail "the installed module is not found: $message"
fi

command -v dpkg-shlibdeps >/dev/null || { echo "no dpkg-shlibdeps: no package"; exit 0; }
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work" >"$work/log" 2>&1 ||
  fail "$(cat "$work/log")"
package=("$work"/hippodrome_*.deb)
listed=$(dpkg-deb -c "${package[0]}" | awk '{ print $NF }')
for file in bin/hippodrome share/man/man1/hippodrome.1.gz share/doc/hippodrome/copyright \
  share/doc/hippodrome/changelog.gz share/hippodrome/models/h3-demo/model.safetensors \
  share/bash-completion/completions/hippodrome; do
  grep -qx "./usr/$file" <<<"$listed" || fail "not in the package: usr/$file"
done
for file in lib/systemd/system/hippodrome.service etc/hippodrome/config.json etc/logrotate.d/hippodrome; do
  grep -qx "./$file" <<<"$listed" || fail "not in the package: $file"
done
for file in $(dpkg-deb --ctrl-tarfile "${package[0]}" | tar -xO ./conffiles); do
  grep -qx "./${file#/}" <<<"$listed" || fail "a conffile that is not there: $file"
done
for script in postinst prerm postrm; do
  dpkg-deb --ctrl-tarfile "${package[0]}" | tar -xO "./$script" | sh -n || fail "$script is no script"
done
grep -q 'libhippodrome_' <<<"$listed" && fail "a module is in the main package"
if [ -e "$build/bin/libhippodrome_mpi.so" ]; then
  depends=$(dpkg-deb -f "$work"/hippodrome-mpi_*.deb Depends)
  grep -qF libopenmpi <<<"$depends" || fail "hippodrome-mpi does not depend on MPI: $depends"
fi
depends=$(dpkg-deb -f "${package[0]}" Depends)
for library in adduser libc6 libstdc++6 'libgrpc++' libprotobuf libabsl libhwy libutf8proc libxxhash; do
  grep -qF "$library" <<<"$depends" || fail "no dependency on $library: $depends"
done
grep -qE -- '-dev|cuda|cublas|nvidia' <<<"$depends" && fail "a strange dependency: $depends"
echo passed
