# layers.awk - holds subagent.c to its layers (the contents list at its top):
#
#   - the sections stand in the order of the contents list, within their
#     budgets of lines;
#   - a function's name begins with its section's;
#   - a section uses only sections above it, and its `uses:` line names
#     exactly those; [type] is for all and not named;
#   - no prototypes, but for marked recursion.
#
# usage: awk -f parse.awk -f layers.awk [-v toc=1] subagent.c subagent.c
# The first pass learns the names, the second looks who uses them.  With toc
# it prints the contents with the real sizes instead.

function problem(line, what) {
	if (!toc)
		printf "subagent.c:%d: %s\n", line, what
	problems++
}

NR != 1 && FNR == 1 { parse_reset(); learned = 1; close_section(last) }
{ parse($0) }

### First pass

!learned { last = FNR }

# A line of the contents list.
!learned && section == "" && /^ \*  \[[a-z]+\] +[0-9]+ / {
	listed[++count] = substr($2, 2, length($2) - 2)
	budget[listed[count]] = $3
	place[listed[count]] = count
	line = $0
	sub(/^ \*  \[[a-z]+\] +[0-9]+ /, "", line)
	about[listed[count]] = line
}

!learned && /^\/\*=== \[/ {
	close_section(FNR - 1)
	start[section] = FNR
	open_section = section
	if (!(section in place))
		problem(FNR, "[" section "] is not in the contents list")
	else if (place[section] < reached)
		problem(FNR, "[" section "] is above [" listed[reached] \
		    "] in the contents list")
	else
		reached = place[section]
}

function close_section(end) {
	if (open_section != "")
		size[open_section] = end - start[open_section] + 1
	open_section = ""
}

!learned && / \* uses:/ { in_uses = 1; sub(/uses:/, "") }
!learned && in_uses && (/^ \*$/ || /\*\//) { in_uses = 0 }
!learned && in_uses {
	for (i = 2; i <= NF; i++)
		says[section " " $i] = FNR
}

!learned && event == "function" {
	if (index(name, section "_") != 1 && !exempt())
		problem(head, "function '" name "' in section [" section "]")
	owner[name] = section
}

function exempt() {
	return section == "main" && name == "main" ||
	    section == "lib" && name ~ /^sa_/
}

!learned && event == "prototype" && !/recursion/ {
	problem(FNR, "a prototype, where the order of functions should do")
}

# A name without its section's could be a local variable's elsewhere.
!learned && (event == "macro" || event == "constant" ||
    event == "type" && name != "" ||
    event == "data" && index(name, section "_") == 1) {
	owner[name] = section
}

### Second pass

learned && section != "" {
	words = text
	gsub(/(->|\.)[ \t]*[A-Za-z_0-9]+/, " ", words)	# members
	while (match(words, /(struct |union |enum )?[A-Za-z_][A-Za-z_0-9]*/)) {
		word = substr(words, RSTART, RLENGTH)
		words = substr(words, RSTART + RLENGTH)
		use(word, words ~ /^ \*/)
	}
}

# A pointer to a struct of a section below is only passed on.
function use(word, pointer,   of) {
	if (!(word in owner))
		return
	of = owner[word]
	if (of == section || of == "" || of == "type")
		return
	if (start[of] > start[section] && pointer)
		return
	if (start[of] > start[section])
		problem(FNR, "[" section "] uses '" word "' of [" of "] below it")
	if (!(section " " of in uses))
		uses[section " " of] = word " in line " FNR
}

END {
	for (i = 1; i <= count; i++)
		check(listed[i])
	if (toc)
		printf "%-9s %6d\n", "all", last
	exit !toc && problems > 0
}

function check(s,   i, of, pair) {
	if (toc)
		printf "%-9s %6d of %5d%s  %s\n", "[" s "]", size[s],
		    budget[s], (size[s] > budget[s] ? " !" : "  "), about[s]
	if (!(s in start)) {
		problem(1, "no section [" s "]")
		return
	}
	if (size[s] > budget[s])
		problem(start[s], "[" s "] has " size[s] " lines of " budget[s])
	for (i = 1; i <= count; i++) {
		of = listed[i]
		pair = s " " of
		if (pair in uses && !(pair in says))
			problem(start[s], "[" s "] does not say that it uses [" \
			    of "]: " uses[pair])
		if (pair in says && !(pair in uses))
			problem(start[s], "[" s "] says that it uses [" of \
			    "], but does not")
	}
}
