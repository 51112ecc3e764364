/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code of a process as one numbered set of functions, and who calls whom.  Modules are the files of which code is
 * mapped, the executable first, then in the order of their addresses.  Everything is read when first asked for: a
 * module's functions get their numbers, one block of them, when something in it is first looked up, so numbers depend
 * on the order of questions; they stay valid until program__free(), across dlopen and dlclose.
 *
 * Not thread-safe.  All addresses are virtual ones as linked, unless they are called runtime or file offsets.  Nothing
 * that a file or the process's memory says is trusted.
 */
#ifndef WHYLATE_TARGET_PROGRAM_H
#define WHYLATE_TARGET_PROGRAM_H

#include "target/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROGRAM_NONE UINT32_MAX

struct program;
struct symbols;
struct file_tables;

struct program_opts {
	const char *debuginfo_dir;  /* searched before the system's; NULL: none */
	bool want_debuginfod;       /* ask the servers in DEBUGINFOD_URLS, where that is set */
	bool names_only;            /* for names of addresses: tables that only probes need are not kept */
	struct file_tables *tables; /* shared with other programs of names only, outlives them; NULL: its own */
};

struct program_module {
	uint32_t idx;
	const char *name;     /* base name; the executable's is what it was started as */
	const char *path;     /* as maps has it, for people */
	const char *file;     /* this process opens the very file by it; NULL when it cannot be reached */
	const char *build_id; /* hex, "" when it has none */
	uint64_t bias;        /* runtime address - address as linked; 0 for program__open_file() */
	bool is_go, unwinds;  /* see elf_file.h */
	bool gone;            /* unmapped since: its functions stay, nothing in it can be probed */
	bool awaited;         /* not mapped so far, see program__module_await() */
};

enum function_source {
	FUNCTION_SYMTAB,
	FUNCTION_DYNSYM,
	FUNCTION_DEBUGDATA, /* .gnu_debugdata: a compressed .symtab within the file */
	FUNCTION_DEBUGFILE, /* a separate debug file that belongs to this very build */
	FUNCTION_EH_FRAME,  /* no name known: MODULE+0xADDR */
	FUNCTION_SOURCE_CNT
};

struct program_function {
	uint32_t id, module;
	const char *name;  /* raw; MODULE+0xADDR where nothing names it */
	const char *shown; /* demangled, or the name */
	uint64_t addr, file_off;
	uint64_t size; /* never beyond its segment; 0 where nothing tells */
	enum function_source source;
	bool ambiguous; /* others of this module bear the name with equal right */
	bool is_part;   /* not called: a piece (FOO.cold) that a function keeps elsewhere */
	bool is_ifunc;  /* runs once, to choose an implementation */
	bool overlaps;  /* shares code with another: an assembler function with several entries */
};

enum call_kind { CALL_DIRECT, CALL_TAIL, CALL_PLT, CALL_DYNAMIC, CALL_KIND_CNT };

struct call_edge {
	uint32_t callee;    /* never PROGRAM_NONE */
	uint64_t call_addr; /* of the call or jump instruction, in the caller's module */
	enum call_kind kind;
};

/*
 * Of a live process.  0, or -errno: -ESRCH it is gone, -EACCES, -ENOTSUP a 32-bit program, -ENOENT it has no code from
 * files.  opts may be NULL.
 */
int program__open(pid_t pid, const struct program_opts *opts, struct program **program);
/* Of one ELF file that need not run: one module.  0, or -errno as of elf_file__open(). */
int program__open_file(const char *path, const struct program_opts *opts, struct program **program);
/*
 * Of mappings that a process had which may have ended: names only.  Its files are opened as `pid` sees them.  As
 * program__open().
 */
int program__open_mapped(pid_t pid, const target_mappings *mappings, const struct program_opts *opts,
			 struct program **program);
/* The same files are mapped elsewhere from now on, by that process.  0 or -errno. */
int program__move(struct program *program, pid_t pid, const target_mappings *mappings);
/* Has a file been written to, or got another name, since it was read? */
bool program__is_changed(const struct program *program);
void program__free(struct program *program);
/* Bytes that its functions take, without what it shares. */
size_t program__sz(const struct program *program);
/*
 * What has been mapped and unmapped since: new modules are appended, vanished ones marked `gone`.  The number of
 * changes, or -errno.
 */
int program__refresh(struct program *program);

pid_t program__pid(const struct program *program); /* 0: of a file */
uint32_t program__module_cnt(const struct program *program);
/* NULL when idx is none.  The pointer lives as long as the program; is_go, unwinds, build_id need the file read. */
const struct program_module *program__module(struct program *program, uint32_t idx);
/* As a person names it: "libc.so.6", "libc.so", "libc", or a path; PROGRAM_NONE. */
uint32_t program__module_find(struct program *program, const char *name);
/*
 * The module of this path, as the process would open it, which it may be yet to load: appended where it is not among
 * the modules under another name.  PROGRAM_NONE and errno (ENOENT, EACCES, ENOEXEC, …).
 */
uint32_t program__module_await(struct program *program, const char *path);
/*
 * Is there code, mapped now, that would catch an exception?  (Where nobody does, it ends the process whatever stands in
 * its way.)
 */
bool program__catches(struct program *program);
/* May there be more code later, which catches?  Whoever can load a library, a plug-in for one, imports what does. */
bool program__loads(struct program *program);
/*
 * Is it a library that others name as what they need, as opposed to the executable and to what was only loaded?  What
 * is loaded later may need it, too.  True also where that cannot be told.
 */
