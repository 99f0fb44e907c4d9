// Processes as boot/ sees them: local sockets that carry descriptors, peer credentials, the lifeline, CPUs, exit.
// boot/ and the floors above it may include this; it knows nothing of MPI.
// It holds no lock; every function is safe in any thread.
#pragma once
#include <cstddef>
#include <cstdint>

#include "os/message.hpp"

namespace weft::os {

// --- local sockets: SOCK_SEQPACKET, close-on-exec ---
bool socket_pair(int fds[2]);
// To an abstract AF_UNIX name; -1 and errno on failure. Without `wait` it is EAGAIN when too many callers wait there already.
int connect_abstract(const char* name, bool wait = true);
int64_t peer_user(int sock);  // its user id; -1 where the socket does not say
bool peer_is_same_user(int sock);
uint32_t user_id();           // by which files are opened and peers judge
uint64_t socket_inode(int fd);  // 0 when fd is no open socket
void close_fd(int* fd);         // closes if >= 0, then sets -1
void set_close_on_exec(int fd);
// The nearest ancestor of this process that has a socket at that number; 0 where there is none, or it will be inherited by
// what that ancestor starts.
int ancestor_that_keeps(int fd);
int listen_abstract(const char* name);
// A socket at an abstract name that other processes make readable, by wake_at(), until clear_wakes(). -1 and errno on failure.
int make_wake_socket(const char* name);
// Makes the wake socket of that name readable; `own` is the caller's. Nothing happens where there is none. Any thread.
void wake_at(int own, const char* name);
void clear_wakes(int own);
int accept_one(int listener);
// Bytes of a stream: some (0 at its end, -1 on error), or all of them.
int64_t read_some(int fd, void* data, size_t bytes);
// The first bytes of a file, and how many there are; -1 and errno on failure.
int64_t read_file(const char* path, void* data, size_t bytes);
bool make_pipe(int ends[2]);  // close-on-exec; both -1 where there is none
bool write_all(int fd, const void* data, size_t bytes);
// Whether there is something to read, the end included, within that time; -1 ms: however long it takes.
bool wait_readable(int fd, int64_t timeout_ms);

// --- life and death ---
int process_id();
// Whether a process of that number runs; it may belong to somebody else.
bool is_alive(int pid);
// The inode of this process's namespace of process numbers; 0 where /proc does not say.
uint64_t process_space();
// The kernel kills this process (SIGKILL; no thread, no handler) when the last write end of the pipe closes.
// False when it cannot be arranged; if the other end is closed already, the process dies here.
bool die_with(int pipe_read_end);
[[noreturn]] void exit_now(int code);  // no atexit handlers
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));  // one line to stderr in one write

// --- the place ---
int cpus_allowed();  // CPUs this process may run on, >= 1
inline constexpr int cpu_words = 64;
void cpu_mask(uint64_t out[cpu_words]);  // the first 4096 of them, one bit each
// Text that two processes share exactly when they can share memory and local sockets: boot, network namespace, user.
void node_identity(char* out, size_t bytes);
// Asks the scheduler to run this thread for `ns` at a time (Linux 6.12 and later; elsewhere nothing changes). Its share of the CPU
// stays the same, and when it is woken it preempts threads with longer slices.
void ask_for_slices(uint64_t ns);
bool random_bytes(void* out, size_t bytes);
void host_name(char* out, size_t bytes);
void program_name(char* out, size_t bytes);

}  // namespace weft::os
