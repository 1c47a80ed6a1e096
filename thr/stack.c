/* SPDX-License-Identifier: BSD-2-Clause
 *
 * thr/stack.c - the stacks of fibers: mapped with a guard page below, kept when
 * their fibers end, bounded in number.
 *
 * A mapping is guard page | CONFIG_THR_STACK_KIB | one page for the struct thr_fiber.
 * That page also holds the first frames, so a shallow fiber touches one page. The
 * fiber's place in it varies, because mappings are equally aligned and hundreds of
 * fibers would otherwise share the same few lines of the cache.
 *
 * An executor has two stores: `free`, which only its own thread uses, and `spare`,
 * behind a spin lock, for those that other threads start fibers with. A stack goes
 * back to the store that its fiber came through, so neither runs dry while the
 * other fills up.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "thr/priv.h"

#define USABLE      ((size_t)CONFIG_THR_STACK_KIB * 1024 * THR_STACK_SCALE)
#define COLOURS     8
#define COLOUR_STEP 192

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t map_size(size_t page)
{
	return page + (size_t)thr_align_up(USABLE, page) + page;
}

static char *map_with_guard(size_t page)
{
	size_t size = map_size(page);
	char *map = mmap(NULL, size, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

	if (map == MAP_FAILED)
		return NULL;
	if (mprotect(map + page, size - page, PROT_READ | PROT_WRITE)) {
		munmap(map, size);
		return NULL;
	}
	return map;
}

struct thr_fiber *thr_stack_map(void)
{
	static uint32_t colour; /* atomic */
	uint32_t c = __atomic_fetch_add(&colour, 1, __ATOMIC_RELAXED) % COLOURS;
	size_t page = page_size();
	char *map = map_with_guard(page);
	uintptr_t top;
	struct thr_fiber *f;

	if (!map)
		return NULL;
	top = (uintptr_t)map + map_size(page) - sizeof(*f) - c * COLOUR_STEP;
	f = (struct thr_fiber *)(top & ~(uintptr_t)63);
	memset(f, 0, sizeof(*f));
	f->map = map;
	thr_asan_init(&f->annot, map + page, (size_t)((char *)f - map) - page);
	thr_tsan_init(&f->annot);
	thr_valgrind_init(&f->annot, map + page, map_size(page) - page);
	thr_ctx_make(&f->ctx, f, thr_fiber_main, f);
	return f;
}

void thr_stack_unmap(struct thr_fiber *f)
{
	thr_valgrind_fini(&f->annot);
	thr_tsan_fini(&f->annot);
	thr_asan_fini(&f->annot);
	munmap(f->map, map_size(page_size()));
}

struct thr_fiber *thr_stack_get_spare(struct thr_exec *e)
{
	struct thr_fiber *f;

	thr_spin_lock(&e->spare_guard);
	f = e->spare.head;
	if (f) {
		e->spare.head = f->next;
		e->spare.count--;
	}
	thr_spin_unlock(&e->spare_guard);
	if (!f)
		f = thr_stack_map();
	if (f)
		f->spare = true;
	return f;
}

static bool keep(struct thr_stacks *s, struct thr_fiber *f)
{
	if (s->count >= CONFIG_THR_STACK_CACHE)
		return false;
	f->next = s->head;
	s->head = f;
	s->count++;
	return true;
}

void thr_stack_put(struct thr_exec *e, struct thr_fiber *f)
{
	bool kept;

	if (f->spare) {
		thr_spin_lock(&e->spare_guard);
		kept = keep(&e->spare, f);
		thr_spin_unlock(&e->spare_guard);
	} else {
		kept = keep(&e->free, f);
	}
	if (!kept)
		thr_stack_unmap(f);
}

static void free_list(struct thr_stacks *s)
{
	while (s->head) {
		struct thr_fiber *f = s->head;

		s->head = f->next;
		thr_stack_unmap(f);
	}
	s->count = 0;
}

void thr_stack_free_all(struct thr_exec *e)
{
	free_list(&e->free);
	free_list(&e->spare);
}
