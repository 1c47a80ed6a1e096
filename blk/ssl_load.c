/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/ssl_load.c - libssl, loaded when it is first needed, and never unloaded. What
 * failed is tried again the next time. A name is looked up in what libssl needs too,
 * which is how libcrypto's are found.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "blk/blk.h"
#include "blk/ssl_lib.h"

#define SONAME "libssl.so.3"

struct ssl_lib blk_ssl_lib;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;

static const char *const names[] = {
#define SSL_NAME(f) #f,
	SSL_FUNCTIONS(SSL_NAME)
#undef SSL_NAME
};

static int take_all(void *from)
{
	void *p[THR_ARRAY_SIZE(names)];

	_Static_assert(
		sizeof(p) == sizeof(blk_ssl_lib), "the table is pointers and nothing else");
	for (size_t i = 0; i < THR_ARRAY_SIZE(names); i++) {
		p[i] = dlsym(from, names[i]);
		if (!p[i])
			return -THR_ENOTSUP;
	}
	memcpy(&blk_ssl_lib, p, sizeof(p));
	return 0;
}

struct load {
	char text[BLK_ERR_STR_MAX];
};

static int load(void *arg)
{
	struct load *l = (struct load *)arg;
	void *lib;
	int err = 0;

	pthread_mutex_lock(&lock);
	if (library)
		goto out;
	lib = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	err = lib ? take_all(lib) : -THR_ENOTSUP;
	if (!err) {
		library = lib;
		goto out;
	}
	snprintf(l->text, sizeof(l->text), "%s", dlerror());
	if (lib)
		dlclose(lib);
out:
	pthread_mutex_unlock(&lock);
	return err;
}

/* The loader wants more stack than a fiber has. */
int blk_ssl_need(struct blk_err *err)
{
	struct load l = {0};
	int code = thr_offload(load, &l);

	return code ? blk_fail_str(err, code, BLK_E_NBD_TLS, l.text) : 0;
}