bool program__is_linked(struct program *program, uint32_t idx);
/*
 * Do several stacks take turns on one thread (coroutines, fibers)?  The kernel's return probes take that for a longjmp,
 * and send the thread to the wrong place.
 */
bool program__switches_stacks(struct program *program);
/*
 * Are threads cancelled, or do they end in the midst of their calls, in a program whose frames have something to clean
 * up then?  The unwinder does that, frame by frame, and ends where it meets a return probe.
 */
bool program__cleans_up(struct program *program);
/*
 * Does it handle signals that it survives on stacks of their own?  A return probe that is met there makes the kernel
 * drop those of the stack that was interrupted, if that lies lower, and its functions return to nowhere.
 */
bool program__signals_on_stacks(struct program *program);
/*
 * What makes return probes unsafe, of the answers above that may change when more is loaded: bits, of what has been
 * mapped as of the last look.
 */
enum program_hazard {
	HAZARD_SWITCHES = 1,  /* program__switches_stacks() */
	HAZARD_SIGNALS = 2,   /* program__signals_on_stacks() */
	HAZARD_CLEANS_UP = 4, /* program__cleans_up() */
};

uint8_t program__hazards(struct program *program);
/*
 * What another process of the same program has mapped, a child of it, counts as if it could be mapped here, too. 0 or
 * -errno.
 */
int program__learn_modules(struct program *program, pid_t pid);
/*
 * From now on no return probe is safe, whatever else holds: a hazard has turned up beside those that are under way, and
 * one that is met while stacks are switched makes the kernel drop others.
 */
void program__distrust_returns(struct program *program);
bool program__distrusts_returns(const struct program *program);
/* Runs with a user shadow stack (x86): return addresses must not be changed behind its back. */
bool program__has_shadow_stack(const struct program *program);

/*
 * The functions of one module by ascending address: ids first … first + cnt - 1.  Reads the module if need be: 0 or
 * -errno
 * (-ENOENT: its file cannot be reached, -ENOEXEC, -ENOTSUP, …).
 */
int program__module_functions(struct program *program, uint32_t module, uint32_t *first, uint32_t *cnt);
/* NULL when id is none. */
const struct program_function *program__function(struct program *program, uint32_t id);
/* A name of a function: one function may have several, and several functions may have one. */
struct program_name {
	const char *name;
	uint32_t function;
};

/* All raw names of one module's functions, by name, until program__forget_tables().  0 or -errno, as above. */
int program__module_names(struct program *program, uint32_t module, const struct program_name **names, size_t *cnt);
/* The function that covers the address; PROGRAM_NONE. */
uint32_t program__function_at(struct program *program, uint32_t module, uint64_t addr);
/* The same by absolute address in the process; module (may be NULL) is set even where no function is known. */
uint32_t program__function_at_runtime(struct program *program, uint64_t pc, uint32_t *module);
/*
 * The functions that the compiler has inlined at an absolute address, outermost first, as DWARF says, where the
 * module's functions have been read: how many, at most INLINES_DEPTH_MAX.  The names are valid until the next call.
 * One program has the same symbols at every call.
 */
size_t program__inlined_at(struct program *program, struct symbols *symbols, uint64_t pc, const char *names[]);
/* Reads what the module's DWARF takes at first, some ten milliseconds, where its functions have been read. */
void program__read_inlines(struct program *program, struct symbols *symbols, uint32_t module);
/* By raw name, versions cut off, in one module; PROGRAM_NONE.  (Of several that bear it, the linker's choice.) */
uint32_t program__function_find(struct program *program, uint32_t module, const char *name);

/* Code as it is in the file: up to sz bytes at addr of a module; the number there are, or -errno. */
ssize_t program__read_code(struct program *program, uint32_t module, uint64_t addr, void *buf, size_t sz);
/* File offset of a mapped code address, or -ENOENT. */
int program__file_off(struct program *program, uint32_t module, uint64_t addr, uint64_t *file_off);

/*
 * Who it calls, each call site once, by call address; the dynamic ones last.  Found by disassembly when first asked
 * for. The array belongs to the program, until the next program__add_dynamic_edge() or program__free().  0 or -errno.
 */
int program__callees(struct program *program, uint32_t id, const struct call_edge **edges, size_t *cnt);
/* What disassembly has found of that goes until it is asked for again; heights stay. */
void program__forget_callees(struct program *program);
/* Unwinding tables, relocations and lists of names go until something is asked for that takes them. */
void program__forget_tables(struct program *program);
/* Has it calls that only sampling can resolve (through a register or memory that is no PLT slot)? */
bool program__calls_indirectly(struct program *program, uint32_t id);
/* What sampled stacks told; call_addr 0: not known.  Known ones are ignored.  0 or -errno. */
int program__add_dynamic_edge(struct program *program, uint32_t caller, uint32_t callee, uint64_t call_addr);
/* Edges on the longest path beneath it in the condensed call graph (a cycle counts as one function), by known edges. */
uint32_t program__height(struct program *program, uint32_t id);
/* The largest of all heights that have been asked for so far, which is that of what stands above them; 0: none was. */
uint32_t program__highest(const struct program *program);
/*
 * Can code that is not known yet run beneath this function?  Not beneath most of the C library, which says which of its
 * functions call what they are handed.  True also where that cannot be told.
 */
bool program__has_guests(struct program *program, uint32_t id);
/*
 * Can control leave this function other than by returning, or return to another stack: by an exception, by the
 * unwinding of a cancelled thread, by a switch of stacks?  False only when that is proven: it and all that it calls
 * have known callees that do no such thing.
 */
bool program__may_throw(struct program *program, uint32_t id);

#endif
