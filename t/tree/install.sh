#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# make install, and what an embedder then does with nothing but pkg-config: the
# example of README compiles as it is shown there.
n=0
unset MAKEFLAGS MAKELEVEL
root=$PWD/root
prefix=/opt/platter

result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/#   /' log
	fi
}

make -C "$srctree" O="$O" install DESTDIR="$root" PREFIX=$prefix >log 2>&1
result $? 'make install'
(cd "$root$prefix" && find . -type f | sort) >log
cat >want <<'END'
./include/platter/blk/blk.h
./include/platter/blk/errlist.h
./include/platter/cz/cz.h
./include/platter/fmt/fmt.h
./include/platter/thr/base.h
./include/platter/thr/config.h
./include/platter/thr/none.h
./include/platter/thr/thr.h
./lib/libblk.a
./lib/libcz.a
./lib/libfmt.a
./lib/libthr.a
./lib/pkgconfig/platter.pc
END
(cd "$srctree/doc" && ls *.[1-9]) | sed 's|.*\.\(.\)$|./share/man/man\1/&|' >>want
if [ -e "$B/platter" ]; then
	sed -i '1i ./bin/platter' want
else
	sed -i /man1/d want
fi
cmp -s want log
result $? 'installs what an embedder needs and nothing private'
make -C "$srctree" O="$O" install DESTDIR="$PWD/two" PREFIX=/p MANDIR=/m >log 2>&1 &&
	cmp two/m/man3/platter.3 "$srctree/doc/platter.3" >log 2>&1 && [ ! -e two/p/share ]
result $? 'the man pages go to MANDIR'

PKG_CONFIG_PATH=$root$prefix/lib/pkgconfig
PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
pkg-config --cflags --libs platter >flags 2>log
result $? 'pkg-config finds it'

for h in thr/base.h thr/thr.h cz/cz.h blk/blk.h fmt/fmt.h; do
	echo "#include <$h>"
done >all.c
echo 'int main(void) { return 0; }' >>all.c
gcc -Wall -Wextra -Werror all.c $(cat flags) -o all >log 2>&1
result $? 'a C program uses every header'
cp all.c all.cc
sed -i 's/(void)/()/' all.cc
g++ -Wall -Wextra -Werror all.cc $(cat flags) -o all >log 2>&1
result $? 'a C++ program uses every header'

# The example is the first indented block of README that has a main().
awk '
	/^(    |\t)/ || (/^$/ && block != "") { sub(/^(    |\t)/, ""); block = block $0 "\n"; next }
	{ if (block ~ /int main\(/) exit; block = "" }
	END { if (block ~ /int main\(/) printf "%s", block }' "$srctree/README" >example.c 2>log
[ -s example.c ]
result $? 'README has an example'
gcc -Wall -Wextra -Werror example.c $(cat flags) -o example >log 2>&1
result $? 'the example of README compiles as shown'

# Those of platter(3), each with what it prints.
example() {
	awk -v nth="$1" '/^\.Ed/ { on = 0 } on; /^\.Bd/ && ++seen == nth { on = 1 }' \
		"$srctree/doc/platter.3" | sed 's/\\e/\\/g' >page.c
	gcc -Wall -Wextra -Werror page.c $(cat flags) -o page >log 2>&1 && ./page >log 2>&1 &&
		printf '%b\n' "$3" | cmp -s - log
	result $? "example $1 of platter(3), $2"
}
example 1 thr 4
example 2 cz 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad 0'
example 3 blk 'hello Invalid argument'
example 4 fmt "0\\nCould not open 'nothing': No such file or directory"
[ "$(grep -c '^\.Bd' "$srctree/doc/platter.3")" = 4 ]
result $? 'platter(3) has no other'

# doc/examples, linked with nothing but what pkg-config prints
gcc -Wall -Wextra -Werror "$srctree/doc/examples/loop.c" $(cat flags) -o loop >log 2>&1
result $? 'doc/examples/loop.c compiles'
seq 1 100000 >disk
want=$(od -An -v -tu1 disk | awk '{ for (i = 1; i <= NF; i++) s += $i } END { print s, s }')
if [ -e "$B/platter" ]; then
	"$B/platter" convert -O qcow2 disk disk.qcow2 >log 2>&1 && ./loop disk.qcow2 >log 2>&1 &&
		[ "$(cat log)" = "$want" ]
	result $? 'it reads from a loop of its own and from threads'
fi
echo "1..$n"
