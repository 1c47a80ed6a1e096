#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/perf/cow.sh - what a cow image costs: one request of `platter io` at a time, on a new
# raw file and on new cow images of both versions over a backing file, in turns. Writes end
# with the flush of closing; "rewrite" and "read" come after a write of 100 MiB; "below" reads
# what only the backing file has, and for raw that file. Prints the time of the request, as
# io says it, and of the whole program: mean, deviation, and in parentheses how fast cow is
# by the median where raw is 1. Decides nothing.
#
#   RUNS=7 DIR=. in the environment

PLATTER=${PLATTER:-${B:-build}/platter}
work=$(mktemp -d "${DIR:-${B:-.}}/cow.XXXXXX") && cd "$work" && work=$PWD || exit 1
trap 'cd / && rm -rf "$work"' EXIT INT TERM

head -c 128M /dev/urandom >base.raw || exit 1

perl - "$PLATTER" "${RUNS:-7}" <<'END'
use strict;
use warnings;
use Time::HiRes qw(time);

my ($ours, $runs) = @ARGV;
my %make = (
	raw => "$ours create -q -f raw image 128M",
	'cow v3' => "$ours create -q -f cow -b base.raw -F raw image",
	'cow v2' => "$ours create -q -f cow -o version=2 -b base.raw -F raw image",
);

sub stats {
	my $n = @_;
	my ($s, $q) = (0, 0);
	$s += $_ for @_;
	my $m = $s / $n;
	$q += ($_ - $m)**2 for @_;
	return ($m, $n > 1 ? sqrt($q / ($n - 1)) : 0);
}

sub median { return (sort { $a <=> $b } @_)[$#_ / 2] }

sub once {
	my ($format, $command, $file) = @_;
	my $start = time;
	my $out = qx($ours io -f $format -c '$command' $file 2>&1);
	my $all = time - $start;
	die $out if $? || $out =~ /failed/;
	my ($rate) = $out =~ m{([0-9.e+]+) ops/sec} or die $out;
	return (1e3 / $rate, 1e3 * $all);
}

# Reads are of what was written, and of the backing file.
for my $what ('write 0 1M', 'write 0 100M', 'rewrite 0 1M', 'read 0 1M', 'read 0 100M',
	'below 0 100M') {
	my (%op, %all);
	for my $run (1 .. $runs) {
		for my $who (sort keys %make) {
			my ($format) = split / /, $who;
			my $command = $what =~ s/^rewrite/write/r =~ s/^below/read/r;
			unlink 'image';
			system($make{$who}) and die;
			once($format, 'write 0 100M', 'image') if $what =~ /^re[wa]/;
			system 'sync image base.raw';
			my ($op, $all) = once($format, $command,
				$who eq 'raw' && $what =~ /^below/ ? 'base.raw' : 'image');
			push @{$op{$who}}, $op;
			push @{$all{$who}}, $all;
		}
	}
	my ($raw, $raw_all) = (median(@{$op{raw}}), median(@{$all{raw}}));
	for my $who ('raw', 'cow v3', 'cow v2') {
		my @o = stats(@{$op{$who}});
		my @a = stats(@{$all{$who}});
		printf "cow %-13s %-7s ms: request %7.3f +- %.3f (%.2f), program %7.2f +- %.2f"
			. " (%.2f)\n", $what, $who, @o, $raw / median(@{$op{$who}}), @a,
			$raw_all / median(@{$all{$who}});
	}
}
END
