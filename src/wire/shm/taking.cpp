#include "wire/shm/taking.hpp"

#include "os/clock.hpp"

namespace weft::wire::shm {

// Where a trial has shown that taking is better, and it was never seen to be worse.
static bool likely() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_is("amdfam17h") || __builtin_cpu_is("amdfam19h");
#else
    return false;
#endif
}

static uint64_t median(uint32_t* v, uint32_t n) {
    for (uint32_t i = 1; i < n; ++i)
        for (uint32_t k = i; k > 0 && v[k] < v[k - 1]; --k) {
            const uint32_t x = v[k];
            v[k] = v[k - 1];
            v[k - 1] = x;
        }
    return v[n / 2];
}

void Taking::start(Choice choice) {
    *this = Taking{};
    now = choice == take || (choice == automatic && likely());
    until_ = choice == automatic ? settle_bytes : UINT64_MAX;
    rest_ = least_rest;
}

// Only a chunk that the reader waited for is a sample: then the time between two of them is the writer's, for which this is done.
void Taking::look(const void* ring, uint32_t bytes, bool waiting, const uint64_t* ns) {
    const uint64_t at = ns != nullptr ? *ns : os::now_ns();
    if (awaited_ == ring && bytes >= least_chunk) {
        const uint64_t pace = (at - since_ns_) * 1000 / bytes;
        pace_[count_++] = pace < UINT32_MAX ? static_cast<uint32_t>(pace) : UINT32_MAX;
    }
    awaited_ = waiting ? ring : nullptr;
    since_ns_ = at;
    if (count_ < samples) return;
    const uint64_t found = median(pace_, count_);
    count_ = 0;
    awaited_ = nullptr;
    if (!trying_) {
        usual_ = found;
        now = !now;
        until_ = passed_ + settle_bytes;
        trying_ = true;
        return;
    }
    trying_ = false;
    if (found * 10 < usual_ * 9) {
        rest_ = least_rest;   // the other way it is
    } else {
        now = !now;
        if (rest_ < most_rest) rest_ *= 4;
    }
    until_ = passed_ + rest_;
}

}  // namespace weft::wire::shm
