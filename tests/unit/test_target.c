// SPDX-License-Identifier: GPL-2.0-or-later
#include "said.h"
#include "target/cmdline.h"
#include "target/target.h"
#include "unit.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that does what it is told, reports one number and then waits to be killed. */
struct child {
	pid_t pid;
	int reported;
};

static void report_and_wait(int fd, int number)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(fd, &number, sizeof(number)) != sizeof(number))
		_exit(1);
	for (;;)
		pause();
}

static struct child child_start(void (*run)(int fd))
{
	struct child child = {0};
	int fds[2];

	CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
	child.pid = fork();
	CU_ASSERT_FATAL(child.pid >= 0);
	if (!child.pid) {
		run(fds[1]);
		_exit(1);
	}
	close(fds[1]);
	if (read(fds[0], &child.reported, sizeof(child.reported)) != sizeof(child.reported))
		child.reported = -1;
	close(fds[0]);
	return child;
}

static void child_end(struct child child)
{
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
}

static void run_idle(int fd)
{
	report_and_wait(fd, 0);
}

static void *report_tid(void *fd)
{
	report_and_wait(*(int *)fd, gettid());
	return NULL;
}

static void run_threaded(int fd)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, report_tid, &fd))
		pthread_join(thread, NULL);
}

static void run_headless(int fd)
{
	static int kept_fd;
	pthread_t thread;

	kept_fd = fd;
	if (!pthread_create(&thread, NULL, report_tid, &kept_fd))
		syscall(SYS_exit, 0);
}

static void run_with_grandchild(int fd)
{
	pid_t grandchild = fork();

	if (!grandchild) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	/* And one that is dead and not reaped. */
	if (!fork())
		_exit(0);
	siginfo_t dead;
	waitid(P_ALL, 0, &dead, WEXITED | WNOWAIT);
	report_and_wait(fd, grandchild);
}

static void expect_refused(pid_t pid, int err, const char *part)
{
	int got;

	said_begin();
	got = target_check(pid);
	CU_ASSERT(said_one_line(said_end(), part));
	CU_ASSERT_EQUAL(got, err);
}

static void wait_for_state(pid_t pid, char state)
{
	char path[64], line[512] = "", *after;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (int i = 0; i < 10000; i++) {
		FILE *file = fopen(path, "r");

		if (!file || !fgets(line, sizeof(line), file))
			line[0] = '\0';
		if (file)
			fclose(file);
		after = strrchr(line, ')');
		if (after && after[2] == state)
			return;
		usleep(1000);
	}
	CU_FAIL("the process never got into the state");
}

static void a_fit_process_passes_in_silence(void)
{
	struct child child = child_start(run_idle);

	said_begin();
	CU_ASSERT_EQUAL(target_check(child.pid), 0);
	CU_ASSERT_STRING_EQUAL(said_end(), "");
	child_end(child);
}

static void what_cannot_be_recorded_is_refused_in_one_line(void)
{
	struct child child = child_start(run_threaded);
	char expected[64];
	pid_t gone;

	expect_refused(0, -EINVAL, "not a process id");
	expect_refused(-7, -EINVAL, "-7 is not a process id");
	expect_refused(getpid(), -EINVAL, "is whylate itself");
	snprintf(expected, sizeof(expected), "%d is a thread of process %d: use -p %d", child.reported, child.pid,
		 child.pid);
	expect_refused(child.reported, -EINVAL, expected);
	child_end(child);
	child = child_start(run_idle);
	gone = child.pid;
	kill(child.pid, SIGKILL);
	wait_for_state(gone, 'Z');
	expect_refused(gone, -ESRCH, "has exited and waits for its parent");
	waitpid(gone, NULL, 0);
	snprintf(expected, sizeof(expected), "there is no process %d", gone);
	expect_refused(gone, -ESRCH, expected);
	child = child_start(run_headless);
	wait_for_state(child.pid, 'Z');
	expect_refused(child.pid, -ENOTSUP, "ended its main thread");
	child_end(child);
}

