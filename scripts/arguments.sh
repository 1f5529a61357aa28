# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For the scripts here, each of which sources it first: --help prints the comment at the head of the script, and what is
# unknown is refused before anything is done.
case ${1:-} in
  --help | -h)
    sed -n '2,${/^#/!q; /SPDX-License/d; s/^# \{0,1\}//p}' "$0"
    exit 0
    ;;
esac

refuse() { # what is wrong
  echo "$(basename "$0"): $1 ($0 --help says what there is)" >&2
  exit 2
}

refuse_options() { # arguments, none of which may be an option
  local word
  for word in "$@"; do
    case $word in -*) refuse "no option \"$word\"" ;; esac
  done
}

refuse_more() { # how many there may be, arguments
  local most=$1
  shift
  refuse_options "$@"
  [ $# -le "$most" ] || refuse "\"${!#}\" is one argument too many"
}

date_line() { # file with what was printed, pattern of the lines that count: one line with the date and what was run, for docs/testing.md
  printf '%s %s: %s\n' "$(date -u +%F)" "$(basename "$0")" "$(grep -h -o "$2.*" "$1" | paste -sd ';' | sed 's/;/; /g')"
}
