#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/perf/flush.sh - what durability costs: random 64 KiB writes that allocate, with a flush
# after every 32, through `platter io` and `qemu-io`, the same commands to both in turns.
# Prints the device flushes of 1000 writes, the writes beside those of data, and the wall
# time of the whole run on a memory file system, and how many times as much the peer
# takes. Decides nothing.
#
#   RUNS=5 COUNT=4000 DIR=/dev/shm CREATE='options of create' in the environment.

command -v qemu-io >/dev/null || { echo 'flush: qemu-io is not installed'; exit 0; }
PLATTER=${PLATTER:-${B:-build}/platter}
work=$(mktemp -d "${DIR:-/dev/shm}/flush.XXXXXX") && cd "$work" || exit 1
trap 'cd / && rm -rf "$work"' EXIT INT TERM

perl - "$PLATTER" "${RUNS:-5}" "${COUNT:-4000}" "${CREATE:-}" <<'END'
use strict;
use warnings;
use Time::HiRes qw(time);

my ($platter, $runs, $count, $create) = @ARGV;
my $size = 4 * $count;    # clusters, of which one in four is written
my %io = (platter => "$platter io", qemu => 'qemu-io');
my @who = ('platter', 'qemu');

# The first $count of a shuffled disk: every write allocates.
sub script {
	my ($n, $name) = @_;
	my @at = (0 .. $size - 1);
	srand 7;
	open my $f, '>', $name or die;
	for my $i (0 .. $n - 1) {
		my $j = $i + int rand(@at - $i);
		@at[$i, $j] = @at[$j, $i];
		printf $f "write -q -P %d %dk 64k\n", $i % 255 + 1, $at[$i] * 64;
		print $f "flush\n" if $i % 32 == 31;
	}
	close $f;
}

sub fresh {
	unlink 'image';
	system("qemu-img create -q -f qcow2 $create image " . $size * 64 . 'k') == 0 or die;
}

sub once {
	my ($who, $script, $wrap, $more) = @_;
	fresh();
	my $t = time;
	system("$wrap $io{$who} $more -t writeback -f qcow2 image <$script >out 2>&1") == 0
		or die "$who failed: " . qx(cat out);
	my $wall = time - $t;
	system('qemu-img check -q image') == 0 or die "$who left a bad image\n";
	return $wall;
}

# Calls of the longer run that the shorter one does not have: start and end cancel out.
sub calls {
	my ($who) = @_;
	my %n;
	for my $s ('half', 'all') {
		# A ring flushes without a call that could be counted.
		once($who, $s, 'strace -f -c -o trace', '-i threads');
		open my $f, '<', 'trace' or die;
		while (<$f>) {
			my @w = split;
			next unless @w >= 5 && $w[3] =~ /^\d+$/;
			$n{$s}{flush} += $w[3] if $w[-1] =~ /^f(data)?sync$/;
			$n{$s}{write} += $w[3] if $w[-1] =~ /^(pwrite64|pwritev2?|fallocate)$/;
		}
	}
	return map { $n{all}{$_} // 0, $n{half}{$_} // 0 } qw(flush write);
}

script($count, 'all');
script($count / 2, 'half');
my (%wall, %flush);
for (1 .. $runs) {
	push @{$wall{$_}}, once($_, 'all', '', '') for @who;
}
if (system('strace -o /dev/null true >/dev/null 2>&1') == 0) {
	for my $w (@who) {
		my @n = calls($w);
		$flush{$w} = ($n[0] - $n[1]) / ($count / 2) * 1000;
		printf "%-8s %7.1f flushes and %7.1f writes of metadata in 1000 writes\n", $w,
			$flush{$w}, ($n[2] - $n[3]) / ($count / 2) * 1000 - 1000;
	}
}
my %mean;
for my $w (@who) {
	my @v = @{$wall{$w}};
	my $m = 0;
	$m += $_ / @v for @v;
	my $d = 0;
	$d += ($_ - $m) ** 2 / @v for @v;
	$mean{$w} = $m;
	printf "%-8s %7.3f s +- %.3f, at least %.3f, for %d writes\n", $w, $m, sqrt $d, (sort { $a <=> $b } @v)[0],
		$count;
}
printf "qemu takes %.2f times as long%s\n", $mean{qemu} / $mean{platter},
	%flush ? sprintf(' and %.2f times as many flushes', $flush{qemu} / $flush{platter}) : '';
END
