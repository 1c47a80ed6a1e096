#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# t/interop/cli_opts.sh - --image-opts and names in JSON: what qemu-img does, and what is
# refused.

. "${srctree:-.}/t/interop/peer.inc"

create -f qcow2 base.q 1M
create -f qcow2 other.q 1M
create -f raw raw.img 1M
create -f qcow2 -b base.q -F qcow2 top.q
create -f qcow2 -b top.q -F qcow2 top2.q
cp top.q 'a,b.q'
io base.q 'write -P 1 0 256k'
io other.q 'write -P 7 0 256k'
io top.q 'write -P 2 64k 64k'
IO_FORMAT=raw io raw.img 'write -P 9 512k 64k'

# ---- options --------------------------------------------------------------------

q=driver=qcow2,file.filename=top.q
same info --image-opts driver=qcow2,file.driver=file,file.filename=top.q
same info --image-opts file.filename=top.q
same info --output=json --image-opts $q
same info --image-opts driver=qcow2,file.filename=a,,b.q
same map --output=json --image-opts $q
same map --output=json --image-opts driver=raw,file.filename=top.q
same map --output=json --image-opts driver=file,filename=raw.img
same map --output=json --image-opts $q,backing.driver=raw
same map --output=json --image-opts $q,backing.file.filename=other.q
same map --output=json --image-opts driver=qcow2,file.filename=top2.q,backing.backing.driver=raw
same map --output=json --image-opts driver=qcow2,file.filename=top.q,driver=raw
same map --output=json --image-opts driver=qcow2,file.filename=top.q,read-only=on,force-share=on
same check --image-opts $q
same compare --image-opts $q driver=qcow2,file.filename=top2.q
same compare --image-opts $q,backing.file.filename=other.q driver=qcow2,file.filename=top2.q
same measure --image-opts -O qcow2 $q
same_words info -f qcow2 --image-opts $q
same_words convert -O qcow2 -f qcow2 --image-opts $q x.q
same_words convert --target-image-opts top.q $q
same_words convert -n -O qcow2 --target-image-opts top.q $q
same_words info --image-opts driver=qcow2
same info --image-opts filename=top.q
same info --image-opts $q,foo=1
same info --image-opts $q,file.foo=1
same map --image-opts $q,backing.foo=1
same info --image-opts driver=nope,file.filename=top.q
same info --image-opts driver=qcow2,file.driver=nope,file.filename=top.q
same info --image-opts driver=qcow2,file.filename=nope.q
says 1 "Could not open 'driver=qcow2'" info --image-opts driver=qcow2
says 1 "Invalid parameter 'foo'" info --image-opts $q,foo=1
says 1 "Invalid parameter 'foo'" info --image-opts $q,file.foo=1
says 1 "Invalid parameter 'foo'" map --image-opts $q,backing.foo=1
says 1 "'qcow2' cannot be the device below" info --image-opts \
	driver=raw,file.driver=qcow2,file.file.filename=top.q
says 1 "Invalid value for parameter 'backing'" map --image-opts $q,backing=node
says 1 "'backing.file.filename' is missing" map --image-opts \
	driver=qcow2,file.filename=base.q,backing.driver=raw
says 1 'contains this file twice' map --image-opts $q,backing.file.filename=top.q
both map --output=json --image-opts $q,backing=
cmp -s out.peer out.ours
ok $? 'backing= means none'

create -f qcow2 dst.q 1M
check 'convert between lists of options' "$ours" convert -n --image-opts \
	--target-image-opts $q driver=qcow2,file.filename=dst.q
check 'it has been copied' "$peer" compare top.q dst.q
check 'resize' "$ours" resize --image-opts driver=qcow2,file.filename=dst.q 2M
check 'it has been resized' sh -c "$peer info dst.q | grep -q '2 MiB'"

# ---- protocols ------------------------------------------------------------------------

for c in 'info no:x' 'map no:x' 'check no:x' \
	'resize no:x 1M' 'commit no:x' 'bench -c 1 no:x' 'measure -O raw no:x' 'convert -O raw no:x z' \
	'convert -O raw top.q no:x' 'convert -n -O raw top.q no:x' 'create -f raw no:x 1M' \
	'create -f qcow2 no:x 1M' 'create -f qcow2 -b no:x -F raw z 1M' 'info :x' 'info http://x/y' \
	'info --image-opts driver=raw,file.filename=no:x'; do
	says 1 "Unknown protocol" ${c%% *} ${c#* }
done
says 2 "Unknown protocol" compare no:x top.q
says 2 "Unknown protocol" compare top.q no:x
[ ! -e no:x ]
ok $? 'and no file is made of the name'
for name in ./no:x "$PWD/no:x" file:no:x; do
	check "$name is a file" "$ours" create -q -f raw "$name" 1M
	[ -e no:x ] && same info "$name" && "$ours" info --image-opts driver=file,filename=no:x >/dev/null
	ok $? "$name is read"
	rm -f no:x
done

# ---- JSON ---------------------------------------------------------------------------

says 0 'file format: qcow2' info 'json:{"driver":"qcow2","file":{"driver":"file","filename":"top.q"}}'
if "$ours" info 'json:{' 2>&1 | grep -q CONFIG_FMT_JSON; then
	done_testing
fi
same info 'json:{"driver":"qcow2","file.filename":"top.q","file":{"driver":"file"}}'
same info 'json:{"driver":"qcow2","file":{"filename":"\u0074op.q"}} '
same map -f raw --output=json 'json:{"driver":"qcow2","file":{"filename":"top.q"}}'
same map --output=json 'json:{"driver":"qcow2","file":{"filename":"top.q"},"backing":null}'
same map --output=json 'json:{"driver":"qcow2","file":{"filename":"top.q"},
	"backing":{"driver":"qcow2","read-only":true,"file":{"filename":"other.q"}}}'