static void a_kernel_thread_is_refused(void)
{
	char comm[16];

	if (target_comm(2, 0, comm) || strcmp(comm, "kthreadd")) {
		printf("(skipped: no kernel thread in this pid namespace) ");
		return;
	}
	expect_refused(2, -EINVAL, "process 2 (kthreadd) is a kernel thread");
}

/* pause() for ever, in 32-bit code. */
static const unsigned char pause_i386[] = {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7};

static void run_32_bit(int fd)
{
	struct {
		Elf32_Ehdr header;
		Elf32_Phdr segment;
		unsigned char code[sizeof(pause_i386)];
	} program = {
		.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
			   .e_type = ET_EXEC,
			   .e_machine = EM_386,
			   .e_version = EV_CURRENT,
			   .e_entry = 0x10054,
			   .e_phoff = sizeof(Elf32_Ehdr),
			   .e_ehsize = sizeof(Elf32_Ehdr),
			   .e_phentsize = sizeof(Elf32_Phdr),
			   .e_phnum = 1},
		.segment = {.p_type = PT_LOAD,
			    .p_vaddr = 0x10000,
			    .p_filesz = sizeof(program),
			    .p_memsz = sizeof(program),
			    .p_flags = PF_R | PF_X,
			    .p_align = 0x1000},
	};
	char *const args[] = {"thirty-two", NULL};
	int exe = memfd_create("thirty-two", MFD_CLOEXEC), number = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memcpy(program.code, pause_i386, sizeof(program.code));
	if (write(exe, &program, sizeof(program)) != sizeof(program) || write(fd, &number, sizeof(number)) < 0)
		_exit(1);
	fexecve(exe, args, environ);
	_exit(1);
}

static void a_32_bit_program_is_refused(void)
{
	struct child child = child_start(run_32_bit);
	char exe_link[64], exe_path[256] = "";
	siginfo_t dead = {0};

	snprintf(exe_link, sizeof(exe_link), "/proc/%d/exe", child.pid);
	for (int i = 0; i < 10000 && !dead.si_pid && !strstr(exe_path, "thirty-two"); i++) {
		ssize_t len = readlink(exe_link, exe_path, sizeof(exe_path) - 1);

		exe_path[len > 0 ? len : 0] = '\0';
		usleep(1000);
		CU_ASSERT_EQUAL(waitid(P_PID, child.pid, &dead, WEXITED | WNOHANG | WNOWAIT), 0);
	}
	if (dead.si_pid)
		printf("(skipped: this kernel runs no 32-bit programs) ");
	else
		expect_refused(child.pid, -ENOTSUP, "32-bit program");
	child_end(child);
}

static void a_tree_is_the_process_and_its_living_descendants(void)
{
	struct child child = child_start(run_with_grandchild);
	target_processes processes = {0};

	CU_ASSERT_EQUAL(target_tree(child.pid, &processes), 0);
	CU_ASSERT_EQUAL_FATAL(processes.cnt, 2);
	CU_ASSERT_EQUAL(processes.items[0].pid, child.pid);
	CU_ASSERT_EQUAL(processes.items[0].ppid, getpid());
	CU_ASSERT_EQUAL(processes.items[1].pid, child.reported);
	CU_ASSERT_EQUAL(processes.items[1].ppid, child.pid);
	CU_ASSERT(strlen(processes.items[1].comm) > 0);
	vec_free(&processes);
	child_end(child);
	CU_ASSERT_EQUAL(target_tree(child.pid, &processes), -ESRCH);
	vec_free(&processes);
}

static void names_of_processes_do_not_steer_the_terminal(void)
{
	char comm[16], old[16], line[4096], cut[5];

	prctl(PR_GET_NAME, old);
	prctl(PR_SET_NAME, "a) \033[2J\n(b");
	CU_ASSERT_EQUAL(target_comm(getpid(), gettid(), comm), 0);
	CU_ASSERT_STRING_EQUAL(comm, "a) ?[2J?(b");
	prctl(PR_SET_NAME, old);
	CU_ASSERT_EQUAL(target_comm(getpid(), 0, comm), 0);
	CU_ASSERT_STRING_EQUAL(comm, old);
	CU_ASSERT_EQUAL(target_comm(getpid(), 1 << 22, comm), -ESRCH);
	CU_ASSERT_EQUAL(target_cmdline(getpid(), line, sizeof(line)), 0);
	CU_ASSERT(strlen(line) > 0 && line[strlen(line) - 1] != ' ');
	CU_ASSERT_EQUAL(target_cmdline(getpid(), cut, sizeof(cut)), 0);
	CU_ASSERT(!strncmp(cut, line, 4) && strlen(cut) == 4);
}

