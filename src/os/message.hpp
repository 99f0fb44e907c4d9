// Messages over local sockets (SOCK_SEQPACKET), with descriptors. boot/ and mpiexec, the two ends of a link, include this.
// It holds no lock; every function is safe in any thread.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::os {

// One message with up to four descriptors; true when all of it went (never raises SIGPIPE). Without `wait`, false and EAGAIN where there
// is no room.
bool send_message(int sock, const void* data, size_t bytes, const int* fds, int n_fds, bool wait = true);
// Receives one message. Returns its bytes, 0 at end of file, -1 and errno on error; unused slots of fds[] become -1, and descriptors
// beyond them are closed. Without `wait`, EAGAIN where there is none.
int64_t receive_message(int sock, void* data, size_t bytes, int* fds, int n_fds, bool wait = true);
// The same at once, and the message stays where it is.
int64_t peek_message(int sock, void* data, size_t bytes);

}  // namespace weft::os
