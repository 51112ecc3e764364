/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of program*.c share. */
#ifndef WHYLATE_TARGET_PROGRAM_INTERNAL_H
#define WHYLATE_TARGET_PROGRAM_INTERNAL_H

#include "base/vec.h"
#include "target/code.h"
#include "target/debug_file.h"
#include "target/eh_frame.h"
#include "target/elf_file.h"
#include "target/elf_image.h"
#include "target/elf_relocs.h"
#include "target/file_tables.h"
#include "target/program.h"
#include "target/target.h"

enum throw_state { THROW_UNKNOWN, THROW_NEVER, THROW_PERHAPS };

struct function {
	struct program_function public;
	char *demangled, *made_name; /* NULL: not made (yet) */
	struct call_edge *edges;     /* the static ones, then the dynamic ones */
	uint32_t edge_cnt, static_cnt;
	uint32_t height;
	bool is_demangled, is_disassembled, has_height;
	bool calls_indirectly; /* through a register or memory */
	bool is_leaf;          /* known to call nothing, whatever its code looks like */
	bool unresolved_calls; /* to an address or slot of which no function is known */
	uint8_t throws;        /* enum throw_state */
	bool has_guests;       /* what a caller of the C library hands over runs beneath it; when that is known */
};

struct mapped {
	uint64_t start, end, file_off;
};

struct module {
	struct program_module public;
	char *name, *path, *file;
	dev_t dev;
	ino_t ino;
	pid_t reached_by;          /* the process that leads to `file` */
	VEC(struct mapped) mapped; /* executable ranges */
	int state;                 /* 0 not opened yet, 1 open, or why not */
	struct elf_image *image;
	struct file_table *table; /* has the files; NULL: they are its own */
	struct elf_file *files[SYMBOL_FILES_MAX];
	int debug_fd;     /* the separate debug file, until its DWARF is read; -1: none */
	uint32_t inlines; /* see symbols__open(); 0: not opened yet, or there are none */
	bool inlines_tried;
	struct eh_frame *frame;      /* see module_frame() */
	struct elf_relocs *relocs;   /* see module_relocs() */
	VEC(uint64_t) jumped_into;   /* where jumps from another function lead into the middle of one; ascending */
	VEC(uint64_t) stack_setters; /* where instructions may be that take a stack pointer from an argument */
	bool has_jumped_into, sets_stack, sets_stack_known;
	bool has_functions, has_frame;
	bool guests_known;
	bool is_linked; /* when the program's are known */
	uint32_t first_id;
	VEC(struct function) functions; /* by address */
	VEC(struct program_name) names; /* by name */
	bool has_names;
};

/* The ids that a module's functions have. */
struct id_block {
	uint32_t first, module;
};

struct program {
	pid_t pid;
	int mem_fd; /* -1: the process's memory cannot be read */
	bool shadow_stack;
	bool distrusts_returns;
	bool linked_known;
	char *debuginfo_dir;
	bool want_debuginfod, names_only;
	struct file_tables *tables;
	struct debug_budget debug_budget;
	VEC(struct module *) modules;
	VEC(struct id_block) blocks;
	uint32_t function_cnt;
	struct code *code;
};

/* Reads the module's file: 0 or -errno. */
int module_open(struct program *program, struct module *module);
/* After it has been mapped, or anew somewhere else. */
void module_bias_set(struct module *module);
/* Its functions, numbered: 0 or -errno. */
int module_functions_load(struct program *program, struct module *module);
void module_free(struct module *module);
/* As program__module_await(), but whether it is a library at all is not looked at yet. */
uint32_t program_module_expect(struct program *program, const char *path);
/* Any function of that name, or PROGRAM_NONE; the module's functions are there. */
uint32_t module_function_named(struct module *module, const char *name);
/* NULL when it has none or out of memory; the module's functions are there. */
const struct eh_frame *module_frame(struct module *module);
/* NULL when not open, and as elf_relocs__read(); errno is EAGAIN only where that says so. */
const struct elf_relocs *module_relocs(struct module *module);
struct function *program_function_of(struct program *program, uint32_t id);
/* Index of the function that covers addr, or PROGRAM_NONE. */
uint32_t module_function_at(const struct module *module, uint64_t addr);
void program__heights_forget(struct program *program);
/* What has been proven held for the modules that there were. */
void program__throws_forget(struct program *program);
/* Has it code that takes a stack from its caller and continues there?  True also when it cannot be told. */
bool module_sets_stack(struct program *program, struct module *module);
/* The same of a range of it, where that can be told. */
bool module_sets_stack_in(struct program *program, struct module *module, uint64_t addr, uint64_t size);
/* Has any module that is mapped now this mark (enum elf_mark)? */
bool program_has_mark(struct program *program, uint8_t mark);
/* Does this function of the C library call nothing but what is the library's own? */
bool c_library_is_alone_in(const char *name);
struct module *program_module_of(struct program *program, uint32_t idx);

#endif
