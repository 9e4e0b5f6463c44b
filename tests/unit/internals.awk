# internals.awk - what unit tests need to see of subagent.c.
#
#   awk -f parse.awk -f internals.awk subagent.c
#       internals.h: includes, macros, types, prototypes of all functions
#   awk -f parse.awk -f internals.awk -v copy=1 subagent.c
#       subagent.c with functions that are not static, lines unmoved
#
# parse.awk, which tells what a line begins or ends, is in tests/lint/.

BEGIN { print copy ? "#line 1 \"subagent.c\"" : "#pragma once" }

{ parse($0) }

copy { copy_line($0) }
!copy && /^#/ { directive = 1 }
!copy && directive {
	# Generated tables and feature macros are no business of a test.
	if (!/^#include "(roots|embed|licenses)\.h"/ && !/_GNU_SOURCE/)
		print
	directive = in_macro
}
!copy && event == "type" { open = 1 }
!copy && open {
	print text
	open = depth > 0
}
!copy && event == "function" && name != "main" {
	sub(/{.*/, ";", declaration)
	print unstatic(declaration)
}

function unstatic(s) {
	sub(/^static /, "", s)
	return s
}

# Holds lines until it is known what they declare.
function copy_line(line,   i, is_function) {
	held[++n] = line
	if (statement ~ /[^ ]/)
		return
	is_function = event == "function" || event == "prototype"
	for (i = 1; i <= n; i++)
		print is_function ? unstatic(held[i]) : held[i]
	n = 0
}
