#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The program at the limits that its user has set: each ends in one sentence and exit
# 1, never in a signal, and what was there before is as it was.
. "$srctree/t/interop/peer.inc"

head -c 3M /dev/urandom >src.raw
"$ours" convert -O qcow2 src.raw good.q || exit 1

# ends NAME WORDS COMMAND...: exit 1, one line on stderr with WORDS in it
ends()
{
	name=$1
	words=$2
	shift 2
	"$@" >out 2>err
	status=$?
	[ $status = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -q "$words" err
	result=$?
	[ $result = 0 ] || { echo "# exit status $status"; sed 's/^/# /' err; }
	ok $result "$name"
}

small() # COMMAND...: with files of 512 KiB at most
{
	(ulimit -f 1024 && exec "$@")
}

ends 'convert over the file size limit' 'File too large' small "$ours" convert -O raw good.q out.raw
ends 'create over the file size limit' 'File too large' \
	small "$ours" create -f raw -o preallocation=full new.raw 2M
cp good.q old.q
ends 'resize over the file size limit' 'File too large' \
	small "$ours" resize --preallocation=full good.q 8M
"$peer" check -q good.q && "$peer" compare -q -U src.raw old.q
ok $? 'the image is sound after that'

ends 'standard output is full' 'No space left' sh -c '"$0" info good.q >/dev/full' "$ours"
check '16 fibers in 1 GiB of address space' \
	sh -c 'ulimit -v 1048576 && exec "$0" convert -m 16 -O qcow2 src.raw m16.q' "$ours"
cmp -s good.q m16.q || "$peer" compare -q good.q m16.q
ok $? 'and it is the same disk'
done_testing
