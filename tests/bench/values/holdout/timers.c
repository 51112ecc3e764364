// SPDX-License-Identifier: GPL-2.0-or-later
/* A scan of all: the next timer of a wheel is looked for among all of its timers, each time one has run. */
#include "serve.h"

struct timer {
	uint64_t due;
	unsigned runs;
};

struct wheel {
	struct timer *timers;
	unsigned used;
};

static struct wheel wheels[2] = {{NULL, 60}, {NULL, 30000}};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) unsigned run_timers(struct wheel *wheel, int cnt)
{
	unsigned runs = 0;

	while (cnt-- > 0) {
		struct timer *first = &wheel->timers[0];

		for (unsigned i = 1; i < wheel->used; i++) {
			struct timer *timer = &wheel->timers[i];

			if (timer->due < first->due || (timer->due == first->due && timer->runs < first->runs))
				first = timer;
		}
		first->due += 1000;
		runs += ++first->runs;
	}
	return runs;
}

static size_t answer(const char *path, char *body)
{
	unsigned runs;

	pthread_mutex_lock(&lock);
	runs = run_timers(&wheels[!strncmp(path, "/busy", 5)], 150);
	pthread_mutex_unlock(&lock);
	return (size_t)sprintf(body, "%u\n", runs);
}

int main(int argc, char **argv)
{
	for (int w = 0; w < 2; w++) {
		wheels[w].timers = (struct timer *)calloc(wheels[w].used, sizeof(struct timer));
		for (unsigned i = 0; i < wheels[w].used; i++)
			wheels[w].timers[i].due = i * 7919 % 1000;
	}
	return serve(argc, argv, answer);
}
