#include "heap/slices.hpp"

#include <pthread.h>

#include "os/memory.hpp"
#include "os/process.hpp"

namespace weft::heap {
namespace {

constexpr uint64_t segment_bytes = 32 << 20;   // of the allocator: aligned, so that it need not take twice as much
constexpr uint64_t aligned_from = 1 << 20;

uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }
uint64_t units_of(uint64_t bytes) { return (bytes + unit_bytes - 1) / unit_bytes; }

// The bits of one word that lie in [first, end), counted from the word's own bit 0.
uint64_t mask(uint64_t word, uint64_t first, uint64_t end) {
    const uint64_t low = first > word * 64 ? first - word * 64 : 0, high = end < word * 64 + 64 ? end - word * 64 : 64;
    return (high == 64 ? ~0ull : (1ull << high) - 1) & ~((1ull << low) - 1);
}

void before_a_fork() { own_slices.before_fork(); }
void after_it_in_parent() { own_slices.after_fork_in_parent(); }
void after_it_in_child() { own_slices.after_fork_in_child(); }

}  // namespace

constinit Slices own_slices;

PartHead& Slices::head_of(const void* p) const {
    const auto at = static_cast<uint64_t>(static_cast<const char*>(p) - base);
    return *reinterpret_cast<PartHead*>(base + (at & ~(geometry.part_bytes() - 1)));
}

bool Slices::shared_with(int rank) const {
    if (base == nullptr || rank >= geometry.ranks) return false;
    return reinterpret_cast<const PartHead*>(slice(rank))->mapped.load(std::memory_order_acquire) != 0;
}

void Slices::tell_mapped() { reinterpret_cast<PartHead*>(slice(me))->mapped.store(1, std::memory_order_release); }

// Takes a part of the rank's slice that no living process has. One that a dead process left, or this one before exec(), is emptied.
bool Slices::claim(int rank) {
    const auto self = static_cast<uint32_t>(os::process_id());
    const uint64_t space = os::process_space();
    for (int i = 0; i < geometry.parts; ++i) {
        char* const part = slice(rank) + static_cast<uint64_t>(i) * geometry.part_bytes();
        auto& head = *reinterpret_cast<PartHead*>(part);
        uint32_t other = head.process.load(std::memory_order_acquire);
        const bool same_space = head.process_space.load(std::memory_order_relaxed) == space;
        if (other != 0 && (!same_space || (other != self && os::is_alive(static_cast<int>(other))))) continue;
        if (!head.process.compare_exchange_strong(other, self, std::memory_order_acq_rel)) continue;
        head.process_space.store(space, std::memory_order_relaxed);
        own = part;
        own_bytes = geometry.part_bytes();
        if (other != 0) empty_part();
        mark(0, units_of(sizeof(PartHead)), true);
        return true;
    }
    return false;
}

void Slices::empty_part() {
    const uint64_t head_bytes = units_of(sizeof(PartHead)) * unit_bytes;
    os::punch(own + head_bytes, own_bytes - head_bytes);
    PartHead& head = own_head();
    head.blocks.forget();
    head.memory.forget();
    head.taken.store(0, std::memory_order_relaxed);
    head.most_taken.store(0, std::memory_order_relaxed);
    mark(0, own_bytes / unit_bytes, false);
}

bool Slices::map(int fd, uint64_t offset, const Geometry& g, int rank, uint64_t address) {
    if (!WEFT_MIMALLOC) return false;
    {
        SpinGuard guard(lock_);
        if (base != nullptr || !os::grow(fd, offset + g.mapped_bytes())) return false;
        auto* at = static_cast<char*>(os::map_shared(fd, offset, g.mapped_bytes(), reinterpret_cast<char*>(address)));
        if (at == nullptr) return false;
        os::dont_dump(at, g.mapped_bytes());
        base = at;
        geometry = g;
        if (!claim(rank)) {
            base = nullptr;
            os::unmap(at, g.mapped_bytes());
            return false;
        }
        me = rank;
        fd_ = os::keep_descriptor(fd);
        file_ = os::file_number(fd);
        offset_ = offset;
        bytes = g.bytes();
    }
    if (this == &own_slices) pthread_atfork(before_a_fork, after_it_in_parent, after_it_in_child);
    return true;
}

void Slices::mark(uint64_t first, uint64_t units, bool used) {
    PartHead& head = own_head();
    for (uint64_t w = first / 64; w * 64 < first + units; ++w) {
        const uint64_t bits = mask(w, first, first + units), now = head.used[w].load(std::memory_order_relaxed);
        head.used[w].store(used ? now | bits : now & ~bits, std::memory_order_relaxed);
    }
}

