/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cz/crypto_load.c - libcrypto, loaded when it is first needed, and never unloaded.
 * What failed is tried again the next time.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "cz/crypto_lib.h"
#include "cz/private.h"

#define SONAME "libcrypto.so.3"

struct cz_crypto_lib cz_crypto_lib;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded; /* atomic */

static const char *const names[] = {
#define CRYPTO_NAME(f) #f,
	CRYPTO_FUNCTIONS(CRYPTO_NAME)
#undef CRYPTO_NAME
};

static bool take_all(void *from)
{
	void *p[THR_ARRAY_SIZE(names)];

	_Static_assert(
		sizeof(p) == sizeof(cz_crypto_lib), "the table is pointers and nothing else");
	for (size_t i = 0; i < THR_ARRAY_SIZE(names); i++) {
		p[i] = dlsym(from, names[i]);
		if (!p[i])
			return false;
	}
	memcpy(&cz_crypto_lib, p, sizeof(p));
	return true;
}

static void *load(void *arg)
{
	void *lib = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);

	(void)arg;
	if (lib && take_all(lib))
		__atomic_store_n(&loaded, true, __ATOMIC_RELEASE);
	else if (lib)
		dlclose(lib);
	return NULL;
}

/* The loader wants more stack than a fiber has, so it gets a thread for this moment. */
int cz_crypto_need(void)
{
	pthread_t t;

	if (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&lock);
	if (!loaded && !pthread_create(&t, NULL, load, NULL))
		pthread_join(t, NULL);
	pthread_mutex_unlock(&lock);
	return __atomic_load_n(&loaded, __ATOMIC_ACQUIRE) ? 0 : -THR_ELIBACC;
}
