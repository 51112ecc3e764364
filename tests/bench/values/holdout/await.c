// SPDX-License-Identifier: GPL-2.0-or-later
/* A check that is missing: a job that has failed is waited for like one that runs. */
#include "serve.h"

enum state { WAITING, RUNNING, READY, FAILED };

struct job {
	enum state state;
	int left;
	uint32_t result;
};

static __attribute__((noinline)) enum state look_at(struct job *job)
{
	for (int i = 0; i < 600; i++)
		job->result = (job->result ^ job->result >> 13) * 2654435761u;
	if (job->state == WAITING || job->state == RUNNING)
		job->state = job->left-- > 3 ? WAITING : job->left > 0 ? RUNNING : READY;
	return job->state;
}

static __attribute__((noinline)) int await_result(struct job *job)
{
	enum state state = WAITING;
	int turns = 0;

	while (state != READY && turns < 4000) {
		state = look_at(job);
		turns++;
	}
	return turns;
}

static size_t answer(const char *path, char *body)
{
	struct job job = {strncmp(path, "/broken", 7) ? WAITING : FAILED, 60, 1};

	return (size_t)sprintf(body, "%d turns\n", await_result(&job));
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
