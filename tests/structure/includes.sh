#!/bin/sh
# includes.sh INCLUDE_DIR: reads the #include lines of the library and fails on
# - an arrow the wrong way: a folder includes itself and lower layers only;
# - <tenet/tenet.hpp> reaching an optional library, or missing a header that needs none;
# - an umbrella <tenet/FOLDER.hpp> that misses such a header of its folder.
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
  /^#[ \t]*include[ \t]*[<"]/ {
    split($0, part, /[<">]/)
    target = part[2]
    if (target !~ /^tenet\//) {
      if (target ~ /^(zlib\.h|nlohmann\/)/) optional[FILENAME] = 1
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

  END {
    for (i = 1; i <= files; ++i) free[file[i]] = !needs_library(file[i])
    for (i = 1; i <= files; ++i) {
      umbrella = file[i]
      if (own[umbrella] != "") continue
      name = umbrella; sub(/^tenet\//, "", name); sub(/\.hpp$/, "", name)
      everything = name == "tenet"
      if (everything && !free[umbrella]) fail(umbrella ": reaches an optional library")
      if (!everything && !(name in layer)) continue
      split("", reached); walk(umbrella, reached)
      for (j = 1; j <= files; ++j)
        if (free[file[j]] && (everything || own[file[j]] == name) && !(file[j] in reached))
          fail(umbrella ": does not reach " file[j])
    }
    if (!files) fail("no header found")
    exit failures > 0
  }'
