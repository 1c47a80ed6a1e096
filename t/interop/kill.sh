#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/kill.sh - real cuts: processes that write are killed at random moments, and run
# into the end of a file system. The image is opened again, checked by us and by qemu-img,
# and what had been flushed is there. SEED=N for other moments (1).

PLATTER=${PLATTER:-${B:-build}/platter}
export LC_ALL=C
command -v qemu-img >/dev/null || { echo '1..0 # SKIP qemu-img is not installed'; exit 0; }
work=$(mktemp -d) && cd "$work" || exit 1
full=$work/full
mkdir "$full"
if mount -t tmpfs -o size=6m tmpfs "$full" 2>/dev/null; then
	trap 'cd / && umount "$full" && rm -rf "$work"' EXIT
else
	full=
	trap 'cd / && rm -rf "$work"' EXIT
fi

perl - "$PLATTER" "${SEED:-1}" "$full" <<'END'
use strict;
use warnings;
use IPC::Open2;
use Time::HiRes qw(sleep);

my ($platter, $seed, $full) = @ARGV;
my ($n, $failed) = (0, 0);
srand $seed;
$SIG{PIPE} = 'IGNORE';
$| = 1;

sub result {
	my ($why, $name) = @_;
	$n++;
	print $why ? "not ok $n - $name\n# $why\n" : "ok $n - $name\n";
	$failed += !!$why;
}

# A ring that was killed holds on to its files, and to their locks, for a moment.
sub wait_lock {
	my ($image, $format) = @_;
	for (1 .. 500) {
		return if qx($platter info -f $format $image 2>&1) !~ /lock/;
		sleep 0.01;
	}
}

# What is wrong with an image, or ''.
sub unsound {
	my ($image, $format) = @_;
	wait_lock($image, $format);
	return '' if $format eq 'raw';
	for my $check ("$platter check -q", 'qemu-img check -q') {
		# QEMU has not known cow for long.
		next if $format eq 'cow' && $check =~ /^qemu/;
		my $out = qx($check -f $format $image 2>&1);
		my $code = $? >> 8;
		return "$check says $code: $out" if $? & 127 || ($code && $code != 3);
	}
	return '';
}

# The bytes of the disk, through the program that is named.
sub disk {
	my ($image, $format) = @_;
	unlink 'disk';
	system("$platter convert -f $format -O raw $image disk") == 0 or return undef;
	open my $f, '<:raw', 'disk' or return undef;
	local $/;
	return <$f>;
}

# ---- a guest: writes, and knows what it may read after a flush ----

my $sector = 512;
my $size = 16 << 20;

sub guest_new { return { may => [], seq => 0 } }

