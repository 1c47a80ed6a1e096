#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/cli_commit.sh - commit does what qemu-img's does, to the same chain.

. "${srctree:-.}/t/interop/peer.inc"

# A chain in its own folder: base.raw or base.q, mid.q, top.q.
chain()
{
	rm -rf chain && mkdir chain && cd chain || exit 1
	create -f raw base.raw 3M
	create -f qcow2 ${base_opts:-} base.q ${base_size:-3M}
	create -f qcow2 ${mid_opts:-} -b ${base:-base.q} -F ${base_format:-qcow2} mid.q \
		${mid_size:-3M}
	create -f qcow2 ${top_opts:-} -b mid.q -F qcow2 top.q ${top_size:-3M}
	IO_FORMAT=raw io base.raw 'write -P 1 0 3M'
	io base.q "write -P 1 0 ${base_size:-3M}"
	io mid.q 'write -P 2 100k 300k' 'write -z 512k 256k' 'write -P 3 900k 100k'
	io top.q 'write -P 4 0 50k' 'write -P 5 120k 1k' 'write -z 200k 100k' \
		'write -P 6 960k 64k' 'write -z 128k 64k' 'write -P 0 704k 64k' ${top_io:+"$top_io"}
	cd .. || exit 1
}

# own FILE: how much it has allocated itself
own()
{
	"$peer" map --output=json $1 |
		awk -F'[:,]' '/"depth": 0, "present": true/ { n += $4 } END { print n + 0 }'
}

# committed ARGS...: in a copy of the chain for each
committed()
{
	for who in peer ours; do
		eval "img=\$$who"
		rm -rf $who && cp -r chain $who
		(cd $who && "$img" commit "$@" >../out.$who 2>../err.$who </dev/null
			echo $? >../status.$who)
	done
	bad=
	cmp -s out.peer out.ours || bad='standard output differs'
	cmp -s status.peer status.ours || bad="status $(cat status.ours)"
	[ "$(cat status.ours)" = 0 ] || grep -q '^qemu-img: ' err.ours || bad='nothing is said'
	for f in base.q mid.q top.q; do
		"$peer" check ours/$f >check.out 2>&1 || bad="$f: $(cat check.out)"
		"$peer" compare peer/$f ours/$f >check.out 2>&1 || bad="$f: $(cat check.out)"
		# What the top has itself; what lies below may have become zeroes in ours.
		[ $f != top.q ] || [ "$(own peer/$f)" = "$(own ours/$f)" ] ||
			bad="$f has $(own ours/$f) bytes"
		"$peer" info peer/$f | grep virtual >virtual.peer
		"$peer" info ours/$f | grep virtual >virtual.ours
		cmp -s virtual.peer virtual.ours || bad="$f: the virtual size differs"
	done
	cmp -s peer/base.raw ours/base.raw || bad='base.raw differs'
	[ -z "$bad" ] || blame "$bad"
	[ -z "$bad" ]
	ok $? "$what: commit $*"
}

all()
{
	chain
	committed top.q
	committed -d top.q
	committed -b mid.q top.q
	committed -b ${base:-base.q} top.q
	committed mid.q
}

what=plain
all
committed -f qcow2 -q top.q
committed -t none top.q
committed -t writethrough -r 1G top.q
committed --image-opts driver=qcow2,file.filename=top.q
committed -b ./base.q top.q
committed --object secret,id=x,data=y top.q
committed base.q
committed -f raw top.q
committed -b nope top.q
committed -b top.q top.q
committed -t nope top.q
committed -r x top.q
committed
committed top.q mid.q
committed nope.q

base=base.raw base_format=raw
what='onto raw'
all
base=base.q base_format=qcow2
what='a longer top'
top_size=5M top_io='write -P 9 4M 64k' all
what='a longer middle and top'
top_size=5M mid_size=4M top_io='write -P 9 4M 64k' all
what='a longer top onto raw'
base=base.raw base_format=raw top_size=5M mid_size=4M all
what='a shorter top'
top_size=1M all
what='a shorter middle'
mid_size=1M all
what='an odd length'
base_size=1000k mid_size=1500k top_size=1999k all
what='version 2'
base_opts='-o compat=0.10' mid_opts='-o compat=0.10' top_opts='-o compat=0.10' all
what='small clusters on large ones'
base_opts='-o cluster_size=256k' top_opts='-o cluster_size=4k' all
what='large clusters on small ones'
base_opts='-o cluster_size=4k' mid_opts='-o cluster_size=512' top_opts='-o cluster_size=1M' all

# With a snapshot the top keeps what that has.
what='a snapshot in the top'
chain
(cd chain && "$peer" snapshot -c s top.q && io top.q 'write -P 7 0 10k')
committed top.q

what=plain
chain
before=$("$peer" convert -O raw chain/top.q before.raw && cksum <before.raw)
check 'the same with one thread' sh -c "cp -r chain one && cd one && '$ours' commit --threads 1 top.q"
check 'and with four' sh -c "cp -r chain four && cd four && '$ours' commit --threads 4 top.q"
cmp one/mid.q four/mid.q && cmp one/top.q four/top.q
ok $? 'give the same bytes'
[ "$("$peer" convert -O raw one/top.q after.raw && cksum <after.raw)" = "$before" ]
ok $? 'the guest sees no difference'
check 'a second time' sh -c "cd one && '$ours' commit top.q && '$ours' commit mid.q"
[ "$("$peer" convert -O raw one/base.q after.raw && cksum <after.raw)" = "$before" ]
ok $? 'all of it is in the base'

# What cannot be written leaves the top as it was.
sum=$(cksum <chain/top.q)
chmod 400 chain/mid.q
if [ "$(id -u)" != 0 ]; then
	says 1 'Permission denied' commit chain/top.q
fi
chmod 600 chain/mid.q
says 1 'Input/output error' commit --image-opts driver=qcow2,file.filename=chain/top.q,\
backing.driver=qcow2,backing.file.driver=fault,backing.file.op=write,backing.file.error=EIO,\
backing.file.nth=3,backing.file.file.driver=file,backing.file.file.filename=chain/mid.q
[ "$(cksum <chain/top.q)" = "$sum" ]
ok $? 'the top is as it was'
"$ours" commit -p chain/top.q >out 2>err
tr '\r' '\n' <out | tail -n 3 | head -n 1 | grep -qF '    (100.00/100%)' &&
	tail -n 1 out | grep -qx 'Image committed.'
ok $? 'commit -p'
[ "$("$peer" convert -O raw chain/top.q after.raw && cksum <after.raw)" = "$before" ]
ok $? 'a commit that failed can be done again'

done_testing
