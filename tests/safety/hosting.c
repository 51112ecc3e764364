/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Nobody in it switches stacks, until at the first SIGUSR1 it loads a library that does, and calls the program back
 * meanwhile: `loaded` is printed.  From then on each SIGUSR1 is a `round`, of ROUND_CALLS calls of one_round().  With
 * --at-once the first round comes right after the loading; with --forked a child does all of that.
 */
#include "lib/switcher.h"
#include "safety.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <sys/wait.h>

enum { ROUND_CALLS = 100, DEPTH = 5, TURNS = 8 };

typedef uint64_t switcher_run_fn(switcher_work *work, uint64_t x, unsigned int cnt);

static volatile sig_atomic_t asked;

static void on_ask(int signal_no)
{
	(void)signal_no;
	asked++;
}

static void stay(void *turn)
{
	(void)turn;
}

KEPT static uint64_t inner(void (*give_way)(void *turn), void *turn, uint64_t x, int depth)
{
	uint64_t sum;

	give_way(turn);
	if (!depth)
		return safety_mix(x);
	sum = inner(give_way, turn, x + 1, depth - 1);
	give_way(turn);
	return sum + inner(give_way, turn, x + 2, depth / 2);
}

static uint64_t expected(uint64_t x, int depth)
{
	return depth ? expected(x + 1, depth - 1) + expected(x + 2, depth / 2) : safety_mix(x);
}

KEPT static uint64_t work(void (*give_way)(void *turn), void *turn, uint64_t x)
{
	return inner(give_way, turn, x, DEPTH) + 1;
}

/* Ends by jumping on: the end of the whole call could only be seen by a return probe. */
KEPT static uint64_t own_call(uint64_t x)
{
	return inner(stay, NULL, x, DEPTH);
}

uint64_t nought(void);
uint64_t one_more(uint64_t x);

KEPT uint64_t nought(void)
{
	return 1;
}

/* Ends by a conditional jump to another function: nothing but a return probe sees whether it does. */
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl one_more\n"
	".type one_more, @function\n"
	"one_more:\n"
	".cfi_startproc\n"
	"push %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	"pop %rbx\n"
	".cfi_adjust_cfa_offset -8\n"
	"test %rdi, %rdi\n"
	"je nought\n"
	"lea 1(%rdi), %rax\n"
	"ret\n"
	".cfi_endproc\n"
	".size one_more, . - one_more\n"
	".popsection\n");
#else
KEPT uint64_t one_more(uint64_t x)
{
	return x ? x + 1 : nought();
}
#endif

KEPT static uint64_t own_round(uint64_t x)
{
	uint64_t sum = own_call(one_more(x));

	return sum - expected(x + 1, DEPTH);
}

KEPT static uint64_t one_round(switcher_run_fn *run, uint64_t x)
{
	uint64_t sum = run(work, x, TURNS);

	for (unsigned int i = 0; i < TURNS; i++)
		sum -= expected(x + i, DEPTH) + 1;
	return sum;
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static switcher_run_fn *load(void)
{
	char self[PATH_MAX - 64], library[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	switcher_run_fn *run = NULL;
	void *handle;

	if (!safety_check(len > 0, "where is it?"))
		return NULL;
	self[len] = '\0';
	snprintf(library, sizeof(library), "%s/libwlswitcher.so", dirname(self));
	handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (safety_check(handle != NULL, "no library: %s", dlerror()))
		*(void **)&run = dlsym(handle, "switcher_run");
	say("loaded");
	return run;
}

static void answer(switcher_run_fn **run, bool at_once, uint64_t x)
{
	if (!*run) {
		*run = load();
		if (!*run || !at_once)
			return;
	}
	for (uint64_t i = 0; i < ROUND_CALLS; i++)
		safety_check(!one_round(*run, x + i), "the sum of round %llu", (unsigned long long)(x + i));
	say("round");
}

/* What it is asked for is asked of the child. */
static int watch_over(pid_t child)
{
	sig_atomic_t passed_on = 0;
	int status;

	while (safety_goes_on()) {
		safety_sleep_us(1000);
		for (; passed_on < asked; passed_on++)
			kill(child, SIGUSR1);
	}
	kill(child, SIGTERM);
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	bool at_once = argc > 1 && !strcmp(argv[1], "--at-once");
	pid_t child = argc > 1 && !strcmp(argv[1], "--forked") ? fork() : 0;
	switcher_run_fn *run = NULL;
	struct sigaction action;
	sig_atomic_t done = 0;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_ask;
	sigaction(SIGUSR1, &action, NULL);
	if (child > 0) {
		action.sa_handler = safety_end_soon;
		sigaction(SIGTERM, &action, NULL);
		return watch_over(child);
	}
	if (child < 0)
		return 1;
	safety_begin(argc, argv);
	for (uint64_t x = 0; safety_goes_on(); x++) {
		safety_check(!own_round(x), "own round %llu", (unsigned long long)x);
		safety_sleep_us(1000);
		for (; done < asked; done++)
			answer(&run, at_once, x);
	}
	return safety_verdict();
}
