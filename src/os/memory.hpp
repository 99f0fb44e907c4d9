// Mapping memory and reading other processes' memory: the system calls behind heap/, wire/ and the pools. No lock.
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft::os {

inline constexpr size_t page_bytes = 4096;

// Anonymous private memory, zeroed; null when there is none. Never returned to a cache: unmap gives it back.
void* map_private(size_t bytes);
// Shared mapping of [offset, offset+bytes) of `fd`. With `address` it lands exactly there or the result is null.
void* map_shared(int fd, uint64_t offset, size_t bytes, void* address);
void unmap(void* p, size_t bytes);
// A sealed-off anonymous file that lives as long as someone has it open; -1 on failure.
int make_memfd(const char* name);
// Grows `fd` to at least `bytes`; false on failure. Never shrinks.
bool grow(int fd, uint64_t bytes);
// The mapping is absent in forked children / absent from core dumps.
void dont_fork(void* p, size_t bytes);
void dont_dump(void* p, size_t bytes);
// Gives the pages of a shared mapping back to the system; they read as zero afterwards.
void punch(void* p, size_t bytes);
// The same for private memory.
void drop_private(void* p, size_t bytes);

// Addresses for private memory, of which nothing is reserved until it is touched; null where that many are denied.
void* reserve_private(size_t bytes);
// Moves a mapping to where another is, which goes.
bool move_mapping(void* from, void* to, size_t bytes);
// Copies what a shared mapping of `fd` at `offset` holds, without touching the pages that hold nothing; with fd -1 it touches all. It looks
// for the end of each run of pages, so call it once for many.
void copy_data(char* to, const char* from, size_t bytes, int fd, uint64_t offset);
// Zeroes what the mapping holds, in steps: of 64 KiB behind a page that holds something, all are touched; with fd -1 it touches all.
void zero_data(char* to, size_t bytes, int fd, uint64_t offset);
// A close-on-exec copy of the descriptor above those that programs count on; -1 where there is none.
int keep_descriptor(int fd);
// The file's inode; 0 when fd is not open.
uint64_t file_number(int fd);
// Whether a checker of valgrind's runs this program, whose books a huge mapping would fill.
bool under_valgrind();
// Takes this process's access to whole pages away, or gives it back.
void protect(void* p, size_t bytes, bool accessible);

// Cross-memory attach. Bytes copied, or -errno.
int64_t read_process(int pid, void* to, uint64_t from, size_t bytes);
int64_t write_process(int pid, uint64_t to, const void* from, size_t bytes);
// The same for ranges there, one after the other in the dense memory here. The first error, or a short copy, ends it.
struct Range { uint64_t at; size_t bytes; };
inline constexpr int most_ranges = 64;
int64_t read_process(int pid, void* to, const Range* from, int ranges);
int64_t write_process(int pid, const Range* to, int ranges, const void* from);
// Lets any process of this user attach under Yama's ptrace_scope 1.
void allow_attach();
// Tells memcheck that a peer has written [p, p+bytes). Nothing without valgrind.
void peer_wrote(void* p, size_t bytes);

// Whether this process has memory at that address.
bool is_mapped(uint64_t address);
// Whether the aligned word at that address can be read.
bool is_readable(uint64_t address);

int process_id();
// Size of the last-level cache, at most 32 MiB; that, too, where the system does not say.
int64_t last_cache_bytes();

}  // namespace weft::os
