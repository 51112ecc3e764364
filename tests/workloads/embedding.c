/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No server by itself: PORT SCRIPT.  At SIGUSR1 it loads a Python that is installed, and runs the script in it with the
 * port as its argument.  Exit code 77: there is none.
 */
#include "common.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void *python_load(void)
{
	void *python = NULL;
	char name[64];

	for (int minor = 9; !python && minor <= 13; minor++) {
		snprintf(name, sizeof(name), "libpython3.%d.so.1.0", minor);
		python = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	}
	return python;
}

int main(int argc, char **argv)
{
	int (*run)(const char *script);
	void (*begin)(void);
	void *python;
	char arguments[64];
	sigset_t signals;
	int signal_no;

	if (argc != 3)
		return 2;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	puts("waiting");
	fflush(stdout);
	sigwait(&signals, &signal_no);
	python = python_load();
	if (!python)
		return 77;
	*(void **)&begin = dlsym(python, "Py_Initialize");
	*(void **)&run = dlsym(python, "PyRun_SimpleString");
	begin();
	snprintf(arguments, sizeof(arguments), "import sys; sys.argv = ['', '%.20s']", argv[1]);
	return run(arguments) || run(argv[2]);
}