static void secrets_in_arguments_are_masked(void)
{
	static const struct {
		const char *args, *line; /* args: | for NUL */
	} cases[] = {
		{"redis-server|*:6379|", "redis-server *:6379"},
		{"a|--password=geheim|-x|", "a --password=*** -x"},
		{"a|--password|geheim|-x|", "a --password *** -x"},
		{"a|--db-pass|geheim|", "a --db-pass ***"},
		{"a|--compass|north|", "a --compass north"},
		{"a|--password|--verbose|", "a --password --verbose"},
		{"java|-Dspring.datasource.password=geheim|-jar|x.jar|",
		 "java -Dspring.datasource.password=*** -jar x.jar"},
		{"psql|postgres://me:geheim@db/x|", "psql postgres://me:***"},
		{"psql|postgres://me@db:5432/x|", "psql postgres://me@db:5432/x"},
		{"curl|-H|Authorization: Bearer geheim|", "curl -H Authorization: ***"},
		{"a|Server=db;Password=geheim;x=y|", "a Server=db;Password=***"},
		{"/usr/bin/mysql|-uroot|-pgeheim|", "/usr/bin/mysql -uroot -p***"},
		{"tool|-pgeheim|", "tool -pgeheim"},
		{"sh|-c|mysqldump --password geheim db|", "sh -c mysqldump --password ***"},
		{"env|API_KEY=geheim|AWS_SECRET_ACCESS_KEY=geheim|", "env API_KEY=*** AWS_SECRET_ACCESS_KEY=***"},
		{"a|--token=|b|", "a --token= b"},
		{"", ""},
		{"|||", ""},
	};
	char args[200], line[200], cut[8];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t sz = strlen(cases[i].args);

		for (size_t j = 0; j <= sz; j++)
			args[j] = cases[i].args[j] == '|' ? '\0' : cases[i].args[j];
		cmdline_join(args, sz, line, sizeof(line));
		CU_ASSERT_STRING_EQUAL(line, cases[i].line);
		cmdline_join(args, sz, cut, sizeof(cut));
		CU_ASSERT(!strncmp(cut, line, sizeof(cut) - 1) && strlen(cut) < sizeof(cut));
	}
}

static void an_address_gets_the_name_of_what_lies_there(void)
{
	void *anon = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	target_mappings mappings = {0};
	char name[256], expected[256];
	Dl_info symbol;
	/* Not the address of a variable: AddressSanitizer may keep those elsewhere. */
	void *frame = __builtin_frame_address(0);

	CU_ASSERT_EQUAL_FATAL(target_mappings_read(getpid(), &mappings), 0);
	for (size_t i = 1; i < mappings.cnt; i++)
		CU_ASSERT(mappings.items[i - 1].end <= mappings.items[i].start);
	CU_ASSERT_FATAL(dladdr((void *)suite_target, &symbol) && symbol.dli_fbase);
	snprintf(expected, sizeof(expected), "run+0x%lx", (long)((char *)suite_target - (char *)symbol.dli_fbase));
	CU_ASSERT_PTR_NOT_NULL_FATAL(target_mapping_name(&mappings, (uint64_t)suite_target, true, name, sizeof(name)));
	CU_ASSERT_STRING_EQUAL(strrchr(name, '+'), strrchr(expected, '+'));
	CU_ASSERT_PTR_NOT_NULL(target_mapping_name(&mappings, (uint64_t)frame, true, name, sizeof(name)));
	CU_ASSERT_STRING_EQUAL(name, "[stack]");
	CU_ASSERT_PTR_NOT_NULL(target_mapping_name(&mappings, (uint64_t)anon, true, name, sizeof(name)));
	CU_ASSERT(!strncmp(name, "[anon", 5));
	CU_ASSERT_PTR_NULL(target_mapping_name(&mappings, 16, true, name, sizeof(name)));
	CU_ASSERT_PTR_NULL(target_mapping_name(&mappings, UINT64_MAX, true, name, sizeof(name)));
	target_mappings_free(&mappings);
	munmap(anon, 4096);
	CU_ASSERT_EQUAL(target_mappings_read(1 << 22, &mappings), -ESRCH);
}

