#!/bin/sh
# symbols.sh BASE_OBJECT OTHER_OBJECT: of an inline function that both objects define, the linker keeps one.
# Fails on one whose other form uses AVX instructions: it could stop a program on an older processor.
set -eu
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT

nm --defined-only "$1" > "$lists/symbols"
objdump -d --no-show-raw-insn "$2" > "$lists/code"
awk '$2 ~ /[Ww]/ {print $3}' "$lists/symbols" | sort -u > "$lists/base"
awk '/^[0-9a-f]+ <.*>:$/ { name = $2; gsub(/[<>:]/, "", name) }
     /\tv[a-z0-9]+ .*%[xyz]mm/ { print name }' "$lists/code" | sort -u > "$lists/avx"

[ -s "$lists/base" ] && [ -s "$lists/avx" ] || { echo "no inline functions, or no AVX instructions at all"; exit 1; }
shared=$(comm -12 "$lists/base" "$lists/avx" | c++filt)
[ -z "$shared" ] || { printf 'both objects define these, one with AVX instructions:\n%s\n' "$shared"; exit 1; }
