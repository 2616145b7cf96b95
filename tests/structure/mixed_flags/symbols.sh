#!/bin/sh
# symbols.sh BASE_OBJECT OTHER_OBJECT: of an inline function that both objects define, the linker keeps one.
# Fails on one whose other form uses AVX instructions: it could stop a program on an older processor.
set -eu
shared=$(
  {
    nm --defined-only "$1" | awk '$2 ~ /[Ww]/ {print "base", $3}'
    objdump -d --no-show-raw-insn "$2" | awk '
      /^[0-9a-f]+ <.*>:$/ { name = $2; gsub(/[<>:]/, "", name) }
      /\tv[a-z0-9]+ .*%[xyz]mm/ { print "avx", name }'
  } | sort -u | awk '
    $1 == "avx" { avx[$2] = 1 }
    $1 == "base" && $2 in avx { print $2 }' | c++filt
)
[ -z "$shared" ] || { printf 'both objects define these, one with AVX instructions:\n%s\n' "$shared"; exit 1; }
