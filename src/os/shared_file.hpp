// The file behind memory that processes share: a memfd, or where that is denied an unlinked file in /dev/shm.
// boot/ and the floors above it may include this, and the commands. It holds no lock.
// Such a file in /dev/shm is bounded by a mount of perhaps 64 MB: its pages must be allocated before they are touched, since
// touching one that there is no room for is SIGBUS.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::os {

struct SharedFile {
    int fd = -1;
    bool bounded = false;                 // in /dev/shm: allocate() what is to be touched
    int memfd_error = 0, file_error = 0;  // errno of what failed
};

// Empty, without a name, gone when the last descriptor and mapping is. Where none can be made, fd is -1.
SharedFile make_shared_file(const char* name);
// Why there is none: "memfd_create: ...; a file in /dev/shm: ...".
void describe_failure(const SharedFile& f, char* text, size_t bytes);
// Allocates the first `bytes` of a bounded file. False, with errno, where there is no room.
bool allocate(int fd, uint64_t bytes);
// Bytes that the file could have allocated at most.
uint64_t room(int fd);

}  // namespace weft::os