// The first run of so many free units.
char* Slices::find(uint64_t units, uint64_t align) const {
    const PartHead& head = own_head();
    const uint64_t all = own_bytes / unit_bytes;
    for (uint64_t first = 0; units <= all && first <= all - units;) {
        // From the end of the run: what is used there rules out all starts before it.
        uint64_t w = (first + units - 1) / 64, used = 0;
        for (;; --w) {
            used = head.used[w].load(std::memory_order_relaxed) & mask(w, first, first + units);
            if (used != 0 || w * 64 <= first) break;
        }
        if (used == 0) return own + first * unit_bytes;
        const uint64_t last = w * 64 + 63 - static_cast<uint64_t>(__builtin_clzll(used));
        first = round_up(last + 1, align);
    }
    return nullptr;
}

void* Slices::take(size_t n) {
    if (n > own_bytes) return nullptr;
    const uint64_t units = units_of(n), align = n >= aligned_from ? segment_bytes / unit_bytes : 1;
    SpinGuard guard(lock_);
    char* const p = find(units, align);
    if (p == nullptr) return nullptr;
    mark(static_cast<uint64_t>(p - own) / unit_bytes, units, true);
    PartHead& head = own_head();
    const uint64_t taken = head.taken.load(std::memory_order_relaxed) + units * unit_bytes;
    head.taken.store(taken, std::memory_order_relaxed);
    if (taken > head.most_taken.load(std::memory_order_relaxed)) head.most_taken.store(taken, std::memory_order_relaxed);
    return p;
}

void Slices::give(void* p, size_t n) {
    // Where the allocator gives back less than it took, at either end, what stays is whole units: take() aligns as it wants it.
    const auto at = static_cast<uint64_t>(static_cast<char*>(p) - own);
    const uint64_t first = units_of(at), end = units_of(at + n);
    clear(p, n);
    if (first >= end) return;
    SpinGuard guard(lock_);
    mark(first, end - first, false);
    PartHead& head = own_head();
    head.taken.store(head.taken.load(std::memory_order_relaxed) - (end - first) * unit_bytes, std::memory_order_relaxed);
}

void Slices::clear(void* p, size_t n) {
    if (forked) os::drop_private(p, n);
    else os::punch(p, n);
}

// The descriptor, while it is this file's: the program may have closed it.
int Slices::file() const { return os::file_number(fd_) == file_ ? fd_ : -1; }

void Slices::zero(void* p, size_t n) const {
    auto* const from = static_cast<char*>(p);
    os::zero_data(from, n, forked ? -1 : file(), place(from));
}

// The lock is held until the child has its copy, so that no other thread of the parent takes or gives units meanwhile.
void Slices::before_fork() {
    lock_.lock();
    if (base != nullptr && !forked) os::make_pipe(fork_pipe_);
}

// Waits until the child has its copy, or has ended, or was not made: then no writing end is left.
void Slices::after_fork_in_parent() {
    if (base != nullptr && !forked) {
        os::close_fd(&fork_pipe_[1]);
        char nothing;
        while (fork_pipe_[0] >= 0 && os::read_some(fork_pipe_[0], &nothing, 1) > 0) {}
        os::close_fd(&fork_pipe_[0]);
    }
    lock_.unlock();
}

// Copies what the own part holds; what nobody has touched stays so in the copy. Without the descriptor, all that the allocator has taken.
void Slices::copy_part(char* to) const {
    const int fd = file();
    if (fd >= 0) return os::copy_data(to, own, own_bytes, fd, place(own));
    const PartHead& head = own_head();
    const uint64_t words = own_bytes / unit_bytes / 64;
    for (uint64_t w = 0; w < words; ++w) {
        for (uint64_t bits = head.used[w].load(std::memory_order_relaxed); bits != 0; bits &= bits - 1) {
            const uint64_t at = (w * 64 + static_cast<uint64_t>(__builtin_ctzll(bits))) * unit_bytes;
            os::copy_data(to + at, own + at, unit_bytes, -1, 0);
        }
    }
}

void Slices::after_fork_in_child() {
    lock_.unlock();
    if (base == nullptr || forked) return;
    os::close_fd(&fork_pipe_[0]);
    auto* const copy = static_cast<char*>(os::reserve_private(own_bytes));
    if (copy != nullptr) copy_part(copy);
    if (copy == nullptr || !os::move_mapping(copy, own, own_bytes)) {
        os::say("weft: process %d: a forked child finds no memory for its copy of the heap, and ends", os::process_id());
        os::exit_now(1);
    }
    forked = true;
    // What others have returned meanwhile may be in the list and not in the copy; the parent has it.
    own_head().blocks.forget();
    own_head().memory.forget();
    os::close_fd(&fork_pipe_[1]);
}

}  // namespace weft::heap
