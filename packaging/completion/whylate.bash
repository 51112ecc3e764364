# SPDX-License-Identifier: GPL-2.0-or-later
# Completion for bash. Commands and options are those that the program's own --help lists.

_whylate_commands() {
	"$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p'
}

_whylate_options() {
	"$1" "$2" --help 2>/dev/null </dev/null | grep -oE -- '(^|[][ ,|(])--?[a-z][a-z-]*' | grep -oE -- '--?[a-z].*' | sort -u
}

_whylate() {
	local cur=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} command=${COMP_WORDS[1]}

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_whylate_commands "$program")" -- "$cur")
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_whylate_options "$program" "$command")" -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}

complete -o filenames -F _whylate whylate
