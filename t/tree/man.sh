#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The man pages: sound mdoc; platter.1 has the options that each command's --help has, and no
# other; and the examples there and in README run as they stand.
n=0
man=$srctree/doc/platter.1

result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/#   /' log
	fi
}
skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

for page in "$srctree"/doc/*.[1-9]; do
	what="${page##*/} is sound"
	if command -v mandoc >/dev/null; then
		mandoc -Tlint -W warning "$page" >log 2>&1
		result $? "$what"
	else
		skip "$what" 'mandoc is not installed'
	fi
done

if [ ! -e "$B/platter" ]; then
	skip 'the options of platter.1' 'this build has no program'
	echo "1..$n"
	exit 0
fi
PATH=$B:$PATH

# The options of lines like "  -f, --format FMT     words"; serve has two to a line.
listed() {
	sed -n 's/^  *\(-.*\)/\1/p' | sed 's/  *\(-V, --version\)$/\n\1/' |
		sed 's/^\(-[^ ,]*\)\(, \)\{0,1\}\(--[^ ]*\)\{0,1\}.*/\1\n\3/' | sed '/^$/d' | sort
}
# Those of the .It lines of a section, and of "Every command has".
written() {
	awk -v section="$1" '
		/^Every command has/ { on = 1 }
		/^\.(Sh|Ss)/ { on = $0 == ".Ss " section }
		on && /^\.It Fl/ {
			for (i = 2; i <= NF; i++)
				if ($i == "Fl")
					print "-" $(i + 1)
				else if ($(i - 1) == ",")
					print "-" $i
		}' "$man" | sort
}

platter --help | sed -n '/^Command syntax/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p' | sort >commands
sed -n '/^\.Sh COMMANDS/,/^\.Sh IMAGE/s/^\.Ss //p' "$man" | sort >sections
comm -23 commands sections >log
[ -s commands ] && [ ! -s log ]
result $? 'every command has a section'
sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESC/s/^\.Cm //p' "$man" | sort | diff - sections >log
result $? 'and a synopsis'
while read -r command; do
	platter "$command" --help | listed >help
	written "$command" >page
	[ -s help ] && diff help page >log
	result $? "$command: the options of --help and no other"
done <commands

# One script of all examples on standard input; $1 is where they are, $2 how many lines at
# least, and what is left of the arguments what they say.
examples() {
	name=$1 least=$2
	shift 2
	rm -rf run && mkdir run
	cat >run/examples
	sed -n 's/^platter \([a-z]*\).*/\1/p' run/examples | sort -u | comm -23 - commands >missing
	if [ -s missing ]; then
		skip "the examples of $name run" "this build has no $(tr '\n' ' ' <missing)"
		return
	fi
	(cd run && sh -ex examples) >log 2>&1
	code=$?
	[ ! -s run/pid ] || kill "$(cat run/pid)" 2>/dev/null
	needs=$(sed -n 's/.*This build leaves that out: it needs \(CONFIG_[A-Z0-9_]*\).*/\1/p' log)
	if [ "$needs" ]; then
		skip "the examples of $name run" "this build has no $needs"
		return
	fi
	result $code "the examples of $name run"
	[ "$(wc -l <run/examples)" -ge "$least" ]
	code=$?
	for said; do
		grep -q "$said" log || code=1
	done
	result $code 'all of them, and say what they should'
}
awk '/^\.Sh/ { on = /EXAMPLES/ } /^\.Ed/ { block = 0 } on && block; /^\.Bd/ { block = 1 }' "$man" |
	sed 's/\\&//g; s/\\e/\\/g' >page
examples platter.1 15 '^disk.raw: OK' '^Image committed' <page
# But for the two seconds that a passphrase is made to take, which are cut short.
sed -n '/^EXAMPLES/,/^[^ E]/s/^    //p' "$srctree/README" |
	sed 's/encrypt\.format=luks\|encrypt\.state=active/&,encrypt.iter-time=10/' >page
examples README 25 '^Images are identical' '^Image committed' '^virtual size: 30 GiB' <page
echo "1..$n"
