# SPDX-License-Identifier: GPL-2.0-or-later
# Completion for fish. Commands and options are those that the program's own --help lists.

function __whylate_commands
	whylate --help 2>/dev/null | string replace -rf '^  ([a-z][a-z-]*) +(.*)' '$1\t$2'
end

function __whylate_options
	set -l words (commandline -opc)
	test (count $words) -ge 2; or return
	whylate $words[2] --help 2>/dev/null </dev/null | string match -arg '(?:^|[\][ ,|(])(--?[a-z][a-z-]*)' | sort -u
end

complete -c whylate -n 'test (count (commandline -opc)) -eq 1' -fa '(__whylate_commands)'
complete -c whylate -n 'test (count (commandline -opc)) -ge 2' -a '(__whylate_options)'
