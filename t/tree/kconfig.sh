#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The traps of kconfig-frontends, each sprung in a small tree of its own: the
# configuration step must end in one sentence and leave .config as it was.
n=0
tree=$PWD/tree
out=$PWD/out
MAKEFLAGS=
export MAKEFLAGS

kconfig() {
	O=$out srctree=$tree "$srctree/scripts/kconfig" "$@" >log 2>&1 </dev/null
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

# $1 what, $2 what the sentence must say, then the goal: refused, in one line
refused() {
	what=$1 text=$2
	shift 2
	before=$(cksum "$out/.config" 2>/dev/null)
	kconfig "$@"
	[ $? = 1 ] && grep -q "$text" log && [ "$(wc -l <log)" = 1 ] &&
		[ "$(cksum "$out/.config" 2>/dev/null)" = "$before" ]
	result $? "$what"
}

accepted() {
	what=$1
	shift
	kconfig "$@"
	result $? "$what"
}

holds() {
	grep -q "^$2\$" "$1"
	result $? "$3"
}

fresh() {
	rm -rf "$tree" "$out"
	mkdir -p "$tree/configs" "$out"
	cat >"$tree/Kconfig" <<'END'
mainmenu "t"
config A
	bool "a"
	default y
config B
	bool "b"
	depends on A
config N
	int "n"
	range 1 9
	default 3
config TEXT
	string "text"
	default "x y"
END
	echo 'CONFIG_B=y' >"$tree/configs/host_defconfig"
}

fresh
accepted 'no configuration: the host default' sync
holds "$out/config.mk" 'CONFIG_B := y' 'make sees a symbol that is on'
holds "$out/config.mk" 'CONFIG_TEXT := x y' 'make sees a string without quotes'
holds "$out/include/thr/config.h" '#define CONFIG_A 1' 'C sees a symbol that is on'
holds "$out/include/thr/config.h" '#define CONFIG_TEXT "x y"' 'C sees a string with quotes'
touch -d @1000 "$out/include/thr/config.h"
kconfig sync
[ "$(stat -c %Y "$out/include/thr/config.h")" = 1000 ]
result $? 'config.h is left alone where nothing changed'
echo 'CONFIG_N=7' >>"$tree/configs/host_defconfig"
kconfig sync
holds "$out/.config" 'CONFIG_N=7' 'a configuration that nobody chose follows the host default'

sed -i 's/CONFIG_N=7/CONFIG_N=8/' "$out/.config"
accepted 'an edited .config is taken' sync
holds "$out/config.mk" 'CONFIG_N := 8' 'with what was edited'
echo 'CONFIG_NOSUCH=y' >>"$out/.config"
refused 'an unknown symbol in .config' 'no symbol CONFIG_NOSUCH' sync
accepted 'olddefconfig drops it' olddefconfig
accepted 'and then it builds' sync
sed -i 's/CONFIG_N=8/CONFIG_N=88/' "$out/.config"
refused 'a number out of range in .config' 'CONFIG_N=88 does not hold' sync
sed -i 's/CONFIG_N=88/CONFIG_N=8/; s/CONFIG_A=y/# CONFIG_A is not set/' "$out/.config"
refused 'a symbol without what it depends on' 'CONFIG_B=y does not hold.*depends on A' sync
printf '' >"$out/.config"
refused 'an empty .config' 'is empty' sync
echo 'hello' >"$out/.config"
refused 'a .config that is none' 'unexpected data: hello' sync

fresh
kconfig sync
printf 'CONFIG_A=y\nCONFIG_ZZ=y\n' >"$tree/configs/bad_defconfig"
refused 'an unknown symbol in a defconfig' 'configs/bad_defconfig:2: .*CONFIG_ZZ' bad_defconfig
printf '# CONFIG_A is not set\nCONFIG_B=y\n' >"$tree/configs/bad_defconfig"
refused 'a line of a defconfig that does not survive' 'bad_defconfig:2: CONFIG_B=y' bad_defconfig
printf 'CONFIG_N=10\n' >"$tree/configs/bad_defconfig"
refused 'a number out of range in a defconfig' 'CONFIG_N=10' bad_defconfig
refused 'a defconfig that is not there' 'there are: .*host_defconfig' none_defconfig
printf 'CONFIG_B=y\nCONFIG_N=4\n' >"$tree/configs/good_defconfig"
accepted 'a good defconfig' good_defconfig
accepted 'savedefconfig' savedefconfig
cmp -s "$out/defconfig" "$tree/configs/good_defconfig"
result $? 'gives back what was applied'
accepted 'allnoconfig' allnoconfig
holds "$out/.config" '# CONFIG_A is not set' 'and everything is off'
accepted 'allyesconfig' allyesconfig
holds "$out/.config" 'CONFIG_B=y' 'and everything is on'
KCONFIG_SEED=5 kconfig randconfig
cp "$out/.config" first
KCONFIG_SEED=6 kconfig randconfig
KCONFIG_SEED=5 kconfig randconfig
cmp -s first "$out/.config" && grep -q 'KCONFIG_SEED=5' log
result $? 'randconfig repeats from the seed that it prints'

printf '%s\n' 'config S' ' bool "s"' ' select U' 'config D' ' bool "d"' \
	'config U' ' bool "u"' ' depends on D' >>"$tree/Kconfig"
printf 'CONFIG_S=y\n' >"$tree/configs/bad_defconfig"
refused 'an unmet select' 'Kconfig: .*unmet' bad_defconfig
fresh
kconfig sync
printf '%s\n' 'config P' ' bool "p"' ' depends on Q' \
	'config Q' ' bool "q"' ' depends on P' >>"$tree/Kconfig"
refused 'a dependency loop' 'Kconfig: .*recursive' olddefconfig
fresh
kconfig sync
echo 'confg X' >>"$tree/Kconfig"
refused 'a Kconfig file that does not parse' 'Kconfig' olddefconfig

fresh
kconfig sync
refused 'menuconfig without a terminal' 'needs a terminal' menuconfig
refused 'nconfig without a terminal' 'needs a terminal' nconfig
if command -v script >/dev/null; then
	menu="O='$out' srctree='$tree' '$srctree/scripts/kconfig' menuconfig"
	script -qec "stty rows 10 cols 80; $menu" typescript </dev/null >log 2>&1
	grep -q 'at least 80 columns and 19 lines' log
	result $? 'menuconfig in a small terminal'
else
	n=$((n + 1))
	echo "ok $n - menuconfig in a small terminal # SKIP script is not installed"
fi
sed 's/need kconfig-conf/need no-such-tool/' "$srctree/scripts/kconfig" >kconfig-without
chmod +x kconfig-without
O=$out srctree=$tree ./kconfig-without olddefconfig >log 2>&1
[ $? = 1 ] && grep -q 'package kconfig-frontends-nox' log
result $? 'without kconfig-frontends the package is named'

# The real tree. Off by default: THR_UCONTEXT, a second way of doing the same.
for c in "$srctree"/configs/*_defconfig; do
	rm -rf "$out"
	mkdir "$out"
	O=$out "$srctree/scripts/kconfig" "${c##*/}" >log 2>&1
	result $? "configs/${c##*/} holds"
