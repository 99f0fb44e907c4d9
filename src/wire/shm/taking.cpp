#include "wire/shm/taking.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/copy.hpp"
#include "os/clock.hpp"

namespace weft::wire::shm {

// Where a trial has shown that taking is better, and it was never seen to be worse.
static bool likely() {
#if defined(__x86_64__)
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

#if defined(__x86_64__)
// Half as many loads: a fifth faster than the other.
__attribute__((target("avx2"))) static void copy_wide(void* to, const void* from, size_t bytes) {
    typedef uint64_t V __attribute__((vector_size(32)));
    copy_and_take<V>(to, from, bytes);
}
#endif

void Taking::copy(void* to, const void* from, size_t bytes) const {
#if defined(__x86_64__)
    if (wide_) return copy_wide(to, from, bytes);
#endif
    typedef uint64_t V __attribute__((vector_size(16)));
    copy_and_take<V>(to, from, bytes);
}

#if defined(__x86_64__)
// A line by one load and one store, and taken between the two: the reader is a fifth faster than by two passes of 16 bytes.
__attribute__((target("avx512f"))) static void copy_past_caches_wide(void* to, const void* from, size_t bytes, bool take) {
    auto* d = static_cast<char*>(to);
    auto* s = static_cast<char*>(const_cast<void*>(from));
    size_t at = -reinterpret_cast<uintptr_t>(d) & 63;
    if (at > bytes) at = bytes;
    memcpy(d, s, at);
    if (take) take_each(s, at);
    for (; at + 256 <= bytes; at += 256) {
        __m512i line[4];
        for (int k = 0; k < 4; ++k) line[k] = _mm512_loadu_si512(s + at + 64 * k);
        if (take)
            for (int k = 0; k < 4; ++k) s[at + static_cast<size_t>(64 * k)] = 0;
        for (int k = 0; k < 4; ++k) _mm512_stream_si512(reinterpret_cast<__m512i*>(d + at + 64 * k), line[k]);
    }
    memcpy(d + at, s + at, bytes - at);
    if (take) {
        take_each(s + at, bytes - at);
        if (bytes != 0) s[bytes - 1] = 0;   // of the last four lines' last part
    }
    _mm_sfence();
}
#endif

void Taking::copy_past_caches(void* to, const void* from, size_t bytes) const {
#if defined(__x86_64__)
    if (widest_) return copy_past_caches_wide(to, from, bytes, now);
#endif
    weft::copy_past_caches(to, from, bytes);
    if (now) take_each(from, bytes);
}

void Taking::start(Choice choice) {
    *this = Taking{};
#if defined(__x86_64__)
    __builtin_cpu_init();
    wide_ = __builtin_cpu_supports("avx2");
    widest_ = __builtin_cpu_supports("avx512f");
#endif
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
    awaited_ = waiting && bytes >= least_chunk ? ring : nullptr;
    since_ns_ = at;
    if (count_ < samples) return;
    const uint64_t found = median(pace_, count_);
    count_ = 0;
    awaited_ = nullptr;
    until_ = passed_ + settle_bytes;
    switch (trial_) {
    case usual:
        usual_ = found;
        now = !now;
        trial_ = other;
        break;
    case other:
        other_ = found;
        now = !now;
        trial_ = again;
        break;
    case again:
        // Both before and after it, as the machine itself may have changed meanwhile.
        if (other_ * 5 < usual_ * 4 && other_ * 5 < found * 4) {
            now = !now;
            rest_ = least_rest;
        } else if (rest_ < most_rest) {
            rest_ *= 4;
        }
        until_ = passed_ + rest_;
        trial_ = usual;
        break;
    }
}

}  // namespace weft::wire::shm
