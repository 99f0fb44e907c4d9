#include "os/memory.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif

#if defined(__has_feature)   // clang's way to tell; gcc defines the name itself
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace weft::os {

void* map_private(size_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
}

void* map_shared(int fd, uint64_t offset, size_t bytes, void* address) {
    int flags = MAP_SHARED | MAP_NORESERVE;
    if (address != nullptr) flags |= MAP_FIXED_NOREPLACE;
    void* p = mmap(address, bytes, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset));
    if (p == MAP_FAILED) return nullptr;
    if (address != nullptr && p != address) {  // a kernel before 4.17 takes the address as a hint
        munmap(p, bytes);
        return nullptr;
    }
    return p;
}

void unmap(void* p, size_t bytes) { munmap(p, bytes); }

int make_memfd(const char* name) { return memfd_create(name, MFD_CLOEXEC); }

bool grow(int fd, uint64_t bytes) {
    // Peers may grow the same file at the same moment: only ever enlarge, and look again after a lost race.
    for (;;) {
        struct stat st;
        if (fstat(fd, &st) != 0) return false;
        if (static_cast<uint64_t>(st.st_size) >= bytes) return true;
        if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return false;
    }
}

void dont_fork(void* p, size_t bytes) { madvise(p, bytes, MADV_DONTFORK); }
void dont_dump(void* p, size_t bytes) { madvise(p, bytes, MADV_DONTDUMP); }
void punch(void* p, size_t bytes) { madvise(p, bytes, MADV_REMOVE); }
void drop_private(void* p, size_t bytes) { madvise(p, bytes, MADV_DONTNEED); }

void* reserve_private(size_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
}

bool move_mapping(void* from, void* to, size_t bytes) {
    return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
}

void copy_data(char* to, const char* from, size_t bytes, int fd, uint64_t offset) {
    const auto begin = static_cast<off_t>(offset), end = begin + static_cast<off_t>(bytes);
    for (off_t at = begin; at < end;) {
        off_t hole = end;
        if (fd >= 0) {
            at = lseek(fd, at, SEEK_DATA);
            if (at < 0 || at >= end) return;   // nothing any more
            hole = lseek(fd, at, SEEK_HOLE);
            if (hole < 0 || hole > end) hole = end;
        }
        memcpy(to + (at - begin), from + (at - begin), static_cast<size_t>(hole - at));
        at = hole;
    }
}

void zero_data(char* to, size_t bytes, int fd, uint64_t offset) {
    constexpr size_t step = 64 << 10;   // looking for a hole's begin would take as long as there are pages up to it
    for (size_t at = 0; at < bytes;) {
        if (fd >= 0) {
            const off_t data = lseek(fd, static_cast<off_t>(offset + at), SEEK_DATA);
            if (data < 0 && errno != ENXIO) fd = -1;
            else if (data < 0 || static_cast<uint64_t>(data) - offset >= bytes) return;   // nothing any more
            else at = static_cast<uint64_t>(data) - offset;
        }
        const size_t n = bytes - at < step ? bytes - at : step;
        memset(to + at, 0, n);
        at += n;
    }
}

int keep_descriptor(int fd) {
    constexpr int above = 200;   // where `exec 9>file` of a shell and tables of small numbers do not meet it
    const int kept = fcntl(fd, F_DUPFD_CLOEXEC, above);
    return kept >= 0 ? kept : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

uint64_t file_number(int fd) {
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 ? static_cast<uint64_t>(st.st_ino) : 0;
}

bool under_valgrind() {
    const char* preloaded = getenv("LD_PRELOAD");
    const auto has = [=](const char* tool) { return preloaded != nullptr && strstr(preloaded, tool) != nullptr; };
    return has("vgpreload_memcheck") || has("vgpreload_helgrind") || has("vgpreload_drd");   // callgrind keeps no such books
}
void protect(void* p, size_t bytes, bool accessible) { mprotect(p, bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE); }

int64_t read_process(int pid, void* to, uint64_t from, size_t bytes) {
    iovec l{to, bytes}, r{reinterpret_cast<void*>(from), bytes};
    ssize_t n = process_vm_readv(pid, &l, 1, &r, 1, 0);
    return n < 0 ? -errno : n;
}

int64_t write_process(int pid, uint64_t to, const void* from, size_t bytes) {
    iovec l{const_cast<void*>(from), bytes}, r{reinterpret_cast<void*>(to), bytes};
    ssize_t n = process_vm_writev(pid, &l, 1, &r, 1, 0);
    return n < 0 ? -errno : n;
}

// The ranges as the kernel wants them; how many bytes they have.
static size_t fill(iovec* out, const Range* ranges, int n) {
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        out[i] = {reinterpret_cast<void*>(ranges[i].at), ranges[i].bytes};
        bytes += ranges[i].bytes;
    }
    return bytes;
}

int64_t read_process(int pid, void* to, const Range* from, int ranges) {
    iovec r[most_ranges];
    const iovec l{to, fill(r, from, ranges)};
    const ssize_t n = process_vm_readv(pid, &l, 1, r, static_cast<unsigned long>(ranges), 0);
    return n < 0 ? -errno : n;
}

int64_t write_process(int pid, const Range* to, int ranges, const void* from) {
    iovec r[most_ranges];
    const iovec l{const_cast<void*>(from), fill(r, to, ranges)};
    const ssize_t n = process_vm_writev(pid, &l, 1, r, static_cast<unsigned long>(ranges), 0);
    return n < 0 ? -errno : n;
}

void allow_attach() {
#ifdef PR_SET_PTRACER
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
}

void peer_wrote([[maybe_unused]] void* p, [[maybe_unused]] size_t bytes) {
#ifdef VALGRIND_MAKE_MEM_DEFINED
    VALGRIND_MAKE_MEM_DEFINED(p, bytes);
#endif
}

bool is_mapped(uint64_t address) {
    unsigned char in_core = 0;
    return mincore(reinterpret_cast<void*>(address & ~uint64_t{page_bytes - 1}), 1, &in_core) == 0;
}

bool is_readable(uint64_t address) {
    // The kernel reads the signal set before it refuses what is to be done with it, which is nothing it knows.
    constexpr int nothing = -1;
    if (address == 0) return false;
#ifdef __SANITIZE_ADDRESS__
    // Its own tables can be read, but not by what it watches.
    if (__asan_region_is_poisoned(reinterpret_cast<void*>(address), sizeof(uint64_t)) != nullptr) return false;
#endif
    return syscall(SYS_rt_sigprocmask, nothing, address, nullptr, sizeof(uint64_t)) == 0 || errno != EFAULT;
}

int process_id() { return static_cast<int>(getpid()); }

int64_t last_cache_bytes() {
    // Not sysconf(): in a virtual machine it may tell the size of all caches of the host. Of a cache that dozens of cores share,
    // one cannot count on more than what is usual either.
    constexpr int64_t usual = 32 << 20;
    constexpr const char* paths[] = {"/sys/devices/system/cpu/cpu0/cache/index3/size",
                                     "/sys/devices/system/cpu/cpu0/cache/index2/size"};
    for (const char* path : paths) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        char text[32] = "";
        const ssize_t n = read(fd, text, sizeof text - 1);
        close(fd);
        const long kib = n > 0 ? strtol(text, nullptr, 10) : 0;  // "32768K"
        if (kib > 0) return int64_t{kib} << 10 < usual ? int64_t{kib} << 10 : usual;
    }
    return usual;
}

}  // namespace weft::os
