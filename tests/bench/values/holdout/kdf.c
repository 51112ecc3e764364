// SPDX-License-Identifier: GPL-2.0-or-later
/* A parameter that is too large: some users' keys are stretched by as many rounds as an old version wrote down. */
#include "serve.h"

static void mix(uint32_t state[8])
{
	for (int i = 0; i < 8; i++) {
		state[i] += state[(i + 1) & 7] ^ 0x9e3779b9u;
		state[i] = state[i] << 7 | state[i] >> 25;
	}
}

static void stretch_key(uint32_t state[8], const char *password, unsigned rounds)
{
	size_t len = strlen(password);

	for (unsigned r = 0; r < rounds; r++) {
		state[r & 7] ^= (unsigned char)password[r % len];
		mix(state);
	}
}

static int log_in(const char *user, const char *password)
{
	uint32_t state[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	unsigned rounds = strncmp(user, "old", 3) ? 20000 : 900000;

	stretch_key(state, password, rounds);
	return state[0] != 0;
}

static size_t answer(const char *path, char *body)
{
	return (size_t)sprintf(body, "%s\n", log_in(path + 1, "correct horse") ? "welcome" : "no");
}

int main(int argc, char **argv)
{
	return serve(argc, argv, answer);
}
