#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/perf/bench.sh - the cost of a request: `platter bench` and `qemu-img bench` in turns,
# on the null device, on a raw file with O_DIRECT through each engine, and on a fully
# allocated qcow2 image at scattered offsets. Prints for each the wall time, the user
# processor time and the system calls of one request, and how many times as much the
# peer takes (above 1 we are better). Decides nothing.
#
#   RUNS=5 COUNT=100000 GIB=8 DIR=. in the environment; ONLY='null raw qcow2'.

command -v qemu-img >/dev/null || { echo 'bench: qemu-img is not installed'; exit 0; }
PLATTER=${PLATTER:-${B:-build}/platter}
GIB=${GIB:-8}
ONLY=${ONLY:-null raw qcow2}
work=$(mktemp -d "${DIR:-${B:-.}}/bench.XXXXXX") && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT INT TERM

# The data of the qcow2 image is allocated and never written, so that the disk serves
# nothing but what the requests are about.
case $ONLY in *raw*) qemu-img create -q -f raw -o preallocation=full raw 128M || exit 1 ;; esac
case $ONLY in *qcow2*)
	qemu-img create -q -f qcow2 -o preallocation=metadata qcow2 "${GIB}G" || exit 1
	;;
esac

perl - "$PLATTER" "${RUNS:-5}" "${COUNT:-100000}" "$ONLY" <<'END'
use strict;
use warnings;
use Time::HiRes qw(time);

my ($ours, $runs, $count, $only) = @ARGV;

# perf counts without getting in the way of threads; strace slows each call down, which
# makes those that wait for others wait more often.
my $perf = 'perf stat -x, -o trace -e raw_syscalls:sys_enter';
my $strace = 'strace -f -c -o trace';
my ($counter) = grep { system("$_ true >/dev/null 2>&1") == 0 } $perf, $strace;

# Seconds of the run as it prints them, and of user time.
sub once {
	my @t = times;
	my $out = qx(@_);
	die "@_ failed: $out\n" if $?;
	my @z = times;
	my ($wall) = $out =~ /^Run completed in ([0-9.]+) seconds/m or die "@_: $out\n";
	return ($wall, $z[2] - $t[2]);
}

# What twice as many requests take more is theirs.
sub calls {
	my ($count, @command) = @_;
	return 0 unless $counter;
	my @n;
	for my $c ($count, 2 * $count) {
		qx($counter @command -c $c);
		open my $f, '<', 'trace' or die;
		push @n, map { /^([0-9]+),.*sys_enter/ ? $1 : /total$/ ? (split)[3] : () } <$f>;
	}
	return ($n[1] - $n[0]) / $count;
}

sub stats {
	my $n = @_;
	my ($s, $q) = (0, 0);
	$s += $_ for @_;
	my $m = $s / $n;
	$q += ($_ - $m)**2 for @_;
	return ($m, $n > 1 ? sqrt($q / ($n - 1)) : 0);
}

sub ratio { my ($us, $them) = @_; return $us > 0 ? sprintf '%.2f', $them / $us : '-' }

sub measure {
	my ($name, $count, @args) = @_;
	my (%wall, %user, %calls);
	my %command = (ours => "$ours bench @args", peer => "qemu-img bench @args");
	for (1 .. $runs) {
		for my $who (qw(ours peer)) {
			my ($wall, $user) = once("$command{$who} -c $count");
			push @{$wall{$who}}, $wall / $count * 1e6;
			push @{$user{$who}}, $user / $count * 1e6;
		}
	}
	$calls{$_} = calls($count, $command{$_}) for qw(ours peer);
	my @w = (stats(@{$wall{ours}}), stats(@{$wall{peer}}));
	my @u = (stats(@{$user{ours}}), stats(@{$user{peer}}));
	printf "bench %-22s us/request: wall %7.3f +- %.3f, peer %7.3f +- %.3f (%s);"
		. " user %6.3f +- %.3f, peer %6.3f +- %.3f (%s); calls %.3f, peer %.3f (%s)\n",
		$name, @w, ratio($w[0], $w[2]), @u, ratio($u[0], $u[2]), $calls{ours},
		$calls{peer}, ratio($calls{ours}, $calls{peer});
}

$| = 1;
if ($only =~ /null/) {
	measure('null', 1000000, qw(-f raw null-co://));
	measure('null, depth 1', 1000000, qw(-f raw -d 1 null-co://));
}
for my $engine (qw(threads native io_uring)) {
	measure("raw, $engine", $count, qw(-f raw -t none -i), $engine, 'raw') if $only =~ /raw/;
}
# An odd number of blocks of 4 KiB: goes all over the image.
for my $engine (qw(threads native io_uring)) {
	measure("qcow2, $engine", $count, qw(-f qcow2 -t none -S 1234571264 -i), $engine,
		'qcow2')
		if $only =~ /qcow2/;
}
END
