#include "os/shared_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace weft::os {

// A memfd is executable by default, which vm.memfd_noexec=2 denies; older kernels do not know the flag that says it is not.
static int memfd(const char* name) {
    constexpr unsigned not_executable = 8;  // MFD_NOEXEC_SEAL
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 && errno == EACCES) fd = memfd_create(name, MFD_CLOEXEC | not_executable);
    return fd;
}

static int unlinked_file() {
    int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
    char path[] = "/dev/shm/weft-XXXXXX";
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd;
}

SharedFile make_shared_file(const char* name) {
    SharedFile f;
    f.fd = memfd(name);
    if (f.fd >= 0) return f;
    f.memfd_error = errno;
    f.bounded = true;
    f.fd = unlinked_file();
    if (f.fd < 0) f.file_error = errno;
    return f;
}

void describe_failure(const SharedFile& f, char* text, size_t bytes) {
    char first[64], second[64];
    snprintf(first, sizeof first, "%s", strerror(f.memfd_error));
    snprintf(second, sizeof second, "%s", strerror(f.file_error));
    snprintf(text, bytes, "memfd_create: %s; a file in /dev/shm: %s", first, second);
}

bool allocate(int fd, uint64_t bytes) {
    // In extents: the kernel takes back what it allocated of the one that failed, and a signal interrupts only one.
    constexpr uint64_t extent = 1 << 20;
    for (uint64_t at = 0; at < bytes;) {
        const uint64_t n = bytes - at < extent ? bytes - at : extent;
        if (fallocate(fd, 0, static_cast<off_t>(at), static_cast<off_t>(n)) == 0) at += n;
        else if (errno != EINTR) return false;
    }
    return true;
}

uint64_t room(int fd) {
    struct statvfs mount;
    struct stat own;
    if (fstatvfs(fd, &mount) != 0 || fstat(fd, &own) != 0) return 0;
    return uint64_t{mount.f_bavail} * mount.f_frsize + static_cast<uint64_t>(own.st_blocks) * 512;
}

}  // namespace weft::os
