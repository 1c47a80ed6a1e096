#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The runner's own test: what t/run says about programs that pass, fail, skip,
# crash, hang, lie about their plan, or print nothing.
n=0
unset CMOCKA_XML_FILE

# A test program called $1 with the body on standard input.
program() {
	{
		echo '#!/bin/sh'
		cat
	} >"$1"
	chmod +x "$1"
}

# $1 what is tested, $2 the expected last line, $3 the expected exit status, then t/run's arguments
expect() {
	what=$1 line=$2 code=$3
	shift 3
	n=$((n + 1))
	"$srctree/t/run" "$@" >log 2>&1
	got=$?
	if [ "$(tail -n 1 log)" = "$line" ] && [ $got = "$code" ]; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what: exit status $got"
		sed 's/^/#   /' log
	fi
}

says() {
	n=$((n + 1))
	if grep -q "$2" log; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1: no line has: $2"
		sed 's/^/#   /' log
	fi
}

program pass <<'END'
echo 'ok 1 - a'; echo 'ok 2 - b'; echo 1..2
END
program fail <<'END'
echo 1..2; echo 'ok 1 - a'; echo 'not ok 2 - b'; echo 'why it failed' >&2; exit 1
END
program skip <<'END'
echo 1..2; echo 'ok 1 - a'; echo 'ok 2 - b # SKIP no such device'
END
program skipall <<'END'
echo '1..0 # SKIP no peer here'
END
program exit77 <<'END'
echo 'needs a kernel' >&2; exit 77
END
program crash <<'END'
echo 'ok 1 - a'; kill -SEGV $$
END
program hang <<'END'
echo 'ok 1 - a'; sleep 600 & wait
END
program short <<'END'
echo 1..3; echo 'ok 1 - a'
END
program silent <<'END'
exit 0
END
program status <<'END'
echo 'ok 1 - a'; echo 1..1; exit 3
END
program bail <<'END'
echo 'ok 1 - a'; echo 'Bail out! no memory'
END
program where <<'END'
[ -z "$(ls)" ] && [ "$PWD" = "$TMPDIR" ] && echo 'ok 1 - empty' || echo 'not ok 1'
touch litter; echo "$PWD" >/dev/null
END

expect 'passed tests are counted' '2 passed, 0 failed, 0 skipped' 0 ./pass
expect 'a failed test fails the run' '1 passed, 1 failed, 0 skipped' 1 ./fail
says 'what a failing program wrote is shown' 'why it failed'
expect 'a skipped test' '1 passed, 0 failed, 1 skipped' 0 ./skip
says 'the reason of a skip is shown' 'no such device'
expect 'a skipped program' '0 passed, 0 failed, 1 skipped' 0 ./skipall
says 'the reason of a skipped program is shown' 'no peer here'
expect 'exit status 77 skips' '0 passed, 0 failed, 1 skipped' 0 ./exit77
says 'and the reason is shown' 'needs a kernel'
expect 'a crash is a failure' '1 passed, 1 failed, 0 skipped' 1 ./crash
says 'the signal is named' 'signal 11'
expect 'a program that hangs is ended' '1 passed, 1 failed, 0 skipped' 1 ./hang@1
says 'and the bound is named' 'longer than 1 s'
expect 'fewer tests than planned' '1 passed, 1 failed, 0 skipped' 1 ./short
expect 'no output is a failure' '0 passed, 1 failed, 0 skipped' 1 ./silent
expect 'an exit status is a failure' '1 passed, 1 failed, 0 skipped' 1 ./status
expect 'Bail out! is a failure' '1 passed, 1 failed, 0 skipped' 1 ./bail
expect 'no program at this path' '0 passed, 1 failed, 0 skipped' 1 ./absent
expect 'a wrapper that is not installed' '0 passed, 1 failed, 0 skipped' 1 -w no-such-tool ./pass
expect 'each runs in an empty folder' '2 passed, 0 failed, 0 skipped' 0 -j 2 ./where ./where
expect 'programs add up, whatever their number at a time' '6 passed, 2 failed, 1 skipped' 1 \
	-j 4 ./pass ./fail ./skip ./crash ./where
rm -f tally
"$srctree/t/run" -o "$PWD/tally" -p 'x: ' ./skip >log
says 'a prefix' 'x: skip'
n=$((n + 1))
[ "$(cat tally)" = '1 0 1' ] && echo "ok $n - a tally" || echo "not ok $n - a tally"
echo "1..$n"
