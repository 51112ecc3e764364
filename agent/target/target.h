/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A live process as a target: may it be recorded, which threads and children has it, where does it listen, what is
 * mapped.  Everything is read from /proc and from ELF files under /proc/PID/root or map_files; nothing in them is
 * trusted.
 */
#ifndef WHYLATE_TARGET_TARGET_H
#define WHYLATE_TARGET_TARGET_H

#include "base/vec.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct target_process {
	pid_t pid, ppid;
	char comm[16];
};

struct target_mapping {
	uint64_t start, end, file_off;
	bool exec;
	const char *path; /* as in maps: a file, [heap], [stack], … ; "" for anonymous memory */
	dev_t dev;
	ino_t ino;
};

typedef VEC(struct target_process) target_processes;
typedef VEC(struct target_mapping) target_mappings; /* paths owned by the list: target_mappings_free() */

struct target_thread {
	pid_t pid, tid;
	uint64_t cpu_ns; /* that it has used so far */
};

#define TARGET_THREADS_MAX 4096

typedef VEC(struct target_thread) target_threads;

/* A listening socket (TCP, either family, or Unix) or a bound, unconnected UDP socket. */
struct target_listener {
	enum { TARGET_TCP, TARGET_UDP, TARGET_UNIX } family;
	uint16_t port;    /* TCP, UDP */
	uint8_t path_len; /* Unix: bytes of sun_path in use, no final NUL; an abstract name begins with NUL */
	char path[108];
	char name[128]; /* "tcp:6379", "unix:/run/x.sock", "unix:@abstract" */
};

typedef VEC(struct target_listener) target_listeners;

/*
 * May `pid` be recorded?  0, or -errno after saying why in one line (log_error): no such process; a thread id (names
 * its process); a kernel thread; ourselves; a zombie; a 32-bit program (-ENOTSUP).
 */
int target_check(pid_t pid);

/* The process and all its living descendants, itself first. 0 or -ESRCH, -ENOMEM. */
int target_tree(pid_t pid, target_processes *processes);

/*
 * KiB of code that are mapped beside the program's own: whenever that changes, so has what is mapped. Asks for no lock
 * that the process could wait for. 0 or -errno.
 */
int target_lib_kb(pid_t pid, uint64_t *kb);

/* Is the file its program? */
bool target_runs(pid_t pid, int file_fd);
/*
 * Of all processes, is it only those of the target (itself first), and what they have forked by now, that have the file
 * for their program?  A process that may not be looked at counts if it has the target's name; what /proc does not show
 * (another namespace) does not count.
 */
bool target_runs_alone(const pid_t *target, size_t cnt, int file_fd);

/*
 * 0 or -errno (-ESRCH: it has exited).  Control characters in what people read (comm, arguments, names of mappings and
 * listeners) become '?'; tid 0 is the main thread.
 */
int target_comm(pid_t pid, pid_t tid, char comm[16]);
int target_cmdline(pid_t pid, char *buf, size_t sz); /* arguments, secrets masked: target/cmdline.h */
/*
 * The base name that the program was started by, where that is a link to its executable (redis-server, not
 * redis-check-rdb), and otherwise the executable's own. 0 or -errno.
 */
int target_program_name(pid_t pid, char *buf, size_t sz);
int target_mappings_read(pid_t pid, target_mappings *mappings);
void target_mappings_free(target_mappings *mappings);
/* Appends a copy.  0 or -ENOMEM. */
int target_mappings_add(target_mappings *mappings, const struct target_mapping *mapping);
/* Copies all: 0 or -ENOMEM, and then the copy is empty. */
int target_mappings_copy(const target_mappings *mappings, target_mappings *copy);
/* Is the same code at the same addresses there?  Heaps and stacks do not matter. */
bool target_mappings_fit(const target_mappings *a, const target_mappings *b);
/* Is code of the same files there, wherever it lies, and none that the process made itself? */
bool target_mappings_are_like(const target_mappings *a, const target_mappings *b);
/* The mapping that holds addr, of mappings in the order of maps; NULL. */
const struct target_mapping *target_mapping_find(const target_mappings *mappings, uint64_t addr);
/* Where the file that is mapped here was loaded: the start of the mapping of its first bytes, at or below this one. */
uint64_t target_mapping_base(const target_mappings *mappings, const struct target_mapping *mapping);
/* The last part of its path, without a "(deleted)" mark. */
void target_mapping_basename(const struct target_mapping *mapping, char *buf, size_t sz);
/*
 * A path by which this process can open the very file that is mapped, whatever has become of its name and in whichever
 * mount namespace: /proc/PID/root/…, else /proc/PID/map_files/….  0, or -ENOENT, -ENAMETOOLONG.
 */
int target_mapping_file(pid_t pid, const struct target_mapping *mapping, char *path, size_t sz);
/*
 * What lies at addr, as a person would name it: "libc.so.6+0x1234", "[heap]", "[anon]"; NULL when nothing does.
 * The offset counts from where the file was loaded, as `addr2line -e` wants it of a shared object.
 */
const char *target_mapping_name(const target_mappings *mappings, uint64_t addr, bool with_offset, char *buf, size_t sz);

/* Where these processes listen, each in its own network namespace. */
int target_listeners_read(const target_processes *processes, target_listeners *listeners);

/* A process that holds a listening socket of TCP, or a bound, unconnected one of UDP. */
struct target_port_owner {
	pid_t pid;
	uint16_t port;
	bool udp;
	uint64_t ino; /* of the socket */
};

typedef VEC(struct target_port_owner) target_port_owners;

/*
 * Which of these processes listen on the port (0: on any), in whichever network namespace one of them is.  A socket has
 * as many owners as processes hold it. 0 or -ENOMEM.
 */
int target_port_owners_read(const target_processes *processes, uint16_t port, target_port_owners *owners);
/* All processes that there are, kernel threads and ourselves left out. 0 or -errno. */
int target_processes_read(target_processes *processes);
/* Inode number of the network namespace of a process, 0 when unknown. */
uint32_t target_netns(pid_t pid);
/* CPU time of all threads of the processes so far, in ns, and of children of theirs that ended and were waited for. */
uint64_t target_cpu_ns(const target_processes *processes);
/* Adds the CPUs that the threads of the process may use. */
void target_cpus(pid_t pid, cpu_set_t *cpus);
/* In place of what the list held: their threads, the first TARGET_THREADS_MAX. 0 or -ENOMEM. */
int target_threads_read(const target_processes *processes, target_threads *threads);

#endif
