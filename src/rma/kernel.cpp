#include "rma/kernel.hpp"

#include <cerrno>

#include "lane/lane.hpp"
#include "os/memory.hpp"
#include "type/elements.hpp"

namespace weft::rma {

namespace {

// Copies ranges of the target's memory, as many at once as one system call takes.
class Copier {
public:
    Copier(int pid, bool puts, char* here) : pid_(pid), puts_(puts), here_(here) {}

    // False where copying has ended early.
    bool add(uint64_t at, size_t bytes) {
        if (count_ == os::most_ranges && !flush()) return false;
        ranges_[count_++] = {at, bytes};
        bytes_ += bytes;
        return true;
    }

    bool flush() {
        if (count_ == 0) return true;
        const int64_t n = puts_ ? os::write_process(pid_, ranges_, count_, here_) : os::read_process(pid_, here_, ranges_, count_);
        if (n != static_cast<int64_t>(bytes_)) {
            failed = n < 0 ? static_cast<int>(-n) : EFAULT;
            return false;
        }
        here_ += bytes_;
        count_ = 0;
        bytes_ = 0;
        return true;
    }

    int failed = 0;   // the system's error; what was copied in part is EFAULT

private:
    const int pid_;
    const bool puts_;
    char* here_;
    os::Range ranges_[os::most_ranges];
    int count_ = 0;
    size_t bytes_ = 0;
};

}  // namespace

Err copy_by_kernel(Process& p, Window& w, Way way, char* here, Buffer there, int target, bool* done) {
    Copier c(p.lane->pid(w.comm->routes[target].peer), way == Way::put, here);
    bool plain = true;
    const auto base = reinterpret_cast<uintptr_t>(there.base);
    type::each_run(*there.type, there.count, [&](const type::ElementRun& run) {
        plain = run.type->is(type::Type::dense);
        return plain && c.add(base + static_cast<uintptr_t>(run.offset), static_cast<size_t>(run.count * run.type->size));
    });
    if (!plain) return Err::ok;
    if (c.failed == 0) (void)c.flush();
    *done = c.failed == 0;
    if (c.failed == EFAULT)
        return fail(Err::other, "not all of the %lld bytes of the origin's buffer, or in the part of rank %d, are memory that can be read and written",
                    static_cast<long long>(there.bytes()), target);
    if (c.failed != 0) w.by_kernel.store(false, std::memory_order_relaxed);   // it is not allowed
    return Err::ok;
}

}  // namespace weft::rma
