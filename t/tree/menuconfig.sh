#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# menuconfig as people use it, in a terminal that tmux keeps: a format is searched for,
# turned off and saved. The build then does not list it, and refuses its files by name.
o=$PWD/out
n=0
unset MAKEFLAGS MAKELEVEL TMUX
command -v tmux >/dev/null || {
	echo '1..0 # SKIP tmux is not installed'
	exit 0
}

result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/#   /' log
	fi
}

term() {
	tmux -S "$PWD/tmux" -f /dev/null "$@"
}
trap 'term kill-server 2>/dev/null' EXIT

# until_shown TEXT [KEY]: waits for it, pressing the key all along
until_shown() {
	for i in $(seq 100); do
		term capture-pane -p >log 2>&1
		grep -q -- "$1" log && return 0
		[ $# = 1 ] || term send-keys "$2"
		sleep 0.1
	done
	return 1
}

make -s -C "$srctree" O="$o" host_defconfig >log 2>&1
result $? 'host_defconfig'
term new-session -d -x 100 -y 40 "make -s -C '$srctree' O='$o' menuconfig; sleep 60"
until_shown 'Block devices (blk)'
result $? 'the menu comes up'
grep -q 'Image formats (fmt)' log && grep -q 'The program platter' log
result $? 'with the rooms'

term send-keys /
until_shown 'Search Configuration Parameter'
term send-keys -l FMT_QCOW2
term send-keys Enter
until_shown 'Prompt: qcow2' && term send-keys 1 && until_shown '\[\*\] qcow2: reading'
result $? 'a symbol is found by its name'
term send-keys n
until_shown '\[ \] qcow2: reading'
result $? 'turned off'
until_shown 'save your new' Escape && term send-keys Enter
for i in $(seq 100); do
	grep -q '^# CONFIG_FMT_QCOW2 is not set' "$o/.config" && break
	sleep 0.1
done
cp "$o/.config" log
grep -q '^# CONFIG_FMT_QCOW2 is not set' "$o/.config" && ! grep -q FMT_QCOW2_ "$o/.config"
result $? 'saved, with what depends on it'

make -s -C "$srctree" O="$o" -j2 >log 2>&1
result $? 'builds'
"$o/platter" --help >log 2>&1
sed -n '/^Supported formats:/p' log | grep -q raw && ! grep -q qcow2: log &&
	! sed -n '/^Supported formats:/p' log | grep -q qcow2
result $? 'the help does not list it'
printf 'QFI\373\0\0\0\3' >x.qcow2
"$o/platter" info -f qcow2 x.qcow2 >log 2>&1
[ $? = 1 ] && grep -q 'CONFIG_FMT_QCOW2' log
result $? 'its files are refused by name'
"$o/platter" create -f raw x.raw 1M >log 2>&1 && "$o/platter" info x.raw >>log 2>&1
result $? 'raw works'
echo "1..$n"
