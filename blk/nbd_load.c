/* SPDX-License-Identifier: BSD-2-Clause
 *
 * blk/nbd_load.c - libnbd, loaded when it is first needed, and never unloaded. What
 * failed is tried again the next time.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "blk/blk.h"
#include "blk/nbd_lib.h"

#define SONAME "libnbd.so.0"

struct nbd_lib blk_nbd_lib;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;

static const char *const names[] = {
#define NBD_NAME(f) "nbd_" #f,
	NBD_FUNCTIONS(NBD_NAME)
#undef NBD_NAME
};

struct load {
	char text[BLK_ERR_STR_MAX];
};

static int take_all(struct nbd_lib *to, void *from)
{
	void *p[THR_ARRAY_SIZE(names)];

	_Static_assert(sizeof(p) == sizeof(*to), "the table is pointers and nothing else");
	for (size_t i = 0; i < THR_ARRAY_SIZE(names); i++) {
		p[i] = dlsym(from, names[i]);
		if (!p[i])
			return -THR_ENOTSUP;
	}
	memcpy(to, p, sizeof(p));
	return 0;
}

static int load(void *arg)
{
	struct load *l = (struct load *)arg;
	struct nbd_lib table;
	void *lib;
	int err = 0;

	pthread_mutex_lock(&lock);
	if (library)
		goto out;
	lib = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	err = lib ? take_all(&table, lib) : -THR_ENOTSUP;
	if (!err) {
		blk_nbd_lib = table;
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
int blk_nbd_need(struct blk_err *err)
{
	struct load l = {0};
	int code = thr_offload(load, &l);

	return code ? blk_fail_str(err, code, BLK_E_NBD_LIBRARY, l.text) : 0;
}