static const struct target_mapping *mapping_at(const target_mappings *mappings, void *addr)
{
	for (size_t i = 0; i < mappings->cnt; i++)
		if (mappings->items[i].start == (uint64_t)addr)
			return &mappings->items[i];
	return NULL;
}

/* Maps the file, and checks that the path found for it leads to this very inode. */
static void expect_found(int fd, const char *basename, bool needs_map_files)
{
	void *addr = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	const struct target_mapping *mapping;
	target_mappings mappings = {0};
	struct stat mapped, found;
	char path[5000], name[300];
	int err;

	CU_ASSERT_EQUAL(fstat(fd, &mapped), 0);
	CU_ASSERT_EQUAL_FATAL(target_mappings_read(getpid(), &mappings), 0);
	mapping = mapping_at(&mappings, addr);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mapping);
	target_mapping_basename(mapping, name, sizeof(name));
	CU_ASSERT_STRING_EQUAL(name, basename);
	err = target_mapping_file(getpid(), mapping, path, sizeof(path));
	if (err && needs_map_files && geteuid()) {
		printf("(skipped: map_files needs root) ");
	} else {
		CU_ASSERT_EQUAL_FATAL(err, 0);
		CU_ASSERT_EQUAL(stat(path, &found), 0);
		CU_ASSERT(found.st_ino == mapped.st_ino && found.st_dev == mapped.st_dev);
	}
	CU_ASSERT(target_mapping_file(getpid(), mapping, path, 8) < 0);
	target_mappings_free(&mappings);
	munmap(addr, 4096);
}

static int file_create(const char *dir, const char *name, char *path, size_t sz)
{
	char page[4096] = "x";
	int fd;

	snprintf(path, sz, "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, page, sizeof(page)), sizeof(page));
	return fd;
}

static void a_mapped_file_is_found_whatever_it_is_called(void)
{
	static const struct {
		const char *name, *shown;
	} cases[] = {
		{"plain", "plain"},
		{"two words\there", "two words?here"},
		{"new\nline", "new\\012line"},
		{"back\\012slash", "back\\012slash"},
		{"kept (deleted)", "kept"},
	};
	char dir[] = "/tmp/whylate-test-XXXXXX", path[300], other[300];

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = file_create(dir, cases[i].name, path, sizeof(path));

		expect_found(fd, cases[i].shown, false);
		unlink(path);
		if (i == 0) {
			expect_found(fd, "plain", true);
			/* Another file has taken its place. */
			close(file_create(dir, cases[i].name, other, sizeof(other)));
			expect_found(fd, "plain", true);
			unlink(other);
		}
		close(fd);
	}
	rmdir(dir);
}

static int socket_bound(int domain, int type, const void *addr, socklen_t addr_len, bool listens)
{
	int fd = socket(domain, type | SOCK_CLOEXEC, 0);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(bind(fd, addr, addr_len), 0);
	if (listens)
		CU_ASSERT_EQUAL_FATAL(listen(fd, 4), 0);
	return fd;
}

