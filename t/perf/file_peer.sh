#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/perf/file_peer.sh - reads of 4 KiB with O_DIRECT, 64 at a time: our engines and
# `qemu-img bench`, alternately. Prints means and deviations of the time that a
# request takes and of the user CPU time that it costs, and how many times as much
# the peer takes.

command -v qemu-img >/dev/null || { echo 'file_peer: qemu-img is not installed'; exit 0; }
bench=${B:-build}/t/perf/file_bench
[ -x "$bench" ] || exit 1
img=$(mktemp "${B:-.}/file_peer.XXXXXX") || exit 1
trap 'rm -f "$img"' EXIT
qemu-img create -q -f raw -o preallocation=full "$img" 128M || exit 1
qemu-img bench -f raw -t none -d 1 -c 1 -s 4096 "$img" >/dev/null 2>&1 ||
	{ echo 'file_peer: no O_DIRECT here'; exit 0; }

perl - "$bench" "$img" "${RUNS:-5}" "${COUNT:-50000}" <<'E2'
use strict;
use warnings;
use Time::HiRes qw(time);

my ($bench, $img, $runs, $count) = @ARGV;
my %peer = (uring => 'io_uring', aio => 'native', threads => 'threads');

sub once {
	my @t = times;
	my $wall = time;
	my $pid = fork // die;
	if (!$pid) {
		open STDOUT, '>', '/dev/null';
		exec @_ or exit 127;
	}
	waitpid $pid, 0;
	die "@_ failed\n" if $?;
	my @z = times;
	return ((time - $wall) / $count * 1e6, ($z[2] - $t[2]) / $count * 1e6);
}

sub stats {
	my $n = @_;
	my $sum = 0;
	$sum += $_ for @_;
	my $mean = $sum / $n;
	my $dev = 0;
	$dev += ($_ - $mean) ** 2 for @_;
	return ($mean, sqrt($dev / ($n > 1 ? $n - 1 : 1)));
}

printf "%-8s %-9s %22s %22s %8s\n", 'engine', 'us each', 'ours', 'qemu-img bench', 'ratio';
for my $e (qw(uring aio threads)) {
	my (@ow, @ou, @pw, @pu);
	for (1 .. $runs) {
		my ($w, $u) = once($bench, '-e', $e, '-d', 64, '-c', $count, '-s', 4096, $img);
		push @ow, $w;
		push @ou, $u;
		($w, $u) = once('qemu-img', 'bench', '-f', 'raw', '-t', 'none', '-i', $peer{$e},
			'-d', 64, '-c', $count, '-s', 4096, $img);
		push @pw, $w;
		push @pu, $u;
	}
	for (['wall', \@ow, \@pw], ['user CPU', \@ou, \@pu]) {
		my ($what, $o, $p) = @$_;
		my ($om, $od) = stats(@$o);
		my ($pm, $pd) = stats(@$p);
		printf "%-8s %-9s %13.2f +- %5.2f %13.2f +- %5.2f %8s\n", $e, $what, $om, $od,
			$pm, $pd, $om ? sprintf('%.2f', $pm / $om) : '-';
	}
}
E2
