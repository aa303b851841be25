# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Usage: awk -v directory=DIRECTORY -f pages.awk exs.h
#
# Writes a manual page (section 3) for each function and structure that has a comment of the form of kernel-doc. Definitions
# between the page before and this one belong to its synopsis.

function plain(text)
{
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text
}

# Prose: functions are bold, parameters italic; a line does not begin with a control character
function prose(text, done, word)
{
	text = plain(text)
	done = ""
	while (match(text, /@[a-z_]+|exs_[a-z_]+\(\)|EXS_[A-Z_]+/)) {
		word = substr(text, RSTART, RLENGTH)
		done = done substr(text, 1, RSTART - 1)
		if (word ~ /^@/)
			done = done "\\fI" substr(word, 2) "\\fP"
		else if (word ~ /\)$/)
			done = done "\\fB" substr(word, 1, length(word) - 2) "\\fP()"
		else
			done = done "\\fB" word "\\fP"
		text = substr(text, RSTART + RLENGTH)
	}
	done = done text
	return done ~ /^[.']/ ? "\\&" done : done
}

function write(line)
{
	print line >page
}

function write_code(text)
{
	write(".nf")
	write(plain(text))
	write(".fi")
}

function write_section(title, text, paragraphs, count, i)
{
	if (text == "")
		return
	write(".SH " title)
	count = split(text, paragraphs, /\n\n/)
	for (i = 1; i <= count; i++) {
		if (i > 1)
			write(".PP")
		write(prose(paragraphs[i]))
	}
}

function default_return(declaration)
{
	if (declaration ~ /^struct/)
		return ""
	if (declaration ~ /^exs_op_t/)
		return "The number of the operation, or -1 with errno set."
	if (declaration ~ /^int /)
		return "0, or -1 with errno set."
	return "A handle, or -1 with errno set."
}

function add(text, paragraph)
{
	return text == "" ? paragraph : text "\n\n" paragraph
}

# Paragraphs of the comment go to the sections that their first words name
function sort_paragraph(paragraph, at)
{
	if (paragraph == "")
		return
	at = match(paragraph, /Errors( of [a-z ]*)?:/)
	if (at > 1 && paragraph ~ /^Returns/) {
		sort_paragraph(substr(paragraph, 1, at - 2))
		sort_paragraph(substr(paragraph, at))
	} else if (paragraph ~ /^Returns/) {
		returned = add(returned, paragraph)
	} else if (paragraph ~ /^Errors/) {
		sub(/^Errors: /, "", paragraph)
		errors = add(errors, paragraph)
	} else {
		described = add(described, paragraph)
	}
}

function write_page(i)
{
	page = directory "/" name ".3"
	write(".\\\" SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause")
	write(".\\\" Generated from exs.h")
	write(".TH " toupper(name) " 3 \"\" iw_mpa \"Library Functions\"")
	write(".SH NAME")
	write(name " \\- " plain(summary))
	write(".SH SYNOPSIS")
	write_code("#include <exs.h>\n\n" before (before ~ /[^\n]\n$/ ? "\n" : "") declaration)
	if (parameters > 0 || described != "")
		write(".SH DESCRIPTION")
	for (i = 1; i <= parameters; i++) {
		write(".TP")
		write(".I " parameter[i])
		write(prose(meaning[i]))
	}
	if (described != "") {
		write(".PP")
		gsub(/\n\n/, "\n.PP\n", described)
		write(prose(described))
	}
	write_section("RETURN VALUE", returned != "" ? returned : default_return(declaration))
	write_section("ERRORS", errors)
	write(".SH SEE ALSO")
	write(".BR exs (7)")
	close(page)
}

/^\/\*\*$/ {
	inside = 1
	name = summary = described = returned = errors = paragraph = ""
	parameters = 0
	next
}
inside && /^ \*\/$/ {
	sort_paragraph(paragraph)
	inside = 0
	declares = 1
	declaration = ""
	next
}
inside {
	sub(/^ \* ?/, "")
	if (name == "") {
		name = summary = $0
		sub(/ - .*/, "", name)
		sub(/^struct /, "", name)
		sub(/.* - /, "", summary)
	} else if (/^@[a-z_]+:/) {
		parameter[++parameters] = meaning[parameters] = $0
		sub(/^@/, "", parameter[parameters])
		sub(/:.*/, "", parameter[parameters])
		sub(/^@[a-z_]+: /, "", meaning[parameters])
	} else if ($0 == "") {
		sort_paragraph(paragraph)
		paragraph = ""
	} else {
		paragraph = paragraph == "" ? $0 : paragraph "\n" $0
	}
	next
}
declares {
	declaration = declaration (declaration == "" ? "" : "\n") $0
	if (/^}?[^{}]*;$/ && (declaration !~ /{/ || /^};$/)) {
		write_page()
		declares = 0
		before = ""
	}
	next
}
# definitions, not the frame of the header nor its sections
/^(#define EXS_[A-Z_]+ |typedef |enum |struct |\t|}|\/\* (flags|events) )/ {
	before = before $0 "\n"
	if (/^};$/)
		before = before "\n"
}
END {
	if (declares || name == "")
		exit 1
}