static uint16_t socket_port(int fd)
{
	struct sockaddr_in6 addr = {0};
	socklen_t len = sizeof(addr);

	CU_ASSERT_EQUAL(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	return ntohs(addr.sin6_port); /* at the same place in both families */
}

static const struct target_listener *listener_find(const target_listeners *listeners, const char *name, size_t *cnt)
{
	const struct target_listener *found = NULL;

	*cnt = 0;
	for (size_t i = 0; i < listeners->cnt; i++)
		if (!strcmp(listeners->items[i].name, name)) {
			found = &listeners->items[i];
			(*cnt)++;
		}
	return found;
}

static const struct target_listener *expect_listener(const target_listeners *listeners, const char *name)
{
	const struct target_listener *listener;
	size_t cnt;

	listener = listener_find(listeners, name, &cnt);
	CU_ASSERT_EQUAL(cnt, 1);
	if (cnt != 1)
		fprintf(stderr, "%zu listeners called %s\n", cnt, name);
	return listener;
}

static void check_inet_listeners(const target_processes *processes)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int tcp = socket_bound(AF_INET, SOCK_STREAM, &v4, sizeof(v4), true);
	int quiet = socket_bound(AF_INET, SOCK_STREAM, &v4, sizeof(v4), false);
	int udp = socket_bound(AF_INET, SOCK_DGRAM, &v4, sizeof(v4), false);
	int connected = socket_bound(AF_INET, SOCK_DGRAM, &v4, sizeof(v4), false);
	int tcp6 = access("/proc/self/net/tcp6", R_OK) ? -1 : socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	target_listeners listeners = {0};
	char name[64];
	size_t cnt;

	v4.sin_port = htons(socket_port(udp));
	CU_ASSERT_EQUAL(connect(connected, (struct sockaddr *)&v4, sizeof(v4)), 0);
	if (tcp6 >= 0 && (bind(tcp6, (struct sockaddr *)&v6, sizeof(v6)) || listen(tcp6, 1))) {
		close(tcp6);
		tcp6 = -1;
	}
	CU_ASSERT_EQUAL(target_listeners_read(processes, &listeners), 0);
	snprintf(name, sizeof(name), "tcp:%u", socket_port(tcp));
	CU_ASSERT_PTR_NOT_NULL(expect_listener(&listeners, name));
	snprintf(name, sizeof(name), "udp:%u", socket_port(udp));
	CU_ASSERT_PTR_NOT_NULL(expect_listener(&listeners, name));
	if (tcp6 >= 0) {
		snprintf(name, sizeof(name), "tcp:%u", socket_port(tcp6));
		CU_ASSERT_PTR_NOT_NULL(expect_listener(&listeners, name));
		close(tcp6);
	} else {
		printf("(skipped: no IPv6 here) ");
	}
	snprintf(name, sizeof(name), "udp:%u", socket_port(connected));
	listener_find(&listeners, name, &cnt);
	CU_ASSERT_EQUAL(cnt, 0);
	snprintf(name, sizeof(name), "tcp:%u", socket_port(quiet));
	listener_find(&listeners, name, &cnt);
	CU_ASSERT_EQUAL(cnt, 0);
	close(tcp);
	close(quiet);
	close(udp);
	close(connected);
	vec_free(&listeners);
}

static void check_unix_listeners(const target_processes *processes)
{
	char dir[] = "/tmp/whylate-test-XXXXXX", name[160];
	struct sockaddr_un named = {.sun_family = AF_UNIX}, abstract = {.sun_family = AF_UNIX};
	const size_t path_off = offsetof(struct sockaddr_un, sun_path);
	const struct target_listener *listener;
	target_listeners listeners = {0};
	int fds[2];

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(named.sun_path, sizeof(named.sun_path), "%s/a sock", dir);
	snprintf(abstract.sun_path + 1, sizeof(abstract.sun_path) - 1, "whylate \033 %d", getpid());
	fds[0] = socket_bound(AF_UNIX, SOCK_STREAM, &named, sizeof(named), true);
	fds[1] = socket_bound(AF_UNIX, SOCK_SEQPACKET, &abstract, path_off + 1 + strlen(abstract.sun_path + 1), true);
	CU_ASSERT_EQUAL(target_listeners_read(processes, &listeners), 0);
	snprintf(name, sizeof(name), "unix:%s", named.sun_path);
	listener = expect_listener(&listeners, name);
	CU_ASSERT_PTR_NOT_NULL_FATAL(listener);
	CU_ASSERT_EQUAL(listener->family, TARGET_UNIX);
	CU_ASSERT_EQUAL(listener->path_len, strlen(named.sun_path));
	CU_ASSERT_STRING_EQUAL(listener->path, named.sun_path);
	snprintf(name, sizeof(name), "unix:@whylate ? %d", getpid());
	listener = expect_listener(&listeners, name);
	CU_ASSERT_PTR_NOT_NULL_FATAL(listener);
	CU_ASSERT_EQUAL(listener->path_len, 1 + strlen(abstract.sun_path + 1));
	CU_ASSERT(!memcmp(listener->path, abstract.sun_path, listener->path_len));
	close(fds[0]);
	close(fds[1]);
	unlink(named.sun_path);
	rmdir(dir);
	vec_free(&listeners);
}

