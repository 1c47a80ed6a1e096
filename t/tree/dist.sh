#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# make dist: the same bytes twice, and a tree that builds without git and network.
n=0
unset MAKEFLAGS MAKELEVEL

result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/#   /' log
	fi
}

if ! git -C "$srctree" rev-parse -q --verify HEAD >/dev/null 2>&1 ||
	[ "$(git -C "$srctree" rev-parse --show-prefix)" ]; then
	echo '1..0 # SKIP this tree has no git repository'
	exit 0
fi
make -s -C "$srctree" O="$PWD/a" dist >log 2>&1
result $? 'make dist'
sleep 1
make -s -C "$srctree" O="$PWD/b" dist >log 2>&1 && cmp a/*.tar.gz b/*.tar.gz >log 2>&1
result $? 'the same bytes again, a second later'

tar -tvzf a/*.tar.gz >log 2>&1
! awk '{ print $2 }' log | grep -qv '^root/root$'
result $? 'the files belong to nobody here'
git -C "$srctree" ls-tree -r --name-only HEAD | sort >want
tar -tzf a/*.tar.gz | sed -n 's|^[^/]*/\(.*[^/]\)$|\1|p' | sort >log
cmp -s want log
result $? 'everything that is committed is in it'

mkdir tree && tar -xzf a/*.tar.gz -C tree --strip-components=1
make -C tree O="$PWD/out" core_defconfig >log 2>&1 &&
	GIT_DIR=/nonexistent make -C tree O="$PWD/out" -j2 >log 2>&1
result $? 'it builds outside git'
out/platter --version >log 2>&1
result $? 'and the program starts'
make -C tree O="$PWD/out" layers >log 2>&1
result $? 'make layers there'
make -C tree O="$PWD/out" -j2 t T='thr_base cli_args' >log 2>&1
result $? 'and tests'
GIT_DIR=/nonexistent make -C tree O="$PWD/out" dist >log 2>&1
[ $? = 2 ] && grep -q 'needs the git repository' log
result $? 'make dist there ends in a sentence'
git init -q . >log 2>&1
git -c user.name=n -c user.email=e commit -q --allow-empty -m other >log 2>&1
make -C tree O="$PWD/out" dist >log 2>&1
[ $? = 2 ] && grep -q 'needs the git repository' log
result $? 'also where it lies in the repository of something else'
echo "1..$n"
