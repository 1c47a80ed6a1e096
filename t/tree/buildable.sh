#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# What cannot be built here ends in one sentence that names the symbol and the
# Debian package, before anything is compiled.
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

# A compiler that does not have $1.
without() {
	cat >cc <<END
#!/bin/sh
case "\$*" in *$1*) exit 1 ;; esac
exec gcc "\$@"
END
	chmod +x cc
}

# $1 library, $2 symbol, $3 package
library() {
	without "-l${1#zlib=}"
	CC=./cc CFLAGS= LDFLAGS= hosted=y S= "$srctree/scripts/probe" "$2:${1%%=*}" >log 2>&1
	[ $? = 1 ] && [ "$(wc -l <log)" = 1 ] && grep -q "CONFIG_$2 needs .*package $3 " log
	result $? "without ${1%%=*} $2 and $3 are named"
}

library zlib=z CZ_DEFLATE zlib1g-dev
library zstd CZ_ZSTD libzstd-dev
library crypto CZ_CRYPTO_LINK libssl-dev
library aio BLK_FILE_AIO libaio-dev
library uring BLK_FILE_URING liburing-dev

without -lcmocka
CC=./cc CFLAGS= LDFLAGS= hosted=y S= "$srctree/scripts/probe" tests:cmocka >log 2>&1
[ $? = 1 ] && grep -q 'the tests need .*package libcmocka-dev' log
result $? 'without cmocka its package is named'

CC=arm-no-such-gcc CFLAGS= LDFLAGS= hosted= S= "$srctree/scripts/probe" >log 2>&1
[ $? = 1 ] && grep -q 'compiler arm-no-such-gcc is not installed: .*package' log
result $? 'without the compiler its package is named'

if command -v arm-none-eabi-gcc >/dev/null; then
	CC=arm-none-eabi-gcc CFLAGS= LDFLAGS= hosted=y S= "$srctree/scripts/probe" >log 2>&1
	[ $? = 1 ] && grep -q 'CONFIG_HOSTED needs a POSIX C library' log
	result $? 'HOSTED for bare metal is refused'
else
	n=$((n + 1))
	echo "ok $n - HOSTED for bare metal is refused # SKIP arm-none-eabi-gcc is not installed"
fi

# Through make, in the host configuration: nothing is compiled.
without -lzstd
make -C "$srctree" O="$PWD/out" CC="$PWD/cc" >log 2>&1
[ $? = 2 ] && grep -q 'CONFIG_CZ_ZSTD.*libzstd-dev.*core_defconfig' log && ! grep -q '  CC  ' log
result $? 'make with no configuration names the package or core_defconfig'
make -C "$srctree" O="$PWD/out" host_defconfig all >log 2>&1
[ $? = 2 ] && grep -q 'run it on its own' log
result $? 'a configuration goal beside another goal is refused'
make -C "$srctree" O="$PWD/out" t T=no_such_test >log 2>&1
[ $? = 2 ] && grep -q 'no test is called no_such_test' log
result $? 'a test that does not exist is refused'
echo "1..$n"