same convert -O raw 'json:{"driver":"raw","file":{"filename":"raw.img"}}' out.raw
check 'the copy' "$peer" compare -f raw -F raw raw.img out.raw

for bad in '' '[1]' '{' '{"driver"}' '{"driver":"qcow2",}' '{} x' '1' '"x"' 'null' \
	'{"driver":"qcow2","driver":"qcow2","file":{"filename":"top.q"}}' \
	'{"driver":"qcow2","file":{"filename":null}}' '{"driver":"qcow2","file":{}}' \
	'{"driver":"qcow2","file":{"filename":"top.q","foo":1}}' \
	'{"driver":"qcow2","file":{"filename":"top.q"},"foo":[1]}' \
	'{"driver":"qcow2","file":{"filename":"nope.q"}}'; do
	same info "json:$bad"
done
says 1 'options at byte' info 'json:{"driver":"qcow2" "file":1}'
says 1 'duplicate' info 'json:{"driver":"qcow2","driver":"qcow2"}'
says 1 "'file.filename' twice" info 'json:{"file.filename":"top.q","file":{"filename":"top.q"}}'
says 1 "Invalid value for parameter 'size'" info 'json:{"size":1.5}'
says 1 "Invalid parameter 'foo.0.bar'" info 'json:{"file":{"filename":"top.q"},"foo":[{"bar":1}]}'
deep=$(printf '%40s' '' | sed 's/ /{"a":/g')
says 1 'nested too deeply' info "json:$deep"
says 1 'nested too deeply' info "json:$(printf '%60000s' '' | tr ' ' '[')"
says 1 'too long' info "json:{\"a\":\"$(printf '%70000s' '')\"}"
says 1 'not possible here' convert -O raw raw.img 'json:{"driver":"raw","file":{"filename":"x"}}'

# In an image.
j='json:{"driver":"qcow2","file":{"driver":"file","filename":"other.q"}}'
create -f qcow2 -b "$j" -F qcow2 over.q
same map --output=json over.q
check 'the same content' "$peer" compare over.q other.q
check 'the same content for us' "$ours" compare over.q other.q
check 'create over it' "$ours" create -q -f qcow2 -b "$j" -F qcow2 over2.q
check 'as the peer sees it' "$peer" compare over2.q other.q
create -u -f qcow2 -b 'json:{"driver":' -F qcow2 bad.q 1M
same map bad.q
same info --backing-chain bad.q
create -u -f qcow2 -b "json:$deep" -F qcow2 bad.q 1M
says 1 'nested too deeply' map bad.q
create -u -f qcow2 -b 'json:{"driver":"qcow2","file":{"filename":"self.q"}}' -F qcow2 self.q 1M
says 1 'contains this file twice' map self.q

# ---- secrets ------------------------------------------------------------------------

same info --object secret,id=x,data=abc top.q
same info --object qom-type=secret,id=x,data=abc top.q
same info --object secret,id=x,data=YWI=,format=base64 top.q
printf 'aGVsbG8=\n' >key
same info --object secret,id=x,file=key,format=base64 --object secret,id=y,file=key top.q
same info --object secret,id=x,data=abc --image-opts $q
same_words info --object foo,id=x top.q
same_words info --object secret,id=x top.q
same_words info --object secret,data=y top.q
same_words info --object secret,id=x,data=a,file=b top.q
same_words info --object secret,id=x,data=a,format=octal top.q
same_words info --object secret,id=1x,data=y top.q
same info --object secret,id=x,data=a,foo=hex top.q
same info --object secret,id=x,file=nope top.q
same info --object secret,id=x,data=a --object secret,id=x,data=a top.q
says 1 'not valid base64' info --object secret,id=x,data=a,format=base64 top.q
says 1 'not valid base64' info --object 'secret,id=x,data=YWI!,format=base64' top.q
says 1 'not valid base64' info --object secret,id=x,data=YQ=b,format=base64 top.q
check 'a secret in hex' "$ours" info --object 'secret,id=x,data=61 62f0,format=hex' top.q
for bad in a 6x '6 1 2'; do
	says 1 'not valid hex' info --object "secret,id=x,data=$bad,format=hex" top.q
