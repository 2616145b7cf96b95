#!/bin/sh
# includes.sh INCLUDE_DIR: reads the #include lines of the library and fails on
# - an arrow the wrong way: a folder includes itself and lower layers only;
# - <tenet/tenet.hpp> reaching an optional library, or missing a header that needs none;
# - a folder whose umbrella <tenet/FOLDER/FOLDER.hpp> misses such a header of it, or is missing itself.
set -eu
cd "$1"
find tenet -name '*.hpp' | sort | xargs awk '
  BEGIN {
    n = split("core kernels autograd ops nn", order)
    for (i = 1; i <= n; ++i) layer[order[i]] = i
    n = split("optim data io amp quant prune parallel profile", order)
    for (i = 1; i <= n; ++i) layer[order[i]] = 9
  }
  function folder(path, part) { return split(path, part, "/") > 2 ? part[2] : "" }
  function fail(message) { print message; ++failures }

  FNR == 1 { file[++files] = FILENAME; own[FILENAME] = folder(FILENAME) }
  # A kernel source is included through a macro.
  /^#[ \t]*(include|define TENET_KERNEL_FILE)[ \t]*[<"]/ {
    split($0, part, /[<">]/)
    target = part[2]
    if (target !~ /^tenet\//) {
      if (target ~ /^(zlib\.h|mpi\.h|nlohmann\/)/) optional[FILENAME] = 1
      next
    }
    edge[FILENAME, ++edges[FILENAME]] = target
    from = own[FILENAME]; to = folder(target)
    if (from == "" || from == to || target == "tenet/version.hpp") next
    if (!(to in layer) || layer[to] >= layer[from]) fail(FILENAME ":" FNR ": " from " may not include " target)
  }

  # Marks what is reached from a header; returns whether an optional library is.
  function walk(path, seen,    i, found) {
    if (path in seen) return 0
    seen[path] = 1
    found = path in optional
    for (i = 1; i <= edges[path]; ++i) found += walk(edge[path, i], seen)
    return found
  }
  function needs_library(path) { split("", reached); return walk(path, reached) > 0 }

  # An umbrella reaches every header below `prefix` that needs no library.
  function check_umbrella(umbrella, prefix,    i) {
    split("", reached)
    walk(umbrella, reached)
    for (i = 1; i <= files; ++i)
      if (index(file[i], prefix) == 1 && free[file[i]] && !(file[i] in reached))
        fail(umbrella (umbrella in own ? " does not reach " : " does not exist and so does not reach ") file[i])
  }

  END {
    for (i = 1; i <= files; ++i) free[file[i]] = !needs_library(file[i])
    if (!free["tenet/tenet.hpp"]) fail("tenet/tenet.hpp reaches an optional library")
    check_umbrella("tenet/tenet.hpp", "tenet/")
    for (name in layer)
      if (name != "kernels") check_umbrella("tenet/" name "/" name ".hpp", "tenet/" name "/")
    exit failures > 0
  }'