# Sectors hold one value, of those they may have: the last flushed and all since.
sub guest_write {
	my ($g, $off, $len) = @_;
	my $v = ++$g->{seq} % 255 + 1;
	for my $s ($off / $sector .. ($off + $len) / $sector - 1) {
		push @{$g->{may}[$s] //= [0]}, $v;
	}
	return $v;
}

sub guest_flushed {
	my ($g) = @_;
	for (@{$g->{may}}) {
		$_ = [$_->[-1]] if $_;
	}
}

sub guest_differs {
	my ($g, $disk) = @_;
	return 'the disk cannot be read' unless defined $disk;
	for my $s (0 .. length($disk) / $sector - 1) {
		my $is = substr $disk, $s * $sector, $sector;
		my $first = substr $is, 0, 1;
		return "sector $s is torn" if $is ne $first x $sector;
		my $may = $g->{may}[$s] // [0];
		return "sector $s holds " . ord($first) . ", not one of @$may"
			unless grep { $_ == ord $first } @$may;
	}
	return '';
}

# One batch of writes and a flush; true once it says that the flush is over.
sub batch {
	my ($g, $to, $from) = @_;
	my $text = '';
	for (1 .. 1 + int rand 12) {
		my $len = $sector * (1 + int rand 200);
		my $off = $sector * int rand(($size - $len) / $sector);
		my $v = guest_write($g, $off, $len);
		$text .= "write -q -P $v $off $len\n";
	}
	print $to $text . "flush\nlength\n" or return 0;
	while (<$from>) {
		return 0 if /failed|error/i;
		return 1 if /MiB/;
	}
	return 0;
}

sub create {
	my ($image, $format, $options) = @_;
	my $who = $format eq 'cow' ? "$platter create" : 'qemu-img create';
	system("$who -q -f $format $options $image $size") == 0 or die;
}

sub kill_guest {
	my ($format, $options, $round) = @_;
	create('image', $format, $options);
	my $g = guest_new();
	my $pid = open2(my $from, my $to, "exec $platter io -t writeback -f $format image 2>&1");
	$to->autoflush(1);
	my $killer = fork // die;
	if (!$killer) {
		sleep 0.01 + rand 0.25;
		kill 'KILL', $pid;
		require POSIX;
		POSIX::_exit(0);
	}
	my $flushes = 0;
	while (batch($g, $to, $from)) {
		guest_flushed($g);
		last if ++$flushes == 200;
	}
	waitpid $killer, 0;
	waitpid $pid, 0;
	my $was = $? & 127;
	{
		no warnings;
		close $_ for $to, $from;
	}
	my $why = $was == 9 ? '' : "it was not killed but ended with $?";
	$why ||= unsound('image', $format);
	$why ||= guest_differs($g, disk('image', $format));
	# The next one to write repairs what may be repaired, and can write.
	$why ||= 'it cannot be written again' if system(
		"$platter io -f $format -c 'write -q -P 1 0 64k' -c flush image >log 2>&1");
	$why ||= unsound('image', $format);
	return ($why, $flushes);
}

for my $row (['raw', ''], ['qcow2', ''], ['qcow2', '-o cluster_size=4k,refcount_bits=64'],
	['qcow2', '-o lazy_refcounts=on'], ['qcow2', '-o extended_l2=on,cluster_size=16k'],
	['cow', ''], ['cow', '-o version=2']) {
	my ($why, $flushes) = ('', 0);
	for my $round (1 .. 4) {
		my ($w, $f) = kill_guest(@$row, $round);
		$flushes += $f;
		$why ||= "round $round, SEED=$seed: $w" if $w;
	}
	$why ||= 'nothing was ever flushed' unless $flushes;
	result($why, "io on $row->[0] $row->[1] killed 4 times");
}

# ---- jobs ----

# Runs a command and kills it after a moment. Whether it was still there to be killed.
sub killed {
	my ($command) = @_;
	my $pid = fork // die;
	if (!$pid) {
		open STDOUT, '>', 'log';
		open STDERR, '>&', \*STDOUT;
		exec @$command;
	}
	sleep 0.002 + rand 0.06;
	kill 'KILL', $pid;
	waitpid $pid, 0;
	return ($? & 127) == 9;
}

sub make_source {
	open my $f, '>:raw', 'source' or die;
	print $f chr(1 + $_ % 250) x 65536 for 0 .. 1023;
	close $f;
}

make_source();
my ($why, $hits) = ('', 0);
for my $round (1 .. 8) {
	unlink 'image';
	system("qemu-img create -q -f qcow2 image 64M") == 0 or die;
	$hits += killed([$platter, qw(convert -n -f raw -O qcow2 source image)]);
	$why ||= unsound('image', 'qcow2');
	my $disk = disk('image', 'qcow2');
	$why ||= 'the disk cannot be read' unless defined $disk;
	for my $s (0 .. 64 * 2048 - 1) {
		last if $why;
		my $is = substr $disk, $s * $sector, $sector;
		$why = "sector $s is neither the source's nor zero"
			if $is ne chr(1 + int($s / 128) % 250) x $sector && $is ne "\0" x $sector;
	}
}
$why ||= 'it was never killed' unless $hits;
result($why, 'convert into an image killed 8 times');

($why, $hits) = ('', 0);
for my $round (1 .. 8) {
	unlink 'image';
	system('qemu-img create -q -f qcow2 image 64M') == 0 or die;
	$hits += killed([$platter, qw(bench -w -t writeback -f qcow2 -c 400000 -d 8 -s 5120
		-S 12288 --flush-interval 50 --pattern 9 image)]);
	$why ||= unsound('image', 'qcow2');
	my $disk = disk('image', 'qcow2') // '';
	$why ||= 'the disk cannot be read' unless length $disk;
	$why ||= 'there is what nobody wrote' if $disk =~ /[^\0\x09]/;
}
$why ||= 'it was never killed' unless $hits;
result($why, 'bench -w killed 8 times');

# ---- no room ----

sub no_room {
	my ($image, $limit, $format, $options) = @_;
	create($image, $format, $options);
	my $g = guest_new();
	my $pid = open2(my $from, my $to,
		"trap '' XFSZ; $limit exec $platter io -t writeback -f $format $image 2>&1");
	$to->autoflush(1);
	my $flushes = 0;
	while (batch($g, $to, $from)) {
		guest_flushed($g);
		last if ++$flushes == 200;
	}
	close $to;
	1 while <$from>;
	waitpid $pid, 0;
	return 'there was room for everything' if $flushes == 200;
	return 'nothing was ever flushed' unless $flushes;
	return "it was killed: $?" if $? & 127;
	return unsound($image, $format) || guest_differs($g, disk($image, $format));
}

for my $row (['qcow2', ''], ['qcow2', '-o cluster_size=4k'], ['qcow2', '-o lazy_refcounts=on'],
	['cow', '']) {
	my $name = "$row->[0] $row->[1]";
	# dash counts in 512 bytes. A cow file has its length from the start.
	result(no_room('image', 'ulimit -f 9000;', @$row), "$name in a file that may not grow")
		if $row->[0] ne 'cow';
	if ($full) {
		result(no_room("$full/image", '', @$row), "$name on a full file system");
		unlink "$full/image";
	} else {
		$n++;
		print "ok $n - $name on a full file system # SKIP mount is not permitted\n";
	}
}
print "1..$n\n";
exit($failed ? 1 : 0);
END
