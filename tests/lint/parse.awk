# parse.awk - just enough C to tell what stands where in subagent.c.
#
# parse($0), called for every line in turn, sets
#   text     the line without comments and without the insides of literals
#   section  the section that the line belongs to
#   fn       the function that the line belongs to
#   event    what comes into being on this line at file scope: "function"
#            (at its opening brace), "end" (at its closing one), "prototype",
#            "data", "type", "macro", "constant" (of an enum); else ""
#   name     the name of that ("struct x" of a type, "" if it has none)
#   head     the line where a function's name is
#   declaration  all of the text up to and with the brace or semicolon
# It leans on the style: a function's name stands in column 1.

function parse(line) {
	event = ""
	text = code(line)
	if (match(line, /^\/\*=== \[[a-z]+\]/))
		section = substr(line, 8, RLENGTH - 8)
	if (in_macro || line ~ /^#/)
		parse_macro(line)
	else if (depth)
		parse_inside()
	else
		parse_outside()
}

# Starts again, for a second pass over the same file.
function parse_reset() {
	in_comment = in_macro = depth = 0
	section = fn = statement = fn_name = ""
}

function parse_macro(line) {
	if (!in_macro && match(line, /^#define [A-Za-z_0-9]+/)) {
		event = "macro"
		name = substr(line, 9, RLENGTH - 8)
	}
	in_macro = line ~ /\\$/
}

function parse_inside() {
	if (enum && match(text, /^\t[A-Z_0-9]+/)) {
		event = "constant"
		name = substr(text, 2, RLENGTH - 1)
	}
	depth += braces()
	if (depth)
		return
	if (fn != "")
		event = "end"
	else if (match(text, /[a-z_0-9]+/)) {
		event = "data"	# static struct { ... } name;
		name = substr(text, RSTART, RLENGTH)
	}
}

function parse_outside() {
	fn = ""
	if (match(text, /^[a-z_0-9]+\(/)) {
		fn_name = substr(text, 1, RLENGTH - 1)
		head = FNR
	}
	statement = statement " " text
	if (text ~ /[{;]/) {
		parse_statement()
		statement = fn_name = ""
		depth += braces()
	}
}

# A whole declaration, or what stands before a body.
function parse_statement() {
	sub(/^ +/, "", statement)
	declaration = statement
	enum = statement ~ /^enum.*{/
	if (text ~ /^{/ && fn_name != "") {
		event = "function"
		fn = name = fn_name
	} else if (statement ~ /^(typedef|(struct|union|enum)[^=(]*[{;])/) {
		event = "type"
		name = ""
		if (match(statement, /^(struct|union|enum) [a-z_0-9]+ {/))
			name = substr(statement, 1, RLENGTH - 2)
	} else if (statement !~ /=|^_Static/ &&
	    statement ~ /[a-z_0-9]\(.*;/) {
		event = "prototype"
		name = fn_name
	} else if (match(statement, /[a-z_0-9]+(\[.*\])? *[=;]/)) {
		event = "data"
		name = substr(statement, RSTART, RLENGTH)
		sub(/[^a-z_0-9].*/, "", name)
	}
}

function braces(   s) {
	s = text
	return gsub(/{/, "", s) - gsub(/}/, "", s)
}

# The line without comments; of literals only the quotes stay.
function code(s,   out, at) {
	out = ""
	while (s != "") {
		if (in_comment) {
			at = index(s, "*/")
			if (!at)
				break
			in_comment = 0
			s = substr(s, at + 2)
			continue
		}
		if (!match(s, /\/\*|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/))
			return out s
		out = out substr(s, 1, RSTART - 1)
		if (substr(s, RSTART, 1) == "/")
			in_comment = 1
		else
			out = out "\"\""
		s = substr(s, RSTART + RLENGTH)
	}
	return out
}
