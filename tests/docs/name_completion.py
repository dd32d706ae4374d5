"""Completion of the engine's names in shells, from what the inventory lists: no Python runs for it."""

import argparse
import re

from ovirt_placement.config import InventorySettings
from ovirt_placement.config_file import DEFAULT_PATH, PATH_VARIABLE
from ovirt_placement.inventory.service.publisher import NAMES_FILE as FILE_NAME
from tests.docs.shown import subcommands

#: By how arguments show their values: the completing function's ending, the kinds of names, or their list.
_KINDS = {
    "VM": ("vm", "vm", ""),
    "HOST": ("host", "host", ""),
    "CLUSTER": ("cluster", "cluster", ""),
    "GROUP": ("group", "group", ""),
    "VM|HOST": ("vm_or_host", "vm host", ""),
    "VM|GROUP": ("vm_or_group", "vm group", ""),
    "HOST,...": ("hosts", "host", "1"),
}

_FILE = """
# $@=words of the command line
# prints the names of the inventory that these words mean; nothing if there are none to read
_ovirt_placement_names() {
  local config=${@PATH_VARIABLE@-} directory=@DIRECTORY@
  while (( $# )); do
    case $1 in
      --config) [[ ${2-} == "=" ]] && shift; config=${2-} ;;
      --config=*) config=${1#--config=} ;;
    esac
    shift
  done
  [[ $config == "~/"* ]] && config=$HOME/${config#"~/"}
  [[ -z $config && -e @DEFAULT_PATH@ ]] && config=@DEFAULT_PATH@
  if [[ -n $config ]]; then
    [[ -f $config && -r $config ]] || return 0
    directory=$(awk -v directory="$directory" '
      function value(line, quote) {
        sub(/^[^=]*=[ \\t]*/, "", line)
        quote = substr(line, 1, 1)
        line = substr(line, 2)
        return substr(line, 1, index(line, quote) - 1)
      }
      /^[ \\t]*\\[/ { section = $0; gsub(/#.*|[][ \\t\\r]/, "", section) }
      section == "engine" && /^[ \\t]*name[ \\t]*=/ { name = value($0) }
      section == "inventory" && /^[ \\t]*directory[ \\t]*=/ { chosen = value($0) }
      END {
        if (name != "" && name != "default") directory = directory "/" name
        print chosen != "" ? chosen : directory
      }' "$config" 2>/dev/null)
  fi
  [[ -f $directory/@FILE_NAME@ ]] || return 0
  if (( EUID )); then
    timeout 1 cat "$directory/@FILE_NAME@"
  else  # as whose the folder is: others may put a link there
    setpriv --reuid="$(stat -c %u "$directory")" --regid="$(stat -c %g "$directory")" --clear-groups \\
      timeout 1 cat "$directory/@FILE_NAME@"
  fi 2>/dev/null
  return 0
}
"""

_BASH = """
# $1=kinds of names, $2=1 for a list with commas, $3=COMP_WORDS[1]
_ovirt_placement_complete() {
  _ovirt_placement_names "${COMP_WORDS[@]}" | kinds=$1 list=$2 word=$3 LC_ALL=C awk -F '\\t' '
    # What the word means, as far as it is typed.
    function meant(word,  at, one, next_one, found) {
      for (at = 1; at <= length(word); at++) {
        one = substr(word, at, 1)
        next_one = substr(word, at + 1, 1)
        if (one == "\\\\" && quote != "\\047" && (quote == "" || index("\\\\\\"$`", next_one))) {
          one = next_one
          at++
        }
        found = found one
      }
      return found
    }
    # A name as it is typed, after the quote that the word begins with.
    function typed(name) {
      if (quote == "") gsub(/[][ !"#$&\\047()*:;<=>?@\\\\^`{|}~]/, "\\\\\\\\&", name)
      else if (quote == "\\"") gsub(/["$\\\\`]/, "\\\\\\\\&", name)
      else gsub(/\\047/, "\\047\\\\\\\\\\047\\047", name)
      return name
    }
    BEGIN {
      kinds = " " ENVIRON["kinds"] " "
      word = ENVIRON["word"]
      quote = substr(word, 1, 1)
      if (quote == "\\"" || quote == "\\047") word = substr(word, 2)
      else quote = ""
      if (ENVIRON["list"] && match(word, /^.*,/)) {
        before = substr(word, 1, RLENGTH)
        word = substr(word, RLENGTH + 1)
      }
      word = meant(word)
    }
    index(kinds, " " $1 " ") && index(name = substr($0, length($1) + 2), word) == 1 {
      if (quote != "\\"" || !index(name, "!")) print before typed(name)  # the history is not to be expanded
    }'
}
"""

_ZSH = """
# $1=kinds of names, $2=1 for a list with commas, the rest: options of compadd
_ovirt_placement_complete() {
  local kinds=$1 list=$2
  shift 2
  local -a found
  found=(${(f)"$(_ovirt_placement_names "${(@Q)words}" | kinds=$kinds LC_ALL=C awk -F '\\t' '
    index(" " ENVIRON["kinds"] " ", " " $1 " ") { print substr($0, length($1) + 2) }')"})
  (( $#found )) || return 1
  (( list )) && compset -P '*,'
  compadd "$@" -a found
}
"""

_COMPLETING = {
    "bash": '_ovirt_placement_complete_{}() {{ _ovirt_placement_complete "{}" "{}" "$1"; }}',
    "zsh": '_ovirt_placement_complete_{}() {{ _ovirt_placement_complete "{}" "{}" "$@"; }}',
}
#: With a read for each byte, ten thousand names would take too long.
_SLOW_LOOP = """\
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(
        "$current_action_compgen" "$action_compgen_word")
"""
_AT_ONCE = """\
      local - IFS=$'\\n'
      set -f
      COMPREPLY=($("$current_action_compgen" "$action_compgen_word"))
      IFS=$' \\t\\n'
"""


def complete_names(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Have the values of arguments that are names in the engine completed; return what shells need for it."""
    completed = False
    for each in subcommands(parser):
        for action in each._actions:
            if isinstance(action.metavar, str) and action.metavar in _KINDS:
                action.complete = _completion(*_KINDS[action.metavar])  # type: ignore[attr-defined]
                completed = True
    return {"bash": _shared() + _BASH, "zsh": _shared() + _ZSH} if completed else {}


def adapted(script: str, shell: str) -> str:
    """The script with what names need of it: bash takes all of them at once, zsh more than one argument."""
    if "_ovirt_placement_complete" not in script:
        return script
    if shell == "zsh":
        return re.sub(r'"\(\*\)::?(.*:_ovirt_placement_complete_\w+")', r'"*:\1', script)
    before, loop, after = script.partition(_SLOW_LOOP)
    assert loop, "shtab writes another loop by now"
    return before + _AT_ONCE + after


def _completion(ending: str, kinds: str, is_list: str) -> dict[str, object]:
    function = f"_ovirt_placement_complete_{ending}"
    one = {shell: text.format(ending, kinds, is_list) for shell, text in _COMPLETING.items()}
    return {"bash": function, "zsh": function, "preamble": one}


def _shared() -> str:
    text = _FILE
    for word, value in (
        ("PATH_VARIABLE", PATH_VARIABLE),
        ("DIRECTORY", InventorySettings().directory),
        ("DEFAULT_PATH", DEFAULT_PATH),
        ("FILE_NAME", FILE_NAME),
    ):
        text = text.replace(f"@{word}@", str(value))
    return text