static void listening_sockets_are_found_once_each(void)
{
	struct child child =
		child_start(run_idle); /* inherits nothing that it listens on, and must not hide anything */
	target_processes processes = {0};

	CU_ASSERT_EQUAL_FATAL(target_tree(getpid(), &processes), 0);
	CU_ASSERT(processes.cnt >= 2);
	check_inet_listeners(&processes);
	check_unix_listeners(&processes);
	vec_free(&processes);
	child_end(child);
}

static void sockets_of_strangers_are_left_out(void)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct child child = child_start(run_idle);
	struct target_process stranger = {.pid = child.pid};
	int tcp = socket_bound(AF_INET, SOCK_STREAM, &v4, sizeof(v4), true);
	target_processes processes = {0};
	target_listeners listeners = {0};
	char name[64];
	size_t cnt;

	CU_ASSERT_EQUAL(target_listeners_read(&processes, &listeners), -ESRCH);
	CU_ASSERT_EQUAL(vec_push(&processes, stranger), 0);
	CU_ASSERT_EQUAL(target_listeners_read(&processes, &listeners), 0);
	snprintf(name, sizeof(name), "tcp:%u", socket_port(tcp));
	listener_find(&listeners, name, &cnt);
	CU_ASSERT_EQUAL(cnt, 0);
	child_end(child);
	CU_ASSERT_EQUAL(target_listeners_read(&processes, &listeners), -ESRCH);
	close(tcp);
	vec_free(&listeners);
	vec_free(&processes);
}

static void namespaces_and_cpu_time_are_read(void)
{
	struct target_process self = {.pid = getpid()};
	target_processes processes = {0};
	uint64_t before_ns;
	struct stat netns;

	CU_ASSERT_EQUAL(stat("/proc/self/ns/net", &netns), 0);
	CU_ASSERT_EQUAL(target_netns(getpid()), (uint32_t)netns.st_ino);
	CU_ASSERT_EQUAL(target_netns(1 << 22), 0);
	CU_ASSERT_EQUAL(target_cpu_ns(&processes), 0);
	CU_ASSERT_EQUAL(vec_push(&processes, self), 0);
	before_ns = target_cpu_ns(&processes);
	CU_ASSERT(before_ns > 0);
	CU_ASSERT(target_cpu_ns(&processes) >= before_ns);
	vec_free(&processes);
}

int suite_target(void)
{
	static const struct unit_test tests[] = {
		{"a fit process passes in silence", a_fit_process_passes_in_silence},
		{"what cannot be recorded is refused in one line", what_cannot_be_recorded_is_refused_in_one_line},
		{"a kernel thread is refused", a_kernel_thread_is_refused},
		{"a 32-bit program is refused", a_32_bit_program_is_refused},
		{"a tree is the process and its living descendants", a_tree_is_the_process_and_its_living_descendants},
		{"names of processes do not steer the terminal", names_of_processes_do_not_steer_the_terminal},
		{"secrets in arguments are masked", secrets_in_arguments_are_masked},
		{"an address gets the name of what lies there", an_address_gets_the_name_of_what_lies_there},
		{"a mapped file is found whatever it is called", a_mapped_file_is_found_whatever_it_is_called},
		{"listening sockets are found once each", listening_sockets_are_found_once_each},
		{"sockets of strangers are left out", sockets_of_strangers_are_left_out},
		{"namespaces and CPU time are read", namespaces_and_cpu_time_are_read},
	};

	return unit_suite("target", tests, sizeof(tests) / sizeof(tests[0]));
}
