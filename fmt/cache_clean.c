/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fmt/cache_clean.c - giving back the memory of slices that nobody has used for a while.
 *
 * Time is cut into periods of at least the interval. A slice that goes into the eviction
 * list is marked with the period, and the list is in the order in which they came; so when
 * a period ends, those that were not used in it are the tail. What is dirty, pinned or on
 * its way to the disk is not in the list at all. A slice lives one interval at least after
 * its last use, and two at most if somebody asks that often.
 *
 * There is no timer here: who keeps an image open for long calls fmt_tidy() now and then,
 * as the NBD server does four times a second. No request pays for it.
 */
#include "fmt/cache_priv.h"

void fmt_cache_interval(struct fmt_cache *c, uint64_t ns)
{
	c->clean_ns = ns;
}

uint64_t fmt_cache_clean(struct fmt_cache *c, uint64_t now)
{
	struct fmt_slice *s;
	uint64_t freed = 0;

	if (!c->clean_ns)
		return 0;
	thr_mutex_lock(&c->lock);
	if (!c->cleaned_at) {
		c->cleaned_at = now;
	} else if (now > c->cleaned_at && now - c->cleaned_at >= c->clean_ns) {
		while ((s = c->lru.tail) && s->period != c->period) {
			fmt_list_del(&c->lru, s);
			fmt_slice_free(c, s);
			freed += sizeof(*s) + c->slice_size;
		}
		c->period++;
		c->cleaned_at = now;
	}
	thr_mutex_unlock(&c->lock);
	return freed;
}

uint64_t fmt_tidy(struct blk *image)
{
	uint64_t now = thr_now(), freed = 0;

	for (; image; image = image->backing) {
		const struct fmt_driver *d = fmt_driver_of(image);

		if (d && d->tidy)
			freed += d->tidy(image, now);
	}
	return freed;
}
