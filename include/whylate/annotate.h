/* SPDX-License-Identifier: MIT */
/*
 * Markers for those who can recompile their program: where its requests begin and end, and which thread works for
 * which.
 *
 *   WHYLATE_BEGIN(key)   a request begins; `key`, an integer or a pointer, is unique among the process's open ones
 *
 *   WHYLATE_WORK(key)    from here on the calling thread works for that request
 *
 *   WHYLATE_END(key)     it ends, on whatever thread
 *
 * `whylate record -p PID` takes them for the intervals of a program that has them, with no symbol list.
 *
 * Header only, for C and C++, gcc and clang.  Each use is one nop, and at most a
 * load that puts the key where a probe finds it: nothing is called, tested or written.  The linker keeps a note per use
 * in .note.stapsdt, which does not get loaded: provider `whylate`, names `begin`, `work`, `end`, one 8-byte argument.
 * That is the format that other tools know, too (`perf probe`, `bpftrace -l 'usdt:PATH:whylate:*'`).  On other
 * architectures the markers evaluate their key and do nothing.
 */
/*
 * Copyright (c) 2026 the whylate authors
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
 * documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
 * rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
 * permit persons to whom the Software is furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
 * Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
 * WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
 * COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
 * OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
 */
#ifndef WHYLATE_ANNOTATE_H
#define WHYLATE_ANNOTATE_H

#define WHYLATE_BEGIN(key) WHYLATE_SITE_("begin", key)
#define WHYLATE_WORK(key)  WHYLATE_SITE_("work", key)
#define WHYLATE_END(key)   WHYLATE_SITE_("end", key)

/*
 * One byte, which every kernel emulates.  A nop of five bytes becomes a call on 6.18, which is faster, but writes its
 * return address to where a leaf function keeps its variables: below the stack pointer.
 */
#if defined(__x86_64__) && defined(__LP64__)
#define WHYLATE_NOP_ ".byte 0x90"
#elif defined(__aarch64__) && defined(__LP64__)
#define WHYLATE_NOP_ "nop"
#endif

#ifdef WHYLATE_NOP_
/*
 * The note: sizes of name and description, type 3; the owner; the addresses of the site, of the base symbol (who moves
 * sections after linking moves it along) and of a semaphore (none); provider, name, arguments.  "?" puts it into the
 * function's section group, so that a copy which the linker drops takes its notes with it.
 */
#define WHYLATE_SITE_(name, key)                                                                           \
	__asm__ __volatile__("661:\t" WHYLATE_NOP_ "\n"                                                    \
			     "\t.pushsection .note.stapsdt, \"?\", \"note\"\n"                             \
			     "\t.balign 4\n"                                                               \
			     "\t.4byte 663f - 662f, 665f - 664f, 3\n"                                      \
			     "662:\t.asciz \"stapsdt\"\n"                                                  \
			     "663:\t.balign 4\n"                                                           \
			     "664:\t.8byte 661b, _.stapsdt.base, 0\n"                                      \
			     "\t.asciz \"whylate\"\n"                                                      \
			     "\t.asciz \"" name "\"\n"                                                     \
			     "\t.asciz \"8@%[whylate_key]\"\n"                                             \
			     "665:\t.balign 4\n"                                                           \
			     "\t.popsection\n"                                                             \
			     "\t.ifndef _.stapsdt.base\n"                                                  \
			     "\t.pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
			     "\t.weak _.stapsdt.base\n"                                                    \
			     "\t.hidden _.stapsdt.base\n"                                                  \
			     "_.stapsdt.base:\n"                                                           \
			     "\t.space 1\n"                                                                \
			     "\t.size _.stapsdt.base, 1\n"                                                 \
			     "\t.popsection\n"                                                             \
			     "\t.endif"                                                                    \
			     :                                                                             \
			     : [whylate_key] "nr"((unsigned long)(key)))
#else
#define WHYLATE_SITE_(name, key) ((void)(key))
#endif

#endif
