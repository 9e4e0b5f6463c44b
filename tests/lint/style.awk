# style.awk - the rules of style that a program can hold: columns, white space,
# lengths of functions, functions that are banned.
# Functions are looked at in subagent.c only.
#
# usage: awk -f parse.awk -f style.awk long-functions FILE.c...
# The first file names the functions that may exceed 120 lines, a line each,
# with the reason behind the name.

BEGIN {
	split("strcpy strcat sprintf vsprintf strtok atoi atol gets alloca " \
	    "rand srand system popen", words)
	for (i in words)
		banned[words[i]] = "is banned"
	split("poll ppoll select pselect epoll_wait sleep usleep nanosleep",
	    words)
	for (i in words)
		banned[words[i]] = "may stand in [io] only"
}

function problem(line, what) {
	printf "%s:%d: %s\n", FILENAME, line, what
	problems++
}

NR == FNR { long[$1] = 1; next }
{ columns() }
FILENAME !~ /subagent\.c$/ { next }

{
	parse($0)
	look_for_banned()
	lines++
	comments += in_comment || $0 ~ /\*\//
}

event == "end" {
	size = FNR - head + 1
	sizes[size]++
	functions++
	if (size > 120 && !(fn in long))
		problem(head, "'" fn "' has " size " lines of 120")
}

function columns(   s, at) {
	if (/[ \t]$/)
		problem(FNR, "white space at the end of the line")
	s = $0
	while ((at = index(s, "\t")))
		s = substr(s, 1, at - 1) substr("        ", (at - 1) % 8 + 1) \
		    substr(s, at + 1)
	if (length(s) > 80)
		problem(FNR, length(s) " columns of 80")
}

function look_for_banned(   s, word) {
	s = text
	while (match(s, /[A-Za-z_0-9]+\(/)) {
		word = substr(s, RSTART, RLENGTH - 1)
		if (word in banned && !(section == "io" && banned[word] ~ /io/))
			problem(FNR, word "() " banned[word])
		s = substr(s, RSTART + RLENGTH)
	}
}

# The length that `part` of all functions do not exceed.
function quantile(part,   n, seen) {
	for (n = 0; seen < part * functions; n++)
		seen += sizes[n + 1]
	return n
}

END {
	if (functions && quantile(0.5) > 20)
		problem(FNR, "the median function has " quantile(0.5) " lines of 20")
	if (functions && quantile(0.9) > 60)
		problem(FNR, "one function in ten has over " quantile(0.9) " lines of 60")
	if (lines)
		printf "subagent.c: %d lines, %d in 100 with a comment; " \
		    "%d functions, median %d lines, 9 of 10 up to %d\n", lines,
		    100 * comments / lines, functions, quantile(0.5),
		    quantile(0.9)
	exit problems > 0
}
