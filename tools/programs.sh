# SPDX-License-Identifier: MIT
# Sourced by tools/build and tools/test: which meson and ninja to call.

# The first one that runs: a program on PATH may be a shim whose interpreter is missing.
working() {
  local candidate
  for candidate in "$@"; do
    if "$candidate" --version >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
  echo "tools: none of these runs: $* (tools/setup build installs it)" >&2
  exit 5
}
meson=$(working meson /usr/bin/meson)
ninja=$(working ninja /usr/bin/ninja)
export NINJA=$ninja