done
rm -rf "$out"
mkdir "$out"
O=$out "$srctree/scripts/kconfig" allyesconfig >log 2>&1
sed 's/^\(CONFIG_THR_UCONTEXT\)=y/# \1 is not set/' "$out/.config" >yes
O=$out "$srctree/scripts/kconfig" host_defconfig >log 2>&1
diff yes "$out/.config" | grep '^[<>] .*CONFIG_[A-Z0-9_]*\(=y\| is not\)' >log
[ ! -s log ]
result $? 'host_defconfig turns everything else on'
awk '/^[ \t]*(menu)?config / {
		if (sym && prompt && !help) print file ": " sym
		sym = $2; prompt = help = 0; file = FILENAME
	}
	/^[ \t]*(bool|tristate|string|int|hex) "/ { prompt = 1 }
	/^[ \t]*help$/ { help = 1 }
	END { if (prompt && !help) print file ": " sym }' $(find "$srctree" -maxdepth 3 -name Kconfig) >log
[ ! -s log ]
result $? 'every symbol has help text'
# HOSTED is no piece of code, and what numbers cost is memory.
awk 'FILENAME == ARGV[1] { row[$1] = 1; next }
	/^(menu)?config / || FNR == 1 { finish() }
	/^(menu)?config / { sym = $2; file = FILENAME }
	/^\tbool "/ { asked = 1 }
	/^\t  Costs -?[0-9]+ bytes on (x86-64|Cortex-M3)\.$/ { said = 1 }
	function finish() {
		if (asked && sym != "HOSTED" && !(said && row[sym]))
			print file ": " sym ": make footprint T=" sym
		sym = asked = said = ""
	}
	END { finish() }' "$srctree/doc/FOOTPRINT" $(find "$srctree" -maxdepth 3 -name Kconfig) >log
[ ! -s log ]
result $? 'every symbol that can be turned off says what it costs, and doc/FOOTPRINT does'
awk 'NR > 10 && $1 !~ /^(symbol|all)$/ && NF == 3 { print "config " $1 }' "$srctree/doc/FOOTPRINT" |
	while read -r line; do
		grep -qx "$line\|menu$line" $(find "$srctree" -maxdepth 3 -name Kconfig) || echo "$line"
	done >log
[ ! -s log ]
result $? 'doc/FOOTPRINT has no others'
echo "1..$n"