done

# In JSON.
s='"qom-type":"secret","id":"x"'
same info --object "{$s,\"data\":\"abc\"}" top.q
same info --object "{$s,\"data\":\"YWI=\",\"format\":\"base64\"}" top.q
same_words info --object '{"id":"x","data":"a"}' top.q
same_words info --object '{"qom-type":"foo","id":"x"}' top.q
same_words info --object "{$s}" top.q
for bad in "{$s" "{$s,\"data\":\"a\",\"data\":\"b\"}" "{$s,\"data\":\"a\",\"foo\":\"b\"}" '{}' \
	"{$s,\"data\":\"a\"}x" "{$s,\"data\":1.5}"; do
	same info --object "$bad" top.q
done

# Encrypted under another one.
key=$(head -c 32 /dev/urandom | base64 -w0)
iv=$(head -c 16 /dev/urandom | base64 -w0)
hex() { base64 -d | od -An -v -tx1 | tr -d ' \n'; }
sealed() # LENGTH: of so many bytes
{
	head -c "$1" /dev/zero | tr '\0' k | openssl enc -aes-256-cbc -nosalt \
		-K "$(echo "$key" | hex)" -iv "$(echo "$iv" | hex)" | base64 -w0
}
k="secret,id=k,data=$key,format=base64"
if command -v openssl >/dev/null; then
	for n in 1 15 16 17 4095 4096 4097 9000; do
		head -c $n /dev/zero | tr '\0' k >clear
		sealed $n >closed
		o='encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10'
		check "create with $n bytes" "$ours" create -q -f qcow2 -o $o --object "$k" \
			--object "secret,id=s,file=closed,format=base64,keyid=k,iv=$iv" luks.q 1M
		check 'open with them as they are' "$ours" map --object secret,id=s,file=clear \
			--image-opts driver=qcow2,encrypt.key-secret=s,file.filename=luks.q
		check 'and in the peer' "$peer" map --object "$k" \
			--object "secret,id=s,file=closed,format=base64,keyid=k,iv=$iv" \
			--image-opts driver=qcow2,encrypt.key-secret=s,file.filename=luks.q
	done
	same_words info --object "$k" --object "secret,id=x,data=a,keyid=k" top.q
	same info --object "$k" --object "secret,id=x,data=a,keyid=k,iv=$iv" top.q
	same info --object "$k" --object "secret,id=x,data=a,keyid=k,iv=YWI=" top.q
	same_words info --object "$k" --object "secret,id=x,data=a,keyid=none,iv=$iv" top.q
	same_words info --object secret,id=k,data=abc \
		--object "secret,id=x,data=$iv,format=base64,keyid=k,iv=$iv" top.q
	same info --object "$k" --object "secret,id=x,data=$iv,format=base64,keyid=k,iv=$iv" top.q
else
	tests=$((tests + 1))
	echo "ok $tests - secrets that are encrypted # SKIP openssl is not installed"
fi

# What runs shows no secret; here, for a second.
for o in 'secret,id=s,data=hush' '{"qom-type":"secret","id":"s","data":"hush"}'; do
	truncate -s 2M hush.raw
	"$ours" convert -S 0 -r 2M --object "$o" -O raw hush.raw z.raw &
	i=0 title=
	while [ $((i += 1)) -lt 100 ] && ! echo "$title" | grep -q '\*\*'; do
		title=$(tr '\0' ' ' <"/proc/$!/cmdline" 2>/dev/null)
		sleep 0.01
	done
	wait $!
	case $title in
	*hush,* | *hush\"* | *data*) false ;;
	*'--object ***'*) true ;;
	*) false ;;
	esac
	ok $? "the title of a process does not tell: $title"
done
says 1 "No secret with id 's'" map --image-opts $q,encrypt.key-secret=s
says 1 "No secret with id 's'" map --object secret,id=t,data=a --image-opts $q,encrypt.key-secret=s
says 0 'Offset' map --object secret,id=s,data=a --image-opts $q,encrypt.key-secret=s
says 1 "No secret with id 's'" map --image-opts $q,backing.encrypt.key-secret=s
says 1 "No secret with id 's'" create -f qcow2 -o encrypt.format=luks,encrypt.key-secret=s y.q 1M
for c in "convert -O raw top.q z" "create -f raw z 1M" "check top.q" "compare top.q top.q" \
	"resize dst.q 3M" "map top.q" "measure -O raw top.q" "bench -c 1 top.q"; do
	says 1 "Either 'file' or 'data'" ${c%% *} --object secret,id=x ${c#* }
	check "$c with a secret" "$ours" ${c%% *} --object secret,id=x,data=a ${c#* }
done

done_testing
