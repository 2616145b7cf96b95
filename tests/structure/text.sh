#!/bin/sh
# text.sh SOURCE_DIR: fails on headers that grew too long, on loose ends, on one machine's paths,
# and on heavy standard headers in the library.
set -eu
cd "$1"
failed=0
none() {  # none MESSAGE FOUND
  [ -z "$2" ] || { printf '%s:\n%s\n' "$1" "$2"; failed=1; }
}
search() { grep -rnE "$1" include tests benchmarks examples cmake ./*.md --exclude=text.sh --exclude-dir=data; }

none "more than 450 lines, so more than one concept" \
  "$(find include -name '*.hpp' | xargs awk 'FNR == 451 {print FILENAME}')"
none "loose ends" "$(search '\b(TODO|FIXME|XXX)\b')"
none "paths of one machine" "$(search '(^|[ "(=])/(home|root|work|tmp)/')"
none "standard headers that cost too much compile time" \
  "$(grep -rnE '#include <(iostream|functional|regex|random|filesystem)>' include)"
exit $failed
